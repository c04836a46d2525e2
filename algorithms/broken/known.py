"""A case whose right answer is known: what an auditor must say about it, and why.

Claim: none of its own; every case states the claim that its mechanism makes and the epsilon
that it really has on the given pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.mechanism import FunctionMechanism, Mechanism
from audit.pair import Pair
from audit.view import Floats, Views


@dataclass(frozen=True)
class KnownFunction(FunctionMechanism):
    """A function whose exact log-likelihood ratio is known.

    Attributes:
        likelihood: ``(views, pair) -> ln P_left/P_right``, shape (n,).
        likelihood_views: Views for which it holds.
    """

    likelihood: Callable[[Views, Pair], Floats] = field(kw_only=True)
    likelihood_views: tuple[str, ...] = field(default=("transcript", "output"), kw_only=True)

    def log_likelihood_ratio(self, views: Views, pair: Pair) -> Floats:
        """Exact ln P_left/P_right of the columns emitted, shape (n,)."""
        return self.likelihood(views, pair)


@dataclass(frozen=True)
class KnownCase:
    """A mechanism, a claim and a pair with the answer an audit must reach.

    Attributes:
        id: Short name.
        summary: The mechanism and what is right or wrong with it, in one line.
        mechanism: What is played; its claim and pairs are those of the case (the first pair).
        epsilon: Smallest epsilon that it meets on the pair at the claimed delta; may be ``inf``.
        must: ``pass`` or ``flag``.
        n: Runs per side that an auditor who knows the best event needs to flag the case in 99 of
            100 audits at alpha .05; None for cases that must pass.

    Raises:
        UsageError: When `must` is neither, or the mechanism makes no claim.
    """

    id: str
    summary: str
    mechanism: Mechanism
    epsilon: float
    must: str
    n: int | None = None

    def __post_init__(self) -> None:
        if self.must not in ("pass", "flag"):
            raise UsageError(
                f"case {self.id}: expected must 'pass' or 'flag', got {self.must!r}; choose one"
            )

    @property
    def claim(self) -> AnyClaim:
        """What the mechanism promises."""
        claim = self.mechanism.claim
        if claim is None:
            raise UsageError(
                f"case {self.id}: expected a mechanism with a claim, got none; give it one"
            )
        return claim

    @property
    def pair(self) -> Pair:
        """The pair of neighbours for which `epsilon` holds: the first that the mechanism offers."""
        return self.mechanism.pairs()[0]

    @property
    def view(self) -> str:
        """The promised view."""
        return self.claim.view
