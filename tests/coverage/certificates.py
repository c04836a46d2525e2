"""Coverage of certificates, ranks, groups, fixed numbers of guesses and the cross-check.

Every law sits at the exact boundary of its null: the revealing box, Gaussians whose mu is the
null, labels that follow the stated density.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special, stats

from audit.certificate import calibration_log_wealth, certified_epsilon
from audit.claim import ApproxDp, Claim, PureDp, RenyiDp, gaussian_mu
from audit.crosscheck import fixed_guesses_epsilon, two_sided_epsilon
from audit.ranksum import rank_sum_mu
from audit.renyi import Belief, renyi_bet, renyi_divergence
from tests.coverage.laws import (
    Row,
    binomial_excess,
    guess_counts,
    margin,
    revealed,
    smallest,
)

Floats = npt.NDArray[np.float64]

ALPHA = 0.05
EPSILONS = (0.1, 1.0, 4.0)
COARSE = {"128 bins": 128, "3 bins": 3, "2 unequal bins": 0}


def fixed_rows(trials: tuple[int, ...] = (1_000, 100_000)) -> Iterator[Row]:
    """A number of guesses fixed in advance; the adversary guesses what is revealed first. Exact."""
    for n in trials:
        for epsilon in EPSILONS:
            for delta in (1e-5, 1e-2):
                for share in (1.0, 0.1, 0.01):
                    guesses = max(1, round(share * n))
                    excess = fixed_excess(epsilon, delta, n, guesses)
                    away = f"{1 - share:g}"
                    yield Row("guesses fixed before", epsilon, delta, n, away, ALPHA, excess)


def fixed_excess(epsilon: float, delta: float, trials: int, guesses: int) -> float:
    """P(certified > true) of `fixed_guesses_epsilon` on the revealing box: exact."""
    critical = smallest(
        lambda v: fixed_guesses_epsilon(v, guesses, ALPHA, delta=delta, trials=trials) > epsilon,
        guesses,
    )
    numbers, weights = revealed(trials, delta)
    known = np.minimum(numbers, guesses)
    tail = stats.binom.sf(critical - known - 1, guesses - known, special.expit(epsilon))
    return float(weights @ tail)


def group_rows(trials: int = 1_000) -> Iterator[Row]:
    """The binomial bound at the boundary of what a claim implies for a group. Exact."""
    claims: tuple[Claim, ...] = (PureDp(epsilon=0.4), ApproxDp(epsilon=0.4, delta=1e-3))
    for claim in claims:
        for records in (2, 5):
            epsilon, delta = claim.group(records).points()[0]
            guesses = guess_counts(trials, delta, ALPHA) if delta else [trials]
            excess = binomial_excess(epsilon, delta, trials, guesses, ALPHA)
            who = f"group of {records}, claim {claim}"
            yield Row(who, epsilon, delta, trials, "by what is revealed", ALPHA, excess)


def certificate_rows(repetitions: int = 1_000) -> Iterator[Row]:
    """Certificates from exact losses: the box, and Gaussians, plain and tilted. Simulated."""
    slack = margin(ALPHA, repetitions)
    for runs in (100, 1_000):
        for epsilon, delta in ((1.0, 1e-2), (4.0, 1e-2), (1.0, 1e-5)):
            who = "certificate, revealing box"
            excess = box_certificate_excess(epsilon, delta, runs, repetitions)
            yield Row(who, epsilon, delta, runs, "", ALPHA, excess, slack)
            for tilted in (False, True):
                who = f"certificate, Gaussian, {'tilted' if tilted else 'plain'}"
                excess = gaussian_certificate_excess(epsilon, delta, runs, repetitions, tilted)
                yield Row(who, epsilon, delta, runs, "", ALPHA, excess, slack)


def box_certificate_excess(epsilon: float, delta: float, runs: int, repetitions: int) -> float:
    """P(certified > true) when losses are infinite with probability delta, else +-epsilon."""
    rng = np.random.default_rng(31)
    exceeded = 0
    for _ in range(repetitions):
        honest = rng.random(runs) < special.expit(epsilon)
        losses = np.where(rng.random(runs) < delta, np.inf, np.where(honest, epsilon, -epsilon))
        found = certified_epsilon(losses, np.zeros(runs), ALPHA, delta)
        exceeded += found > epsilon * (1 + 1e-9)
    return exceeded / repetitions


def gaussian_certificate_excess(
    epsilon: float, delta: float, runs: int, repetitions: int, tilted: bool
) -> float:
    """P(certified > true) on a Gaussian that is exactly (epsilon, delta)-DP."""
    rng, mu = np.random.default_rng(32), gaussian_mu(epsilon, delta)
    tilt = 1.08 * epsilon / mu**2 - 0.5 if tilted else 0.0
    exceeded = 0
    for _ in range(repetitions):
        losses = mu * rng.normal(mu / 2 + tilt * mu, 1.0, runs)
        # log of N(mu/2, 1) over N(mu/2 + tilt mu, 1) at the loss over mu
        log_weights = -tilt * losses + tilt * mu**2 / 2 + (tilt * mu) ** 2 / 2
        found = certified_epsilon(losses, log_weights, ALPHA, delta)
        exceeded += found > epsilon * (1 + 1e-9)
    return exceeded / repetitions


def calibration_rows(repetitions: int = 2_000) -> Iterator[Row]:
    """The test of the stated density, at its largest moment, when labels follow it. Simulated."""
    slack = margin(ALPHA, repetitions)
    for epsilon in EPSILONS:
        for law in ("Laplace", "Gaussian"):
            excess = calibration_excess(epsilon, law, 1_000, repetitions)
            who = f"calibration, {law}, optional stopping"
            yield Row(who, epsilon, 0.0, 1_000, "0", ALPHA, excess, slack)


def calibration_excess(epsilon: float, law: str, trials: int, repetitions: int) -> float:
    """P(largest wealth >= 1/alpha) with fair labels and the right density."""
    rng = np.random.default_rng(33)
    crossed = 0
    for _ in range(repetitions):
        labels = rng.random(trials) < 0.5
        if law == "Laplace":
            y = rng.laplace(0.0, 1 / epsilon, trials) + ~labels
            losses = epsilon * (np.abs(y - 1) - np.abs(y))
        else:
            losses = epsilon * rng.normal(np.where(labels, 0.5, -0.5) * epsilon, 1.0, trials)
        crossed += calibration_log_wealth(losses, labels) >= -np.log(ALPHA)
    return crossed / repetitions


def rank_rows(
    trials: tuple[int, ...] = (200, 2_000, 20_000), repetitions: int = 300
) -> Iterator[Row]:
    """The rank sum on the Gaussian itself, fine and in coarse bins. Simulated."""
    slack = margin(ALPHA, repetitions)
    for n in trials:
        for mu in (0.268, 1.0, 3.0):
            for name, bins in COARSE.items():
                excess = rank_excess(mu, n, bins, repetitions)
                yield Row(f"mu by ranks, {name}", mu, 0.0, n, "0", ALPHA, excess, slack)


def rank_excess(mu: float, trials: int, bins: int, repetitions: int) -> float:
    """P(certified mu > mu) when scores are the Gaussian values in bins."""
    rng = np.random.default_rng(34)
    levels = np.arange(1, bins) / bins if bins else np.array([0.97])
    edges = special.ndtri(levels) + mu / 2
    exceeded = 0
    for _ in range(repetitions):
        lefts = int(rng.binomial(trials, 0.5))
        sides = (rng.normal(mu, 1.0, lefts), rng.normal(0.0, 1.0, trials - lefts))
        counts = [np.bincount(np.searchsorted(edges, s), minlength=len(edges) + 1) for s in sides]
        exceeded += rank_sum_mu(counts[0], counts[1], ALPHA, 0) > mu
    return exceeded / repetitions


def renyi_rows(trials: tuple[int, ...] = (200, 5_000), repetitions: int = 2_000) -> Iterator[Row]:
    """Renyi divergences at any of twenty looks; the true one stands as epsilon. Simulated."""
    slack = margin(ALPHA, repetitions)
    for n in trials:
        for name, law in renyi_laws().items():
            for order in (1.1, 2.0, 5.0):
                truth = renyi_truth(law, order)
                excess = renyi_excess(law, order, n, repetitions)
                who = f"Renyi divergence of order {order:g}, {name}, optional stopping"
                yield Row(who, truth, 0.0, n, "0", ALPHA, excess, slack)


def renyi_laws() -> dict[str, Floats]:
    """Laws of score bins, shape (2, bins): Gaussians in cells, and one rare bin."""
    cuts = np.linspace(-1.0, 1.0, 19)
    cells = [
        np.diff(np.concatenate([[0.0], special.ndtr(cuts - shift), [1.0]])) for shift in (0.5, -0.5)
    ]
    return {
        "Gaussian of mu 1": np.stack(cells),
        "a bin of 4 and 1 %": np.array([[0.04, 0.96], [0.01, 0.99]]),
    }


def renyi_truth(law: Floats, order: float) -> float:
    """Renyi divergence of the left law of a given order."""
    return float(np.log((law[0] ** order * law[1] ** (1 - order)).sum()) / (order - 1))


def renyi_excess(law: Floats, order: float, trials: int, repetitions: int) -> float:
    """P(certified divergence > true) with a bet that stakes nearly all it has."""
    rng, truth = np.random.default_rng(36), renyi_truth(law, order)
    posterior = law[0] / law.sum(axis=0)
    claim = RenyiDp(order=order, epsilon=truth / 2)
    chosen = renyi_bet(Belief(law, posterior, posterior), claim, trials=trials, alpha=ALPHA)
    fields = {"order": order, "left": True, "anchor": float(law[1] @ (law[0] / law[1]) ** order)}
    bet = msgspec.structs.replace(chosen, shrink=1.0, cap=1e3, stake=0.99, **fields)
    exceeded = 0
    for _ in range(repetitions):
        looks = np.stack([rng.multinomial(trials // 20, law.ravel() / 2) for _ in range(20)])
        prefixes = np.cumsum(looks.reshape(20, 2, -1), axis=0)
        exceeded += renyi_divergence(prefixes, bet, ALPHA) > truth
    return exceeded / repetitions


def crosscheck_rows(repetitions: int = 4_000) -> Iterator[Row]:
    """Two marginal Clopper-Pearson bounds on the revealing box. Simulated."""
    slack = margin(ALPHA, repetitions)
    for n in (100, 10_000):
        for epsilon in EPSILONS:
            for delta in (0.0, 1e-2):
                excess = crosscheck_excess(epsilon, delta, n, repetitions)
                who = "cross-check, two Clopper-Pearson"
                yield Row(who, epsilon, delta, n, "0", ALPHA, excess, slack)


def crosscheck_excess(epsilon: float, delta: float, trials: int, repetitions: int) -> float:
    """P(cross-check > true): rules "says right", "says left", "reveals left" on the box."""
    rng = np.random.default_rng(35)
    sure = float(special.expit(epsilon))
    left = np.array([0.0, (1 - delta) * (1 - sure), (1 - delta) * sure, delta])
    exceeded = 0
    for _ in range(repetitions):
        lefts = int(rng.binomial(trials, 0.5))
        counts = np.stack(
            [rng.multinomial(lefts, left), rng.multinomial(trials - lefts, left[::-1])]
        )
        exceeded += two_sided_epsilon(counts, [-1, -1, 1, 1], ALPHA, delta) > epsilon
    return exceeded / repetitions


def all_rows() -> Iterator[Row]:
    """Every row, at full size."""
    yield from fixed_rows()
    yield from group_rows()
    yield from certificate_rows()
    yield from calibration_rows()
    yield from rank_rows()
    yield from renyi_rows()
    yield from crosscheck_rows()
