"""Conversations with a process that answers anything: no process is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from audit import isolate, remote
from audit.child import HEADER
from audit.claim import PureDp
from audit.errors import ProcessError
from audit.limits import Limits
from audit.mechanism import play as play_mechanism
from audit.pair import Pair
from tests.fuzz.mutate import as_json, foreign, mutated_bytes, mutated_document

N = 3
STREAM = {"outcomes": [[0.0, 1.0], [1.0, 0.0]]}
HELLO = {
    "type": "hello",
    "id": 1,
    "version": 1,
    "kind": "batch",
    "name": "n",
    "claim": "eps=1",
    "view": "output",
    "relation": "replace-one",
    "pairs": [[[0], [1]]],
    "column": "actions",
}
OUTPUTS = {
    "type": "outputs",
    "id": 3,
    "outputs": [1.5, {"a": [1, "x"], "float": "NaN"}, None],
    "raised": {"2": {"kind": "ValueError", "message": "low: 3"}},
}
REPLIES: dict[str, list[dict[str, Any]]] = {
    "hello": [HELLO, {**HELLO, "kind": "policy", "claim": "mu=1"}],
    "ok": [{"type": "ok", "id": 2}],
    "outputs": [OUTPUTS],
    "actions": [{"type": "actions", "id": 3, "actions": [0, 1, 0]}],
    "error": [{"type": "error", "id": 2, "message": "no"}],
}
BATCH = [HELLO, {"type": "ok", "id": 2}, OUTPUTS]
POLICY = [
    {**HELLO, "kind": "policy", "pairs": [], "view": "actions_all"},
    {"type": "ok", "id": 2},
    {"type": "actions", "id": 3, "actions": [0, 1, 0]},
    {"type": "ok", "id": 4},
    {"type": "actions", "id": 5, "actions": [1, 1, 1]},
    {"type": "ok", "id": 6},
]


class Parrot:
    """A child whose whole stdout is known."""

    def __init__(self, said: bytes) -> None:
        self.known: dict[str, Any] = {}
        self._rest = said

    def send(self, data: bytes) -> None:
        """Nobody listens."""

    def line(self, deadline: float) -> bytes:
        """The next line."""
        line, end, self._rest = self._rest.partition(b"\n")
        if not (line or end):
            raise self.failed("ended")
        return line

    def exactly(self, size: int, deadline: float) -> bytes:
        """The next bytes."""
        if size > len(self._rest):
            raise self.failed("ended")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def failed(self, what: str) -> ProcessError:
        """As `audit.child.Child` says it."""
        return ProcessError(f"parrot {what}")


@contextmanager
def speaking(said: bytes) -> Iterator[None]:
    """Every child says this."""
    parrot = Parrot(said)

    @contextmanager
    def borrowed(*_: object) -> Iterator[Parrot]:
        yield parrot

    with (
        mock.patch.object(remote, "borrowed", borrowed),
        mock.patch.object(isolate, "borrowed", borrowed),
    ):
        yield


def make(rng: Random) -> bytes:
    """A conversation of which one line, or two, are mutated."""
    said = list(rng.choice((BATCH, POLICY)))
    lines = [as_json(reply) for reply in said]
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(said))
        changed = as_json(mutated_document(said[at], rng))
        lines[at] = changed if rng.random() < 0.7 else mutated_bytes(lines[at], rng)
    if rng.random() < 0.02:
        lines.insert(rng.randrange(len(lines)), as_json(foreign(rng)))
    return b"\n".join(lines) + b"\n"


def play(said: bytes) -> None:
    """Hello, one block of trials, and the views that come of it."""
    with speaking(said):
        claim, pair = PureDp(epsilon=1.0), Pair(STREAM, STREAM)
        mechanism = remote.remote("exec:parrot", claim, (pair,))
        data = STREAM if mechanism.hello.kind == "policy" else mechanism.pairs()[0].left
        views = play_mechanism(mechanism, data, N, np.random.default_rng(0))
    assert len(views) == N
    assert views.matrix().shape[0] == N


def packed() -> bytes:
    """A good answer of an isolated process."""
    from audit.view import collect

    views = collect([{"x": 1.0, "y": "low"}, {"x": 2.0, "y": "high"}], 2)
    state = isolate.state_of(np.random.default_rng(1))
    return isolate.Answer({"changed": False, "rng": state}, views).pack()


def play_isolated(data: bytes) -> None:
    """An answer of an isolated process."""
    spec = isolate.Spec("m:f", "", (), Limits())
    mechanism = isolate.Isolated(spec, {"claim": None, "pairs": []})
    with speaking(len(data).to_bytes(HEADER, "big") + data):
        views = mechanism.play_apart(0.0, 2, np.random.default_rng(0), singly=True)
    assert len(views) == len(views.form)


assert json.loads(as_json(OUTPUTS)) == OUTPUTS
