"""Bins and posteriors: what a score says about left and right, learnt from scouting labels.

Three maps from score bins to P(left | bin) compete: the one that a score states itself when it is
an exact log-likelihood ratio, a logistic curve (Platt 1999), and an isotonic step function
(Zadrozny and Elkan 2002). Smooth maps only stay in the race when they fit the labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from audit.evidence import Counts, tabulate
from audit.view import Floats

BINS_PER_SIGN = 64
FOLDS = 4
_FEW_BINS = 16
_GROUPS = 12
_FIT_LEVEL = 0.05
_CAUTION = 0.002
_TRUST = 0.2


@dataclass(frozen=True)
class Sample:
    """Scouting scores in bins.

    Attributes:
        edges: Bin edges.
        folds: Counts, shape (folds, 2, bins).
        centres: Mean score of every bin, shape (bins,).
    """

    edges: Floats
    folds: Counts
    centres: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats, largest: float) -> Sample:
        """Bin rounded scores whose largest magnitude is `largest`."""
        pooled = np.concatenate([left, right])
        edges = bin_edges(pooled, largest)
        folds = [tabulate(left[f::FOLDS], right[f::FOLDS], edges) for f in range(FOLDS)]
        return cls(edges, np.stack(folds), _bin_means(pooled, edges))

    @property
    def total(self) -> Counts:
        """Counts over all folds, shape (2, bins)."""
        return np.asarray(self.folds.sum(axis=0))


@dataclass(frozen=True)
class Posterior:
    """P(left | bin).

    Attributes:
        honest: For every fold, learnt from the others, shape (folds, bins).
        final: Learnt from all, shape (bins,).
        caution: Quantile at which its rates are forecast; the more it was free to fit, the lower.
        smooth: Whether it has so few parameters that it may be believed about rates.
    """

    honest: Floats
    final: Floats
    caution: float
    smooth: bool = False


def posteriors_of(sample: Sample, *, exact: bool) -> list[Posterior]:
    """The competing maps, the most trusted first.

    Args:
        sample: Scouting scores in bins.
        exact: Whether scores are exact log-likelihood ratios.
    """
    total = sample.total
    smooth = [(special.expit(np.clip(sample.centres, -30, 30)), _TRUST)] if exact else []
    if total.shape[1] > _FEW_BINS:
        smooth.append((_logistic(sample.centres, total), _CAUTION))
    maps = []
    for posterior, caution in smooth:
        bounded = np.clip(posterior, 1e-4, 1 - 1e-4)
        if _fits(bounded, total):
            maps.append(Posterior(np.tile(bounded, (FOLDS, 1)), bounded, caution, smooth=True))
    honest = np.stack([posterior_of(total - fold) for fold in sample.folds])
    maps.append(Posterior(honest, posterior_of(total), _CAUTION))
    return maps


def largest_of(scores: Floats) -> float:
    """Largest finite magnitude; 1 when there is none."""
    known = np.abs(scores[np.isfinite(scores)])
    return float(known.max()) if len(known) else 1.0


def _bin_means(scores: Floats, edges: Floats) -> Floats:
    where = np.searchsorted(edges, np.nan_to_num(scores, nan=-np.inf), side="right")
    finite = np.nan_to_num(scores, nan=0.0)
    filled = np.bincount(where, minlength=len(edges) + 1)
    sums = np.bincount(where, finite, minlength=len(edges) + 1)
    return np.asarray(sums / np.maximum(filled, 1), dtype=float)


def _logistic(centres: Floats, counts: Counts) -> Floats:
    """P(left | bin) as a logistic curve in the score, fitted by Newton steps."""
    left, total = counts[0].astype(float), counts.sum(axis=0).astype(float)
    middle = np.average(centres, weights=total)
    spread = np.sqrt(np.average((centres - middle) ** 2, weights=total)) or 1.0
    design = np.stack([np.ones_like(centres), (centres - middle) / spread], axis=1)
    weights = np.zeros(2)
    for _ in range(12):
        p = special.expit(design @ weights)
        slope = design.T @ (left - total * p) - 1e-3 * weights
        curvature = (design * (total * p * (1 - p))[:, None]).T @ design + 1e-3 * np.eye(2)
        weights = weights + np.linalg.solve(curvature, slope)
    return np.asarray(special.expit(design @ weights), dtype=float)


def _fits(posterior: Floats, counts: Counts) -> bool:
    """Whether labels agree with a posterior (Hosmer and Lemeshow 1980), finer in the tails."""
    order = np.argsort(posterior, kind="stable")
    left, total = counts[0][order], counts.sum(axis=0)[order]
    share = np.cumsum(total) / max(1, total.sum())
    cuts = np.array([0.01, 0.03, *np.linspace(0.1, 0.9, _GROUPS - 4), 0.97, 0.99])
    group = np.searchsorted(cuts, share - total / (2 * max(1, total.sum())))
    observed = np.bincount(group, left)
    expected = np.bincount(group, total * posterior[order])
    variance = np.bincount(group, total * posterior[order] * (1 - posterior[order]))
    used = variance > 0.5
    statistic = float((((observed - expected) ** 2)[used] / variance[used]).sum())
    return bool(special.chdtrc(max(1, int(used.sum())), statistic) > _FIT_LEVEL)


def bin_edges(scores: Floats, largest: float) -> Floats:
    """Edges of at most about 64 bins a sign, finer in the tails, never next to a repeated value.

    An edge lies midway between two scores that were seen, and only where they are far apart
    compared with the rounding of scores: an ulp must not decide on which side a value falls.
    """
    finite = np.sort(scores[np.isfinite(scores)])
    values = np.unique(finite)
    if len(values) < 2:
        return np.array([0.0])
    apart = np.diff(values) > 16 * max(1.0, largest) * 2.0**-30
    middles = (values[1:] + values[:-1]) / 2
    tail = np.geomspace(4 / max(8, len(finite)), 0.02, 12)
    levels = np.concatenate([tail, np.linspace(0.02, 0.98, 2 * BINS_PER_SIGN - 24), 1 - tail])
    where = np.searchsorted(values, np.quantile(finite, levels, method="lower"))
    wanted = np.unique(np.concatenate([where, where - 1]))
    wanted = wanted[(wanted >= 0) & (wanted < len(middles))]
    if len(wanted) > 2 * BINS_PER_SIGN:
        wanted = np.unique(where[(where >= 0) & (where < len(middles))])
    return np.asarray(middles[wanted][apart[wanted]], dtype=float)


def posterior_of(counts: Counts) -> Floats:
    """Scouted P(left | bin): isotonic where there are many bins, smoothed counts where few."""
    left, right = counts.astype(float)
    balance = max(left.sum(), 1.0) / max(right.sum(), 1.0)
    right = right * balance
    if counts.shape[1] > _FEW_BINS:
        left, right = _pool(left, right)
    return np.asarray((left + 0.5) / (left + right + 1), dtype=float)


def _pool(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    total = left + right
    share = np.divide(left, total, out=np.full_like(left, 0.5), where=total > 0)
    fit = optimize.isotonic_regression(share, weights=np.maximum(total, 1e-9))
    block = np.repeat(np.arange(len(fit.blocks) - 1), np.diff(fit.blocks))
    return _spread(block, left), _spread(block, right)


def _spread(block: Counts, side: Floats) -> Floats:
    return np.asarray(np.bincount(block, side)[block], dtype=float)
