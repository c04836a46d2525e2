"""One configured case inside a test session has the settings of the configuration."""

import json

from audit.baseline import accept, write_baseline
from audit.config import CaseConfig
from audit.session import audit_case
from tests.cli.console import target

CASE = CaseConfig(target=target("noisy_block"), claim="eps=1", pairs=[(0.0, 1.0)])


def test_threats_of_the_configuration_are_in_scope():
    record = audit_case(CASE, {"trials": 400, "threats": ["seed"]}, 1.0)
    assert record.plan.threats == {"bits": False, "duration": False, "seed": True}


def test_the_error_rate_of_a_baseline_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "baseline.json"
    write_baseline(accept(audit_case(CASE, {"trials": 400, "alpha": 0.02}, 1.0), {}), path)
    assert json.loads(path.read_text())["alpha"] == 0.02
    seen = []
    monkeypatch.setattr(
        "audit.session.baselines.compare", lambda record, baseline: seen.append(baseline) or record
    )
    audit_case(CASE, {"trials": 400, "baseline": str(path)}, 1.0)
    assert seen[0].alpha == 0.02


def test_a_claim_that_differs_from_the_own_one_is_told():
    case = CaseConfig(target="bandits/threshold-canary", claim="eps=2")
    record = audit_case(case, {"trials": 400}, 1.0)
    assert len(record.results) == 2
    (told,) = [f for f in record.results[0].findings if f.rule == "DP003"]
    assert "says 2-DP, the mechanism says 1-DP" in told.message
    assert told.reproduce
