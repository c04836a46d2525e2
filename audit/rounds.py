"""Streams: the input of a sequential policy, one customer per round, and what customers answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.errors import UsageError
from audit.pair import Pair
from audit.responses import answer
from audit.view import PROJECTIONS, WHOLE, Array

_ROUNDS = 32


@dataclass(frozen=True)
class Stream:
    """One customer per round.

    Attributes:
        rows: What the customers bring: shape (T,), or (T, K) with one entry per arm.
        contexts: One per round, of any kind; None for policies without contexts.
        valuations: Whether `rows` are valuations: a customer buys at any price up to it.
        responses: Rule that answers where an entry of `rows` is NaN, see `audit.responses`.
    """

    rows: Array
    contexts: Sequence[Any] | None = None
    valuations: bool = False
    responses: Any = None

    def __len__(self) -> int:
        return len(self.rows)

    def context(self, t: int) -> Any:
        """What the policy knows about customer `t`."""
        return None if self.contexts is None else self.contexts[t]

    def answer(self, t: int, action: Any, past: Sequence[Any]) -> Array:
        """The outcome of `action` in round `t` after the actions of the `past`, in its shape.

        A valuation answers 1 (bought) or 0; with (T, K) rows an action is an arm; other rows are
        the outcome themselves, whatever was done.
        """
        row, action = self.rows[t], np.asarray(action)
        if row.dtype.kind == "f" and np.isnan(row).any():
            actions = [np.atleast_1d(np.asarray(played)) for played in (*past, action)]
            return np.reshape(answer(self.responses, actions), action.shape)
        if self.valuations:
            return np.asarray(action <= row, dtype=float)
        return np.asarray(row[action]) if row.ndim else np.full(action.shape, row)


def stream_of(data: Any) -> Stream:
    """Read a policy's input.

    Args:
        data: A mapping with ``outcomes``, shape (T,) or (T, K), or ``valuations``, shape (T,), and
            optionally ``contexts``, T of them, and ``responses``, a rule for missing outcomes.

    Raises:
        UsageError: For anything else.
    """
    try:
        name = "valuations" if "valuations" in data else "outcomes"
        rows, contexts = np.asarray(data[name]), data.get("contexts")
        if rows.dtype == object:
            rows = rows.astype(float)
    except (AttributeError, KeyError, TypeError, IndexError, ValueError):
        raise UsageError(
            "pair: the input of a policy is a mapping with 'outcomes' (one per round, or one per "
            "round and arm) or 'valuations', and optionally 'contexts', such as "
            f'{{"outcomes": [1, 0, 1]}}; got {_named(data)}'
        ) from None
    if rows.ndim == 0 or (contexts is not None and len(contexts) != len(rows)):
        raise UsageError(
            f"pair: a policy needs one context per round; got {name} of shape {rows.shape} and "
            f"{'no' if contexts is None else len(contexts)} contexts"
        )
    return Stream(rows, contexts, name == "valuations", data.get("responses"))


def _named(data: Any) -> str:
    kind = type(data).__name__
    return f"{kind} with {', '.join(map(repr, data)) or 'nothing'}" if kind == "dict" else kind


def standard_pairs() -> tuple[Pair, ...]:
    """Streams of outcomes 0 and 1 without contexts, for a policy that comes without pairs.

    The first customer, or one in the middle, is replaced among customers who all answer 0, or
    who answer 1 and 0 in turn.
    """
    quiet, turns = np.zeros(_ROUNDS), np.arange(_ROUNDS) % 2.0
    return tuple(
        Pair(
            {"outcomes": _with(base, at, 1.0)},
            {"outcomes": _with(base, at, 0.0)},
            f"customer {at + 1} of {_ROUNDS}, the others {label}",
            "replace-one",
        )
        for base, label in ((quiet, "0"), (turns, "0 and 1 in turn"))
        for at in (0, _ROUNDS // 2)
    )


def _with(base: Array, at: int, value: float) -> Array:
    changed = base.copy()
    changed[at] = value
    return changed


def column_of(view: str) -> str:
    """The column that a view is about, such as ``prices`` of ``prices_after``; else empty.

    Nothing follows from ``prices_aftr``: a column of that name would be shown whole.
    """
    name, _, which = view.rpartition("_")
    if name and which not in PROJECTIONS:
        return ""
    return name or ("" if view in WHOLE else view)
