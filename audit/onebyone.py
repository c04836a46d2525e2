"""Policies as production writes them: one customer at a time, with randomness of their own."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.outcome import LAZY, require_run
from audit.ownstate import borrowed, reseed, seed_globals
from audit.pair import Pair
from audit.rounds import stream_of
from audit.shown import Shown, views_of
from audit.view import Views

_GENERATORS = ("rng", "generator")
_SEEDS = ("seed", "random_state")

Maker = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class OneByOne:
    """A policy that serves one customer at a time, as a mechanism.

    Every trial gets a policy of its own and plays the stream from its first customer to its last.
    All randomness that Python code usually draws from is seeded anew for each trial, so that runs
    can be repeated: generators among the policy's attributes, and the global state of ``random``
    and ``numpy.random``, which gets back afterwards what it held. A seed that production fixes is
    therefore replaced; that a fixed seed is known to an adversary is not audited.

    Attributes:
        make: The policy's class, a factory (of no argument, or of ``rng`` or ``seed``), or an
            instance, of which every trial gets a deep copy.
        act: Method that answers a customer; it gets the context if it takes an argument.
        observe: Method that learns; it gets the last of context, action and outcome, as many as
            it requires. Empty for a policy that does not learn.
        rng: Attribute that holds a generator, dotted where nested; those directly on the policy
            are found without it.
        column: Name of the recorded actions.
        promised: The claim.
        inputs: Its pairs; see `audit.rounds.stream_of` for what an input is.
        mute: Whether the policy's logging and printing is silenced.
    """

    make: Any
    act: str = "act"
    observe: str = "observe"
    rng: str = ""
    column: str = ""
    promised: AnyClaim | None = None
    inputs: tuple[Pair, ...] = ()
    mute: bool = True

    @property
    def claim(self) -> AnyClaim | None:
        """The claim given by the caller."""
        return self.promised

    def pairs(self) -> Sequence[Pair]:
        """The pairs given by the caller."""
        return self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Views:
        """Play `n` trials, one after the other.

        Returns:
            The actions, shape (n, T): numbers as they are, codes for all else; see
            `audit.shown.views_of`.

        Raises:
            UsageError: For an input that is no stream, or a method that the policy lacks.
        """
        trials = [Shown() for _ in range(n)]
        with borrowed(mute=self.mute):
            for shown, child in zip(trials, rng.spawn(n), strict=True):
                self._serve(data, child, shown)
        return views_of(trials, len(stream_of(data)), self.column or "actions")

    def run_alone(self, data: Any, rng: np.random.Generator) -> Views:
        """Play one trial; when it raises, that ends it, and it keeps what it had shown."""
        shown = Shown()
        with shown.kept(), borrowed(mute=self.mute):
            self._serve(data, rng.spawn(1)[0], shown)
        return views_of([shown], len(stream_of(data)), self.column or "actions")

    def _serve(self, data: Any, rng: np.random.Generator, shown: Shown) -> None:
        """Play all rounds; `shown` has those that the policy came to if it raises."""
        stream, build = stream_of(data), self._maker()
        seed_globals(rng)
        policy = build(rng)
        reseed(policy, rng, self.rng)
        act = _taking(_method(policy, self.act), 1)
        observe = _taking(_method(policy, self.observe), 3) if self.observe else _ignore
        past = list[Any]()
        for t in range(len(stream)):
            shown.served = t
            context = stream.context(t)
            action = act(context)
            code = shown.add(action)
            heard = observe(context, action, stream.answer(t, action, past).tolist())
            require_run(heard, self.observe, LAZY)
            past.append(_copied(action, code))

    def _maker(self) -> Maker:
        """What makes the policy of one trial."""
        if not inspect.isclass(self.make) and hasattr(self.make, self.act):
            return lambda _rng: copy.deepcopy(self.make)
        wanted = _required(self.make)
        if not wanted:
            return lambda _rng: self.make()
        if len(wanted) == 1 and wanted[0] in _GENERATORS:
            return cast("Maker", self.make)
        if len(wanted) == 1 and wanted[0] in _SEEDS:
            return lambda rng: self.make(int(rng.integers(2**32)))
        raise UsageError(
            f"policy {_name(self.make)}: expected to build it without arguments, or from one "
            f"called {', '.join((*_GENERATORS, *_SEEDS))}; it takes ({', '.join(wanted)}). Give "
            "a lambda that fills them in"
        )


def _ignore(*_arguments: Any) -> None:
    return None


def _name(found: Any) -> str:
    return str(getattr(found, "__name__", type(found).__name__))


def _method(policy: Any, name: str) -> Callable[..., Any]:
    found = getattr(policy, name, None)
    if not callable(found):
        raise UsageError(
            f"policy {type(policy).__name__}: it has no method {name!r}; name its own with "
            "OneByOne(..., act=, observe=)"
        )
    made: Callable[..., Any] = found
    return made


def _positional(function: Any) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _required(function: Any) -> list[str]:
    return [p.name for p in _positional(function) if p.default is p.empty]


def _taking(method: Callable[..., Any], most: int) -> Callable[..., Any]:
    """The method, given the last arguments of those at hand, as many as it requires."""
    count = len(_required(method)) or min(1, len(_positional(method)))
    if count > most:
        raise UsageError(
            f"policy: {_name(method)} takes {count} arguments; expected at most {most}: "
            "of context, action and outcome the last ones. Wrap it in a class that does"
        )
    return lambda *arguments: method(*arguments[len(arguments) - count :])


def _copied(action: Any, code: float) -> Any:
    """An action as a rule of answers gets it: an array of its own, or a number."""
    return np.array(action, dtype=float) if isinstance(action, np.ndarray | list) else code
