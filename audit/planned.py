"""The plan as a document: everything that was fixed before the first trial."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec

from audit.claim import AnyClaim, RenyiClaim

Role = Literal["subject", "control", "informational", "null"]
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Level = Annotated[float, msgspec.Meta(ge=0, le=1e300)]
"""A bound or a parameter; far below the largest number, so that it may be multiplied."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class PairSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A pair as a reader needs it.

    Attributes:
        label: Short name.
        relation: How the inputs are neighbours.
        position: Index of the first differing record.
        left: The left input as (shortened) JSON.
        right: The right input as (shortened) JSON.
    """

    label: str
    relation: str
    position: int
    left: str
    right: str


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """How a case's error budget is spent; the parts add up to its alpha.

    Attributes:
        betting: The betting test, which may be looked at after every block.
        fixed: The fixed-size test of epsilon.
        profile: The fixed-size tests at other deltas, together.
        parameter: The fixed-size test of the claim's own parameter (mu).
        renyi: The bet against Renyi divergences, which may be looked at after every block.
        certificate: The white-box certificate.
        calibration: The test whether the code draws from the stated density.
    """

    betting: Probability
    fixed: Probability
    profile: Probability = 0.0
    parameter: Probability = 0.0
    renyi: Probability = 0.0
    certificate: Probability = 0.0
    calibration: Probability = 0.0


class PlannedCase(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a case before anything ran.

    Attributes:
        name: Unique name.
        target: What is audited: a catalogue name or ``module:attr``.
        role: Whether it gates (``subject``), must be refuted (``control``), only reports
            (``informational``), or plays equal inputs and must certify nothing (``null``).
        claim: What it promises.
        view: The audited projection.
        pairs: The pairs that scouting may choose from.
        attacks: The attacks that scouting may choose from.
        trials: Budget of mechanism runs, scouting included.
        scouting: How many of them scout.
        blocks: Sizes of the testifying blocks, in order.
        alpha: Probability with which this case may wrongly certify.
        shares: How that is divided over its tests.
        reproduce: Command that runs this case alone.
        group: How many records the inputs of a pair may differ in.
        parameters: Parameters of the target that a sweep set.
        column: Name of a policy's recorded actions.
    """

    name: str
    target: str
    role: Role
    claim: AnyClaim
    view: str
    pairs: tuple[PairSummary, ...]
    attacks: tuple[str, ...]
    trials: Count
    scouting: Count
    blocks: tuple[Count, ...]
    alpha: Probability
    shares: Shares
    reproduce: str
    group: Annotated[int, msgspec.Meta(ge=1)] = 1
    parameters: dict[str, float] = {}
    column: str = ""

    @property
    def divergences(self) -> RenyiClaim | None:
        """The claim, when the Renyi divergences that it limits are bet against; else None."""
        if isinstance(self.claim, RenyiClaim) and self.shares.renyi > 0:
            return self.claim
        return None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was fixed before the first trial.

    Attributes:
        seed: Root of all random streams.
        alpha: Probability that any certified statement of the run is wrong.
        trials: Budget per case.
        early_stop: Whether a case ends at the first block at which it is refuted.
        blind_factor: A case is blind when it could not have caught this multiple of its claim.
        threats: Opt-in threats, and whether each was in scope.
        rounding_bits: Views and scores are rounded to this many bits; 0 with the ``bits`` threat.
        cases: The cases, in order.
        confirm_seed: Root of the streams on which refutations had to be confirmed; each of the
            two runs has half of `alpha` then. None without.
        profile: The named settings that the run was made with; empty for none.
        shard: ``(i, n)`` when only every n-th case is played, from the i-th on; alpha is divided
            over the whole plan all the same. None for a whole run.

    Raises:
        ValueError: When names repeat, or there is no such shard.
    """

    seed: int
    alpha: Probability
    trials: Count
    early_stop: bool
    blind_factor: float
    threats: dict[str, bool]
    rounding_bits: int
    cases: tuple[PlannedCase, ...]
    confirm_seed: int | None = None
    profile: str = ""
    shard: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if len({case.name for case in self.cases}) < len(self.cases):
            raise ValueError("expected cases of unique names")
        if self.shard is not None and not 1 <= self.shard[0] <= self.shard[1]:
            raise ValueError(f"expected a shard (i, n) with 1 <= i <= n, got {self.shard}")

    @property
    def due(self) -> tuple[PlannedCase, ...]:
        """The cases that this run plays: all of them, or those of its shard."""
        if self.shard is None:
            return self.cases
        first, step = self.shard
        return self.cases[first - 1 :: step]

    def digest(self) -> str:
        """Identity of the plan: equal plans, equal records."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()
