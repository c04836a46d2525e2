"""Mechanisms that draw from a generator of their own: no process may play a copy of it."""

import numpy as np

from audit import Pair, PureDp, workers
from audit.engine import run
from audit.mechanism import FunctionMechanism
from audit.plan import Request, Settings, make_plan
from audit.registry import battery
from audit.workers import Workers

CLAIM = PureDp(epsilon=1.0)


def with_its_own(seed):
    own = np.random.default_rng(seed)

    def noisy(data, n, rng):
        return data + own.laplace(size=n)

    return noisy


def played(log, **where):
    """Counts of two cases whose noise is drawn elsewhere."""
    requests = [
        Request(
            name=f"own {seed}",
            target="a closure",
            mechanism=FunctionMechanism(with_its_own(seed), batched=True),
            claim=CLAIM,
            attacks=battery(["leaf"]),
            pairs=(Pair(0.0, 1.0),),
        )
        for seed in (1, 2)
    ]
    plan, cases = make_plan(requests, Settings(trials=4000, early_stop=False))
    record = run(plan, cases, Workers(log=log, **where))
    assert all("DP007" in {f.rule for f in result.findings} for result in record.results)
    return [result.counts for result in record.results]


def test_workers_and_a_resumed_run_play_no_copies(monkeypatch, tmp_path):
    """Copies of one generator draw alike, which bounds would count as independent trials."""
    monkeypatch.setattr(workers, "_WORTH_A_POOL", 0.0)
    log = tmp_path / "blocks.jsonl"
    alone = played(log, jobs=1)
    assert played(None, jobs=2) == alone
    assert played(log, jobs=1, resume=True) == alone
