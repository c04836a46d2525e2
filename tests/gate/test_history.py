"""The gate over a history: a commit breaks the promise, one quietens the audit, one mends it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from audit import read_record
from tests.cli.console import child

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

CODE = """def noisy_sum(data, n, rng):
    return sum(data) + rng.laplace(scale={scale}, size=n)
"""
GATE = """[tool.audit]
trials = {trials}
seed = 0
baseline = "baseline.json"

[[tool.audit.case]]
target = "shop:noisy_sum"
claim = "eps=1"
pairs = [[[1, 0, 1], [1, 0, 0]]]

[[tool.audit.case]]
target = "broken/laplace-half-noise"
"""
HONEST, HALVED, HALF_MORE = "1.0", "0.5", "1 / 1.5"


class Repository:
    """A project with its audit, under version control."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q")

    def git(self, *words: str) -> None:
        who = {"NAME": "dpaudit tests", "EMAIL": "tests@localhost"}
        names = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
        apart = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **names, **apart},
            check=True,
            capture_output=True,
        )

    def commit(self, message: str, *, scale: str = HONEST, trials: int = 4000) -> None:
        (self.folder / "shop.py").write_text(CODE.format(scale=scale))
        (self.folder / "pyproject.toml").write_text(GATE.format(trials=trials))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def gate(self, *words: object) -> int:
        return child("run", "--jobs", 1, "--out", "../report", *words, cwd=self.folder).code

    def rules(self) -> set[str]:
        record = read_record(self.folder.parent / "report" / "record.json")
        return {f.rule for f in record.summary.findings if f.case.startswith("shop")}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository whose first commit is audited and whose record is the committed baseline."""
    folder = tmp_path_factory.mktemp("history") / "shop"
    folder.mkdir()
    made = Repository(folder)
    made.commit("Sums with noise for epsilon 1")
    (folder / "first.toml").write_text(GATE.format(trials=4000).replace('baseline = "b', '# "b'))
    assert made.gate("--config", "first.toml") == 0
    (folder / "first.toml").unlink()
    child("accept", "../report/record.json", "--baseline", "baseline.json", cwd=folder, code=0)
    made.commit("Accept the first audit")
    made.git("tag", "accepted")
    return made


def test_the_gate_answers_broken_quietened_and_mended(repository):
    """Half noise is missed with probability below 1e-9; honest noise alarms with at most 1e-3."""
    assert repository.gate() == 0
    repository.commit("Answer with less noise", scale=HALVED)
    assert repository.gate() == 1
    assert "DP001" in repository.rules()
    repository.commit("Restore the noise; a quicker audit", trials=400)
    assert repository.gate() == 3
    assert "DP010" in repository.rules()
    repository.commit("Restore the audit")
    assert repository.gate() == 0
    assert repository.rules() == set()


def test_a_broken_claim_goes_before_a_weaker_audit(repository):
    repository.commit("Less noise and a quicker audit", scale=HALVED, trials=400)
    assert repository.gate() == 1
    assert {"DP001", "DP010"} <= repository.rules()


def test_a_regression_from_1_to_one_and_a_half_turns_red(repository):
    repository.commit("A third less noise", scale=HALF_MORE, trials=20_000)
    assert repository.gate() == 1
    repository.commit("Restore the noise")
