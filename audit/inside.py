"""The inside of `audit.isolate`: the process that imports a target and plays it.

A supervisor imports the target and forks a worker, which serves one request after the other. When
a trial ends the worker, the supervisor forks another and plays the trials before and after that
one: ranges of trials, each with the generator that it would have had anyway, so that nothing but
the crash is charged to the trial that crashed. The worker is kept between requests: a target with
hidden state must not be reset to look sound.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from signal import SIGXCPU
from typing import Any

import msgspec
import numpy as np

from audit.checks import snapshot
from audit.child import ending, framed
from audit.errors import AuditError
from audit.exact import quiet_play
from audit.isolate import (
    CALLS,
    ENDED,
    ERRORS,
    MAKERS,
    VALUES,
    Answer,
    Ask,
    Held,
    Spec,
    Steps,
    state_of,
)
from audit.mechanism import FAILURES, NO_OUTCOME, play, play_each, plays_one
from audit.noiseless import ChanceError
from audit.pair import Pair
from audit.plan import as_json
from audit.registry import resolve
from audit.threads import one_thread_from_now
from audit.view import Views, collect, joined
from audit.worker import Death, Worker, frame, write

Range = tuple[int, int]


def main() -> None:
    """Load what the first frame names, then answer one frame after the other."""
    one_thread_from_now()
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a target prints must not look like an answer
    spec: Spec = pickle.loads(frame(requests))  # noqa: S301  (from our own parent)
    answer = _answering(spec)
    while request := frame(requests):
        write(replies, framed(answer(request)))


def _answering(spec: Spec) -> Callable[[bytes], bytes]:
    """What answers requests: a supervisor, or the reason why the target cannot be loaded."""
    try:
        return _Supervisor(_Target.load(spec)).answer
    except AuditError as error:
        refusal = _failed(error).pack()
        return lambda _: refusal


@dataclass
class _Target:
    """The loaded mechanism and what was derived from it.

    Attributes:
        spec: What was loaded.
        mechanism: The mechanism.
        known: Derived mechanisms and their pairs, by the pickled steps.
    """

    spec: Spec
    mechanism: Any
    known: dict[bytes, tuple[Any, tuple[Pair, ...]]] = field(default_factory=dict)

    @classmethod
    def load(cls, spec: Spec) -> _Target:
        parameters = dict(spec.parameters) or None
        return cls(spec, resolve(spec.target, column=spec.column, parameters=parameters))

    def derived(self, steps: Steps) -> tuple[Any, tuple[Pair, ...]]:
        """The mechanism after some steps, such as ``noise_scaled``, and its pairs."""
        key = pickle.dumps(steps)
        if key not in self.known:
            found = reduce(lambda m, step: getattr(m, step[0])(*step[1]), steps, self.mechanism)
            self.known[key] = found, tuple(found.pairs())
        return self.known[key]

    def real(self, value: Any) -> Any:
        """A value with held inputs put back."""
        if isinstance(value, Held):
            return self.derived(value.steps)[1][value.index].side(value.left)
        if isinstance(value, Pair):
            left, right = self.real(value.left), self.real(value.right)
            return Pair(left, right, value.label, "declared", value.differs, value.records)
        return value

    def serve(self, payload: bytes, tick: Iterable[None]) -> bytes:
        """The packed answer to a request; the worker's work."""
        try:
            frame, some = pickle.loads(payload)  # noqa: S301  (from the supervisor)
            return self.answer(pickle.loads(frame), some, tick).pack()  # noqa: S301
        except Exception as error:  # noqa: BLE001  (a target may raise where none is expected)
            return _failed(error).pack()

    def answer(self, ask: Ask, some: Range | None, tick: Iterable[None]) -> Answer:
        """Do what is asked; `some` of the trials only, where it says so."""
        mechanism, pairs = self.derived(ask.steps)
        args = [self.real(value) for value in ask.args]
        if ask.verb == "describe":
            return Answer(_describe(mechanism, pairs))
        if ask.verb in ("play", "run"):
            return _played(mechanism, ask, args, some, tick)
        if ask.verb == "quiet_play":
            return _quietly(mechanism, args)
        return _result(ask.verb, args, getattr(mechanism, ask.verb)(*args, **ask.options))


def _describe(mechanism: Any, pairs: Sequence[Pair]) -> dict[str, Any]:
    """What the audit must know to plan: claim, pairs, capabilities."""
    values = {name: getattr(mechanism, name) for name in VALUES if hasattr(mechanism, name)}
    described: dict[str, Any] = msgspec.to_builtins(
        {
            "claim": mechanism.claim,
            "values": values,
            "offers": [n for n in (*CALLS, *MAKERS) if callable(getattr(mechanism, n, None))],
            "pairs": [
                {
                    "label": pair.label,
                    "relation": pair.relation,
                    "differs": pair.differs,
                    "records": pair.records,
                    "left": as_json(pair.left),
                    "right": as_json(pair.right),
                }
                for pair in pairs
            ],
        },
        enc_hook=lambda value: np.asarray(value).tolist(),
    )
    return described


def _played(
    mechanism: Any, ask: Ask, args: Sequence[Any], some: Range | None, tick: Iterable[None]
) -> Answer:
    """Views of a block of trials or of a range of it."""
    data, n, rng = args
    before = snapshot(data)
    if some is not None:
        ticking = (child for child, _ in zip(_spawned(rng, n, some), tick, strict=False))
        views = play_each(mechanism, data, ticking)
    elif ask.verb == "play":
        views = play(mechanism, data, n, rng)
    else:
        try:
            views = collect(mechanism.run(data, n, rng), n)
        except NO_OUTCOME:
            raise
        except FAILURES as error:
            return Answer({"raised": str(error)})
    return Answer({"changed": snapshot(data) != before, "rng": state_of(rng)}, views)


def _quietly(mechanism: Any, args: Sequence[Any]) -> Answer:
    """One play without noise, where that has a value."""
    try:
        with np.errstate(all="ignore"):
            found = quiet_play(mechanism, *args)
    except (ChanceError, *FAILURES):
        return Answer({})
    return Answer({"families": found.families}, found.views)


def _spawned(rng: np.random.Generator, n: int, some: Range) -> Iterator[np.random.Generator]:
    """What ``rng.spawn(n)`` gives to a range of trials, made when it is asked for."""
    seeds: Any = rng.bit_generator.seed_seq
    kind = type(rng.bit_generator)
    return (np.random.Generator(kind(seed)) for seed in seeds.spawn(n)[slice(*some)])


def _result(verb: str, args: Sequence[Any], found: Any) -> Answer:
    """What a capability returned."""
    if verb == "tilted_run":
        emitted, weights = found
        return Answer({"result": "views"}, collect(emitted, args[2]), (np.asarray(weights),))
    if found is None:
        return Answer({"result": "none"})
    kind = "array" if isinstance(found, np.ndarray) and found.ndim else "number"
    return Answer({"result": kind}, None, (np.asarray(found, dtype=float),))


def _failed(error: Exception) -> Answer:
    kind = next((name for name, known in ERRORS.items() if isinstance(error, known)), "")
    message = str(error) if kind else f"{type(error).__name__}: {error}"
    return Answer({"error": kind or "MechanismError", "message": message})


class _Supervisor:
    """Answers requests through a worker, and survives it.

    Args:
        target: What the worker plays.
    """

    def __init__(self, target: _Target) -> None:
        self._target = target
        self._worker = self._fork()

    def _fork(self) -> Worker:
        return Worker(self._target.serve, self._target.spec.limits)

    def answer(self, frame: bytes) -> bytes:
        """The packed answer to a request."""
        ask: Ask = pickle.loads(frame)  # noqa: S301  (from our own parent)
        in_one_call = not (plays_one(self._target.mechanism) or ask.options.get("singly"))
        if ask.verb != "play" or in_one_call:
            done = self._send(frame, None)
            if isinstance(done, bytes):
                return done
            if done.code == -SIGXCPU or ask.verb != "play":
                return _process_failed(done).pack()
        return self._by_ranges(ask, frame)

    def _send(self, frame: bytes, some: Range | None) -> bytes | Death:
        """One request to the worker; one that had ended before it began is not charged for."""
        payload = pickle.dumps((frame, some))
        done = self._worker.ask(payload)
        for _ in range(2):
            if isinstance(done, bytes):
                return done
            self._worker = self._fork()
            if some is None or done.started:
                return done
            done = self._worker.ask(payload)
        return done

    def _by_ranges(self, ask: Ask, frame: bytes) -> bytes:
        """Play every trial in a call of its own; those that end the worker are outcomes."""
        _, n, rng = ask.args
        parts: dict[int, Views] = {}
        header: dict[str, Any] = {"changed": False}
        open_ = [(0, n)]
        while open_:
            start, stop = open_.pop()
            done = self._send(frame, (start, stop))
            if isinstance(done, bytes):
                answer = Answer.unpack(done)
                if answer.views is None:
                    return done
                header["changed"] |= answer.header["changed"]
                parts[start] = answer.views
                continue
            if done.code == -SIGXCPU or not done.started:
                return _process_failed(done).pack()
            dead = start + done.started - 1
            parts[dead] = Views(np.array([f"raised {ENDED} {ending(done.code)}"], dtype=object))
            open_ += [r for r in ((start, dead), (dead + 1, stop)) if r[0] < r[1]]
        rng.spawn(n)
        header["rng"] = state_of(rng)
        return Answer(header, joined([parts[start] for start in sorted(parts)])).pack()


def _process_failed(death: Death) -> Answer:
    how = f"ended by {ending(death.code)}"
    if death.code == -SIGXCPU:
        how = "used more processor time than the time limit (--time-limit) leaves it"
    return Answer({"error": "ProcessError", "message": how})
