"""Planning: everything that is decided before the first trial."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from audit.attack import Attack
from audit.budget import block_sizes, divide, scouting_trials
from audit.claim import AnyClaim
from audit.domain import Domain, Proposer
from audit.errors import UsageError
from audit.mechanism import Mechanism, capability
from audit.numbers import number, whole
from audit.pair import Pair, listed
from audit.promise import own_pairs
from audit.quantise import BITS
from audit.record import PairSummary, Plan, PlannedCase, Role
from audit.threats import in_scope

_SEARCHED = 8
"""A search thins its pairs out itself, and costs about as much as this many."""
FEWEST_TRIALS = 200
MOST_TRIALS = 10**9
_LONGEST_INPUT = 240
_LONGEST_PASTED = 20_000


@dataclass(frozen=True)
class Settings:
    """What a user may set for a whole run.

    Attributes:
        trials: Budget of mechanism runs per case, scouting included.
        alpha: Probability that any certified statement of the run is wrong.
        seed: Root of all random streams.
        early_stop: End a case at the first block at which it is refuted.
        threats: Opt-in threats that are in scope.
        blind_factor: A case is blind when it could not have caught this multiple of its claim.
        profile: The named settings that these are, if any.
    """

    trials: int = 20_000
    alpha: float = 1e-3
    seed: int = 0
    early_stop: bool = True
    threats: tuple[str, ...] = ()
    blind_factor: float = 2.0
    profile: str = ""

    def __post_init__(self) -> None:
        self._require()
        for name, plain in (("trials", int), ("seed", int), ("alpha", float)):
            object.__setattr__(self, name, plain(getattr(self, name)))
        object.__setattr__(self, "early_stop", bool(self.early_stop))

    def _require(self) -> None:
        require_trials(whole(self.trials, "trials"), "trials")
        if not 0 < number(self.alpha) < 0.5:
            raise UsageError(f"alpha: expected a probability in (0, 0.5), got {self.alpha!r}")
        if whole(self.seed, "seed") < 0:
            raise UsageError(f"seed: expected an integer >= 0, got {self.seed}")
        in_scope(self.threats)
        if not self.blind_factor > 1:
            raise UsageError(f"blind_factor: expected a number > 1, got {self.blind_factor}")


def require_trials(trials: int, place: str) -> None:
    """Refuse budgets that are too small to tell anything, or too large ever to be played.

    Raises:
        UsageError: For such a budget.
    """
    if not FEWEST_TRIALS <= trials <= MOST_TRIALS:
        raise UsageError(
            f"{place}: expected at least {FEWEST_TRIALS} and at most {MOST_TRIALS}, got {trials}"
        )


@dataclass(frozen=True)
class Request:
    """A case as asked for.

    Attributes:
        name: Unique name.
        target: What a user typed to name the mechanism.
        mechanism: The mechanism.
        claim: What it promises.
        attacks: The battery.
        pairs: Inputs to use instead of the mechanism's own.
        role: Its part in the run.
        view: Audited projection; the claim's own when empty.
        options: Command-line words that reproduce this case.
        trials: Own budget; the run's when 0.
        word: What names it on a command line; the target when empty.
        siblings: How many cases that word stands for.
        command: What reproduces this case, when that is no command line.
        group: How many records the inputs of a pair may differ in.
        parameters: Parameters of the target that a sweep set.
        domain: Where pairs may come from; the mechanism's own when None.
        proposer: Who proposes them.
        column: Name of a policy's recorded actions.
    """

    name: str
    target: str
    mechanism: Mechanism
    claim: AnyClaim
    attacks: tuple[Attack, ...]
    pairs: tuple[Pair, ...] = ()
    role: Role = "subject"
    view: str = ""
    options: tuple[str, ...] = ()
    trials: int = 0
    word: str = ""
    siblings: int = 1
    command: str = ""
    group: int = 1
    parameters: Mapping[str, float] = field(default_factory=dict)
    domain: Domain | None = None
    proposer: Proposer | None = None
    column: str = ""


@dataclass(frozen=True)
class Case:
    """A planned case with the objects that play it; the record keeps only `planned`."""

    planned: PlannedCase
    mechanism: Mechanism
    pairs: tuple[Pair, ...]
    attacks: tuple[Attack, ...] = field(default=())
    domain: Domain | None = None
    proposer: Proposer | None = None


def make_plan(requests: Sequence[Request], settings: Settings) -> tuple[Plan, tuple[Case, ...]]:
    """Divide the error budget, size the blocks, and write the plan down.

    Raises:
        UsageError: For no case, a repeated name, or a case without pairs.
    """
    if not requests:
        raise UsageError(
            "nothing to audit: give a catalogue name, module:attr, or [[tool.audit.case]]"
        )
    names = [request.name for request in requests]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"cases need unique names; repeated: {', '.join(twice)}")
    share = settings.alpha / len(requests)
    cases = tuple(_plan_case(request, settings, share) for request in requests)
    plan = Plan(
        seed=settings.seed,
        alpha=settings.alpha,
        trials=settings.trials,
        early_stop=settings.early_stop,
        blind_factor=settings.blind_factor,
        threats=in_scope(settings.threats),
        rounding_bits=0 if "bits" in settings.threats else BITS,
        cases=tuple(case.planned for case in cases),
        profile=settings.profile,
    )
    return plan, cases


def _plan_case(request: Request, settings: Settings, alpha: float) -> Case:
    domain = request.domain or capability(request.mechanism, "domain")
    if not isinstance(domain, Domain | None):
        raise UsageError(f"case {request.name!r}: expected an audit.Domain, got {domain!r}")
    pairs = request.pairs or own_pairs(request.mechanism, request.name)
    if domain is not None and request.proposer is not None:
        relations = domain.relations(request.claim.relation)
        pairs = (*pairs, *request.proposer.propose(domain, relations, request.group))
    if not pairs:
        raise UsageError(
            f"case {request.name!r}: no pair of neighbouring inputs; give --pair LEFT RIGHT or "
            "--domain JSON, or let pairs() return at least one"
        )
    _require_neighbours(request, pairs)
    trials = request.trials or settings.trials
    require_trials(trials, f"case {request.name!r}: trials")
    if not request.claim.points():
        raise UsageError(
            f"case {request.name!r}: {request.claim} is too weak or too strong to be confronted by "
            "counting; state a claim with an epsilon between 1e-6 and 200 at some delta in "
            "[1e-6, 0.1]"
        )
    white_box = _knows_density(request)
    scouted = len(pairs) if domain is None else _SEARCHED
    scouting = scouting_trials(trials, white_box=white_box, pairs=scouted)
    planned = PlannedCase(
        name=request.name,
        target=request.target,
        role=request.role,
        claim=request.claim,
        view=request.view or request.claim.view,
        pairs=tuple(summarise_pair(pair) for pair in pairs),
        attacks=tuple(attack.name for attack in request.attacks),
        trials=trials,
        scouting=scouting,
        blocks=block_sizes(trials - scouting, _smallest_block(request.mechanism)),
        alpha=alpha,
        shares=divide(alpha, request.claim, white_box=white_box),
        reproduce=request.command or _command(request, settings, trials, alpha),
        group=request.group,
        parameters=dict(request.parameters),
        column=request.column,
    )
    return Case(planned, request.mechanism, pairs, request.attacks, domain, request.proposer)


def _require_neighbours(request: Request, pairs: Sequence[Pair]) -> None:
    """Equal inputs, or those of another relation, cannot refute; 'declared' vouches for itself."""
    promised = request.claim.relation
    for pair in pairs:
        if pair.alike and request.role != "null":
            raise UsageError(
                f"case {request.name!r}: expected two inputs that differ, but those of pair "
                f"{pair.label or pair.position!r} are the same. Change a record of one; if it was "
                "changed in place, copy the input first"
            )
        if pair.records > request.group:
            raise UsageError(
                f"case {request.name!r}: pair {pair.label or pair.position!r} may differ in "
                f"{pair.records} records, but the claim is about {request.group}. Audit the claim "
                "of the group: --group, or claim.group(records) with one-record pairs declared"
            )
        if "declared" not in (promised, pair.relation) and pair.relation != promised:
            raise UsageError(
                f"case {request.name!r}: the claim is about {promised} neighbours, but pair "
                f"{pair.label or pair.position!r} is {pair.relation}. Give pairs of the claim's "
                "relation, or state what these neighbours are promised"
            )


def _knows_density(request: Request) -> bool:
    view = request.view or request.claim.view
    return capability(request.mechanism, "log_likelihood_ratio", view) is not None


def _smallest_block(mechanism: Mechanism) -> int:
    least = getattr(mechanism, "smallest_block", 8)
    if not isinstance(least, int | np.integer):
        raise UsageError(f"smallest_block: expected a number of trials, got {least!r}")
    return max(8, int(least))


def pasted_pair(pair: Pair) -> PairSummary:
    """A pair in full, up to a sane size."""
    return summarise_pair(pair, _LONGEST_PASTED)


def summarise_pair(pair: Pair, longest: int = _LONGEST_INPUT) -> PairSummary:
    """A pair as a reader needs it."""
    return PairSummary(
        label=pair.label or f"differs at {pair.position}",
        relation=pair.relation,
        position=pair.position,
        left=as_json(pair.left, longest),
        right=as_json(pair.right, longest),
    )


def as_json(data: Any, longest: int = _LONGEST_INPUT) -> str:
    """`data` as JSON for reading and pasting, cut to `longest` characters."""
    try:
        text = msgspec.json.encode(data, enc_hook=listed).decode()
    except (TypeError, ValueError, msgspec.EncodeError):
        text = repr(data)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _command(request: Request, settings: Settings, trials: int, alpha: float) -> str:
    """The command that runs the case alone: same streams, same budget, same error rate."""
    words = ["python", "-m", "audit", "run", request.word or request.target, *request.options]
    words += ["--trials", str(trials), "--alpha", repr(alpha * request.siblings)]
    words += ["--seed", str(settings.seed)]
    for threat in settings.threats:
        words += ["--threat", threat]
    words += [] if settings.early_stop else ["--no-early-stop"]
    return shlex.join(words)
