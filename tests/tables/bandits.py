"""Write the tables of the bandit family: ``python -m tests.tables.bandits``.

All algorithms with what is promised, known and measured, and all broken twins with how they were
caught. Takes about three minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import audit
from algorithms.catalogue import CATALOGUE
from audit.certificate import accountant_epsilon
from audit.claim import AnyClaim
from audit.mechanism import capability
from audit.record import CaseResult

TARGET = Path("reports/bandits.md")
TRIALS, SEED, ALPHA = 20_000, 1, 1e-3
HUGE = 59.9
ALGORITHM_HEADS = (
    "algorithm",
    "view",
    "claim",
    "theorem",
    "accountant",
    "certificate",
    "evidence",
    "verdict",
)
TWIN_HEADS = ("no.", "twin", "bug", "view", "claimed", "really", "caught by", "rule", "trials")
NUMBERS = {
    "half-noise": "",
    "sum-noise": "B1",
    "floor-batch": "B2",
    "swapped-scale": "B3",
    "no-clamp": "B4",
    "overlapping-batches": "B5",
    "raw-skip": "B6",
    "shared-noise": "B7",
    "reseeded-noise": "B7",
    "raw-loss": "B8",
    "one-sided": "B9",
    "weighted-release": "B10",
    "unscaled-noise": "B11",
    "narrow-sensitivity": "B12",
    "inside-updates": "B13",
    "no-fake-switch": "B14",
    "no-budget": "B15",
    "counted-moves": "B15",
    "short-tree": "B16",
    "full-information": "B17",
    "peek": "B18",
    "known-seed": "B19",
}
# What no exact curve says of the pairs offered; the docstring of each twin gives the reason.
REALLY = {
    "shared-noise": "infinite",
    "reseeded-noise": "infinite",
    "raw-loss": "infinite",
    "raw-skip": "infinite",
    "peek": "about 6",
    "known-seed": "infinite",
    "unscaled-noise": "up to 4",
    "narrow-sensitivity": "up to 10 times the original",
    "inside-updates": "unbounded",
    "counted-moves": "up to 44",
}


@dataclass(frozen=True)
class Audited:
    """One catalogue name and what an audit of it found.

    Attributes:
        name: Catalogue name.
        result: The result.
        exact: Exact epsilon of the worst pair at the claim's delta, where a curve is known.
    """

    name: str
    result: CaseResult
    exact: float | None


def algorithms() -> list[str]:
    """Names of all bandits that promise something."""
    names = [name for name in CATALOGUE if name.startswith("bandits/")]
    return [name for name in names if CATALOGUE[name].build().claim is not None]


def twins() -> list[str]:
    """Names of all broken bandits, in the order of `NUMBERS`."""
    return [f"broken/bandit-{name}" for name in NUMBERS]


def audited(name: str, trials: int = TRIALS) -> Audited:
    """Audit one name, with the likelihood alone where it is known: nothing beats it."""
    mechanism = CATALOGUE[name].build()
    known = capability(mechanism, "log_likelihood_ratio", mechanism.claim.view) is not None
    attacks = ["likelihood"] if known else None
    result = audit.examine(mechanism, trials=trials, seed=SEED, alpha=ALPHA, attacks=attacks)
    delta = getattr(mechanism.claim, "delta", 0.0)
    return Audited(name, result, accountant_epsilon(mechanism, mechanism.pairs(), delta))


def algorithm_row(found: Audited) -> tuple[str, ...]:
    """Cells under `ALGORITHM_HEADS`."""
    result, ladder = found.result, found.result.ladder
    certificate = number(ladder.certificate) if ladder else ""
    return (
        found.name.removeprefix("bandits/"),
        result.view,
        str(result.claim),
        number(promised(result.claim)),
        number(found.exact),
        certificate,
        number(result.epsilon_lower),
        result.verdict,
    )


def twin_row(found: Audited) -> tuple[str, ...]:
    """Cells under `TWIN_HEADS`."""
    result, short = found.result, found.name.removeprefix("broken/bandit-")
    choice = result.choice
    rules = sorted({finding.rule for finding in result.findings})
    return (
        NUMBERS[short],
        short,
        CATALOGUE[found.name].summary.partition(": ")[0],
        result.view,
        str(result.claim),
        number(found.exact) or REALLY[short],
        f"{choice.attack}, {result.verdict}" if choice else result.verdict,
        " ".join(rules),
        str(result.trials + result.scouting),
    )


def promised(claim: AnyClaim) -> float:
    """Epsilon that a claim allows at its own delta."""
    return claim.epsilon_at(getattr(claim, "delta", 0.0))


def number(value: float | None) -> str:
    """Four digits; nothing for None."""
    if value is None:
        return ""
    return "infinite" if value > HUGE else f"{value:.4g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a markdown table."""
    return [line(heads), line(["---"] * len(heads)), *map(line, rows)]


def line(cells: Sequence[str]) -> str:
    """One line of a markdown table."""
    return "|" + "|".join(cells) + "|"


def document(right: Iterable[Audited], broken: Iterable[Audited]) -> str:
    """Both tables with their explanations."""
    lines = [
        "# Private bandits: promised, known, measured",
        "",
        f"Each line is one audit with {TRIALS:,} trials at most, alpha {ALPHA:g} and seed {SEED}.",
        "*Theorem* is the claimed epsilon at the claim's delta, *accountant* the exact one of the",
        "worst pair offered, *certificate* what up to 1,000 exact privacy losses of the chosen",
        "pair show of the algorithm, and *evidence* what counting certifies of the code. An empty",
        "cell means that no exact curve, or no exact likelihood ratio, is known. All are about the",
        "view. Names that begin with passes do something that looks wrong and is private.",
        "Written by `python -m tests.tables.bandits`.",
        "",
        "## Algorithms",
        "",
        *table(ALGORITHM_HEADS, map(algorithm_row, right)),
        "",
        "## Broken twins",
        "",
        "*Really* is the exact epsilon of the worst pair offered, or else what the twin's",
        "docstring derives. *Caught by* names the attack whose counts refuted the claim; *trials*",
        "include scouting. All are caught by counting what the code emits; none needs a",
        "certificate. DP012 says that the density which the twin states refutes its claim too.",
        "",
        *table(TWIN_HEADS, map(twin_row, broken)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Audit everything and write the tables."""
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    text = document(map(audited, algorithms()), map(audited, twins()))
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
