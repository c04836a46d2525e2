"""``--memory``: fewer workers where there is little, the same record, a refusal where none fits."""

from pathlib import Path

import pytest

from audit import read_record
from audit.footprint import peak
from tests.cli.console import GIVEN, audit, run, target

CASES = ("broken/laplace-half-noise", "calibration/laplace", "calibration/noisy-max")
NOISY = (target("noisy_block"), *GIVEN)
MEASURED = pytest.mark.skipif(not peak(), reason="nothing tells what a process takes")


def digest(folder):
    return read_record(Path(folder) / "record.json").digest()


@MEASURED
def test_no_limit_changes_the_record():
    run(*CASES, "--out", "free", trials=3000)
    for memory in ("64G", f"{1.5 * peak() / 2**20:.0f}M"):
        outcome = run(*CASES, "--out", memory, "--jobs", 2, "--memory", memory, trials=3000)
        assert outcome.code == 0
        assert digest(memory) == digest("free")


@MEASURED
def test_too_little_for_one_process_is_refused_and_the_record_is_not_written():
    outcome = run(*NOISY, "--memory", "2MiB")
    assert outcome.code == 2
    assert "--memory 2M" in outcome.complaint
    assert "--resume" in outcome.complaint
    assert not Path("out/record.json").exists()


REFUSED = {
    "no size": (("--memory", "much"), "--memory: expected a size such as 512M or 4G, got 'much'"),
    "elsewhere": (("--memory", "1G", "--backend", "dask", "--jobs", "2"), "--memory-limit"),
    "one run": (("--memory", "1G", "--one-run", "--canaries", "10"), "no meaning here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_limits_that_make_no_sense_are_refused(name):
    words, expected = REFUSED[name]
    outcome = run(target("Slip"), *words) if name == "one run" else run(*NOISY, *words)
    assert outcome.code == 2
    assert expected in outcome.complaint
    assert not Path("out").exists()


def test_the_configuration_can_limit():
    Path("pyproject.toml").write_text('[tool.audit]\nmemory = "1GiB"\n')
    assert "memory = '1GiB' (file)" in audit("run", "--show-settings").out.splitlines()
