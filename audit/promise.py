"""The guarantee travels with the function: a decorator that states claim and pairs.

@audit.claims("eps=1", pairs=[(0.0, 1.0)])
def noisy(data, rng):
    return data + rng.laplace(scale=1.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from audit.claim import AnyClaim
from audit.claim_text import parse_claim
from audit.errors import AuditError, UsageError
from audit.pair import Pair

_PLACE = "__audit_promise__"
Decorated = TypeVar("Decorated")


@dataclass(frozen=True)
class Promise:
    """What a function or class says of itself.

    Attributes:
        claim: What it promises.
        pairs: Neighbouring inputs worth trying.
    """

    claim: AnyClaim
    pairs: tuple[Pair, ...] = ()


def claims(
    claim: str | AnyClaim,
    *,
    pairs: Sequence[Pair | tuple[Any, Any]] = (),
    view: str = "",
    relation: str = "",
    unit: str = "",
) -> Callable[[Decorated], Decorated]:
    """State the claim of a function, a policy class or a factory where it is written.

    The decorated object stays what it is; ``python -m audit run module:name``, `audit.examine`
    and the test plugin find the claim on it.

    Args:
        claim: A claim, or its text such as ``eps=1,delta=1e-6``.
        pairs: Neighbouring inputs: pairs, or ``(left, right)``.
        view: The promised projection, such as ``prices_after``.
        relation: Neighbour relation; given inputs are checked to be such neighbours.
        unit: What one record is: ``event`` or ``user``.

    Raises:
        UsageError: For a claim that cannot be read, or inputs that are no neighbours.
    """
    context = {"view": view, "relation": relation, "unit": unit}
    given = {name: value for name, value in context.items() if value}
    stated = parse_claim(claim) if isinstance(claim, str) else claim
    stated = msgspec.structs.replace(stated, **given)
    inputs = as_pairs(pairs, stated.relation)

    def decorate(decorated: Decorated) -> Decorated:
        sourced = stated.source or f"{_name(decorated, '__module__')}:{_name(decorated)}"
        promise = Promise(msgspec.structs.replace(stated, source=sourced), inputs)
        try:
            setattr(decorated, _PLACE, promise)
        except AttributeError:
            raise UsageError(
                f"claims: expected a Python function or class, got {type(decorated).__name__}; "
                "wrap it in a function"
            ) from None
        return decorated

    return decorate


def promise_of(found: Any) -> Promise | None:
    """What a decorated object promises; also through ``functools.partial``."""
    promise = getattr(found, _PLACE, None) or getattr(getattr(found, "func", None), _PLACE, None)
    return promise if isinstance(promise, Promise) else None


def as_pairs(pairs: Iterable[Any], relation: str = "declared") -> tuple[Pair, ...]:
    """Pairs, of which some may be given as ``(left, right)``.

    Args:
        pairs: The pairs.
        relation: Neighbour relation of those that state none.

    Raises:
        UsageError: For anything that is no pair.
    """
    return tuple(_pair(pair, i, relation) for i, pair in enumerate(pairs))


def own_pairs(mechanism: Any, name: str) -> tuple[Pair, ...]:
    """The pairs of a mechanism.

    Args:
        mechanism: The mechanism.
        name: What it is called, for errors.

    Raises:
        UsageError: When ``pairs()`` raises, or returns anything else.
    """
    try:
        return as_pairs(mechanism.pairs())
    except AuditError:
        raise
    except Exception as error:  # noqa: BLE001  (user code)
        raise UsageError(
            f"case {name!r}: expected pairs() to return neighbouring inputs, such as "
            f"[audit.Pair(left, right)]; it ended in {type(error).__name__}: {error}"
        ) from None


def own_claim(mechanism: Any, name: str) -> AnyClaim | None:
    """The claim of a mechanism; None when it promises nothing.

    Args:
        mechanism: The mechanism.
        name: What it is called, for errors.

    Raises:
        UsageError: When it cannot be read, or is no claim.
    """
    try:
        claim = getattr(mechanism, "claim", None)
    except Exception as error:  # noqa: BLE001  (user code)
        claim = error
    if claim is None or isinstance(claim, AnyClaim):
        return claim
    raise UsageError(
        f"target {name!r}: expected its claim to be one such as audit.PureDp(epsilon=1.0), or "
        f"None; got {claim!r}"
    )


def _pair(pair: Any, i: int, relation: str) -> Pair:
    if isinstance(pair, Pair):
        return pair
    try:
        left, right = pair
    except (TypeError, ValueError):
        raise UsageError(f"pairs: expected audit.Pair(left, right), got {pair!r}") from None
    return Pair(left, right, f"given {i + 1}", relation)


def _name(found: Any, attribute: str = "__qualname__") -> str:
    return str(getattr(found, attribute, type(found).__name__))
