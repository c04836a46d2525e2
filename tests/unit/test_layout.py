"""Pages in a real browser: nothing overflows or overlaps, and every text can be read.

Skipped where no Chromium is installed. The page itself has no scripts: it is shown in a frame of
each width, and a script around it measures.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from html import unescape
from pathlib import Path

import msgspec
import numpy as np
import pytest

from audit.render import render
from audit.render.index import Entry, render_index
from audit.render.regret import Audited
from audit.utility_command import measure, page
from tests.records import CLAIMS, nasty, one, record_of, rounds, sample

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
WIDTHS = (1280, 400)
LONG = "very_long_name_without_any_break_" * 300
SCRIPT = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")


def pages() -> dict[str, str]:
    """One page of each kind, with what is hard to place."""
    curves = measure("bandits/threshold-canary", [20, 40], [0.5, 1.0], 8, 0)
    audits = [Audited(0.5, 0.4, False), Audited(1.0, 0.0, True)]
    record = sample(10)
    many = [one(f"case-{i}", c, "subject", "refuted", i) for i, c in enumerate(CLAIMS)]
    noise = rounds(np.random.default_rng(2), "actions")
    shares = msgspec.structs.replace(noise, lines=("share of 0", "share of 1", "share of 2"))
    both = msgspec.structs.replace(many[0], rounds=(*many[0].rounds, shares))
    return {
        "report": render(record, "html"),
        "sequences": render(record_of([both, *many[1:]]), "html"),
        "long": render(nasty(LONG), "html"),
        "right to left": render(nasty("\u202eevil\u202c שלום مرحبا 😀👩‍👩‍👧 名前"), "html"),
        "index": render_index([Entry(record, "a"), Entry(nasty(LONG), "b")]),
        "utility": page("bandits/threshold-canary", "Mean.", curves, audits),
    }


@cache
def measured(dark: bool) -> dict[str, dict[str, list[str]]]:
    """What the browser says is wrong, by page and width."""
    return _measure(dark)


def _measure(dark: bool) -> dict[str, dict[str, list[str]]]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "page.html"
        config = {"pages": pages(), "widths": WIDTHS}
        data = json.dumps(config).replace("<", "\\u003c")
        shown.write_text(f"<body><script>const config = {data};\n{SCRIPT}</script></body>")
        words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        words += [f"--user-data-dir={folder}/profile", "--virtual-time-budget=30000"]
        words += ["--blink-settings=preferredColorScheme=0"] if dark else []
        ran = subprocess.run(
            [*words, shown.as_uri()], capture_output=True, text=True, timeout=500, check=True
        )
    found = re.search(r'<pre id="found">(.*?)</pre>', ran.stdout, flags=re.DOTALL)
    assert found is not None, ran.stdout[-500:]
    result: dict[str, dict[str, list[str]]] = json.loads(unescape(found[1]))
    return result


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_overflows_or_overlaps_and_all_text_can_be_read(dark) -> None:
    found = measured(dark)
    assert len(found) == 2 * 6
    assert {name: wrong for name, wrong in found.items() if any(wrong.values())} == {}
