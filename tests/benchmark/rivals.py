"""Whole procedures of other auditors on one number per trial, re-implemented in numpy.

None of this is their code. Each follows the published description and default sizes: how events
are found, on how many samples, and what is tested on fresh ones. `scale` multiplies all sizes, so
that a procedure may be given fewer samples in its own proportions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

Floats = npt.NDArray[np.float64]
Play = Callable[[bool, int], Floats]
"""Samples of one side: left or not, and how many."""

_BATCH = 100_000
_DRAWS = 200
_LARGEST = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """What a procedure says about a claim.

    Attributes:
        refuted: Whether it refutes.
        samples: Runs of the mechanism that it took.
    """

    refuted: bool
    samples: int


@dataclass(frozen=True)
class Rival:
    """A published procedure.

    Attributes:
        name: Whose.
        source: Where it is described.
        samples: Runs of the mechanism at its published sizes, for one pair.
        decide: Play, epsilon, alpha, generator and scale to a verdict.
    """

    name: str
    source: str
    samples: int
    decide: Callable[[Play, float, float, np.random.Generator, float], Verdict]


def statdp(
    play: Play, epsilon: float, alpha: float, rng: np.random.Generator, scale: float = 1.0
) -> Verdict:
    """StatDP: ten half-lines over the densest 70 %, the one with the least p-value tested anew.

    The test is Fisher's, on a count thinned with probability exp(-epsilon), its p-value averaged
    over 200 thinnings; 100,000 samples a side choose the event and 500,000 test it.
    """
    seek, test = max(10, int(100_000 * scale)), max(10, int(500_000 * scale))
    sides = [play(left, seek) for left in (True, False)]
    cuts = _densest(np.concatenate(sides))
    counts = [sorted((int(np.sum(s < cut)) for s in sides), reverse=True) for cut in cuts]
    least = 0.001 * seek * math.exp(epsilon)
    p_values = [_fisher(a, b, epsilon, seek, rng) if a + b > least else math.inf for a, b in counts]
    cut = cuts[int(np.argmin(p_values))]
    fresh = sorted((int(np.sum(play(left, test) < cut)) for left in (True, False)), reverse=True)
    return Verdict(_fisher(*fresh, epsilon, test, rng) < alpha, 2 * (seek + test))


def _densest(values: Floats) -> Floats:
    ordered = np.sort(values)
    span = int(0.7 * len(ordered))
    start = int(np.argmin(ordered[span:] - ordered[:-span]))
    return np.linspace(ordered[start], ordered[start + span], 10)


def _fisher(most: int, fewest: int, epsilon: float, n: int, rng: np.random.Generator) -> float:
    thinned = rng.binomial(most, math.exp(-epsilon), _DRAWS)
    return float(np.mean(stats.hypergeom.sf(thinned - 1, 2 * n, n, thinned + fewest)))


def sniper(
    play: Play, epsilon: float, alpha: float, rng: np.random.Generator, scale: float = 1.0
) -> Verdict:
    """DP-Sniper: a logistic curve, the event of probability .01 on one side, two exact bounds.

    10.7 million samples a side train the curve (ten passes over every batch of 100,000, momentum),
    10.7 million set the threshold, 10.7 million a side compare pairs, of which there is one here,
    and 200 million a side bound the two probabilities, each at alpha / 2.
    """
    train = seek = check = max(10, int(10_700_000 * scale))
    final = max(10, int(200_000_000 * scale))
    weights = _trained(play, train)
    odds = np.concatenate([_odds(weights, play(False, n)) for n in _parts(seek)])
    above = math.floor(0.01 * seek)
    cut = float(np.partition(odds, seek - 1 - above)[seek - 1 - above])
    tied = int(np.sum(odds == cut))
    share = (0.01 * seek - int(np.sum(odds > cut))) / tied
    for left in (True, False):
        _hits(play, left, check, weights, cut, share, rng)
    hits, others = (_hits(play, left, final, weights, cut, share, rng) for left in (True, False))
    low = special.betaincinv(hits, final - hits + 1, alpha / 2) if hits else 0.0
    high = special.betaincinv(others + 1, final - others, 1 - alpha / 2) if others < final else 1.0
    refuted = low > 0 and math.log(low / high) > epsilon
    return Verdict(refuted, 2 * train + seek + 2 * check + 2 * final)


def _parts(total: int, most: int = _LARGEST) -> list[int]:
    return [min(most, total - start) for start in range(0, total, most)]


def _odds(weights: Floats, values: Floats) -> Floats:
    return weights[0] + weights[1] * values


def _trained(play: Play, train: int) -> Floats:
    weights, speed = np.zeros(2), np.zeros(2)
    for size in _parts(train, _BATCH):
        values = np.concatenate([play(True, size), play(False, size)])
        labels = np.concatenate([np.ones(size), np.zeros(size)])
        for _ in range(10):
            wrong = special.expit(_odds(weights, values)) - labels
            slope = np.array([wrong.mean(), (wrong * values).mean()]) + 0.001 * weights
            speed = 0.3 * speed - 0.3 * slope
            weights = weights + speed
    return weights


def _hits(
    play: Play,
    left: bool,
    total: int,
    weights: Floats,
    cut: float,
    share: float,
    rng: np.random.Generator,
) -> int:
    hits = 0
    for size in _parts(total):
        odds = _odds(weights, play(left, size))
        hits += int(np.sum(odds > cut)) + int(rng.binomial(int(np.sum(odds == cut)), share))
    return hits


def hockey_stick(
    play: Play, epsilon: float, alpha: float, rng: np.random.Generator, scale: float = 1.0
) -> Verdict:
    """dp-auditorium's hockey-stick tester: a network's accuracy less Hoeffding's margin.

    10,000 samples a side through tanh, half of them to train three layers of twelve units in two
    passes; labels weighted so that (epsilon, 0)-DP allows an accuracy of sigmoid(epsilon). The
    network is scikit-learn's where the original uses Keras.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    size = max(40, int(10_000 * scale))
    half, allowed = size // 2, float(special.expit(epsilon))
    sides = [np.tanh(play(left, size)) for left in (True, False)]
    halves = [
        _weighted([s[part] for s in sides], allowed) for part in (slice(half), slice(half, None))
    ]
    (features, labels), (fresh, truth) = halves
    network = MLPClassifier(
        (12, 12, 12),
        batch_size=min(100, len(labels)),
        learning_rate_init=0.01,
        max_iter=2,
        random_state=int(rng.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(features, labels)
    accuracy = float(np.mean(network.predict(fresh) == truth))
    margin = math.sqrt(math.log(1 / alpha) / (2 * half))
    return Verdict((accuracy - margin) > allowed, 2 * size)


def _weighted(sides: list[Floats], allowed: float) -> tuple[Floats, Floats]:
    cut = int((1 - allowed) * len(sides[0]))
    features = np.concatenate([sides[0][:cut], sides[1][cut:]])[:, None]
    return features, np.concatenate([np.zeros(cut), np.ones(len(sides[1]) - cut)])


RIVALS = (
    Rival("StatDP", "Ding et al. 2018", 1_200_000, statdp),
    Rival("DP-Sniper", "Bichsel et al. 2021", 453_500_000, sniper),
    Rival("dp-auditorium, hockey stick", "Kong et al. 2023", 20_000, hockey_stick),
)
