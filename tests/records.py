"""Synthetic records for the tests of the reports: every verdict, role, claim and nasty string."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np

from audit.claim import (
    AnyClaim,
    ApproxDp,
    GaussianDp,
    PureDp,
    RenyiClaim,
    RenyiDp,
    ZeroConcentratedDp,
)
from audit.record import (
    CaseResult,
    Choice,
    Environment,
    Execution,
    Finding,
    PairSummary,
    Plan,
    PlannedCase,
    Record,
    Role,
    Shares,
    Summary,
    Verdict,
)
from audit.renyi import RenyiBet
from audit.sequences import Rounds

CLAIMS: tuple[AnyClaim, ...] = (
    PureDp(epsilon=1.0, view="actions", relation="replace-one", source="Laplace 2006"),
    ApproxDp(epsilon=1.0, delta=1e-5, view="transcript", relation="add-remove", unit="user"),
    GaussianDp(mu=0.268),
    ZeroConcentratedDp(rho=0.1, view="prices_after"),
    RenyiDp(order=8.0, epsilon=1.0, view="prices_except"),
)
KINDS: tuple[tuple[Role, Verdict], ...] = (
    ("subject", "unrefuted"),
    ("subject", "refuted"),
    ("subject", "blind"),
    ("subject", "error"),
    ("control", "refuted"),
    ("control", "unrefuted"),
    ("control", "error"),
    ("informational", "unrefuted"),
    ("informational", "refuted"),
    ("control", "blind"),
)
NASTY: tuple[str, ...] = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style><svg onload=alert(1)>",
    "a|b `code` **bold** [link](javascript:alert(1)) ![i](http://x/y) # h",
    "{{ 7 * 7 }} {% raw %} [bold red]rich[/]",
    "\u202eevil\u202c \u2066x\u2069 שלום مرحبا",
    "😀👩‍👩‍👧 名前の長いケース",
    "\x1b[31mred\x1b]0;title\x07 \x00\x08\x7f\x9b bell",
    "two\nlines\r\n```\n# three\n\n| a | b |",
    "@team &lt;b&gt; &amp; 'quoted'",
    "x" * 10_000,
)
BINS = 16


def one(name: str, claim: AnyClaim, role: Role, verdict: Verdict, seed: int = 0) -> CaseResult:
    """A case result whose evidence, bounds and findings fit its verdict."""
    if verdict == "error":
        return CaseResult(
            name=name, role=role, claim=claim, view=claim.view, verdict=verdict, alpha=1e-4
        )
    epsilon, delta = _confronted(claim)
    true = {"refuted": 2.0, "unrefuted": 0.98, "blind": 0.3}[verdict] * epsilon
    lower = {"refuted": 1.32, "unrefuted": 0.94, "blind": 0.0}[verdict] * epsilon
    caught = {"refuted": 1.2, "unrefuted": 1.2, "blind": 4.1}[verdict] * epsilon
    rng = np.random.default_rng(seed)
    posterior = np.linspace(0.05, 0.95, BINS)
    signs = np.sign(np.arange(BINS) - (BINS - 1) / 2) * (np.abs(posterior - 0.5) > 0.1)
    blocks = {str(b): _rows(rng, true, 400) for b in range(4)}
    return CaseResult(
        name=name,
        role=role,
        claim=claim,
        view=claim.view,
        verdict=verdict,
        epsilon_lower=lower,
        delta=delta,
        alpha=1e-4,
        estimate=true,
        estimate_upper=None if verdict == "blind" else 1.1 * true,
        parameter_lower=0.3 if isinstance(claim, GaussianDp) else None,
        could_have_caught={"revealing box": caught, "gaussian noise": None},
        profile=((delta, lower), (0.01, lower / 2)),
        stopped=verdict == "refuted" and role == "informational",
        trials=sum(sum(row[1:]) for rows in blocks.values() for row in rows),
        scouting=800,
        exceptions=(0.0, 0.25) if role == "informational" else (0.0, 0.0),
        choice=Choice(
            pair=0,
            attack="likelihood",
            event="log-likelihood ratio at least 0.37",
            edges=tuple(np.linspace(-3, 3, BINS - 1).tolist()),
            posterior=tuple(posterior.tolist()),
            guess=tuple(int(s) for s in signs),
            epsilon=epsilon,
            delta=delta,
            test="ranked",
            renyi=bet_on(posterior) if isinstance(claim, RenyiClaim) else None,
        ),
        counts=blocks,
        log_wealth=tuple(np.cumsum(rng.normal(3 * (true - epsilon), 0.4, 4)).tolist()),
        rounds=() if verdict == "blind" else (rounds(rng),),
    )


def bet_on(posterior: np.ndarray) -> RenyiBet:
    """A bet against the divergence of order 2."""
    return RenyiBet(
        order=2.0,
        left=True,
        posterior=tuple(posterior.tolist()),
        shrink=0.85,
        cap=10.0,
        anchor=1.5,
        balance=0.8,
        stake=0.4,
    )


def rounds(rng: np.random.Generator, column: str = "prices") -> Rounds:
    """A sequence of twelve rounds of which the sixth gives the fourth away."""
    mean = rng.normal(1.0, 0.05, 12).round(4)
    gap = rng.uniform(0.01, 0.05, 12).round(4)
    gap[5] = 0.4
    lines = tuple(tuple(line.tolist()) for line in (mean, mean - 0.1, mean + 0.1))
    return Rounds(
        column=column,
        rounds=tuple(range(12)),
        total=12,
        own=(3,),
        in_order=True,
        lines=("mean", "lower tenth", "upper tenth"),
        left=lines,
        right=tuple(
            tuple(v + g for v, g in zip(line, gap.tolist(), strict=True)) for line in lines
        ),
        gap=tuple(gap.tolist()),
        noise=0.12,
        trials=(400, 410),
    )


@cache
def _confronted(claim: AnyClaim) -> tuple[float, float]:
    return claim.points()[0]


def _rows(rng: np.random.Generator, epsilon: float, per_side: int) -> list[list[int]]:
    told = 1 / (1 + np.exp(-epsilon * np.linspace(-1, 1, BINS)))
    left = rng.multinomial(per_side, told / told.sum())
    right = rng.multinomial(per_side, told[::-1] / told.sum())
    return [[b, int(left[b]), int(right[b])] for b in range(BINS)]


def planned(result: CaseResult, text: str = "") -> PlannedCase:
    """The plan of a result; `text` goes into every free string."""
    pair = PairSummary(
        label=text or "count 0 or 1",
        relation="replace-one",
        position=3,
        left=text or '{"losses": [[0.0, 1.0]]}',
        right=text or '{"losses": [[1.0, 0.0]]}',
    )
    return PlannedCase(
        name=result.name,
        target=text or "calibration/laplace",
        role=result.role,
        claim=result.claim,
        view=result.view,
        pairs=(pair,),
        attacks=(text or "likelihood", "events"),
        trials=4000,
        scouting=800,
        blocks=(800,) * 4,
        alpha=1e-4,
        shares=Shares(betting=5e-5, fixed=4.5e-5, profile=5e-6),
        reproduce=f"python -m audit run {text or result.name} --trials 4000 --seed 0",
    )


def findings(result: CaseResult, text: str = "") -> list[Finding]:
    """What a run would say about a result."""
    caught = result.role == "control" and result.verdict == "refuted"
    if caught or (result.role, result.verdict) == ("subject", "unrefuted"):
        return []
    by_verdict = {"refuted": "DP001", "unrefuted": "DP005", "blind": "DP004", "error": "DP006"}
    rule = "DP005" if result.role == "control" else by_verdict[result.verdict]
    message = text or "The certified bound lies above the claim; mend the code or the claim."
    command = f"python -m audit run {text or result.name} --seed 0"
    return [Finding(rule=rule, case=result.name, message=message, reproduce=command)]


def record_of(results: list[CaseResult], text: str = "", *, complete: bool = True) -> Record:
    """A record of these results."""
    found = [finding for result in results for finding in findings(result, text)]
    verdicts = {v: sum(r.verdict == v for r in results) for v in dict.fromkeys(v for _, v in KINDS)}
    refuted = sum(r.verdict == "refuted" and r.role == "subject" for r in results)
    return Record(
        plan=Plan(
            seed=0,
            alpha=1e-3,
            trials=4000,
            early_stop=True,
            blind_factor=2.0,
            threats={"bits": False, "duration": True},
            rounding_bits=30,
            cases=tuple(planned(result, text) for result in results),
        ),
        environment=Environment(
            dpaudit="0.1.0", python="3.11.7", packages={"numpy": "2.1.0", "scipy": "1.14.0"}
        ),
        results=tuple(results),
        summary=Summary(
            exit_code=1 if refuted else 0,
            sentence=text or f"{refuted} of {len(results)} claims were refuted.",
            verdicts=verdicts,
            findings=tuple(found),
        ),
        execution=Execution(
            started="2026-01-02T03:04:05Z", seconds=12.5, jobs=2, complete=complete
        ),
    )


@cache
def sample(count: int) -> Record:
    """`count` cases that go through all verdicts, roles and claims."""
    results = [
        one(f"family/case-{i:03d}", CLAIMS[i % 5], *KINDS[(i + i // 10) % 10], seed=i)
        for i in range(count)
    ]
    return record_of(results)


def nasty(text: str) -> Record:
    """A record with `text` wherever a user's string can go."""
    claim = PureDp(epsilon=1.0, view=text, relation=text, unit=text, source=text)
    result = one(text, claim, "subject", "refuted")
    assert result.choice is not None
    choice = msgspec.structs.replace(result.choice, attack=text, event=text)
    seen = (rounds(np.random.default_rng(0), text),)
    return record_of([msgspec.structs.replace(result, choice=choice, rounds=seen)], text)
