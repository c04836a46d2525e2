"""What the words of a report mean, and what no audit can show."""

from __future__ import annotations

GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Abstain",
        "The attack may decline to guess where its score says little; only guesses count.",
    ),
    (
        "Accountant",
        "The exact epsilon of the chosen pair, computed from the noise that the algorithm states;"
        " nothing is played for it.",
    ),
    (
        "Alpha",
        "The probability, fixed beforehand, that a certified statement of the run is wrong. It is"
        " shared out among the cases.",
    ),
    (
        "Blind",
        "The audit would not reliably have caught a violation of the size that matters, so that"
        " finding nothing means nothing.",
    ),
    (
        "Canary",
        "The record in which the two inputs of a pair differ, chosen so that it leaves a trace if"
        " anything does.",
    ),
    (
        "Certified",
        "A lower bound on the true epsilon that holds with the stated confidence for finitely many"
        " trials, whatever the mechanism and the attack are.",
    ),
    (
        "Control",
        "A mechanism that is known to be broken. It must be caught, or the audit has no teeth.",
    ),
    (
        "Could have caught",
        "The smallest true epsilon that this audit would have refuted with probability 0.8, within"
        " a named family of alternatives.",
    ),
    (
        "Certificate",
        "A lower bound on the epsilon of the algorithm itself, from exact privacy losses that its"
        " density states. It speaks of the algorithm, the evidence speaks of the code.",
    ),
    (
        "Delta",
        "The slack of an approximate claim: the excess probability that an event may have on one"
        " side after multiplying the other side's by e to the epsilon.",
    ),
    (
        "E-process",
        "The wealth of a gambler who bets against the claim at odds that are fair if the claim is"
        " true. It rarely grows large then, so looking at it after every block costs nothing.",
    ),
    (
        "Epsilon",
        "The privacy loss: no event may become more than e to the epsilon times likelier (up to"
        " delta) when one record changes.",
    ),
    (
        "Evidence",
        "How often each range of the attack's score came up when the input was the left one, and"
        " when it was the right one, in trials that no choice was based on.",
    ),
    (
        "False alarm, miss",
        "The two errors of an adversary who must say left or right: saying left when it was right,"
        " and saying right when it was left.",
    ),
    (
        "Gap by round",
        "How far the two sides are apart in one round alone: the largest difference in the"
        " probability that the value there stays below some threshold. It is measured in scouting"
        " and certifies nothing; a leak that is spread over many rounds may show in none.",
    ),
    (
        "Hockey-stick divergence",
        "The smallest delta that goes with an epsilon for one pair of inputs: the largest value of"
        " P(event on one side) - e^epsilon P(event on the other side).",
    ),
    (
        "Ladder",
        "Theorem, accountant, certificate, evidence: what is promised, what is exactly known of the"
        " chosen pair, what is certified of the algorithm, and what is certified of the code.",
    ),
    (
        "Neighbouring inputs",
        "Two inputs that differ in one record (or in all records of one user), under the relation"
        " that the claim names.",
    ),
    (
        "Refuted, not refuted",
        "Refuted: the certified bound lies above the claim. Not refuted: this attack, on these"
        " pairs, with these trials, did not get that far.",
    ),
    (
        "Scouting, testifying",
        "Scouting trials choose the pair, the attack and the decision rule; then that one frozen"
        " choice is judged on fresh, testifying trials.",
    ),
    (
        "Trade-off function",
        "For every false-alarm rate, the smallest miss rate that a claim leaves to any adversary."
        " An attack whose true error rates lie below the curve refutes the claim.",
    ),
    (
        "Transcript",
        "Everything that the implementation releases over all rounds, as opposed to a projection"
        " such as the actions alone.",
    ),
    (
        "View",
        "The part of the output that the claim speaks about, and that the adversary sees: values,"
        " but also shapes, missing steps and exceptions.",
    ),
)

THREATS: dict[str, str] = {
    "bits": (
        "Trailing bits of floating-point numbers, which can tell the inputs apart although the"
        " real numbers that they stand for cannot."
    ),
    "duration": "The run time of every trial as part of what the adversary sees.",
    "seed": "Few seeds, which can all be tried, and state that one trial leaves to the next.",
}
OTHER_THREAT = "An opt-in threat of this run's plan."

LIMITS: tuple[str, ...] = (
    "An audit gives lower bounds. That a claim is not refuted does not show that it holds: a"
    " stronger attack, another pair or more trials may refute it.",
    "Only the pairs that were offered were played. The worst pair may not be among them.",
    "A refutation speaks of the code as it ran here, with these versions and parameters, and of"
    " the named view.",
    "Threats that were not run were not looked at.",
    "Estimates carry no guarantee; only certified figures do.",
)


def threat_meaning(name: str) -> str:
    """What a threat is about."""
    return THREATS.get(name, OTHER_THREAT)
