"""Randomness and noise that production code brings along: seeded, silenced, given back."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from audit.errors import UsageError

_KINDS = (np.random.Generator, np.random.RandomState, random.Random)
_ONE_AT_A_TIME = threading.RLock()
_WORDS = 8


@contextmanager
def borrowed(*, mute: bool) -> Iterator[None]:
    """Hold the global random state, and if `mute` logging and printing; give all back at the end.

    Threads take turns: they share that state.
    """
    with _ONE_AT_A_TIME:
        python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002  (user code's)
        try:
            if mute:
                with _silence():
                    yield
            else:
                yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def _silence() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        # a console's encoding must not decide whether a policy's print raises
        with (
            Path(os.devnull).open("w", encoding="utf-8", errors="replace", newline="\n") as sink,
            redirect_stdout(sink),
            redirect_stderr(sink),
        ):
            yield
    finally:
        logging.disable(level)


def seed_globals(rng: np.random.Generator) -> None:
    """Seed the global generators of ``random`` and ``numpy.random`` from an addressed stream."""
    random.seed(int(rng.integers(2**63)))
    np.random.seed(rng.integers(2**32, size=_WORDS))  # noqa: NPY002  (what user code draws from)


def reseed(policy: Any, rng: np.random.Generator, path: str = "") -> None:
    """Replace a policy's own generators by ones of the same kind from an addressed stream.

    Args:
        policy: Its attributes that are generators are replaced; equal ones stay equal.
        rng: Where they come from.
        path: An attribute more, dotted where nested; it becomes a numpy generator when it holds
            no generator yet.

    Raises:
        UsageError: When there is no such attribute.
    """
    made: dict[int, Any] = {}
    for name, value in list(getattr(policy, "__dict__", {}).items()):
        if isinstance(value, _KINDS):
            setattr(policy, name, made.setdefault(id(value), _like(value, rng)))
    if not path:
        return
    *owners, name = path.split(".")
    try:
        for owner in owners:
            policy = getattr(policy, owner)
        value = getattr(policy, name)
    except AttributeError as error:
        raise UsageError(f"rng {path!r}: expected an attribute of the policy: {error}") from None
    if not any(value is own for own in made.values()):
        setattr(policy, name, made.setdefault(id(value), _like(value, rng)))


def _like(value: Any, rng: np.random.Generator) -> Any:
    """A generator of the same kind, with a seed of its own."""
    if isinstance(value, np.random.RandomState):
        words = rng.integers(2**32, size=_WORDS)
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(words.tolist())))
    if isinstance(value, random.Random):
        return random.Random(int(rng.integers(2**63)))
    return rng.spawn(1)[0]
