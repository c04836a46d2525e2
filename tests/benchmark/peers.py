"""How other auditors turn the same scores into a bound, re-implemented from their descriptions.

None of this is their code. Each function takes the scores of both sides, larger for left, and
returns a lower bound on epsilon at `delta` for a nominal error rate `alpha`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]

TAIL = 0.01
DRAWS = 20_000


def sniper(left: Floats, right: Floats, alpha: float, delta: float) -> float:
    """DP-Sniper's rule (Bichsel et al. 2021): tail probability .01, two Clopper-Pearson bounds.

    The first half of the scores finds the event of probability .01 on the right, ties by lot; the
    second half bounds its two probabilities, each at alpha / 2.
    """
    lot = np.random.default_rng(len(left))
    (_, judge), (seek_right, judge_right) = _halves(left, right)
    cut = np.quantile(seek_right, 1 - TAIL, method="higher")
    above, tied = np.mean(seek_right > cut), np.mean(seek_right == cut)
    share = min(1.0, (TAIL - above) / tied)
    hits, others = (
        int(np.sum((s > cut) | ((s == cut) & (lot.random(len(s)) < share))))
        for s in (judge, judge_right)
    )
    return float(_two_bounds(hits, len(judge), others, len(judge_right), alpha, delta))


def bonferroni(left: Floats, right: Floats, alpha: float, delta: float) -> float:
    """jax-privacy's Bonferroni rule: all corners of the ROC's hull, alpha divided by their number.

    Dividing by a number that the labels chose exceeds the nominal level; kept as it is.
    """
    hits, others = corners(left, right)
    return float(
        np.max(
            _two_bounds(hits, len(left), others, len(right), alpha / len(hits), delta), initial=0
        )
    )


def split(left: Floats, right: Floats, alpha: float, delta: float) -> float:
    """jax-privacy's Split rule: one half picks the threshold with the best bound there."""
    (seek, judge), (seek_right, judge_right) = _halves(left, right)
    cut = best_cut(seek, seek_right, alpha, delta)
    hits, others = int(np.sum(judge >= cut)), int(np.sum(judge_right >= cut))
    return float(_two_bounds(hits, len(judge), others, len(judge_right), alpha, delta))


def joint_beta(left: Floats, right: Floats, alpha: float, delta: float) -> float:
    """privacy-estimates' joint beta interval (Zanella-Beguelin et al. 2023), threshold by Split.

    Independent Jeffreys posteriors of both error rates; the alpha quantile of the epsilon that
    they imply. A credible bound: not a valid confidence bound at its level.
    """
    (seek, judge), (seek_right, judge_right) = _halves(left, right)
    cut = best_cut(seek, seek_right, alpha, delta)
    miss, alarm = int(np.sum(judge < cut)), int(np.sum(judge_right >= cut))
    rng = np.random.default_rng(0)
    b = rng.beta(miss + 0.5, len(judge) - miss + 0.5, DRAWS)
    a = rng.beta(alarm + 0.5, len(judge_right) - alarm + 0.5, DRAWS)
    odds = np.maximum((1 - delta - b) / a, (1 - delta - a) / b)
    return float(np.quantile(np.log(np.maximum(odds, 1.0)), alpha))


def best_cut(left: Floats, right: Floats, alpha: float, delta: float) -> float:
    """Threshold with the best two-sided bound on these scores."""
    values = np.unique(np.concatenate([left, right]))
    some = values[np.unique(np.linspace(0, len(values) - 1, 400).astype(int))]
    hits, others = _at_least(left, some), _at_least(right, some)
    bounds = _two_bounds(hits, len(left), others, len(right), alpha, delta)
    return float(some[int(np.argmax(bounds))])


def corners(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Left and right trials at or above the thresholds at the corners of the ROC's hull."""
    values = np.unique(np.concatenate([left, right]))
    points = np.stack([_at_least(right, values), _at_least(left, values)], axis=1)[::-1]
    kept: list[Floats] = [np.zeros(2)]
    for point in points:
        while len(kept) > 1 and _cross(kept[-2], kept[-1], point) >= 0:
            kept.pop()
        kept.append(point)
    hull = np.array(kept[1:])
    return hull[:, 1], hull[:, 0]


def _cross(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _at_least(scores: Floats, cuts: Floats) -> Floats:
    ordered = np.sort(scores)
    return len(scores) - np.searchsorted(ordered, cuts, side="left").astype(float)


def _halves(left: Floats, right: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    return (left[::2], left[1::2]), (right[::2], right[1::2])


def _two_bounds(
    hits: npt.ArrayLike,
    lefts: int,
    others: npt.ArrayLike,
    rights: int,
    alpha: float,
    delta: float,
) -> Floats:
    v, w = np.asarray(hits, dtype=float), np.asarray(others, dtype=float)
    low = np.where(v > 0, special.betaincinv(np.maximum(v, 1), lefts - v + 1, alpha / 2), 0.0)
    high = np.where(
        w < rights, special.betaincinv(w + 1, np.maximum(rights - w, 1), 1 - alpha / 2), 1.0
    )
    return np.asarray(np.log(np.maximum((low - delta) / high, 1.0)))


PEERS = {
    "DP-Sniper rule": sniper,
    "jax-privacy Bonferroni": bonferroni,
    "jax-privacy Split": split,
    "joint beta (not a valid bound)": joint_beta,
}
