"""Python targets in a process of their own: what crashes there is an outcome, not our end.

`Isolated` stands for a mechanism that only a child process has imported (see `audit.inside`).
Requests go there pickled; answers come back as plain numbers and text, since nothing that a
target has touched is unpickled here. Inputs that the target made stay there, and `Held` names
them. What a target knows about itself is asked for through the same channel.

This guards against accidents, not against malice: a target runs with the rights of the user.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import cloudpickle
import msgspec
import numpy as np

from audit.child import HEADER, Child, borrowed, framed
from audit.claim import AnyClaim
from audit.errors import MechanismError, ProcessError, UsageError
from audit.limits import Limits
from audit.mechanism import CHANGES_ITS_INPUT
from audit.noiseless import Quiet
from audit.pair import Pair
from audit.view import Array, Views

ENDED = "process ended by"
VALUES = ("likelihood_views", "smallest_block", "declared_scale")
CALLS = (
    "log_likelihood_ratio",
    "exact_profile",
    "tilted_run",
    "action_llr",
    "price_score",
)
MAKERS = ("noise_scaled", "with_table")
ERRORS = {"UsageError": UsageError, "MechanismError": MechanismError, "ProcessError": ProcessError}
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from audit.inside import main; main()"
)

Steps = tuple[tuple[str, tuple[Any, ...]], ...]


class ApartError(Exception):
    """What a run in the other process raised, by its text."""


class Held:
    """An input that the other process holds; prints as its JSON.

    Args:
        steps: How its mechanism was derived.
        index: Which pair.
        left: Which side.
        text: The input as JSON for reading.
    """

    def __init__(self, steps: Steps, index: int, *, left: bool, text: str) -> None:
        self.steps, self.index, self.left = steps, index, left
        self._text = text

    def __repr__(self) -> str:
        return self._text


class HeldPair(Pair):
    """A pair of `Held` inputs; the other process has checked that they are neighbours."""

    def _check_add_remove(self) -> None:
        return None


@dataclass(frozen=True)
class Spec:
    """What the other process loads.

    Attributes:
        target: ``module:attr``.
        column: Name of a policy's recorded actions.
        parameters: Keyword arguments that replace the target's own.
        limits: Memory and time.
    """

    target: str
    column: str
    parameters: tuple[tuple[str, float], ...]
    limits: Limits


@dataclass(frozen=True)
class Ask:
    """One request to the other process.

    Attributes:
        verb: ``describe``, ``play``, ``run`` or a capability.
        steps: How the mechanism is derived from the loaded one.
        args: Arguments; `Held` inputs are replaced there.
        options: Keyword arguments.
    """

    verb: str
    steps: Steps = ()
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        header: Plain JSON.
        views: Views, where it holds any.
        arrays: Further arrays.
    """

    header: dict[str, Any]
    views: Views | None = None
    arrays: tuple[Array, ...] = ()

    def pack(self) -> bytes:
        """As bytes: one .npz file without pickles."""
        stored = {f"extra{i}": array for i, array in enumerate(self.arrays)}
        header = dict(self.header)
        if self.views is not None:
            forms, where = np.unique(self.views.form.astype(object), return_inverse=True)
            header["forms"], header["names"] = list(forms), list(self.views.columns)
            stored["form"] = where
            stored |= {f"column{i}": c for i, c in enumerate(self.views.columns.values())}
        stored["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with io.BytesIO() as file:
            np.savez(file, **stored)  # type: ignore[arg-type]
            return file.getvalue()

    @classmethod
    def unpack(cls, data: bytes) -> Answer:
        """From bytes; nothing in them is executed."""
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            header = dict(json.loads(file["header"].tobytes()))
            extra = tuple(file[f"extra{i}"] for i in range(sum("extra" in k for k in file)))
            if "forms" not in header:
                return cls(header, None, extra)
            forms = np.empty(len(header["forms"]), dtype=object)
            forms[:] = header["forms"]
            columns = {name: file[f"column{i}"] for i, name in enumerate(header["names"])}
            return cls(header, Views(forms[file["form"]], columns), extra)


@dataclass(frozen=True)
class Isolated:
    """A mechanism that another process plays.

    Attributes:
        spec: What that process loads.
        described: What it says about the mechanism.
        given: Claim for a target without one.
        inputs: Pairs for a target without any.
        steps: How the mechanism is derived from the loaded one.
    """

    spec: Spec
    described: Mapping[str, Any]
    given: AnyClaim | None = None
    inputs: tuple[Pair, ...] = ()
    steps: Steps = ()

    @property
    def claim(self) -> AnyClaim | None:
        """The target's own claim, or else the given one."""
        own = self.described["claim"]
        return self.given if own is None else msgspec.convert(own, AnyClaim)

    def pairs(self) -> Sequence[Pair]:
        """The target's own pairs, or else the given ones."""
        return _pairs(self.described["pairs"], self.steps) or self.inputs

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Views:
        """Play `n` trials in one call.

        Raises:
            ApartError: What the call raised.
            ProcessError: When the call ended its process.
        """
        answer = self._ask("run", data, n, rng)
        return _views(answer, n, rng)

    def play_apart(self, data: Any, n: int, rng: np.random.Generator, *, singly: bool) -> Views:
        """As `audit.mechanism.play`, or `play_singly`; a trial that ends its process is an outcome.

        Raises:
            ProcessError: When the process as a whole fails, or is late.
            MechanismError: When a run changes its input.
        """
        return _views(self._ask("play", data, n, rng, singly=singly), n, rng)

    def quiet_play(self, data: Any, most: int, offsets: Array | None = None) -> Quiet | None:
        """As `audit.exact.quiet_play`; None where that raises or ends its process."""
        try:
            answer = self._ask("quiet_play", data, most, offsets)
        except ProcessError:
            return None
        if answer.views is None:
            return None
        return Quiet(answer.views, tuple(answer.header["families"]))

    def __getattr__(self, name: str) -> Any:
        described = self.__dict__.get("described", {})
        if name in described.get("values", {}):
            value = described["values"][name]
            return tuple(value) if isinstance(value, list) else value
        if name in described.get("offers", ()):
            return partial(self._derive if name in MAKERS else self._call, name)
        raise AttributeError(name)

    def _derive(self, name: str, *args: Any) -> Isolated:
        steps = (*self.steps, (name, args))
        described = _exchange(self.spec, Ask("describe", steps)).header
        return replace(self, steps=steps, described=described)

    def _call(self, name: str, *args: Any, **options: Any) -> Any:
        answer = self._ask(name, *args, **options)
        if answer.header["result"] == "none":
            return None
        if answer.header["result"] == "number":
            return answer.arrays[0].item()
        return (answer.views, *answer.arrays) if answer.views is not None else answer.arrays[0]

    def _ask(self, verb: str, *args: Any, **options: Any) -> Answer:
        return _exchange(self.spec, Ask(verb, self.steps, args, options))


def isolated(spec: Spec, claim: AnyClaim | None = None, pairs: tuple[Pair, ...] = ()) -> Isolated:
    """The mechanism that a target names, imported in another process only.

    Args:
        spec: The target and its limits.
        claim: Claim for a target without one.
        pairs: Pairs for a target without any.

    Raises:
        UsageError: When nothing of that name can be audited, or this system cannot isolate it.
        ProcessError: When the import ends its process.
    """
    if sys.platform == "win32":
        raise UsageError("--isolate needs fork and resource limits, which Windows lacks; drop it")
    return Isolated(spec, _exchange(spec, Ask("describe")).header, claim, pairs)


def _pairs(described: Sequence[Mapping[str, Any]], steps: Steps) -> tuple[Pair, ...]:
    return tuple(
        HeldPair(
            Held(steps, i, left=True, text=pair["left"]),
            Held(steps, i, left=False, text=pair["right"]),
            pair["label"],
            pair["relation"],
            None if pair["differs"] is None else tuple(pair["differs"]),
            pair["records"],
        )
        for i, pair in enumerate(described)
    )


def _exchange(spec: Spec, ask: Ask) -> Answer:
    """One request and its answer."""
    with borrowed(spec, partial(_start, spec)) as child:
        deadline = time.monotonic() + spec.limits.seconds
        child.send(framed(cloudpickle.dumps(ask)))
        size = int.from_bytes(child.exactly(HEADER, deadline), "big")
        packed = child.exactly(size, deadline)
        try:
            answer = Answer.unpack(packed)
        except Exception as error:  # noqa: BLE001  (a target may have written there)
            raise child.failed(f"answered nonsense ({type(error).__name__}: {error})") from None
        if answer.header.get("error") == "ProcessError":
            raise child.failed(answer.header["message"])
    if "raised" in answer.header:
        raise ApartError(answer.header["raised"])
    if "error" in answer.header:
        raise ERRORS[answer.header["error"]](answer.header["message"])
    return answer


def _start(spec: Spec) -> Child:
    path = json.dumps(sys.path)
    child = Child([sys.executable, "-c", _START, path], f"isolated target {spec.target!r}")
    child.send(framed(cloudpickle.dumps(spec)))
    return child


def _views(answer: Answer, n: int, rng: np.random.Generator) -> Views:
    if answer.views is None or len(answer.views) != n:
        raise MechanismError(f"the isolated process gave no views of {n} trials")
    try:
        changed = answer.header["changed"]
        _set_state(rng, answer.header["rng"])
    except (TypeError, ValueError, KeyError, OverflowError):
        raise ProcessError("the isolated process gave no state of its generator") from None
    if changed:
        raise MechanismError(CHANGES_ITS_INPUT)
    return answer.views


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """Where a generator is, as JSON."""
    seeds: Any = rng.bit_generator.seed_seq
    plain = json.loads(json.dumps(rng.bit_generator.state, default=np.ndarray.tolist))
    return {"state": plain, "spawned": seeds.n_children_spawned}


def _set_state(rng: np.random.Generator, state: Mapping[str, Any]) -> None:
    """Move a generator to where the other process left its copy."""
    seeds: Any = rng.bit_generator.seed_seq
    rng.bit_generator.state = _like(rng.bit_generator.state, state["state"])
    seeds.spawn(state["spawned"] - seeds.n_children_spawned)


def _like(template: Any, value: Any) -> Any:
    if isinstance(template, Mapping):
        return {name: _like(part, value[name]) for name, part in template.items()}
    return np.array(value, template.dtype) if isinstance(template, np.ndarray) else value
