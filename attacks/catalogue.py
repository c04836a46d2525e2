"""The attack battery, in the order in which scouting tries it: one line each."""

CATALOGUE: dict[str, str] = {
    "likelihood": "attacks.likelihood:Likelihood",
    "prices": "attacks.prices:Prices",
    "form": "attacks.events:Form",
    "atoms": "attacks.atoms:Atoms",
    "leaf": "attacks.events:Leaf",
    "membership": "attacks.membership:Membership",
    "logistic": "attacks.classifier:Logistic",
    "boosting": "attacks.classifier:Boosting",
    "trajectory": "attacks.trajectory:Trajectory",
    "shadow": "attacks.shadow:Shadow",
    "bits": "attacks.bits:Bits",
    "shift": "attacks.shift:Shift",
}
