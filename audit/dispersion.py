"""Do the blocks that testified look like independent trials?

Trials that share a draw within a call make whole blocks lean one way, and counts over blocks vary
more than binomial counts can. Certified statements rest on independence, so a case whose blocks
disagree ends without a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.evidence import Evidence

LEVEL = 1e-5
_FEWEST = 8.0


def blocks_agree(evidence: Evidence, posterior: Sequence[float]) -> bool:
    """Whether, on each side, blocks put about the same share of trials in the upper half.

    Draws that the trials of a call share weigh on a block's count with the square of its size. So
    the squared deviations are summed as they are, which lets large blocks speak loudest, and
    referred to a scaled chi-squared law (Satterthwaite 1946), per side, over the blocks with at
    least 8 expected trials in either half, at a level of 1e-5 in all.

    Args:
        evidence: Counts by block.
        posterior: Scouted P(left | bin), shape (bins,).
    """
    if len(evidence.blocks) < 2:
        return True
    tables = np.stack([evidence.blocks[block] for block in sorted(evidence.blocks)]).astype(float)
    order = np.argsort(posterior, kind="stable")
    weight = np.cumsum(evidence.total.sum(axis=0)[order])
    upper = np.zeros(len(order), dtype=bool)
    upper[order] = weight > weight[-1] / 2
    tails = [
        _tail(tables[:, side, upper].sum(axis=1), tables[:, side].sum(axis=1)) for side in (0, 1)
    ]
    return min(tails) >= LEVEL / 2


def _tail(hits: npt.NDArray[np.float64], trials: npt.NDArray[np.float64]) -> float:
    share = hits.sum() / max(1.0, trials.sum())
    used = trials * min(share, 1 - share) >= _FEWEST
    if used.sum() < 2:
        return 1.0
    hits, trials = hits[used], trials[used]
    share = hits.sum() / trials.sum()
    variance = trials * share * (1 - share) * (1 - trials / trials.sum())
    scale = float((variance**2).sum() / variance.sum())
    freedom = float(variance.sum() ** 2 / (variance**2).sum())
    return float(special.chdtrc(freedom, ((hits - trials * share) ** 2).sum() / scale))
