"""Do the blocks that testified look like independent trials?

Trials that share a draw within a call make whole blocks lean one way, and counts over blocks vary
more than binomial counts can. Certified statements rest on independence, so a case whose blocks
disagree ends without a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from audit.evidence import Evidence

LEVEL = 1e-5
_FEWEST = 8.0


def blocks_agree(evidence: Evidence, posterior: Sequence[float]) -> bool:
    """Whether, on each side, blocks put about the same share of trials in the upper half.

    Draws that the trials of a call share weigh on a block's count with the square of its size. So
    the squared deviations are summed as they are, which lets large blocks speak loudest. Such a
    sum of unequal parts has a heavier tail than one scaled chi-squared law, so its tail is taken
    from the saddlepoint (Kuonen 1999, Biometrika 86), per side, over the blocks with at least 8
    expected trials in either half, at a level of 1e-5 in all.

    Args:
        evidence: Counts by block.
        posterior: Scouted P(left | bin), shape (bins,).
    """
    if len(evidence.blocks) < 2:
        return True
    tables = np.stack([evidence.blocks[block] for block in sorted(evidence.blocks)]).astype(float)
    order = np.argsort(posterior, kind="stable")
    weight = np.cumsum(evidence.total.sum(axis=0)[order])
    middle = int(np.argmin(np.abs(weight[:-1] - weight[-1] / 2))) if len(order) > 1 else 0
    upper = order[middle + 1 :]
    tails = [
        _tail(tables[:, side, upper].sum(axis=1), tables[:, side].sum(axis=1)) for side in (0, 1)
    ]
    return min(tails) >= LEVEL / 2


def _tail(hits: npt.NDArray[np.float64], trials: npt.NDArray[np.float64]) -> float:
    """Probability of blocks that differ as much, or an upper bound on it.

    Deviations from a share s that was estimated have covariance s (1 - s) (D - d d' / sum d), where
    D = diag(d) and d are the trials. One of its eigenvalues is 0 and the others interlace those of
    D, so all sizes but the smallest bound them.
    """
    share = hits.sum() / max(1.0, trials.sum())
    used = trials * min(share, 1 - share) >= _FEWEST
    if used.sum() < 2:
        return 1.0
    hits, trials = hits[used], trials[used]
    share = hits.sum() / trials.sum()
    variance = share * (1 - share) * np.sort(trials)[1:]
    return quadratic_tail(float(((hits - trials * share) ** 2).sum()), variance)


def quadratic_tail(value: float, weights: npt.NDArray[np.float64]) -> float:
    """P(sum_i weights_i Z_i^2 > value) for independent standard Gaussians Z_i, approximately.

    Args:
        value: The observed sum.
        weights: Positive weights, shape (k,).

    Returns:
        The tail by Lugannani and Rice's formula; 1 where the sum is not above its mean.
    """
    if value <= weights.sum() * (1 + 1e-6):
        return 1.0
    ceiling = 0.5 / float(weights.max())

    def slope(s: float) -> float:
        return float((weights / (1 - 2 * s * weights)).sum()) - value

    s = float(optimize.brentq(slope, 0.0, ceiling * (1 - 1e-12)))
    cumulant = -0.5 * float(np.log1p(-2 * s * weights).sum())
    curvature = 2 * float(((weights / (1 - 2 * s * weights)) ** 2).sum())
    w, v = np.sqrt(2 * (s * value - cumulant)), s * np.sqrt(curvature)
    return float(special.ndtr(-(w + np.log(v / w) / w)))
