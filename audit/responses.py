"""Adaptive adversaries: outcomes that answer what a policy has done, the same way on both sides.

A rule is data, so that a pair can be pasted and stored:

* ``{"last": x, "others": y}``: the arm played in the round before costs x, all others y;
* ``{"below": v, "then": x, "else": y}``: an action of at most v, such as a price, is answered by
  x, a larger one by y.

Both sides of a pair share the rule. It is applied in the rounds whose outcome is missing (null or
NaN), so the record that differs stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from audit.encode import Array
from audit.errors import UsageError

_ARMS = {"last", "others"}
_PRICES = {"below", "then", "else"}


def answer(
    rule: Mapping[str, float] | Callable[..., Any] | None, actions: Sequence[Array]
) -> Array:
    """Outcomes of the last actions.

    Args:
        rule: One of the rules above, or a function of `actions` that returns shape (n,).
        actions: The actions of all rounds so far, shape (n,) each.

    Returns:
        Shape (n,).

    Raises:
        UsageError: For a missing or unknown rule.
    """
    if callable(rule):
        return np.asarray(rule(actions))
    keys = set(rule or {})
    if rule and keys == _ARMS:
        same = actions[-1] == actions[-2] if len(actions) > 1 else np.zeros(len(actions[-1]), bool)
        return np.where(same, rule["last"], rule["others"])
    if rule and keys == _PRICES:
        return np.where(actions[-1] <= rule["below"], rule["then"], rule["else"])
    raise UsageError(
        "responses: rounds without an outcome need a rule with the keys last, others or below, "
        f"then, else, or a function; got {rule!r}"
    )
