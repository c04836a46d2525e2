"""The index page: every record, every case, the trend; foreign strings stay text."""

from __future__ import annotations

import msgspec
import pytest

from audit.record import Record, write_record
from audit.render.index import Entry, render_index, trends
from tests.cli.console import audit
from tests.records import CLAIMS, NASTY, nasty, one, record_of, sample
from tests.unit.test_render import Tree, squeezed


def started(record: Record, day: int) -> Record:
    execution = msgspec.structs.replace(record.execution, started=f"2026-01-{day:02d}T00:00:00Z")
    return msgspec.structs.replace(record, execution=execution)


BEFORE = started(record_of([one("a/case", CLAIMS[0], "subject", "unrefuted")]), 1)
AFTER = started(record_of([one("a/case", CLAIMS[0], "subject", "refuted")]), 2)
ENTRIES = [Entry(AFTER, "after/report.html"), Entry(BEFORE, "before/report.html")]


def test_trend_follows_a_case_from_the_oldest_record_to_the_newest() -> None:
    (trend,) = trends([BEFORE, AFTER])
    assert [at for at, _ in trend.runs] == [1, 2]
    assert trend.last == AFTER.results[0]
    assert "0.94 of the claimed 1, then 1.32 of the claimed 1" in trend.sentence
    assert "unrefuted, then refuted" in trend.sentence


def test_page_has_all_records_by_age_and_their_joint_error_rate() -> None:
    page = render_index(ENTRIES)
    tree = Tree(page)
    assert tree.stack == []
    assert tree.links == ["#trends", "before/report.html", "after/report.html"]
    assert "at most 0.002" in squeezed(tree.text)
    for record in (BEFORE, AFTER):
        assert record.summary.sentence in tree.text
    assert page == render_index(ENTRIES[::-1])
    assert "<script" not in page


def test_another_claim_is_another_trend() -> None:
    other = record_of([one("a/case", CLAIMS[1], "subject", "refuted")])
    assert len(trends([BEFORE, other])) == 2
    assert len(trends([sample(10), BEFORE])) == 11


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_add_no_element(text) -> None:
    plain, tree = (Tree(render_index([Entry(nasty(t), "x")])) for t in ("plain", text))
    assert tree.shape == plain.shape


def test_command_links_reports_and_refuses_other_formats(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, record in (("old one", BEFORE), ("new", AFTER)):
        (tmp_path / name).mkdir()
        write_record(record, tmp_path / name / "record.json")
    (tmp_path / "new" / "report.html").touch()
    done = audit("report", "old one/record.json", "new/record.json", "--index", "pages/index.html")
    assert (done.code, done.out) == (0, "")
    links = Tree((tmp_path / "pages/index.html").read_text()).links
    assert links[1:] == ["../old%20one/record.json", "../new/report.html"]
    refused = audit("report", "new/record.json", "--index", "i.html", "-f", "text")
    assert refused.code == 2
    assert "drop -f and --baseline" in refused.complaint
