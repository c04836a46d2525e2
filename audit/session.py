"""Audits inside a test session: one configured case, or one assertion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from audit import baseline as baselines
from audit.api import examine
from audit.cases import Asked, requests_for
from audit.claim_text import parse_claim
from audit.config import CaseConfig
from audit.engine import run
from audit.locate import CONFIGURED
from audit.pair import Pair
from audit.plan import Settings, make_plan
from audit.record import CaseResult, Record
from audit.summary import annotated

_SETTINGS = ("trials", "alpha", "seed", "early_stop")


def audit_case(
    case: CaseConfig, settings: dict[str, Any], share: float, options: tuple[str, ...] = ()
) -> Record:
    """Audit one configured case as ``python -m audit run`` would among its siblings.

    Args:
        case: The case.
        settings: Settings of the configuration and the command line.
        share: The case's share of alpha.
        options: Command-line words that reproduce what is not in the case itself.

    Returns:
        A record of this case, compared with its line of the baseline when there is one.

    Raises:
        UsageError: For a case that cannot be audited as configured.
    """
    given = {name: settings[name] for name in _SETTINGS if name in settings}
    chosen = Settings(**given, threats=tuple(settings.get("threats", ())))
    requests, notes = requests_for(Asked(case, CONFIGURED, options=options))
    plan, cases = make_plan(requests, replace(chosen, alpha=chosen.alpha * share))
    record = annotated(run(plan, cases), notes)
    path = settings.get("baseline")
    if not path:
        return record
    baseline = baselines.read_baseline(Path(path))
    names = {planned.name for planned in plan.cases}
    mine = {name: accepted for name, accepted in baseline.cases.items() if name in names}
    return baselines.compare(record, msgspec.structs.replace(baseline, cases=mine))


def examine_stated(mechanism: Any, settings: dict[str, Any]) -> CaseResult:
    """`examine` with a claim as text and pairs as tuples, as one writes them in a test.

    Args:
        mechanism: What to audit.
        settings: As for `examine`.
    """
    claim, pairs = settings.pop("claim", None), settings.pop("pairs", ())
    if isinstance(claim, str):
        claim = parse_claim(claim)
    inputs = [pair if isinstance(pair, Pair) else Pair(*pair) for pair in pairs]
    return examine(mechanism, claim=claim, pairs=inputs, **settings)
