"""A little fuzzing in every test run, all inputs that ever went wrong, and the seeds themselves.

``python -m tests.fuzz 1000000`` is the long run; `reports/trust.md` tells what it found.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest import mock

import pytest

from tests.fuzz import mutate, targets
from tests.fuzz.harness import ending, guarded
from tests.fuzz.targets import TARGETS

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*/*"))
FEW = {name: 3 if name.startswith("command") else 40 for name in TARGETS}


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_ends_as_documented(name: str) -> None:
    with guarded():
        for number in range(FEW[name]):
            data = TARGETS[name].make(Random(f"test/{name}/{number}"))
            assert ending(TARGETS[name], data) in ("accepted", "refused"), data


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_went_wrong_ends_as_documented(path: Path) -> None:
    data = path.read_bytes()
    with guarded():
        assert ending(TARGETS[path.parent.name], data) in ("accepted", "refused")


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_good_inputs(name: str) -> None:
    """Otherwise mutations would all end at the same first check."""
    with (
        mock.patch.object(targets, "mutated_document", lambda value, _: value),
        mock.patch.object(targets, "mutated_bytes", lambda data, _: data),
        mock.patch.object(targets.conversation, "mutated_document", lambda value, _: value),
        mock.patch.object(targets.conversation, "mutated_bytes", lambda data, _: data),
        mock.patch.object(targets.conversation, "foreign", mutate.foreign),
        guarded(),
    ):
        told = [ending(TARGETS[name], TARGETS[name].make(Random(i))) for i in range(6)]
    assert "accepted" in told, told
