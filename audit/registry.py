"""From names to objects: catalogues of mechanisms and attacks, and ``module:attr`` targets.

Catalogues come from the entry-point groups ``audit.mechanisms`` and ``audit.attacks``; the engine
itself names no algorithm and no attack. An entry point is either a mapping (a catalogue) or one
mechanism or attack under its own name.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from audit.attack import Attack
from audit.claim import AnyClaim
from audit.domain import Proposer
from audit.entry import Entry
from audit.errors import UsageError
from audit.mechanism import FunctionMechanism, Mechanism, Played
from audit.pair import Pair
from audit.sweep import settled

_COUNTS = ("n", "size", "trials")


@cache
def catalogue() -> dict[str, Entry]:
    """All named mechanisms."""
    found: dict[str, Entry] = {}
    for point in metadata.entry_points(group="audit.mechanisms"):
        loaded = point.load()
        found.update(loaded if isinstance(loaded, Mapping) else {point.name: Entry(point.value)})
    return found


@cache
def attack_names() -> dict[str, str]:
    """All named attacks, cheap ones first: name to ``module:Class``."""
    found: dict[str, str] = {}
    for point in metadata.entry_points(group="audit.attacks"):
        loaded = point.load()
        found.update(loaded if isinstance(loaded, Mapping) else {point.name: point.value})
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


def proposer() -> Proposer | None:
    """Who proposes pairs for a domain; None when nobody is installed."""
    for point in metadata.entry_points(group="audit.inputs"):
        made: Proposer = point.load()()
        return made
    return None


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
) -> Mechanism:
    """The mechanism that a target names.

    Args:
        target: A catalogue name, or ``module:attr`` of a mechanism, a policy, a class or factory
            of either, or a plain function ``f(data, rng)`` or ``f(data, n, rng)``.
        claim: Claim for a target without one.
        pairs: Pairs for a target without any.
        column: Name of the recorded actions of a policy.
        parameters: Keyword arguments that replace the target's own.

    Raises:
        UsageError: When nothing of that name can be audited.
    """
    if parameters:
        return _as_mechanism(_build(target, parameters), target, claim, pairs, column)
    if target in catalogue():
        return _as_mechanism(catalogue()[target].build(), target, claim, pairs, column)
    module, _, attr = target.partition(":")
    if not module or not attr:
        near = difflib.get_close_matches(target, catalogue(), n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UsageError(
            f"target {target!r}: expected a catalogue name or module:attr; {hint}"
            "'python -m audit list' prints all names"
        )
    return _as_mechanism(_import(target), target, claim, pairs, column)


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


def _as_mechanism(
    found: Any, target: str, claim: AnyClaim | None, pairs: tuple[Pair, ...], column: str
) -> Mechanism:
    if inspect.isclass(found):
        if _has(found, "act", "observe"):
            policy: Any = found
            return Played(policy, claim, pairs, column or "actions")
        found = _construct(found, target)
    if _has(found, "run", "pairs"):
        mechanism: Mechanism = found
        return mechanism
    if _has(found, "act", "observe"):
        raise UsageError(
            f"target {target!r}: give the policy's class or a factory, not an instance"
        )
    if callable(found):
        return _from_function(found, target, claim, pairs, column)
    raise UsageError(
        f"target {target!r}: expected a function, a policy class or a mechanism; "
        f"got {type(found).__name__}"
    )


def _from_function(
    found: Any, target: str, claim: AnyClaim | None, pairs: tuple[Pair, ...], column: str
) -> Mechanism:
    names = [
        p.name
        for p in inspect.signature(found).parameters.values()
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
        if _has(made, "act", "observe"):
            return Played(found, claim, pairs, column or "actions")
        return _as_mechanism(made, target, claim, pairs, column)
    if len(names) not in (2, 3):
        raise UsageError(
            f"target {target!r}: expected f(data, rng) or f(data, n, rng); "
            f"it takes ({', '.join(names)})"
        )
    return FunctionMechanism(found, claim, pairs, batched=len(names) == 3)


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
