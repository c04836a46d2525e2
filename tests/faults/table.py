"""One line per fault or correct twin: what is played, on which inputs, against which claim."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import audit
from audit.claim import AnyClaim
from audit.domain import Domain
from audit.record import CaseResult

ONE = audit.PureDp(epsilon=1.0)
HALF = audit.PureDp(epsilon=0.5)
DELTA = audit.ApproxDp(epsilon=1.0, delta=1e-5)


@dataclass(frozen=True)
class Line:
    """A function with inputs and a claim.

    Attributes:
        name: What is wrong, or right.
        function: ``f(data, n, rng)``, or ``f(data, rng)`` with `single`.
        left: The left input; None where a domain is searched.
        right: The right input.
        claim: What is promised.
        domain: Where to look for pairs.
        single: One trial per call.
        trials: Budget.
        threats: Threats in scope.
        slow: Whether the quick suite leaves it out.
    """

    name: str
    function: Callable[..., Any]
    left: Any = None
    right: Any = None
    claim: AnyClaim = ONE
    domain: Domain | None = None
    single: bool = False
    trials: int = 1000
    threats: tuple[str, ...] = ()
    slow: bool = True

    def examine(self, trials: int = 0, seed: int = 0, alpha: float = 1e-3) -> CaseResult:
        """Audit it."""
        return audit.examine(
            self.function,
            claim=self.claim,
            pairs=() if self.domain else [audit.Pair(self.left, self.right)],
            domain=self.domain,
            batched=not self.single,
            trials=trials or self.trials,
            threats=self.threats,
            seed=seed,
            alpha=alpha,
        )
