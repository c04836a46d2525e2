"""Pages made of a stranger's record stay inert: nothing in them runs, in a real browser.

Every free string of a record, and every key of its tables, is replaced by markup that would call
the canary. Skipped where no Chromium is installed; `test_the_canary_sings` shows that it would be
heard.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from audit.record import Record, encode
from audit.render import render
from audit.render.index import Entry, render_index
from audit.render.notebook import record_html, result_html
from tests.records import CLAIMS, one, record_of
from tests.unit.test_layout import CHROMIUM

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")

SCRIPT = (Path(__file__).parent / "canary.js").read_text(encoding="utf-8")
SING = "top.owned.push(1)"
PAYLOADS = (
    f"<script>{SING}</script>",
    f'"><img src=x onerror="{SING}">',
    f"'><img src=x onerror='{SING}'>",
    f"</title></style></pre></textarea><svg onload={SING}>",
    f"--><script>{SING}</script><!--",
    f"]]><script>{SING}</script>",
    f"javascript:{SING}",
    f"data:text/html,<script>{SING}</script>",
    f'" autofocus onfocus="{SING}" onmouseover="{SING}" x="',
    f"<svg><animate onbegin={SING} attributeName=x dur=1s></svg>",
    f"<svg><script>{SING}</script></svg>",
    f"<details open ontoggle={SING}>",
    f'<iframe srcdoc="<script>{SING}</script>"></iframe>',
    f"<math><mtext><style><img src onerror={SING}></style></mtext></math>",
    f"&lt;script&gt;{SING}&lt;/script&gt;",
    f"{{{{ ''.__class__ }}}}<%{SING}%>${{{SING}}}",
    f"<a href=javascript:{SING}>x</a>.py:3",
    f"\ud83d\ude00<scr\u0000ipt>{SING}</script>".encode("utf-16", "surrogatepass").decode("utf-16"),
)


def strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all strings."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(part, (*path, key))


def put(document: Any, path: tuple[Any, ...], text: str) -> str:
    """Replace what is there; returns what was."""
    for key in path[:-1]:
        document = document[key]
    old, document[path[-1]] = document[path[-1]], text
    return str(old)


@cache
def free_places() -> tuple[tuple[Any, ...], ...]:
    """Places of a record where any text is read; names must agree, so they change together."""
    found = []
    for path in strings(plain()):
        document = plain()
        put(document, path, "any text at all")
        try:
            msgspec.convert(document, Record)
            found.append(path)
        except (msgspec.ValidationError, ValueError):
            continue
    return tuple(found)


def plain() -> Any:
    """A record of two cases, as JSON."""
    results = [one("a", CLAIMS[0], "subject", "refuted"), one("b", CLAIMS[2], "control", "blind")]
    return json.loads(encode(record_of(results)))


def hostile(payload: Callable[[int], str]) -> Record:
    """A record with a payload in every free string, and in the names of its cases."""
    document, numbers = plain(), count()
    for path in free_places():
        put(document, path, payload(next(numbers)))
    for i, (case, result) in enumerate(
        zip(document["plan"]["cases"], document["results"], strict=True)
    ):
        case["name"] = result["name"] = f"{i}{payload(next(numbers))}"
        result["could_have_caught"] = {payload(next(numbers)): 1.5}
    names = [result["name"] for result in document["results"]]
    for finding, name in zip(document["summary"]["findings"], names, strict=False):
        finding["case"] = name
    document["execution"]["locations"] = {name: payload(next(numbers)) for name in names}
    document["environment"]["packages"] = {payload(next(numbers)): payload(next(numbers))}
    change = {"status": "worse", "note": payload(next(numbers))}
    document["summary"]["changes"] = {names[0]: change, payload(next(numbers)): change}
    return msgspec.convert(document, Record)


def pages(record: Record) -> dict[str, str]:
    """All HTML that is ever made of a record."""
    return {
        "report": render(record, "html"),
        "index": render_index([Entry(record, "a.json"), Entry(record, "b.json")]),
        "notebook": record_html(record),
        "notebook result": result_html(record.results[0]),
    }


def shown(all_pages: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What the browser found alive, by page."""
    with tempfile.TemporaryDirectory() as folder:
        page, data = Path(folder) / "page.html", json.dumps(all_pages).replace("<", "\\u003c")
        page.write_text(f"<body><script>const config = {data};\n{SCRIPT}</script></body>")
        words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        words += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=60000"]
        ran = subprocess.run(
            [*words, page.as_uri()], capture_output=True, text=True, timeout=500, check=True
        )
    found = re.search(r'<pre id="found">(.*?)</pre>', ran.stdout, flags=re.DOTALL)
    assert found is not None, ran.stdout[-500:]
    told: dict[str, dict[str, Any]] = json.loads(unescape(found[1]))
    return told


def check_inert(all_pages: dict[str, str]) -> None:
    """No page has anything alive, and a page that has is found among them."""
    bait = {f"bait {i}": f"<body>{payload}</body>" for i, payload in enumerate(PAYLOADS[:2])}
    found = shown({**all_pages, **bait})
    for name in bait:
        assert found[name]["owned"], f"the canary is deaf to {name}"
        assert found[name]["alive"], f"the search is blind to {name}"
    for name in all_pages:
        assert found[name]["length"] > 200, f"{name} is empty"
        assert (found[name]["owned"], found[name]["alive"]) == ([], []), name


def test_every_free_string_is_known() -> None:
    known = {path[-1] for path in free_places() if isinstance(path[-1], str)}
    assert {"source", "view", "sentence", "message", "reproduce", "event", "left"} <= known
    assert len(free_places()) > 60


def test_no_page_of_a_hostile_record_runs_anything() -> None:
    everywhere = hostile(lambda _: "".join(PAYLOADS))
    rotated = hostile(lambda i: PAYLOADS[i % len(PAYLOADS)])
    found = {
        f"{k} {n}": v
        for k, r in (("all", everywhere), ("one", rotated))
        for n, v in pages(r).items()
    }
    check_inert(found)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_no_payload_runs_anywhere(number: int) -> None:
    check_inert(pages(hostile(lambda _: PAYLOADS[number])))
