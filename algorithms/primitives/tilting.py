"""Exponential tilting of Gaussian releases: rare privacy losses made common.

For Gaussian noise the loss L is linear in the release, so the law proportional to
``exp(tilt L) P_left`` is again Gaussian: the left release moved by `tilt` times the difference of
the two exact answers.
"""

from __future__ import annotations

import numpy as np

from audit.view import Floats


def gaussian_log_weights(losses: Floats, mu: float, tilt: float) -> Floats:
    """Log importance weights ``ln dP_left/dTilted`` of tilted Gaussian releases.

    Args:
        losses: Exact losses of the tilted releases, shape (n,); L is N(mu^2/2, mu^2) on the left.
        mu: Distance of the two exact answers over the noise scale.
        tilt: The tilt.

    Returns:
        ``-tilt L + tilt (tilt + 1) mu^2 / 2``, shape (n,).
    """
    return np.asarray(-tilt * losses + tilt * (tilt + 1) * mu**2 / 2, dtype=float)
