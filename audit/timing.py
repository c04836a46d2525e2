"""Run time as part of the view, for the ``duration`` threat.

Trials are played one by one in one process, the two sides in a random order, so that whatever else
the machine does falls on both sides alike. A duration enters the view as its rank among scouted
ones: a number between 0 and 1 that no outlier moves.

Why this is valid: given what the machine does, the sides of a block's trials are exchangeable, as
they are without durations; a rank among frozen durations is a function of the trial's own view.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.mechanism import Mechanism, gather, play_once
from audit.view import Floats, Views, concatenate

COLUMN = "duration"


@dataclass(frozen=True)
class Clock:
    """Scouted durations, to which others are compared.

    Attributes:
        reference: Sorted seconds, shape (m,).
    """

    reference: Floats

    @classmethod
    def of(cls, left: Views, right: Views) -> Clock:
        """The durations of scouted trials of both sides."""
        return cls(np.sort(concatenate(left, right)[COLUMN]))

    def apply(self, views: Views) -> Views:
        """Views with ranks between 0 and 1 in place of seconds; ties count half."""
        seconds = views.columns[COLUMN]
        below = np.searchsorted(self.reference, seconds, side="left")
        up_to = np.searchsorted(self.reference, seconds, side="right")
        ranks = (below + up_to) / (2 * len(self.reference))
        return Views(views.form, {**views.columns, COLUMN: ranks})


def play_timed(
    mechanism: Mechanism,
    inputs: Mapping[bool, Any],
    sizes: Mapping[bool, int],
    streams: Mapping[bool, np.random.Generator],
    order: np.random.Generator,
) -> dict[bool, tuple[Views, Floats]]:
    """Play both sides, interleaved.

    Args:
        mechanism: What is played.
        inputs: The input of the left (True) and the right side.
        sizes: Trials of each side.
        streams: Generator of each side.
        order: Draws the order of the trials.

    Returns:
        For each side its views and its durations in seconds, shape (n,).
    """
    labels = np.repeat([True, False], [sizes[True], sizes[False]])
    order.shuffle(labels)
    children = {side: iter(streams[side].spawn(sizes[side])) for side in (True, False)}
    emitted: dict[bool, list[Any]] = {True: [], False: []}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for side in labels.tolist():
        rng, started = next(children[side]), time.perf_counter()
        emitted[side].append(play_once(mechanism, inputs[side], rng))
        seconds[side].append(time.perf_counter() - started)
    return {side: (gather(emitted[side]), np.array(seconds[side])) for side in (True, False)}
