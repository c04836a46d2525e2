"""The README does what it says: every file is written, every command run, every name exists."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import audit
from audit.cli import main
from audit.registry import attack_names, catalogue
from audit.render import FORMATS
from audit.summary import INTERRUPTED
from tests.cli.console import PATIENCE
from tests.docs.readme import APART, BLOCKS, COMMANDS, FILES, PROSE, ROOT, SPANS, TEXT


def test_every_block_has_a_place():
    for block in BLOCKS:
        known = block.is_file or block.word in APART or (block.language, block.word) == ("bash", "")
        assert known, f"block {block.language} {block.word!r} would not be tested"
    assert set(APART) == {"setup-run", "setup-test", "slow"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the README's files."""
    where = tmp_path_factory.mktemp("readme")
    for name, text in FILES.items():
        (where / name).write_text(text, encoding="utf-8")
    return where


@pytest.fixture(scope="module")
def played(folder):
    """Every command of the README, run in order: command to finished process."""
    return {command: shell(command, folder) for command in COMMANDS}


def shell(command, folder):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment["AUDIT_RUN_JOBS"] = "1"  # quicker here, and no result depends on it
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command.replace("python ", f"{sys.executable} ", 1)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_does_what_is_said(command, played):
    if "exec:node" in command and shutil.which("node") is None:
        pytest.skip("needs node")
    done = played[command]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_claims_in_comments_hold(played):
    """``print(x)  # refuted`` prints just that; ``# certified: above 1`` bounds a number."""
    lines = [x for x in FILES["example.py"].splitlines() if x.startswith("print(")]
    printed = played["python example.py"].stdout.splitlines()
    assert len(lines) == len(printed) == 3
    for line, output in zip(lines, printed, strict=True):
        check_comment(line.partition("  # ")[2], output)


def check_comment(comment, output):
    bound = re.search(r"above ([\d.]+)", comment)
    if bound:
        assert float(output) > float(bound[1])
    elif " " in comment:
        assert "revealing box" in output
    else:
        assert output == comment


def test_the_records_that_commands_leave(played, folder):
    assert played
    gate = audit.read_record(folder / "gate-report" / "record.json")
    assert [result.name for result in gate.results] == ["mine:noisy", "broken/laplace-half-noise"]
    for name in ("gate-report/report.html", "again.html", "summary.md", "noisy-report/record.json"):
        assert (folder / name).stat().st_size > 500


def parsed(words):
    """Parse ``python -m audit`` words down to the command; nothing runs."""
    context = main.make_context("audit", list(words), resilient_parsing=False)
    with context:
        name, command, rest = main.resolve_command(context, list(words))
        return command.make_context(name, rest, parent=context)


def audit_words():
    spans = [span for span in SPANS if span.startswith("python -m audit ")]
    known = [command for command in COMMANDS if command.startswith("python -m audit ")]
    return [shlex.split(text)[3:] for text in [*spans, *known]]


@pytest.mark.parametrize("words", audit_words(), ids=" ".join)
def test_every_command_line_parses(words, folder, monkeypatch):
    monkeypatch.chdir(folder)
    try:
        stands = {"NAME": "DP001", "RECORD": "out/record.json"}
        parsed([stands.get(word, word) for word in words])
    except click.ClickException as error:
        pytest.fail(error.format_message())


def options_of(command):
    return {flag for p in command.params for flag in (*p.opts, *p.secondary_opts)}


def test_every_option_mentioned_exists():
    flags = {flag for command in main.commands.values() for flag in options_of(command)}
    mentioned = {word for span in SPANS for word in re.findall(r"(?<!\S)--[a-z-]+", span)}
    assert mentioned <= flags
    assert {"--trials", "--resume", "--dry-run", "--show-settings"} <= mentioned


def test_every_catalogue_name_mentioned_exists():
    names = set(re.findall(r"\b(?:calibration|bandits|pricing|broken)/[a-z0-9-]+", TEXT))
    assert names
    assert names <= set(catalogue())


def test_every_path_mentioned_exists():
    paths = {span for span in SPANS if re.fullmatch(r"[\w.]+/[\w./]*", span)}
    paths -= set(catalogue())
    for path in sorted(paths - {"audit-report/report.html"}):
        assert (ROOT / path).exists(), path


def test_every_public_name_mentioned_exists():
    calls = set(re.findall(r"\baudit\.([A-Za-z_]+)\(", TEXT))
    assert calls
    for name in calls:
        assert hasattr(audit, name), name
    for claim in ("PureDp", "ApproxDp", "GaussianDp", "ZeroConcentratedDp", "RenyiDp"):
        assert re.search(rf"`{claim}\([a-z, ]+\)`", PROSE), claim


def test_exit_codes_agree_with_the_help():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PROSE, re.MULTILINE)
    assert [int(code) for code, _ in rows] == [0, 1, 2, 3, INTERRUPTED]
    text = " ".join((main.help or "").split())
    for code, _ in rows:
        assert re.search(rf"\b{code} \w", text), f"--help does not tell exit code {code}"


def test_every_format_is_told_by_help():
    from audit.cli_run import run

    (option,) = [p for p in run.params if "--format" in p.opts]
    for name in FORMATS:
        assert name in option.help


def test_commands_of_the_changelog_exist():
    text = (ROOT / "CHANGELOG.md").read_text()
    (line,) = re.findall(r"`python -m audit` with (.+?)\.\n", text, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", line)) == set(main.commands)


def test_attacks_have_descriptions():
    from audit.registry import battery

    assert {attack.name for attack in battery()} == set(attack_names())


@pytest.mark.parametrize("name", sorted(APART))
def test_commands_that_run_elsewhere_are_well_formed(name):
    script = "\n".join(APART[name])
    done = subprocess.run(["bash", "-n", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for part in re.split(r" && |\n", script):
        check_part(shlex.split(part))


def check_part(words):
    program, *rest = words
    if rest[:3] == ["-m", "audit", "run"]:
        assert parsed(rest[2:])
    elif rest[:2] == ["-m", "pytest"]:
        assert rest[2:4] == ["-n", "auto"] or rest[2] == "-m" or (ROOT / rest[2]).exists()
        markers = rest[3:4] if rest[2:3] == ["-m"] else []
        declared = (ROOT / "pyproject.toml").read_text()
        assert all(f'"{marker}: ' in declared for marker in markers)
    elif rest[:2] == ["-m", "venv"]:
        assert rest[2] == ".venv"
    elif rest[:1] == ["-m"]:
        assert importlib.util.find_spec(rest[1]) is not None
    else:
        assert program == ".venv/bin/pip"
        assert rest[0] == "install"


def test_the_gate_runs_the_same_setup_commands():
    gate = (ROOT / ".ci" / "run").read_text()
    for name in ("setup-run", "setup-test"):
        assert f"$(block {name})" in gate
        assert f"```bash {name}\n" in TEXT


def test_the_csv_example_can_be_read(folder):
    from audit.table import read_table

    bounds = {"age": (0, 100), "income": (0, 150_000), "price": (0, 2), "bought": (0, 1)}
    path = Path(folder) / "customers.csv"
    context = ["age", "income"]
    table = read_table(path, context=context, outcome="bought", price="price", bounds=bounds)
    assert len(table) == 6
