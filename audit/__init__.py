"""dpaudit: empirical privacy auditing with certified lower bounds on epsilon.

    >>> import audit
    >>> def noisy(data, rng):
    ...     return data + rng.laplace(scale=0.5)
    >>> result = audit.examine(
    ...     noisy, claim=audit.PureDp(epsilon=1.0), pairs=[audit.Pair(0.0, 1.0)], seed=0
    ... )
    >>> result.verdict
    'refuted'

Names are imported when they are first used, so that ``python -m audit --help`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.api import assert_unrefuted, examine
    from audit.claim import (
        ApproxDp,
        GaussianDp,
        PureDp,
        RenyiDp,
        ZeroConcentratedDp,
    )
    from audit.claim_text import parse_claim
    from audit.domain import Domain
    from audit.errors import AuditError, MechanismError, UsageError
    from audit.evidence import Evidence
    from audit.mechanism import FunctionMechanism, Mechanism, Played, Policy
    from audit.onebyone import OneByOne
    from audit.pair import Pair
    from audit.parametrize import parametrize_with_checks
    from audit.promise import claims
    from audit.record import CaseResult, Record, read_record, write_record
    from audit.view import Raised, Views

_HOMES = {
    "audit.api": ("assert_unrefuted", "examine"),
    "audit.claim": (
        "ApproxDp",
        "GaussianDp",
        "PureDp",
        "RenyiDp",
        "ZeroConcentratedDp",
    ),
    "audit.claim_text": ("parse_claim",),
    "audit.domain": ("Domain",),
    "audit.errors": ("AuditError", "MechanismError", "UsageError"),
    "audit.evidence": ("Evidence",),
    "audit.mechanism": ("FunctionMechanism", "Mechanism", "Played", "Policy"),
    "audit.onebyone": ("OneByOne",),
    "audit.pair": ("Pair",),
    "audit.parametrize": ("parametrize_with_checks",),
    "audit.promise": ("claims",),
    "audit.record": ("CaseResult", "Record", "read_record", "write_record"),
    "audit.view": ("Raised", "Views"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: RUF022  (grouped as a reader meets them)
    "examine",
    "assert_unrefuted",
    "parametrize_with_checks",
    "claims",
    "Pair",
    "Domain",
    "PureDp",
    "ApproxDp",
    "GaussianDp",
    "ZeroConcentratedDp",
    "RenyiDp",
    "parse_claim",
    "Mechanism",
    "Policy",
    "Played",
    "OneByOne",
    "FunctionMechanism",
    "Raised",
    "Views",
    "Evidence",
    "CaseResult",
    "Record",
    "read_record",
    "write_record",
    "AuditError",
    "UsageError",
    "MechanismError",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'audit' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
