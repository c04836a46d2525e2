"""How often the bounds of one run exceed the truth, at the exact boundary of their nulls.

Laws: m canaries, each in a box of its own that reveals its coin with probability delta and tells
it truthfully with probability sigmoid(epsilon) otherwise; the burst, in which the coins of k
canaries are revealed together or not at all; Gaussian noise on every canary; and, for betting, one
noisy sum of all coins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from audit.canary_bets import posterior_log_e_value
from audit.onerun import one_run_mu, one_run_rejects
from audit.onerun_judge import testify
from audit.onerun_power import Design
from audit.result import right_and_wrong
from tests.coverage.laws import Row, margin, revealed, smallest

Floats = npt.NDArray[np.float64]

EPSILONS = (0.1, 1.0, 4.0)
DELTAS = (0.0, 1e-5, 1e-3)
SHARES = (0.1, 0.5, 1.0)
CANARIES = (100, 1_000, 10_000, 1_000_000)
TESTS = ("one-run", "trade-off")
ALPHA = 0.05


def critical(epsilon: float, delta: float, canaries: int, guesses: int, test: str) -> int:
    """Right guesses from which the truth is rejected."""
    return smallest(
        lambda v: one_run_rejects(v, guesses, canaries, epsilon, ALPHA, delta=delta, test=test),
        guesses,
    )


def box_excess(epsilon: float, delta: float, canaries: int, guesses: int, test: str) -> float:
    """P(the truth is rejected) when revealed canaries are guessed first: exact."""
    needed = critical(epsilon, delta, canaries, guesses, test)
    numbers, weights = revealed(canaries, delta)
    known = np.minimum(numbers, guesses)
    tail = stats.binom.sf(needed - known - 1, guesses - known, special.expit(epsilon))
    return float(weights @ tail)


def burst_excess(epsilon: float, delta: float, canaries: int, guesses: int, test: str) -> float:
    """P(the truth is rejected) when k canaries are revealed at once, for the worst k: exact.

    Each coin is revealed with probability delta, since bursts come with probability m delta / k.
    """
    needed, sure = critical(epsilon, delta, canaries, guesses, test), special.expit(epsilon)
    most = min(guesses, canaries)
    k = np.unique(np.geomspace(max(1.0, canaries * delta), most, 200).astype(int))
    k = k[k >= canaries * delta]
    if len(k) == 0:
        return 0.0
    chance = canaries * delta / k
    burst = stats.binom.sf(needed - k - 1, guesses - k, sure)
    quiet = stats.binom.sf(needed - 1, guesses, sure)
    return float(np.max(chance * burst + (1 - chance) * quiet))


def right_guesses(scores: Floats, left: npt.NDArray[np.bool_], guesses: int) -> int:
    """How many of the guesses at the extremes are right."""
    said = testify(Design(len(scores), guesses, 1.0, 0.0, "one-run", {}), scores, left, "test")
    return int(right_and_wrong(said.choice, said.counts)[0].sum())


def gaussian_excess(mu: float, canaries: int, guesses: int, repetitions: int) -> float:
    """P(certified mu > mu) with Gaussian noise on every canary, simulated."""
    needed = smallest(lambda v: one_run_mu(v, guesses, canaries, ALPHA) > mu, guesses)
    rng, right = np.random.default_rng(11), np.empty(repetitions, dtype=int)
    for i in range(repetitions):
        left = rng.random(canaries) < 0.5
        right[i] = right_guesses(mu * left + rng.standard_normal(canaries), left, guesses)
    return float(np.mean(right >= needed))


def told_excess(epsilon: float, canaries: int, posterior: float) -> float:
    """P(e-value of the truth >= 1/alpha) when every coin is told truthfully or not: exact."""
    totals = [
        posterior_log_e_value(
            np.full(canaries, posterior), np.arange(canaries) < v, [epsilon]
        ).item()
        for v in range(canaries + 1)
    ]
    needed = int(np.argmax(np.array(totals) >= -np.log(ALPHA)))
    if totals[needed] < -np.log(ALPHA):
        return 0.0
    return float(stats.binom.sf(needed - 1, canaries, special.expit(epsilon)))


def sum_posteriors(output: Floats, left: npt.NDArray[np.bool_], epsilon: float) -> Floats:
    """P(left | sum of the coins + Laplace noise of scale 1/epsilon, the coins before).

    Args:
        output: Shape (runs,).
        left: The coins, shape (runs, m).
        epsilon: What the noise is believed to be.

    Returns:
        Shape (runs, m).
    """
    runs, m = left.shape
    seen = np.cumsum(left, axis=1) - left
    found = np.empty((runs, m))
    for i in range(m):
        rest = np.arange(m - i)
        weight = stats.binom.pmf(rest, m - i - 1, 0.5)
        gap = output[:, None] - seen[:, i, None] - rest
        one, none = (np.exp(-epsilon * np.abs(gap - b)) @ weight for b in (1, 0))
        found[:, i] = one / (one + none)
    return found


def sum_log_e_values(
    true: float, believed: float, null: float, canaries: int, runs: int, repetitions: int
) -> Floats:
    """Log e-values of `runs` runs, each with one noisy sum of its coins; shape (repetitions,)."""
    rng = np.random.default_rng(canaries)
    left = rng.random((repetitions * runs, canaries)) < 0.5
    output = left.sum(axis=1) + rng.laplace(scale=1 / true, size=len(left))
    posterior = sum_posteriors(output, left, believed).reshape(repetitions, -1)
    coins = left.reshape(repetitions, -1)
    return np.array(
        [posterior_log_e_value(p, b, [null]).item() for p, b in zip(posterior, coins, strict=True)]
    )


def guess_rows(canaries: Iterable[int] = CANARIES) -> Iterator[Row]:
    """Both tests of epsilon against boxes and bursts."""
    for m in canaries:
        for epsilon in EPSILONS:
            for delta in DELTAS:
                for share in SHARES:
                    yield from _guess_rows(epsilon, delta, m, share)


def _guess_rows(epsilon: float, delta: float, m: int, share: float) -> Iterator[Row]:
    r, abstention = round(share * m), f"{1 - share:g}"
    for test in TESTS:
        excess = box_excess(epsilon, delta, m, r, test)
        yield Row(f"{test}, boxes", epsilon, delta, m, abstention, ALPHA, excess)
        if delta > 0:
            excess = burst_excess(epsilon, delta, m, r, test)
            yield Row(f"{test}, bursts", epsilon, delta, m, abstention, ALPHA, excess)


def mu_rows(canaries: Iterable[int] = (100, 1_000), repetitions: int = 4_000) -> Iterator[Row]:
    """The bound on mu; the true parameter stands in the column of epsilon."""
    for m in canaries:
        for mu in (0.268, 1.0, 4.0):
            for share in (0.1, 1.0):
                excess = gaussian_excess(mu, m, round(share * m), repetitions)
                slack = margin(ALPHA, repetitions)
                yield Row("one run, mu", mu, 0.0, m, f"{1 - share:g}", ALPHA, excess, slack)


def bet_rows(repetitions: int = 4_000) -> Iterator[Row]:
    """The e-value: told coins, and coins that share one noisy sum in each of 60 runs."""
    for epsilon in EPSILONS:
        for m in (100, 1_000):
            for excess in (1.0, 3.0):
                odds = epsilon + excess / np.sqrt(
                    m * special.expit(epsilon) * special.expit(-epsilon)
                )
                measured = told_excess(epsilon, m, float(special.expit(odds)))
                yield Row("e-value, told coins", epsilon, 0.0, m, "0", ALPHA, measured)
    for m in (1, 5, 20):
        for believed in (1.5, 4.0):
            values = sum_log_e_values(1.0, believed, 1.0, m, 60, repetitions)
            who = f"e-value, one sum a run, believed epsilon {believed:g}"
            measured = float(np.mean(values >= -np.log(ALPHA)))
            slack = margin(ALPHA, repetitions)
            yield Row(who, 1.0, 0.0, 60 * m, "0", ALPHA, measured, slack)
