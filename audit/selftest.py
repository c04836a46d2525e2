"""Does the gate work? Equal inputs must certify nothing; a planted bug must be caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audit.claim import GaussianDp, PureDp
from audit.errors import UsageError
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.plan import Request
from audit.record import CaseResult, Role
from audit.registry import battery, catalogue, resolve

PLANTED = 1.5


def selftest_requests(targets: Sequence[str]) -> list[Request]:
    """For every target a null test and, where its noise can be scaled, a planted twin.

    Args:
        targets: Catalogue names; every reference subject with a pure or Gaussian claim if none.

    Raises:
        UsageError: For a target without a claim.
    """
    requests = []
    for target in targets or _default_targets():
        mechanism = resolve(target)
        if mechanism.claim is None:
            raise UsageError(f"target {target!r} states no claim, so it cannot be tested")
        request = Request(target, target, mechanism, mechanism.claim, battery())
        requests += self_tests(request, always=bool(targets))
    return requests


def self_tests(request: Request, *, always: bool = False) -> list[Request]:
    """The null test of a case and, where its noise can be scaled, a planted twin.

    The null test plays both sides on the same input. The twin has its noise divided by 1.5, so
    that a pure or Gaussian claim is broken by that factor, and keeps its claim.

    Args:
        request: The case.
        always: Plant a twin also where counting may not see a factor of 1.5.

    Raises:
        UsageError: For a case without pairs.
    """
    pair = _first_pair(request)
    null = Pair(pair.left, pair.left, label="the same input twice", differs=pair.differs)
    tests = [_test(request, f"null: {request.name}", request.mechanism, null, "null")]
    scaled = capability(request.mechanism, "noise_scaled")
    if scaled is not None and (always or isinstance(request.claim, PureDp | GaussianDp)):
        twin = scaled(1 / PLANTED)
        tests.append(_test(request, f"planted: {request.name}", twin, pair, "control"))
    return tests


def as_it_must(result: CaseResult) -> bool:
    """Whether a planted bug was caught, or a null test was played and certified nothing."""
    return result.verdict == "refuted" if result.role == "control" else result.silent


def outcome(result: CaseResult) -> str:
    """What came out of a test, in words."""
    if result.verdict == "error":
        return result.findings[-1].message
    good = as_it_must(result)
    if result.role == "control":
        kind = "planted bug caught" if good else "planted bug missed"
    else:
        kind = "nothing certified" if good else "something certified"
    what, bound = result.certified
    certified = f"{what} {bound:.3g}" if bound > 0 else "0"
    return f"{kind}; certified {certified} after {result.trials} trials"


def _first_pair(request: Request) -> Pair:
    pairs = request.pairs or request.mechanism.pairs()
    if not pairs:
        raise UsageError(
            f"target {request.target!r}: let pairs() return at least one pair of inputs"
        )
    return pairs[0]


def _test(request: Request, name: str, mechanism: Mechanism, pair: Pair, role: Role) -> Request:
    return replace(request, name=name, mechanism=mechanism, pairs=(pair,), role=role)


def _default_targets() -> list[str]:
    return [
        name
        for name, entry in catalogue().items()
        if entry.reference and entry.role == "subject" and _countable(name)
    ]


def _countable(name: str) -> bool:
    """Counting sees a factor of 1.5 at once in pure and Gaussian claims, not in (eps, delta)."""
    return isinstance(catalogue()[name].build().claim, PureDp | GaussianDp)
