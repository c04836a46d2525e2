"""What a policy shows in a trial: its answers round by round, and the exception that ended it."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from audit.encode import EXACT_INTEGERS, Array, category, encode
from audit.outcome import FAILURES, NO_OUTCOME, raised
from audit.view import Views, part_of

_MOST_PARTS = 256
_ENDED = ".raised"

Answer = tuple[float, dict[str, float]]
"""A number, and the numbers inside an answer that is something else."""
_NONE: Answer = (math.nan, {})


@dataclass
class Shown:
    """One trial of a policy.

    Attributes:
        answers: One per round, up to the last that the policy came to.
        form: How the trial ended, when it raised.
        served: The round that the policy is in.
    """

    answers: list[Answer] = field(default_factory=list)
    form: str = ""
    served: int = 0

    def add(self, action: Any) -> float:
        """The policy's answer in the next round; returns its number."""
        self.answers.append(_answer(action))
        return self.answers[-1][0]

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """An exception of the policy ends the trial, which keeps what it had shown."""
        try:
            yield
        except NO_OUTCOME:
            raise
        except FAILURES as error:
            self.end(error)

    def end(self, error: BaseException) -> None:
        """The policy raised: what the customer of this round is told, and no more."""
        leaves: dict[str, float] = {}
        self.form = encode(raised(error), _ENDED, leaves)
        told = {_ENDED: category(self.form), **leaves}
        if self.served == len(self.answers):
            self.answers.append((math.nan, {}))
        self.answers[self.served][1].update(told)


def views_of(trials: Sequence[Shown], rounds: int, column: str) -> Views:
    """Trials of a policy as views; what a trial has in them depends on its own answers alone.

    Returns:
        A column of shape (n, rounds) with a number per answer, NaN where there is none, and columns
        of that shape with what answers hold, called after it (see `audit.view.part_of`). A trial
        that raised has what it showed before, and what the exception told in its round.
    """
    found = {column: np.array([_padded(shown, rounds) for shown in trials], dtype=float)}
    for i, shown in enumerate(trials):
        for t, (_, parts) in enumerate(shown.answers[:rounds]):
            for path, number in parts.items():
                _column(found, part_of(column, path), column)[i, t] = number
    whole = f"{column}:f[{rounds}]"
    return Views(np.array([shown.form or whole for shown in trials], dtype=object), found)


def _padded(shown: Shown, rounds: int) -> list[float]:
    return [code for code, _ in (*shown.answers, *[_NONE] * rounds)][:rounds]


def _column(found: dict[str, Array], name: str, like: str) -> Array:
    if name not in found:
        found[name] = np.full(found[like].shape, math.nan)
    return found[name]


def _answer(action: Any) -> Answer:
    """A number as it is, None as NaN; of all else a stable code, and the numbers that it holds."""
    if action is None:
        return math.nan, {}
    if isinstance(action, np.ndarray) and action.ndim == 0:
        action = action[()]
    if isinstance(action, float | np.bool_ | np.floating):
        return float(action), {}
    if isinstance(action, int | np.integer) and abs(int(action)) <= EXACT_INTEGERS:
        return float(action), {}
    leaves: dict[str, float] = {}
    form = encode(action, "", leaves)
    parts = dict(itertools.islice(leaves.items(), _MOST_PARTS))
    return category(repr((form, leaves))), {**parts, ".form": category(form)}
