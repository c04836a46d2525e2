"""Mechanisms: anything that can be played on an input, many trials at once.

Only ``claim``, ``pairs`` and ``run`` are required. A mechanism that knows more about itself says
so through optional capabilities, asked for by name with `capability`:

* ``log_likelihood_ratio(views, pair)``: exact ln P_left/P_right of the columns it emits, shape
  (n,), for the views named in ``likelihood_views``;
* ``exact_profile(pair, epsilon)``: exact hockey-stick divergence of that pair;
* ``noise_scaled(factor)``: the same mechanism with all its noise multiplied by `factor`;
* ``run_alone(data, rng)``: what ``run`` emits for one trial, or views of what it showed before it
  raised;
* ``smallest_block``: fewest trials that are worth a call, for mechanisms with long streams;
* ``tilted_run(pair, tilt, n, rng)``: views from the law proportional to exp(tilt L) P_left, and
  their log importance weights;
* ``declared_scale``: the noise scale that it says it uses;
* ``not_finite``: names of columns that may hold NaN or infinity, for `audit.contract`;
* ``domain``: the inputs that an adversary may choose from, see `audit.domain`;
* ``group_pairs(records)``: inputs that differ in a group of records, for which the above hold too;
* ``play_apart(data, n, rng, singly)``: views played in another process, see `audit.isolate`;
* ``canaries(m)`` and ``canary_scores(views, left, right)``: the game for one run on many canaries,
  see `audit.canaries`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from audit.claim import AnyClaim
from audit.encode import type_of
from audit.errors import UsageError
from audit.outcome import FAILURES as FAILURES
from audit.outcome import LAZY, drained, raised, require_run
from audit.outcome import NO_OUTCOME as NO_OUTCOME
from audit.pair import Pair
from audit.rounds import stream_of
from audit.shown import Shown, views_of
from audit.view import Array, Views, collect, joined

CHANGES_ITS_INPUT = (
    "a run changed its input, which the next trial then starts from, so trials are not "
    "independent. Work on a copy, such as list(data) or data.copy()"
)


@runtime_checkable
class Mechanism(Protocol):
    """An implementation under audit.

    Attributes:
        claim: What it promises, computed from its parameters; None when it promises nothing.
    """

    @property
    def claim(self) -> AnyClaim | None:
        """What it promises."""

    def pairs(self) -> Sequence[Pair]:
        """Neighbouring inputs worth trying, the worst first."""

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """Play `n` independent trials on `data`.

        Returns:
            An array or a mapping of arrays with leading axis n, or a sequence of n objects.
        """


@runtime_checkable
class Policy(Protocol):
    """A sequential decision-maker, playing n trials side by side."""

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Forget everything and get ready for `n` independent trials."""

    def act(self, context: Any) -> Array:
        """Choose one action per trial; shape (n,)."""

    def observe(self, outcome: Any) -> None:
        """Learn the outcome of the last actions; shape (n,)."""


def capability(mechanism: object, name: str, view: str = "") -> Any:
    """An optional capability of a mechanism, or None when it does not have it (in this view)."""
    found = getattr(mechanism, name, None)
    if name == "log_likelihood_ratio" and view not in getattr(
        mechanism, "likelihood_views", ("transcript", "output")
    ):
        return None
    return found


@dataclass(frozen=True)
class FunctionMechanism:
    """A plain Python function as a mechanism.

    Attributes:
        function: ``f(data, rng)`` for one trial, or ``f(data, n, rng)`` when `batched`.
        promised: Its claim.
        inputs: Its pairs.
        batched: Whether one call plays many trials along a leading axis.

    Raises:
        UsageError: For an async function.
    """

    function: Callable[..., Any]
    promised: AnyClaim | None = None
    inputs: tuple[Pair, ...] = ()
    batched: bool = False

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise UsageError(
                f"function {getattr(self.function, '__name__', '')!r}: expected one that returns "
                "its output, got an async one. Wrap it: lambda data, rng: asyncio.run(f(data, rng))"
            )

    @property
    def claim(self) -> AnyClaim | None:
        """The claim given by the caller."""
        return self.promised

    def pairs(self) -> Sequence[Pair]:
        """The pairs given by the caller."""
        return self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """Play `n` trials: one call when batched, else one call with its own generator each."""
        if self.batched:
            return self.function(data, n, rng)
        return [self.function(data, child) for child in rng.spawn(n)]


def play(mechanism: Mechanism, data: Any, n: int, rng: np.random.Generator) -> Views:
    """Play `n` trials; an exception in a trial is that trial's outcome.

    A batched call that raises is repeated one trial at a time, so that the exception is charged
    to the trials that raise it. `rng` is left wherever the mechanism left it.

    Raises:
        MechanismError: When the emitted block has the wrong leading axis.
        UsageError: As the mechanism raised it: bad input is no outcome.
        ProcessError: As the mechanism raised it: its process failed.
    """
    if n == 0:
        return Views(np.empty(0, dtype=object))
    apart = capability(mechanism, "play_apart")
    if apart is not None:
        return _views(apart(data, n, rng, singly=False))
    if plays_one(mechanism):
        return play_each(mechanism, data, rng.spawn(n))
    try:
        emitted = mechanism.run(data, n, rng)
    except NO_OUTCOME:
        raise
    except FAILURES:
        pass  # played again below: in here the call's exception would be the context of a trial's
    else:
        return collect(emitted, n)
    return play_singly(mechanism, data, n, rng)


def play_singly(mechanism: Mechanism, data: Any, n: int, rng: np.random.Generator) -> Views:
    """Play `n` trials, each in a call and with a generator of its own.

    Trials that raise have NaN in every column, and say so in their form.
    """
    apart = capability(mechanism, "play_apart")
    if apart is not None:
        return _views(apart(data, n, rng, singly=True))
    return play_each(mechanism, data, rng.spawn(n))


def plays_one(mechanism: Mechanism) -> TypeGuard[FunctionMechanism]:
    """Whether it is a function of one trial, which is called once per trial anyway."""
    return isinstance(mechanism, FunctionMechanism) and not mechanism.batched


def play_each(mechanism: Mechanism, data: Any, rngs: Iterable[np.random.Generator]) -> Views:
    """Play one trial per generator, each in a call of its own.

    Args:
        mechanism: What is played.
        data: Its input.
        rngs: One generator per trial; the next is asked for when a trial begins.
    """
    return gather([play_once(mechanism, data, child) for child in rngs])


def _views(played: Any) -> Views:
    views: Views = played
    return views


@dataclass(frozen=True)
class Row:
    """One trial of a mechanism that emits blocks of arrays: column name to its entry."""

    entries: Mapping[str, Array]


def gather(singles: Sequence[Any]) -> Views:
    """Views of trials of `play_once`, as one block.

    Why trials are told apart by kind: what a trial shows must not depend on the other trials of
    its side, or a bound would hold for groups of them only. Blocks of one kind are what a call of
    so many trials would have emitted.
    """
    kinds: dict[Any, list[int]] = {}
    for i, single in enumerate(singles):
        kinds.setdefault(_kind(single), []).append(i)
    blocks = [_block([singles[i] for i in rows], kind) for kind, rows in kinds.items()]
    if len(blocks) < 2:
        return blocks[0] if blocks else Views(np.empty(0, dtype=object))
    places = np.concatenate(list(kinds.values()))
    return joined(blocks).take(np.argsort(places))


def _kind(single: Any) -> tuple[Any, ...] | type[Views] | None:
    """Names, shapes and types of the arrays of a trial; None when it is no row of numbers."""
    if isinstance(single, Views):
        return Views
    if not isinstance(single, Row):
        return None
    kind = tuple((k, v.shape, type_of(v)) for k, v in single.entries.items())
    return kind if all(letter[0] in "biufc" for _, _, letter in kind) else None


def _block(singles: Sequence[Any], kind: tuple[Any, ...] | type[Views] | None) -> Views:
    n = len(singles)
    if kind is Views:
        return joined(singles)
    if not isinstance(kind, tuple):
        return collect([dict(s.entries) if isinstance(s, Row) else s for s in singles], n)
    return collect({k: np.stack([s.entries[k] for s in singles]) for k, _, _ in kind}, n)


def play_once(mechanism: Mechanism, data: Any, rng: np.random.Generator) -> Any:
    """What one trial in a call of its own emitted, or the exception that it ended in."""
    if plays_one(mechanism):
        return outcome_of(mechanism, data, rng)
    alone = capability(mechanism, "run_alone")
    try:
        emitted = alone(data, rng) if alone else mechanism.run(data, 1, rng)
    except NO_OUTCOME:
        raise
    except FAILURES as error:
        return raised(error)
    if isinstance(emitted, Views):
        return emitted
    try:
        return _first(emitted)
    except (TypeError, LookupError):
        collect(emitted, 1)  # says what is wrong with it
        raise


def _first(emitted: Any) -> Any:
    if isinstance(emitted, Mapping):
        return Row({name: np.asarray(np.asarray(column)[0]) for name, column in emitted.items()})
    if isinstance(emitted, np.ndarray) and emitted.dtype.kind in "biufc":
        return Row({"value": np.asarray(emitted[0])})
    return emitted[0]


def outcome_of(mechanism: FunctionMechanism, data: Any, rng: np.random.Generator) -> Any:
    """What a function of one trial returned with this generator, or the exception it ended in."""
    try:
        return drained(mechanism.function(data, rng))
    except FAILURES as error:
        return raised(error)


@dataclass(frozen=True)
class Played:
    """A policy and a stream as a mechanism: only what the policy does is recorded.

    The data are a mapping with ``outcomes``, shape (T,) or (T, K), and optionally ``contexts``,
    shape (T, ...). With (T, K) outcomes an action is an arm and the policy observes that arm's
    entry; with (T,) it observes the entry itself, whatever it did. With ``valuations``, shape
    (T,), instead of outcomes it observes whether the customer buys at the price that it set.
    Missing outcomes are answered by the rule ``responses``: see `audit.responses`.

    Attributes:
        policy: Makes a fresh policy.
        promised: The claim; its view says which projection is promised.
        inputs: Its pairs.
        column: Name of the recorded actions: ``actions`` or ``prices``.
    """

    policy: Callable[[], Policy]
    promised: AnyClaim | None = None
    inputs: tuple[Pair, ...] = ()
    column: str = "actions"

    @property
    def claim(self) -> AnyClaim | None:
        """The claim given by the caller."""
        return self.promised

    def pairs(self) -> Sequence[Pair]:
        """The pairs given by the caller."""
        return self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Play `n` trials of the whole stream.

        Returns:
            The actions, shape (n, T).
        """
        return self._serve(data, n, rng, Shown())

    def run_alone(self, data: Any, rng: np.random.Generator) -> Views | dict[str, Array]:
        """Play one trial; when it raises, that ends it, and it keeps what it had shown."""
        shown = Shown()
        with shown.kept():
            emitted = self._serve(data, 1, rng, shown)
        return views_of([shown], len(stream_of(data)), self.column) if shown.form else emitted

    def _serve(self, data: Any, n: int, rng: np.random.Generator, shown: Shown) -> dict[str, Array]:
        """Play all rounds; `shown` has those of the first trial if the policy raises."""
        stream, chosen = stream_of(data), list[Array]()
        policy = self.policy()
        require_run(policy.start(n, rng), "start", LAZY)  # type: ignore[func-returns-value]
        for t in range(len(stream)):
            shown.served = t
            action = np.broadcast_to(np.asarray(policy.act(stream.context(t))), (n,)).copy()
            shown.add(action[0])
            heard = policy.observe(stream.answer(t, action, chosen))  # type: ignore[func-returns-value]
            require_run(heard, "observe", LAZY)
            chosen.append(action)
        return {self.column: np.stack(chosen, axis=1)}
