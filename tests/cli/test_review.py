"""A self-test that could not play its targets has not passed."""

import audit
from audit.engine import effective_n_jobs
from audit.record import read_record
from tests.cli.console import GIVEN, run, target
from tests.cli.console import audit as command


class Unplayable:
    """Fails as soon as it is played."""

    claim = audit.PureDp(epsilon=1.0)

    def pairs(self):
        return (audit.Pair(0.0, 1.0),)

    def run(self, data, n, rng):
        raise RuntimeError("no connection")


class Pairless(Unplayable):
    """Offers no inputs."""

    def pairs(self):
        return ()


def test_a_null_test_that_could_not_be_played_fails():
    outcome = command("selftest", f"{__name__}:Unplayable", "--trials", 400, "--jobs", 1)
    assert outcome.code == 3
    assert "FAIL" in outcome.out
    assert "no connection" in outcome.out


def test_a_self_test_without_pairs_is_refused():
    outcome = command("selftest", f"{__name__}:Pairless", "--trials", 400, "--jobs", 1)
    assert outcome.code == 2
    assert "at least one pair" in outcome.complaint


def test_a_record_counts_its_worker_processes(empty_folder):
    run(target("noisy_block"), *GIVEN, "--jobs", -1)
    record = read_record(empty_folder / "out" / "record.json")
    assert record.execution.jobs == effective_n_jobs(-1)
