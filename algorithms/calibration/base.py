"""What all calibration weights share: an epsilon, a noise scale that may be wrong, a claim.

Claim: subclasses compute the noise scale that gives epsilon; a `scale` of the caller's replaces
the noise but never the claim, which is how a broken twin is made.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Self

from audit.claim import AnyClaim, PureDp
from audit.errors import UsageError


@dataclass(frozen=True)
class Calibrated:
    """Base of the calibration weights.

    Attributes:
        epsilon: The epsilon claimed.
        scale: Noise scale used instead of the one that gives `epsilon`; the claim stays.

    Raises:
        UsageError: When a parameter is not a finite positive number.
    """

    epsilon: float
    scale: float | None = None

    def __post_init__(self) -> None:
        require_positive(self, "epsilon")
        if self.scale is not None:
            require_positive(self, "scale")

    @property
    def claim(self) -> AnyClaim:
        """Pure epsilon-DP."""
        return PureDp(epsilon=self.epsilon, source=f"{type(self).__name__}.epsilon")

    @property
    def declared_scale(self) -> float:
        """The noise scale in use."""
        return self._calibrated_scale() if self.scale is None else self.scale

    def noise_scaled(self, factor: float) -> Self:
        """The same mechanism and claim with all noise multiplied by `factor` > 0."""
        return dataclasses.replace(self, scale=self.declared_scale * factor)

    def _calibrated_scale(self) -> float:
        raise NotImplementedError


def require_positive(owner: object, *names: str) -> None:
    """Check parameters of a mechanism.

    Raises:
        UsageError: When one of the attributes `names` of `owner` is not finite and positive.
    """
    for name in names:
        value = getattr(owner, name)
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
            raise UsageError(
                f"{type(owner).__name__}: expected a finite {name} > 0, got {name}={value!r}; "
                f"pass a positive number"
            )
