"""From names to objects: catalogues of mechanisms and attacks, and ``module:attr`` targets.

Catalogues come from the entry-point groups ``audit.mechanisms`` and ``audit.attacks``; the engine
itself names no algorithm and no attack. An entry point is either a mapping (a catalogue) or one
mechanism or attack under its own name.
"""

from __future__ import annotations

import copy
import difflib
import fnmatch
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

from audit.attack import Attack
from audit.claim import AnyClaim
from audit.domain import Proposer
from audit.entry import Entry
from audit.entrypoints import add, load, points
from audit.errors import UsageError
from audit.isolate import Spec, isolated
from audit.limits import Limits
from audit.mechanism import FunctionMechanism, Mechanism, Played
from audit.onebyone import OneByOne
from audit.pair import Pair
from audit.promise import own_claim, promise_of
from audit.remote import PREFIX, remote
from audit.rounds import column_of, standard_pairs
from audit.sweep import settled

_COUNTS = ("n", "size", "trials")


@cache
def catalogue() -> dict[str, Entry]:
    """All named mechanisms."""
    found: dict[str, Entry] = {}
    for point in points("audit.mechanisms"):
        loaded = load(point)
        add(found, dict(loaded) if isinstance(loaded, Mapping) else _alone(point, loaded), point)
    return found


@cache
def attack_names() -> dict[str, str]:
    """All named attacks, cheap ones first: name to ``module:Class``."""
    found: dict[str, str] = {}
    for point in points("audit.attacks"):
        loaded = load(point)
        add(
            found, dict(loaded) if isinstance(loaded, Mapping) else {point.name: point.value}, point
        )
    return found


def battery(names: Sequence[str] | None = None) -> tuple[Attack, ...]:
    """Attacks by name; the whole battery when no name is given.

    Raises:
        UsageError: For an unknown name.
    """
    known = attack_names()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise UsageError(f"attack {unknown[0]!r}: expected one of {', '.join(known)}")
    return tuple(_attribute(known[name])() for name in (names or known))


@cache
def proposer() -> Proposer | None:
    """Who proposes pairs for a domain; None when nobody is installed."""
    made: Proposer | None = next((load(point)() for point in points("audit.inputs")), None)
    return made


def matching(pattern: str) -> list[str]:
    """Catalogue names that match a name or a pattern such as ``broken/*``."""
    return fnmatch.filter(catalogue(), pattern)


def resolve(
    target: str,
    claim: AnyClaim | None = None,
    pairs: tuple[Pair, ...] = (),
    *,
    column: str = "",
    parameters: Mapping[str, float] | None = None,
    limits: Limits | None = None,
) -> Mechanism:
    """The mechanism that a target names.

    Args:
        target: A catalogue name, ``module:attr`` of what `as_mechanism` accepts, or
            ``exec:COMMAND`` that speaks `audit.wire`.
        claim: Claim for a target without one.
        pairs: Pairs for a target without any.
        column: Name of the recorded actions of a policy.
        parameters: Keyword arguments that replace the target's own.
        limits: How commands and isolated targets are kept apart.

    Raises:
        UsageError: When nothing of that name can be audited.
    """
    if target.startswith(PREFIX):
        return remote(target, claim, pairs, column=column, parameters=parameters, limits=limits)
    if limits is not None and limits.isolate and ":" in target:
        settings = tuple(sorted((parameters or {}).items()))
        return isolated(Spec(target, column, settings, limits), claim, pairs)
    if parameters:
        return as_mechanism(_build(target, parameters), target, claim, pairs, column)
    if target in catalogue():
        return as_mechanism(catalogue()[target].build(), target, claim, pairs, column)
    return as_mechanism(_import(target), target, claim, pairs, column)


def _build(target: str, parameters: Mapping[str, float]) -> Any:
    """A target that takes keyword arguments, called with them."""
    entry = catalogue().get(target)
    given: dict[str, Any] = {}
    for name, value in parameters.items():
        given |= settled(name, value, entry.parameters if entry else {})
    try:
        return entry.build(**given) if entry else _import(target)(**given)
    except TypeError as error:
        raise UsageError(f"target {target!r} cannot be built with {given}: {error}") from None


def _import(target: str) -> Any:
    module, _, attr = target.partition(":")
    if not module or not attr or module.endswith(".py"):
        near = difflib.get_close_matches(target, catalogue(), n=3, cutoff=0.5)
        if module.endswith(".py"):
            near = [f"{Path(module).stem}:{attr or 'FUNCTION'}"]
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UsageError(
            f"target {target!r}: expected a catalogue name, module:attr or exec:COMMAND; {hint}"
            "'python -m audit list' prints all names"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return _attribute(target)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a user's module may raise anything)
        raise UsageError(
            f"target {target!r}: cannot import it: {type(error).__name__}: {error}"
        ) from None


def _attribute(path: str) -> Any:
    module, _, attr = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attr.split("."):
        found = getattr(found, part)
    return found


def as_mechanism(
    found: Any,
    target: str,
    claim: AnyClaim | None = None,
    pairs: tuple[Pair, ...] = (),
    column: str = "",
) -> Mechanism:
    """Anything that can be audited, as a mechanism.

    Args:
        found: A mechanism; a policy with ``act`` and ``observe``, for arrays when it has ``start``
            too, else for one customer at a time; a class, a factory or an instance of either; or a
            plain function ``f(data, rng)`` or ``f(data, n, rng)``. Its own promise goes first.
        target: What a user typed, for errors.
        claim: Claim for an object without one.
        pairs: Pairs for an object without any.
        column: Name of the recorded actions of a policy; by default what the view is about.

    Raises:
        UsageError: For anything else.
    """
    promise = promise_of(found)
    if promise is not None:
        claim, pairs = promise.claim, promise.pairs or pairs
    column = column or (column_of(claim.view) if claim else "")
    if isinstance(found, OneByOne):
        return _filled(found, claim, pairs, column)
    if _has(found, "act", "observe"):
        return _from_policy(found, found, claim, pairs, column)
    if inspect.isclass(found):
        found = _construct(found, target)
    if _has(found, "run", "pairs"):
        mechanism: Mechanism = found
        own_claim(mechanism, target)
        return mechanism
    if callable(found):
        return _from_function(found, target, claim, pairs, column)
    raise UsageError(
        f"target {target!r}: expected a function, a policy class or a mechanism; "
        f"got {type(found).__name__}"
    )


def _filled(
    policy: OneByOne, claim: AnyClaim | None, pairs: tuple[Pair, ...], column: str
) -> OneByOne:
    """With what it leaves open."""
    claim, pairs = policy.promised or claim, policy.inputs or pairs or standard_pairs()
    column = policy.column or column or (column_of(claim.view) if claim else "")
    return replace(policy, promised=claim, inputs=pairs, column=column or "actions")


def _from_policy(
    policy: Any, make: Any, claim: AnyClaim | None, pairs: tuple[Pair, ...], column: str
) -> Mechanism:
    """A policy, and the class, factory or instance that makes it."""
    if not _has(policy, "start"):
        return _filled(OneByOne(make), claim, pairs, column)
    fresh = make if callable(make) else partial(copy.deepcopy, make)
    return Played(fresh, claim, pairs or standard_pairs(), column or "actions")


def _from_function(
    found: Any, target: str, claim: AnyClaim | None, pairs: tuple[Pair, ...], column: str
) -> Mechanism:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # builtins do not say what they take
        raise UsageError(
            f"target {target!r}: cannot see what it takes; expected f(data, rng) or "
            "f(data, n, rng). Wrap it in a function of these arguments"
        ) from None
    names = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(names) == 3 and names[1] not in _COUNTS:
        raise UsageError(
            f"target {target!r}: expected f(data, rng), or f(data, n, rng) with the number of "
            f"trials called {' or '.join(_COUNTS)}; it takes ({', '.join(names)}). "
            "Bind other parameters, for example with functools.partial"
        )
    if not names:
        made = _construct(found, target)
        if _has(made, "act", "observe") and not isinstance(made, OneByOne):
            return _from_policy(made, found, claim, pairs, column)
        if not callable(made) and not _has(made, "run", "pairs"):
            raise UsageError(
                f"target {target!r}: expected f(data, rng) or f(data, n, rng); it takes nothing "
                f"and returned {type(made).__name__}, which is no policy or mechanism either"
            )
        return as_mechanism(made, target, claim, pairs, column)
    if len(names) not in (2, 3):
        raise UsageError(
            f"target {target!r}: expected f(data, rng) or f(data, n, rng); "
            f"it takes ({', '.join(names)})"
        )
    return FunctionMechanism(found, claim, pairs, batched=len(names) == 3)


def _alone(point: metadata.EntryPoint, loaded: Any) -> dict[str, Entry]:
    """An entry point that is one mechanism, policy or function, not a catalogue."""
    summary = (inspect.getdoc(loaded) or "").partition("\n")[0]
    entry = Entry(
        "audit.registry:_attribute", {"path": point.value}, reference=False, summary=summary
    )
    return {point.name: entry}


def _construct(factory: Any, target: str) -> Any:
    try:
        return factory()
    except (Exception, SystemExit) as error:  # noqa: BLE001  (a user's code may raise anything)
        raise UsageError(
            f"target {target!r}: it must be callable without arguments: "
            f"{type(error).__name__}: {error}"
        ) from None


def _has(found: Any, *names: str) -> bool:
    return all(callable(getattr(found, name, None)) for name in names)
