"""The wire protocol: how an implementation in any language is played.

The audit writes one JSON object per line to the command's stdin and reads one JSON object per line
from its stdout: one reply, with the ``id`` of the request, for every request but ``bye``. Whatever
else the command wants to say goes to stderr.

A *batch* command is asked

* ``hello``: reply ``hello`` with what it states about itself; all of it is optional;
* ``data``: keep this input until the next one; reply ``ok``;
* ``run``: play ``n`` independent trials on it, with all randomness drawn from ``seed``; reply
  ``outputs`` with one output of any JSON type per trial. A trial that raised has null there, and
  its number as a key of ``raised``.

A *policy* command is asked ``hello``; then for every block of trials ``run`` (forget everything,
get ready for ``n`` trials; reply ``ok``), and for every round ``act`` (reply ``actions``, one
number per trial: where every arm has an outcome of its own, the number of an arm, from 0) and
``observe`` (one outcome per trial; reply ``ok``).

Any request may be answered with ``error``, which ends the audit of the case without a verdict;
``bye`` asks the command to end.

Numbers are doubles, as in JavaScript: ``1`` and ``1.0`` are the same output, and integers beyond
2**53 must be sent as strings. Not-a-number and the infinities are written NaN, Infinity and
-Infinity, as Python's json does, or, where no JSON writer does that, ``{"float": "NaN"}``. Seeds
are strings of decimal digits, below 2**64, since not every language has such integers in JSON.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import numpy as np

from audit.errors import UsageError

VERSION = 1
_SPELT = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every message has.

    Attributes:
        id: Number of the request; a reply repeats it.
    """

    id: int


class AskHello(_Message, frozen=True, tag="hello"):
    """Introduce yourself.

    Attributes:
        version: Version of this protocol.
    """

    version: int = VERSION


class Data(_Message, frozen=True, tag="data"):
    """Keep this input.

    Attributes:
        data: Any JSON.
    """

    data: Any


class Run(_Message, frozen=True, tag="run"):
    """Play a block of trials, or get ready for it.

    Attributes:
        n: Number of trials.
        seed: Decimal digits of a number below 2**64.
    """

    n: int
    seed: str


class Act(_Message, frozen=True, tag="act"):
    """Choose one action per trial.

    Attributes:
        context: What is known before the action; null without contexts.
    """

    context: Any = None


class Observe(_Message, frozen=True, tag="observe"):
    """Learn what came of the actions.

    Attributes:
        outcomes: One per trial.
    """

    outcomes: list[Any]


class Bye(_Message, frozen=True, tag="bye"):
    """End; there is no reply."""


class Hello(_Message, frozen=True, tag="hello", forbid_unknown_fields=True):
    """What a command states about itself.

    Attributes:
        version: Version of the protocol that it speaks.
        kind: ``batch`` or ``policy``.
        name: A name for reports.
        claim: What it promises, such as ``eps=1,delta=1e-6``.
        view: The projection that it promises this for.
        relation: Neighbour relation of the claim and the pairs.
        pairs: Neighbouring inputs, ``[left, right]`` each.
        column: Name of a policy's recorded actions: ``actions`` or ``prices``.
    """

    version: int = VERSION
    kind: Literal["batch", "policy"] = "batch"
    name: str = ""
    claim: str = ""
    view: str = ""
    relation: str = ""
    pairs: list[tuple[Any, Any]] = []
    column: str = ""


class Ok(_Message, frozen=True, tag="ok", forbid_unknown_fields=True):
    """Done."""


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a trial ended in.

    Attributes:
        kind: Such as ``ValueError``; part of what the adversary sees.
        message: Its text; part of it too.
    """

    kind: str
    message: str = ""


class Outputs(_Message, frozen=True, tag="outputs", forbid_unknown_fields=True):
    """What the trials let out.

    Attributes:
        outputs: One per trial.
        raised: Trials that raised, by number from 0.
    """

    outputs: list[Any]
    raised: dict[int, Failure] = {}


class Actions(_Message, frozen=True, tag="actions", forbid_unknown_fields=True):
    """The actions of one round.

    Attributes:
        actions: One per trial.
    """

    actions: list[float]


class Error(_Message, frozen=True, tag="error", forbid_unknown_fields=True):
    """The command cannot be played.

    Attributes:
        message: Why.
    """

    message: str


Request = AskHello | Data | Run | Act | Observe | Bye
Reply = Hello | Ok | Outputs | Actions | Error


class Protocol(msgspec.Struct):
    """One request and one reply, for the schema.

    Attributes:
        request: A line that the audit writes.
        reply: A line that the command writes.
    """

    request: Request
    reply: Reply


def encode(request: Request) -> bytes:
    """A request as a line; ``type`` and ``id`` come first, then the fields in their order.

    Raises:
        UsageError: When it holds something that is no JSON, or a number that is not finite.
    """
    fields = {"type": request.__struct_config__.tag, "id": request.id}
    fields |= msgspec.structs.asdict(request)
    try:
        text = json.dumps(fields, allow_nan=False, default=_plain, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"data for a command: expected JSON with finite numbers: {error}. Spell other values "
            "as strings or null"
        ) from None
    return text.encode() + b"\n"


def decode(line: bytes) -> Reply:
    """The reply on a line.

    Raises:
        ValueError: When it is none; the message says where.
    """
    try:
        found = json.loads(line.decode(), parse_int=float, object_pairs_hook=_object)
        if isinstance(found, dict):
            found = {name: _whole(value) for name, value in found.items()}
        reply: Reply = msgspec.convert(found, Reply, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return reply


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    if len(found) == 1 and (spelt := found.get("float")) is not None:
        return _SPELT.get(spelt, found) if isinstance(spelt, str) else found
    return found


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"got {type(value).__name__}")
