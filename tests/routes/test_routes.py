"""A newcomer's file of at most ten lines for each route, run as the file itself says.

Verdicts are deterministic for the fixed seed; over seeds, each *unrefuted* here would be refuted
with probability at most alpha = 0.001.
"""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from audit import read_record
from audit.contract import CHECKS
from tests.cli.console import environment, run

HERE = Path(__file__).parent / "newcomer"
PRODUCTION = {"shop.py"}
FILES = sorted(path for path in HERE.iterdir() if path.suffix in (".py", ".toml"))
MODULES = {path.stem for path in FILES}
OUTCOMES = [1, 0, 1, 1, 0, 1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with the newcomer's files, as the current directory; nothing stays imported."""
    for path in FILES:
        shutil.copy(path, tmp_path)
    contexts = [{"id": i} for i in range(len(OUTCOMES))]
    for name, first in (("left", 1), ("right", 0)):
        stream = {"contexts": contexts, "outcomes": [first, *OUTCOMES[1:]]}
        (tmp_path / f"{name}.json").write_text(json.dumps(stream), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in MODULES & set(sys.modules):
        del sys.modules[name]


def commands():
    """The ``python -m audit`` command that a file ends or begins with."""
    for path in FILES:
        for line in path.read_text(encoding="utf-8").splitlines():
            _, found, words = line.partition("# python -m audit run ")
            if found:
                yield pytest.param(shlex.split(words), id=path.stem)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_short(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= (30 if path.name in PRODUCTION else 10)


@pytest.mark.parametrize("words", list(commands()))
def test_the_command_of_each_file_runs(words):
    outcome = run(*words)
    assert outcome.code == (1 if "glue" in words[0] else 0), outcome.out + outcome.err
    (result,) = read_record(Path("out/record.json")).results
    assert result.name == words[0]
    assert result.verdict == ("refuted" if "glue" in words[0] else "unrefuted")
    rules = {finding.rule for finding in result.findings}
    assert not rules & {"DP006", "DP007", "DP009"}, result.findings


def test_the_routes_through_pytest(folder):
    shutil.copy("assertion.py", "test_promise.py")
    shutil.copy("contract.py", "test_contract.py")
    words = ["--audit", "--audit-config", "gate.toml", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "audit.pytest_plugin", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CHECKS) + 2} passed" in done.stdout


def test_every_route_has_its_file():
    told = {parameter.values[0][0].partition(":")[0] for parameter in commands()}
    elsewhere = {"assertion", "contract", "gate", "shop", "__init__"}
    assert told == MODULES - elsewhere


def test_a_production_policy_needs_few_lines_and_says_nothing(capfd):
    outcome = run("glue:policy", "--claim", "eps=1", "--view", "prices_after", "--pair", *PAIR)
    assert "customer" not in outcome.err + "".join(capfd.readouterr())
    glue = (HERE / "glue.py").read_text(encoding="utf-8")
    assert len([line for line in glue.splitlines() if line]) <= 10


PAIR = ("@left.json", "@right.json")


def test_the_own_price_is_not_in_the_view_of_later_customers():
    """Every view of the same user's policy on the same user's pair."""
    for view, verdict in (("prices_all", "refuted"), ("prices_except", "unrefuted")):
        words = ("own:Shop", "--claim", "eps=1", "--view", view, "--pair", *OTHERS)
        Path("own.py").write_text(OWN, encoding="utf-8")
        run(*words)
        (result,) = read_record(Path("out/record.json")).results
        assert (result.view, result.verdict) == (view, verdict)


OTHERS = tuple(
    json.dumps({"contexts": [{"id": 0}, {"id": i}, {"id": 0}], "outcomes": [0, 0, 0]})
    for i in (0, 5)
)
OWN = '''
import random


class Shop:
    """Quotes each customer by its own context: a leak in prices_all only."""

    def act(self, context):
        return context["id"] + random.random()

    def observe(self, bought):
        pass
'''


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("glue:policy", "--claim", "eps=1", "--pair", "[0]", "[1]"), "'outcomes'"),
        (("policy:Policy", "--claim", "eps=1", "--pair", "[0]", "[1]"), "got list"),
        (("broken_glue:policy", "--claim", "eps=1"), "no method 'price'"),
    ],
)
def test_what_is_wrong_is_said(words, message):
    Path("broken_glue.py").write_text(
        "import audit, shop\npolicy = audit.OneByOne(lambda: shop.Shop(1.0), act='price')\n",
        encoding="utf-8",
    )
    outcome = run(*words)
    assert outcome.code == 2, outcome.out + outcome.err
    assert message in outcome.err
