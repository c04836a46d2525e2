"""Whole commands in this process, on a mutated file in an empty current directory."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from audit.record import encode
from tests.cli.console import audit
from tests.records import CLAIMS, one, record_of

LINES = [
    ["score", "--counts", 560, 190, 555, 195, "--claim", "eps=1.5", "--alpha", 0.01],
    ["score", "--counts", 30, 9, 28, 9, "--claim", "mu=.5", "--canaries", 100, "--seed", 3],
    [
        "run",
        "tests.data.targets:noisy",
        "--claim",
        "eps=1",
        "--pair",
        "[0]",
        "[1]",
        "--trials",
        300,
    ],
    ["run", "calibration/laplace", "--sweep", "epsilon=0.1:4:3", "--alpha", 0.01, "--group", 2],
    ["run", "tests.data.targets:noisy", "--claim", "rho=1", "--domain", '{"bounds": [0, 1]}'],
    ["run", "calibration/laplace", "broken/laplace-half-noise", "--shard", "1/2", "--jobs", 1],
    ["run", "calibration/laplace", "--one-run", "--canaries", 50, "--guesses", 20],
]
DOCUMENTED = (0, 1, 2, 3)


class RefusedError(Exception):
    """The command ended with code 2 and one line."""


def play(given: str, words: tuple[str, ...], writes: tuple[str, ...], data: bytes) -> None:
    """One command.

    Args:
        given: Name of the mutated file.
        words: The command line.
        writes: Endings of the files that it may leave when it was not refused.
        data: Content of the mutated file.

    Raises:
        RefusedError: When it was refused as documented.
        AssertionError: When it ended in any other way than the documented ones.
    """
    Path(given).write_bytes(data)
    if "good.json" in words:
        Path("good.json").write_bytes(encode(small_record()))
    before = set(Path().iterdir())
    outcome = audit(*words)
    new = {path.name for path in set(Path().iterdir()) - before}
    assert outcome.code in DOCUMENTED, f"exit code {outcome.code}: {outcome.err}"
    assert "Traceback" not in outcome.err, outcome.err
    assert "report it" not in outcome.err, outcome.err
    if outcome.code == 2:
        assert not new, f"a refused command left {new}"
        last = outcome.err.splitlines()[-1:]
        assert last, "a refusal without a word"
        assert last[0].startswith("error: "), outcome.err
        raise RefusedError(last[0])
    assert all(name.endswith(writes) for name in new), f"unexpected files: {new}"


def words(data: bytes) -> None:
    """A command line of words that are spelled in JSON.

    None may name an output, and no system lets a word hold NUL.
    """
    try:
        line = [word for word in json.loads(data) if isinstance(word, str | int | float)]
    except (ValueError, TypeError, RecursionError) as error:
        raise RefusedError(str(error)) from None
    command, *rest = [str(word) for word in line] or [""]
    flags = () if command == "score" else ("--dry-run",)
    named = ("-f", "--f", "--out")
    safe = [word for word in rest if not word.startswith(named) and "\0" not in word]
    play("s.csv", (command if command in ("score", "run") else "explain", *safe, *flags), (), b"")


def small_record() -> object:
    """A record of three cases."""
    return record_of(
        [
            one("noisy", CLAIMS[0], "subject", "refuted"),
            one("b", CLAIMS[2], "control", "blind"),
            one("c", CLAIMS[1], "subject", "error"),
        ]
    )


def on_file(given: str, *words: str, writes: tuple[str, ...] = ()) -> object:
    """The player of a command line."""
    return partial(play, given, words, writes)


run_config = on_file("c.toml", "run", "--config", "c.toml", "--dry-run")
run_pin = on_file("p.pin.json", "run", "p.pin.json", "--dry-run")
score = on_file("s.csv", "score", "s.csv", "--claim", "eps=1")
report = on_file("r.json", "report", "r.json", "-f", "text", "-f", "markdown", "-f", "sarif")
report_html = on_file("r.json", "report", "r.json", "-f", "html", "-f", "junit", "-f", "github")
compare = on_file("r.json", "compare", "r.json", "r.json")
accept = on_file(
    "r.json", "accept", "r.json", "--reason", "why", "--baseline", "n.json", writes=("n.json",)
)
report_baseline = on_file("b.json", "report", "good.json", "--baseline", "b.json")
pin = on_file("r.json", "pin", "r.json", writes=(".pin.json",))
