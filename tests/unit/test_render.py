"""Every format: the facts are there, foreign strings are inert, bytes repeat."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from audit.errors import UsageError
from audit.record import Finding, Record, read_record, write_record
from audit.render import FORMATS, figures, render
from audit.render import sentences as say
from audit.render.templating import fence
from audit.render.wording import one_line
from tests.records import CLAIMS, KINDS, NASTY, nasty, one, record_of, sample

VOID = {"meta", "br", "hr", "img", "input", "link"}
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
READABLE = ("text", "markdown", "html")


@cache
def plain_shape() -> Counter[tuple[str, tuple[str, ...]]]:
    return Tree(render(nasty("plain"), "html")).shape


class Tree(HTMLParser):
    """Checks nesting and counts tags, attributes, ids and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.shape: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape[(tag, tuple(name for name, _ in attrs))] += 1
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape[(tag, tuple(name for name, _ in attrs))] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag
        if tag in ("dt", "td"):
            self.text += " "

    def handle_data(self, data: str) -> None:
        if self.stack[-1:] != ["style"]:
            self.text += data

    def unknown_decl(self, data: str) -> None:
        pytest.fail(f"unexpected declaration {data!r}")


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def shown(record: Record, name: str) -> str:
    report = render(record, name)
    if name == "markdown":
        report = PARSER.render(report)
    return squeezed(report if name == "text" else Tree(report).text)


@pytest.mark.parametrize("name", READABLE)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_facts_of_a_case_are_told(name, claim) -> None:
    results = [one(f"family/case-{i}", claim, *kind) for i, kind in enumerate(KINDS)]
    record = record_of(results)
    text = shown(record, name)
    for result in results:
        assert result.name in text
        assert squeezed(say.verdict_sentence(result)) in text
        assert say.LABELS[say.badge(result)].lower() in text.lower()
        assert f"{result.trials:,}" in text
    assert squeezed(say.false_alarm_sentence(record)) in text
    assert squeezed(say.threats_sentence(record)) in text
    assert record.summary.sentence in text
    for finding in record.summary.findings:
        assert f"{finding.rule} " in text
        assert finding.message in text
        assert finding.reproduce in text
    assert "is private" not in text


@pytest.mark.parametrize("name", ["markdown", "html"])
def test_long_formats_tell_every_figure(name) -> None:
    record = sample(10)
    text = shown(record, name)
    for planned, result in zip(record.plan.cases, record.results, strict=True):
        for label, value in figures.figures(planned, result):
            assert label in text
            assert squeezed(value) in text
        assert planned.reproduce in text
    for label, value in say.settings(record):
        assert label in text
        assert value in text


@pytest.mark.parametrize("count", [0, 1, 40])
def test_text_keeps_within_its_width(count) -> None:
    for line in render(sample(count), "text").splitlines():
        assert cell_len(line) <= 100
        assert "\x1b" not in line


def test_text_of_many_cases_spells_out_only_what_needs_attention() -> None:
    record = sample(40)
    text = squeezed(render(record, "text"))
    for result in record.results:
        assert result.name in text
        assert (squeezed(say.verdict_sentence(result)) in text) == say.needs_attention(result)


def test_text_has_colours_when_asked() -> None:
    assert "\x1b[" in render(sample(1), "text", color=True)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_cannot_steer_a_terminal(text) -> None:
    report = render(nasty(text), "text")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", report)
    for line in report.splitlines():
        assert cell_len(line) <= 100 or line.startswith("  $ ")


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_add_no_element_to_the_page(text) -> None:
    page = render(nasty(text), "html")
    tree = Tree(page)
    assert tree.stack == []
    assert tree.shape == plain_shape()
    assert "<script" not in page
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_add_no_token_to_the_markdown(text) -> None:
    assert tokens(render(nasty(text), "markdown")) == tokens(render(nasty("plain"), "markdown"))


@pytest.mark.parametrize("name", ["markdown", "html"])
@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_nasty_strings_are_shown_to_their_end(text, name) -> None:
    # The source of the claim is a table cell of its own.
    assert f"Claim from {one_line(text, 300)} " in shown(nasty(text), name)


@pytest.mark.parametrize("code", ["```", "a ```` b", "plain"])
def test_command_cannot_end_its_block(code) -> None:
    (block,) = PARSER.parse(f"{fence(code)}\n")
    assert block.content == f"{code}\n"


def tokens(markdown: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for token in PARSER.parse(markdown):
        found[token.type] += 1
        # Line breaks apart, a text with markup would have more than text in it.
        kinds = {child.type for child in token.children or []} - {"text", "text_special"}
        found.update(f"inline {kind}" for kind in kinds)
    return found


def test_page_is_well_formed_and_self_contained() -> None:
    page = render(sample(40), "html")
    tree = Tree(page)
    assert tree.stack == []
    assert len(tree.ids) == len(set(tree.ids))
    assert tree.links
    assert all(link.startswith("#") and link[1:] in tree.ids for link in tree.links)
    assert "url(" not in page
    assert "@import" not in page
    assert not any(name.startswith("on") for _, names in tree.shape for name in names)


def test_json_is_the_record(tmp_path: Path) -> None:
    record = sample(10)
    text = render(record, "json")
    write_record(record, tmp_path / "record.json")
    assert (tmp_path / "record.json").read_text() == text
    assert read_record(tmp_path / "record.json") == record


def test_numbers_in_json_are_finite() -> None:
    result = one("family/case", CLAIMS[0], "subject", "refuted")
    odd = msgspec.structs.replace(result, estimate=float("nan"), estimate_upper=float("inf"))
    text = render(record_of([odd]), "json")
    found = json.loads(text, parse_constant=pytest.fail)["results"][0]
    assert found["estimate"] is None
    assert found["estimate_upper"] is None


@pytest.mark.parametrize("name", READABLE)
def test_odd_numbers_do_not_break_a_report(name) -> None:
    result = one("family/case", CLAIMS[0], "subject", "refuted")
    odd = msgspec.structs.replace(
        result,
        estimate=float("inf"),
        epsilon_lower=1e308,
        could_have_caught={},
        profile=(),
        log_wealth=(float("nan"), -1e300),
        counts={},
        alpha=0.0,
    )
    assert "family/case" in shown(record_of([odd]), name)


@pytest.mark.parametrize("name", READABLE)
def test_partial_record_says_so(name) -> None:
    record = sample(3)
    partial = msgspec.structs.replace(
        record,
        results=record.results[:2],
        execution=msgspec.structs.replace(record.execution, complete=False),
    )
    assert "2 of 3 planned cases" in shown(partial, name)
    assert "partial" not in shown(record, name)


@pytest.mark.parametrize("name", READABLE)
def test_finding_about_a_case_without_result_is_shown(name) -> None:
    record = sample(1)
    stray = Finding(rule="DP008", case="gone/case", message="No longer there.")
    summary = msgspec.structs.replace(record.summary, findings=(stray,))
    text = shown(msgspec.structs.replace(record, summary=summary), name)
    assert "accepted finding no longer reproduces" in text
    assert "gone/case" in text
    assert "No longer there." in text


def test_unknown_format_lists_the_known() -> None:
    with pytest.raises(UsageError, match="text, json, markdown, html"):
        render(sample(1), "pdf")


def test_results_outside_the_plan_make_no_record() -> None:
    record = sample(2)
    plan = msgspec.structs.replace(record.plan, cases=record.plan.cases[:1])
    with pytest.raises(ValueError, match="case-001"):
        msgspec.structs.replace(record, plan=plan)


def test_guesses_that_do_not_fit_their_bins_make_no_choice() -> None:
    result = one("family/case", CLAIMS[0], "subject", "refuted")
    assert result.choice is not None
    with pytest.raises(ValueError, match="one guess per score bin"):
        msgspec.structs.replace(result.choice, guess=result.choice.guess[1:])


def digest_of_all(record: Record) -> str:
    reports = "".join(render(record, name) for name in FORMATS)
    return hashlib.sha256(reports.encode()).hexdigest()


def test_bytes_repeat_in_another_process_with_other_settings(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 7\nsvg.fonttype: path\n")
    code = "from tests.unit.test_render import *; print(digest_of_all(sample(10)))"
    wanted = digest_of_all(sample(10))
    assert wanted == digest_of_all(sample(10))
    other = {
        **os.environ,
        "PYTHONHASHSEED": "12345",
        "MATPLOTLIBRC": str(tmp_path),
        "COLUMNS": "40",
        "FORCE_COLOR": "1",
        "TZ": "Asia/Tokyo",
    }
    ran = subprocess.run(
        [sys.executable, "-c", code], env=other, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == wanted
