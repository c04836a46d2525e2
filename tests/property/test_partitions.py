"""Any partition into tasks, any order, any number of workers, any break: the same record."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit import engine
from audit.claim import PureDp
from audit.engine import Workers, run
from audit.evidence import Evidence
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.plan import Case, Request, Settings, make_plan
from audit.record import Plan
from audit.registry import battery


def half_noise(data: float, n: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(scale=0.5, size=n)


def enough_noise(data: float, n: int, rng: np.random.Generator) -> Any:
    return np.round(data + rng.laplace(scale=1.0, size=n), 1)


@cache
def planned() -> tuple[Plan, tuple[Case, ...]]:
    """Two cases, one of which stops early."""
    claim, pairs = PureDp(epsilon=1.0), (Pair(0.0, 1.0),)
    requests = [
        Request(f.__name__, f.__name__, FunctionMechanism(f, claim, pairs, batched=True), claim,
                battery(["leaf"]), pairs)
        for f in (half_noise, enough_noise)
    ]  # fmt: skip
    return make_plan(requests, Settings(trials=1_200, alpha=0.05))


@cache
def expected() -> str:
    return run(*planned()).digest()


class BreakError(Exception):
    """The run was torn away."""


@dataclass(frozen=True)
class Shuffled(Workers):
    """One worker that answers in any order, and may break after some answers."""

    order: Random = field(default_factory=lambda: Random(0))
    most: int = 10**9

    def map(self, tasks: Sequence[Any], seconds: float = 0.0) -> Iterator[Any]:
        mixed = list(tasks)
        self.order.shuffle(mixed)
        for done, (function, args, kwargs) in enumerate(mixed):
            if len(mixed) > 2 and done >= self.most:
                raise BreakError
            yield function(*args, **kwargs)


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.integers(1, 7), st.lists(st.integers(1, 900), max_size=3))
def test_tasks_of_any_size_in_any_order(seed: int, blocks: int, waves: list[int]) -> None:
    with (
        mock.patch.multiple(engine, _FEWEST_BLOCKS=blocks, _MOST_BLOCKS=blocks),
        mock.patch.object(engine, "WAVES", tuple(sorted(waves))),
    ):
        assert run(*planned(), Shuffled(order=Random(seed))).digest() == expected()


@settings(max_examples=6)
@given(st.integers(0, 2**32), st.integers(1, 3), st.lists(st.integers(0, 6), max_size=3))
def test_any_breaks_between(seed: int, blocks: int, breaks: list[int]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.multiple(engine, _FEWEST_BLOCKS=blocks, _MOST_BLOCKS=blocks),
    ):
        log = Path(folder) / "blocks.jsonl"
        for most in breaks:
            workers = Shuffled(log=log, resume=True, order=Random(seed), most=most)
            try:
                assert run(*planned(), workers).digest() == expected()
            except BreakError:
                continue
        last = Shuffled(log=log, resume=True, order=Random(seed))
        assert run(*planned(), last).digest() == expected()


@pytest.mark.parametrize(
    ("backend", "jobs"),
    [
        ("sequential", 1),
        ("threading", 2),
        ("loky", 1),
        pytest.param("loky", 2, marks=pytest.mark.slow),
    ],
)
def test_any_backend(backend: str, jobs: int) -> None:
    assert run(*planned(), Workers(jobs=jobs, backend=backend)).digest() == expected()


@given(st.lists(st.integers(0, 4), min_size=8, max_size=8), st.randoms())
def test_evidence_adds_up_over_any_partition(parts: list[int], order: Random) -> None:
    rng = np.random.default_rng(0)
    blocks = {i: rng.integers(0, 50, (2, 3)) for i in range(8)}
    pieces = [
        Evidence(3, {i: blocks[i] for i in range(8) if parts[i] == part}) for part in set(parts)
    ]
    order.shuffle(pieces)
    assert sum(pieces, Evidence(3)) == Evidence(3, blocks)
