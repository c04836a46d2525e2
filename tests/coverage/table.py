"""Write the coverage table: ``python -m tests.coverage.table [AUDITS]``.

Every bound at the exact boundary of its null against the worst law, and the whole audit on
mechanisms without slack. Takes about a quarter of an hour with 1,000 audits per mechanism.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.coverage import certificates, laws, onerun
from tests.coverage.laws import Row
from tests.coverage.pipeline import pipeline_rows

ALPHA = 0.05
EPSILONS = (0.1, 1.0, 4.0)
DELTAS = (0.0, 1e-5, 1e-2)
TRIALS = (100, 1_000, 10_000, 100_000)
ABSTENTION = (0.0, 0.5, 0.9, 0.99)
WALKED = (100, 300, 1_000)
REPETITIONS = 4_000
AUDITS = 1_000
TARGET = Path("reports/coverage.md")


def binomial_rows(trials: Iterable[int] = TRIALS) -> Iterator[Row]:
    """The binomial bound, fixed numbers of guesses and an adversary who chooses how many."""
    for n in trials:
        for epsilon, delta in points():
            for share in ABSTENTION:
                guesses = [max(1, round((1 - share) * n))]
                excess = laws.binomial_excess(epsilon, delta, n, guesses, ALPHA)
                yield Row("binomial", epsilon, delta, n, f"{share:g}", ALPHA, excess)
            guesses = laws.guess_counts(n, delta, ALPHA)
            excess = laws.binomial_excess(epsilon, delta, n, guesses, ALPHA)
            yield Row("binomial", epsilon, delta, n, "by what is revealed", ALPHA, excess)


def ranked_rows(trials: Iterable[int] = WALKED) -> Iterator[Row]:
    """The ranked walk with a look after every guess: at any abstention it can only look less."""
    for n in trials:
        for epsilon, delta in points():
            excess = laws.ranked_excess(epsilon, delta, n, ALPHA)
            yield Row("ranked walk, any end", epsilon, delta, n, "any", ALPHA, excess)


def betting_rows(trials: Iterable[int] = WALKED, repetitions: int = REPETITIONS) -> Iterator[Row]:
    """The betting test stopped at its first crossing, a look after every trial."""
    for n in trials:
        for epsilon in EPSILONS:
            for posterior in (laws.told(epsilon), 0.999):
                who = f"betting on {posterior:.3g}, optional stopping"
                excess = laws.betting_excess(epsilon, n, posterior, ALPHA)
                yield Row(who, epsilon, 0.0, n, "0", ALPHA, excess)
            for delta in DELTAS[1:]:
                excess = laws.box_betting_excess(epsilon, delta, n, repetitions, ALPHA)
                slack = laws.margin(ALPHA, repetitions)
                who = "betting, optional stopping"
                yield Row(who, epsilon, delta, n, "0", ALPHA, excess, slack)


def gaussian_rows(trials: Iterable[int] = TRIALS) -> Iterator[Row]:
    """The bound on mu; the true parameter stands in the column of epsilon."""
    for n in trials:
        for mu in (0.1, 0.268, 1.0, 4.0):
            yield Row(
                "mu of a Gaussian", mu, 0.0, n, "0", ALPHA, laws.gaussian_excess(mu, n, ALPHA)
            )


def points() -> Iterator[tuple[float, float]]:
    """Every epsilon with every delta."""
    return ((epsilon, delta) for epsilon in EPSILONS for delta in DELTAS)


def markdown(rows: Iterable[Row]) -> str:
    """The table."""
    lines = [
        "# Coverage: how often a certified bound exceeds the truth",
        "",
        "Each line is measured at the exact boundary of the null, against the worst law:",
        "randomised response for delta = 0, and for delta > 0 the box that reveals the label with",
        "probability delta, played by an adversary who knows which ones are revealed. A tolerance",
        "of 0 means that the probability is exact, not simulated; otherwise a valid bound exceeds",
        "nominal + tolerance with probability 1e-4. Written by `python -m tests.coverage.table`.",
        "",
        "|who|epsilon (or mu)|delta|trials|abstention|nominal|measured|tolerance|holds|",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"|{r.who}|{r.epsilon:g}|{r.delta:g}|{r.trials}|{r.abstention}|{r.nominal:g}"
        f"|{r.measured:.4f}|{r.tolerance:.4f}|{'yes' if r.holds else '**no**'}|"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


def main(audits: int = AUDITS) -> None:
    """Measure everything and write the table."""
    rows = [*binomial_rows(), *ranked_rows(), *betting_rows(), *gaussian_rows()]
    rows += [*certificates.all_rows()]
    rows += [*onerun.guess_rows(), *onerun.mu_rows(), *onerun.bet_rows()]
    rows += [*pipeline_rows(600, audits), *pipeline_rows(2_000, audits)]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(markdown(rows), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else AUDITS)
