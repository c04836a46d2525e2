"""Simple events as data: a number compared with a constant, or the form of the output.

They can be stored in a file and played again without fitting anything and without running anything
that the file brings along.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from audit.view import Floats, Views


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen score that is nothing but numbers.

    Attributes:
        kind: ``leaf``: one number of the view; ``form``: its form.
        description: The event in words.
        leaf: Name of the number.
        sign: 1 when large means left, else -1.
        centre: Where its score is 0.
        spread: Its unit.
        missing: Score of a trial that does not have it.
        odds: Form to log odds of left; other forms score 0.
    """

    kind: Literal["leaf", "form"]
    description: str
    leaf: str = ""
    sign: int = 1
    centre: float = 0.0
    spread: float = 1.0
    missing: float = 0.0
    odds: dict[str, float] = {}

    def __call__(self, views: Views) -> Floats:
        """Scores, shape (n,)."""
        if not len(views):
            return np.empty(0)
        if self.kind == "form":
            return np.array([self.odds.get(str(form), 0.0) for form in views.form], dtype=float)
        values = views.matrix((self.leaf,))[:, 0]
        return tail_score(values, self.sign, self.centre, self.spread, self.missing)


def tail_score(values: Floats, sign: int, centre: float, spread: float, missing: float) -> Floats:
    """An increasing (or decreasing), bounded function of numbers (asinh), shape (n,).

    Args:
        values: Shape (n,); NaN where a trial does not have the number.
        sign: 1 when large means left, else -1.
        centre: Where the score is 0.
        spread: Its unit.
        missing: Score of a trial that does not have it.
    """
    with np.errstate(all="ignore"):
        units = np.clip((values - centre) / spread, -1e12, 1e12)
    return np.where(np.isnan(values), missing, sign * np.arcsinh(units))
