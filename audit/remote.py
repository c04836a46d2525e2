"""Implementations in any language: ``exec:COMMAND WITH ARGS`` speaking `audit.wire`.

A command is started once per worker process and answers one request after the other. Its inputs
are JSON, its outputs become views like those of any Python function. A trial that it reports as
raised is an outcome; a command that dies, is late or talks nonsense cannot be audited.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np

from audit import wire
from audit.child import Child, borrowed
from audit.claim import RELATIONS, AnyClaim
from audit.claim_text import parse_claim
from audit.errors import ProcessError, UsageError
from audit.limits import Limits
from audit.mechanism import Played
from audit.pair import Pair
from audit.view import Array, Raised

PREFIX = "exec:"
_HELLO_SECONDS = 30.0
_SHOWN = 80

R = TypeVar("R", wire.Hello, wire.Ok, wire.Outputs, wire.Actions)


@dataclass(frozen=True)
class Remote:
    """A command as a mechanism; it pickles without its process.

    Attributes:
        command: Program and arguments.
        hello: What it states about itself.
        promised: Its claim.
        inputs: Its pairs.
        column: Name of a policy's recorded actions.
        limits: Time for one answer.
    """

    command: tuple[str, ...]
    hello: wire.Hello
    promised: AnyClaim | None = None
    inputs: tuple[Pair, ...] = ()
    column: str = "actions"
    limits: Limits = field(default_factory=Limits)

    @property
    def claim(self) -> AnyClaim | None:
        """The claim that it states, or else the given one."""
        return self.promised

    def pairs(self) -> Sequence[Pair]:
        """The pairs that it states, or else the given ones."""
        return self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """Play `n` trials.

        Returns:
            A list of n outputs, or the actions of a policy, shape (n, T).

        Raises:
            ProcessError: When the command dies, is late, or answers something else.
            UsageError: When a policy is to be played on something else than outcomes.
        """
        arms = _arms(data) if self.hello.kind == "policy" else 0
        with borrowed(self.command, partial(_start, self.command)) as child:
            line = Line(child, self.limits.seconds)
            if self.hello.kind == "policy":
                policy = partial(RemotePolicy, line, arms)
                return Played(policy, column=self.column).run(data, n, rng)
            line.give(data)
            return _outputs(line, n, rng)


class Line:
    """A conversation with a command, one request and one reply at a time.

    Args:
        child: The running command.
        seconds: Time for one answer.
    """

    def __init__(self, child: Child, seconds: float) -> None:
        self.child, self._seconds = child, seconds

    def ask(self, request: type[Any], expected: type[R], **fields: Any) -> R:
        """Send a request and wait for its reply.

        Raises:
            ProcessError: When another reply comes, or none.
        """
        number = self.child.known["asked"] = self.child.known.get("asked", 0) + 1
        self.child.send(wire.encode(request(id=number, **fields)))
        raw = self.child.line(time.monotonic() + self._seconds)
        try:
            reply = wire.decode(raw)
        except ValueError as error:
            raise self._broken(request, raw, str(error)) from None
        if isinstance(reply, wire.Error):
            raise self.child.failed(f"says: {reply.message}")
        if not isinstance(reply, expected):
            raise self._broken(request, raw, f"expected {_name(expected)!r}")
        if reply.id != number:
            raise self._broken(request, raw, f"expected id {number}, got {reply.id}")
        return reply

    def give(self, data: Any) -> None:
        """Send the input, unless the command has it already."""
        encoded = wire.encode(wire.Data(id=0, data=data))
        if self.child.known.get("data") != encoded:
            self.ask(wire.Data, wire.Ok, data=data)
            self.child.known["data"] = encoded

    def _broken(self, request: type[Any], raw: bytes, why: str) -> ProcessError:
        start = raw[:_SHOWN].decode("utf-8", "backslashreplace")
        return self.child.failed(
            f"answered {_name(request)!r} with {start!r}: {why}. Expected one JSON object per "
            "line on stdout, as 'python -m audit schema wire' describes; other text belongs to "
            "stderr"
        )


class RemotePolicy:
    """A policy command, playing n trials side by side.

    Args:
        line: The conversation with it.
        arms: Number of arms; 0 when its actions are numbers of another kind, such as prices.
    """

    def __init__(self, line: Line, arms: int = 0) -> None:
        self._line, self._arms, self._n = line, arms, 0

    def start(self, n: int, rng: np.random.Generator) -> None:
        """Let it forget everything and get ready for `n` trials."""
        self._n = n
        self._line.ask(wire.Run, wire.Ok, n=n, seed=seed_of(rng))

    def act(self, context: Any) -> Array:
        """One action per trial, shape (n,)."""
        actions = np.array(self._line.ask(wire.Act, wire.Actions, context=context).actions)
        if len(actions) != self._n:
            raise self._line.child.failed(f"gave {len(actions)} actions for {self._n} trials")
        if not self._arms:
            return actions
        if not np.isin(actions, np.arange(self._arms)).all():
            raise self._line.child.failed(f"gave an action that is no arm of 0 to {self._arms - 1}")
        return actions.astype(np.int64)

    def observe(self, outcome: Any) -> None:
        """Tell the outcomes, shape (n,)."""
        self._line.ask(wire.Observe, wire.Ok, outcomes=np.asarray(outcome).tolist())


def _arms(data: Any) -> int:
    """How many arms have outcomes; 0 when the outcomes do not depend on the action."""
    if not isinstance(data, Mapping) or "outcomes" not in data:
        raise UsageError(
            "a policy command plays a stream: expected inputs that are objects with 'outcomes', "
            f"got {str(data)[:_SHOWN]}"
        )
    outcomes = np.asarray(data["outcomes"])
    return outcomes.shape[1] if outcomes.ndim > 1 else 0


def seed_of(rng: np.random.Generator) -> str:
    """A seed for one block, drawn from its addressed stream."""
    return str(int(rng.integers(2**64, dtype=np.uint64)))


def _outputs(line: Line, n: int, rng: np.random.Generator) -> list[Any]:
    reply = line.ask(wire.Run, wire.Outputs, n=n, seed=seed_of(rng))
    if len(reply.outputs) != n:
        raise line.child.failed(f"gave {len(reply.outputs)} outputs for {n} trials")
    outputs = list(reply.outputs)
    for trial, failure in reply.raised.items():
        if not 0 <= trial < n:
            raise line.child.failed(f"says that trial {trial} of {n} raised; they count from 0")
        outputs[trial] = Raised(failure.kind, failure.message)
    return outputs


def _start(command: tuple[str, ...]) -> Child:
    farewell = wire.encode(wire.Bye(id=0))
    return Child(command, f"command {shlex.join(command)!r}", farewell)


def remote(
    target: str,
    claim: AnyClaim | None,
    pairs: tuple[Pair, ...],
    *,
    column: str = "",
    parameters: Mapping[str, float] | None = None,
    limits: Limits | None = None,
) -> Remote:
    """The mechanism that an ``exec:`` target names; starts the command to ask what it states.

    Args:
        target: ``exec:COMMAND WITH ARGS``, split as a shell would.
        claim: Claim for a command that states none.
        pairs: Pairs for a command that states none.
        column: Name of a policy's recorded actions.
        parameters: Refused: a command's parameters are its arguments.
        limits: Time for one answer.

    Raises:
        UsageError: For a command that cannot be started, or a hello that makes no sense.
        ProcessError: When it does not answer.
    """
    command, limits = _split(target), limits or Limits()
    if parameters:
        raise UsageError(f"target {target!r}: a command cannot be swept; change its arguments")
    with borrowed(command, partial(_start, command)) as child:
        line = Line(child, min(_HELLO_SECONDS, limits.seconds))
        hello = line.ask(wire.AskHello, wire.Hello, version=wire.VERSION)
    if hello.version != wire.VERSION:
        raise UsageError(
            f"target {target!r}: speaks version {hello.version} of the protocol, expected "
            f"{wire.VERSION}"
        )
    own, inputs = _stated(hello, target)
    if own is None and claim is not None and hello.view and claim.view == "output":
        claim = msgspec.structs.replace(claim, view=hello.view)
    named = column or hello.column or "actions"
    return Remote(command, hello, own or claim, inputs or pairs, named, limits)


def _split(target: str) -> tuple[str, ...]:
    """The words of a command; on Windows a backslash separates folders and escapes nothing."""
    words_of = shlex.shlex(target.removeprefix(PREFIX), posix=True, punctuation_chars=False)
    words_of.whitespace_split, words_of.commenters = True, ""
    if sys.platform == "win32":
        words_of.escape = ""
    try:
        words = tuple(words_of)
    except ValueError as error:
        raise UsageError(f"target {target!r}: cannot be split into words: {error}") from None
    if not words:
        raise UsageError(f"target {target!r}: expected exec:COMMAND, such as 'exec:node noisy.js'")
    return words


def _stated(hello: wire.Hello, target: str) -> tuple[AnyClaim | None, tuple[Pair, ...]]:
    """Claim and pairs of a hello."""
    relation = hello.relation or "declared"
    if relation not in RELATIONS:
        raise UsageError(
            f"target {target!r}: its hello states relation {relation!r}; expected one of "
            f"{', '.join(RELATIONS)}"
        )
    inputs = tuple(
        Pair(left, right, f"stated {i + 1}", relation)
        for i, (left, right) in enumerate(hello.pairs)
    )
    if not hello.claim:
        return None, inputs
    given = {"view": hello.view, "relation": hello.relation}
    context = {name: value for name, value in given.items() if value}
    return parse_claim(hello.claim, source=f"{hello.name or target} (hello)", **context), inputs


def _name(message: type[Any]) -> str:
    return str(message.__struct_config__.tag)
