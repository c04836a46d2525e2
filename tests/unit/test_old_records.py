"""Records as earlier versions wrote them load, keep their numbers, and render (ADR 12)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit.errors import UsageError
from audit.record import SCHEMA_VERSION, read_record
from audit.render import FORMATS, render

OLD = sorted((Path(__file__).parents[1] / "data").glob("record-*.json"))


def test_every_schema_version_has_an_old_record() -> None:
    versions = {int(path.name.split("-")[1]) for path in OLD}
    assert versions == set(range(1, SCHEMA_VERSION + 1))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_record_keeps_its_numbers(path) -> None:
    raw, record = json.loads(path.read_text()), read_record(path)
    assert len(record.results) == len(raw["results"]) == 2
    for old, result in zip(raw["results"], record.results, strict=True):
        assert result.verdict == old["verdict"]
        assert result.epsilon_lower == old["epsilon_lower"]
        assert result.parameter_lower == old.get("parameter_lower")
        cells = [row[1:] for rows in old["counts"].values() for row in rows]
        assert result.evidence.total.sum(axis=1).tolist() == [
            sum(side) for side in zip(*cells, strict=True)
        ]
        assert result.rounds == ()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_record_renders(path, name) -> None:
    record = read_record(path)
    text = render(record, name)
    told = record.results if name not in ("sarif", "github") else ()  # those tell of findings
    assert all(result.name in text for result in told)


def altered(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(json.loads(OLD[-1].read_text()) | changes))
    return path


def test_field_of_the_future_is_ignored(tmp_path) -> None:
    assert read_record(altered(tmp_path, mood="good")) == read_record(OLD[-1])


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(SCHEMA_VERSION + 1, "update dpaudit"), (0, "write it again"), ("1", "write it again")],
)
def test_other_versions_are_refused_with_a_remedy(tmp_path, version, remedy) -> None:
    with pytest.raises(UsageError, match=remedy):
        read_record(altered(tmp_path, schema_version=version))
