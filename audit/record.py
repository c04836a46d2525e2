"""The record: the one product of a run, of which every report, gate and exit code is a function.

A record is data, never code. It is one JSON document, written atomically, with finite numbers
only. Everything outside `Execution` is the same bit for bit for the same seed and plan, whatever
the number of jobs, the order of the blocks or a resume; `Record.digest` covers just that part.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from audit.change import Change as Change
from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.event import Event
from audit.evidence import Evidence
from audit.execution import Environment, Execution
from audit.files import write_atomically
from audit.planned import PairSummary as PairSummary
from audit.planned import Plan as Plan
from audit.planned import PlannedCase as PlannedCase
from audit.planned import Role as Role
from audit.planned import Shares as Shares
from audit.sequences import Rounds

SCHEMA_VERSION = 1

Verdict = Literal["refuted", "unrefuted", "blind", "error"]
Test = Literal["binomial", "ranked", "one-run", "trade-off", "e-value"]

CONVICTING = frozenset({"DP012", "DP014"})
"""Findings that speak against an algorithm or its code, whatever counting says."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What scouting froze: the one thing that testifies.

    Attributes:
        pair: Index of the chosen pair, or of the proposal that it was refined from.
        attack: Name of the chosen attack.
        event: The decision rule in words.
        edges: Increasing edges of the score bins.
        posterior: Scouted probability of *left* in each bin.
        guess: Per bin: 1 guesses left, -1 guesses right, 0 abstains.
        epsilon: The epsilon at which the claim is confronted.
        delta: Its delta there.
        test: The final fixed-size test.
        ranks: Whether mu is certified from the rank sum instead of right guesses.
        forecast: Epsilon that scouting cautiously expected testimony to certify.
        played: The chosen pair in full, to be pasted.
        simple: The score as data, where it is a simple event.
    """

    pair: int
    attack: str
    event: str
    edges: tuple[float, ...]
    posterior: tuple[float, ...]
    guess: tuple[int, ...]
    epsilon: float
    delta: float
    test: Test
    ranks: bool = False
    forecast: float = 0.0
    played: PairSummary | None = None
    simple: Event | None = None

    def pair_of(self, planned: PlannedCase) -> PairSummary:
        """The pair, in full where the record has it."""
        return self.played or planned.pairs[self.pair]


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A pair that the pair search tried.

    Attributes:
        label: Its label.
        trials: Trials that it got.
        evidence: Largest area under a curve beyond 1/2, less a standard error; -1 if unplayable.
        loss: Its exact loss without noise, in scales of the noise; None where not known.
    """

    label: str
    trials: int
    evidence: float
    loss: float | None = None


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the algorithm itself: theorem >= accountant >= certificate.

    Attributes:
        delta: The delta at which the rungs are compared.
        theorem: Epsilon that the claim allows there.
        accountant: Exact epsilon of the chosen pair; None where no exact profile is known.
        certificate: Epsilon certified from exact privacy losses.
        runs: Runs that the certificate took, both directions together.
        tilted: Whether they were drawn from a tilted law.
        calibration_log_wealth: Evidence that the code does not draw from the stated density.
        calibrated: False when that evidence refutes it.
    """

    delta: float
    theorem: float
    accountant: float | None
    certificate: float
    runs: int
    tilted: bool
    calibration_log_wealth: float
    calibrated: bool


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a reader must know.

    Attributes:
        rule: Code such as ``DP001``; `audit.rules` explains it.
        case: Name of the case.
        message: Cause, effect on the verdict, and the remedy.
        reproduce: Command that reproduces it.
    """

    rule: str
    case: str
    message: str
    reproduce: str = ""

    @classmethod
    def about(cls, planned: PlannedCase, rule: str, message: str) -> Finding:
        """A finding about a planned case, with the command that reproduces it."""
        return cls(rule=rule, case=planned.name, message=message, reproduce=planned.reproduce)


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one case.

    Attributes:
        name: Name of the case.
        role: Its role.
        claim: What it promises.
        view: The audited projection.
        verdict: ``refuted``, ``unrefuted``, ``blind`` or ``error``.
        epsilon_lower: Certified at `delta`: the probability that the true epsilon is below this
            is at most `alpha`.
        delta: The delta of `epsilon_lower`.
        alpha: Confidence of this case, its share of the run's.
        estimate: Epsilon estimated from the same counts, without a guarantee; 0 without evidence.
        estimate_upper: Upper confidence limit of what this attack measures (not of the privacy).
        parameter_lower: Certified lower bound on the claim's own parameter (mu); None when the
            claim has none beyond epsilon.
        could_have_caught: Family of alternatives to the smallest true epsilon that would have
            been refuted with probability 0.8; None where no epsilon would.
        profile: Certified ``(delta, epsilon_lower)`` at several deltas.
        stopped: Whether the case ended early; then only the anytime bound is reported.
        trials: Testifying trials that count.
        scouting: Scouting trials.
        exceptions: Share of trials that raised, left and right.
        choice: What scouting froze; None when the mechanism failed.
        counts: Evidence in its plain form, by block.
        log_wealth: Log-wealth of the betting test against the claim after each block.
        ladder: What is known about the algorithm itself; None without an exact likelihood ratio.
        findings: Codes and messages.
        confirmation: The second run of a refuted case, when refutations had to be confirmed; then
            the certified bounds here are the smaller ones of both runs.
        searched: The pairs that were tried, where a domain was given.
        rounds: Sequences of the view over their rounds, as scouting saw them; never evidence.
    """

    name: str
    role: Role
    claim: AnyClaim
    view: str
    verdict: Verdict
    epsilon_lower: float = 0.0
    delta: float = 0.0
    alpha: float = 0.0
    estimate: float = 0.0
    estimate_upper: float | None = None
    parameter_lower: float | None = None
    could_have_caught: dict[str, float | None] = {}
    profile: tuple[tuple[float, float], ...] = ()
    stopped: bool = False
    trials: int = 0
    scouting: int = 0
    exceptions: tuple[float, float] = (0.0, 0.0)
    choice: Choice | None = None
    counts: dict[str, list[list[int]]] = {}
    log_wealth: tuple[float, ...] = ()
    ladder: Ladder | None = None
    findings: tuple[Finding, ...] = ()
    confirmation: CaseResult | None = None
    searched: tuple[Tried, ...] = ()
    rounds: tuple[Rounds, ...] = ()

    @property
    def found_out(self) -> bool:
        """Whether something broken was found: by counting, or in its own density or noise."""
        rules = {finding.rule for finding in self.findings}
        return self.verdict == "refuted" or bool(rules & CONVICTING)

    @property
    def silent(self) -> bool:
        """Whether it was played and nothing was certified, as it must be on equal inputs."""
        certified = max(self.epsilon_lower, self.parameter_lower or 0.0)
        return self.verdict != "error" and certified == 0

    @property
    def evidence(self) -> Evidence:
        """The evidence table."""
        bins = len(self.choice.posterior) if self.choice else 0
        return Evidence.from_rows(bins, self.counts)

    def _repr_html_(self) -> str:
        return shown_in_notebook("result_html", self)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The run in one place.

    Attributes:
        exit_code: 0 clean, 1 refuted or worse than the baseline, 3 no verdict.
        sentence: The outcome in one sentence; it never says that anything *is private*.
        verdicts: Number of cases per verdict.
        findings: All findings, cases in order.
        changes: Per case what changed since the baseline; None without a baseline.
    """

    exit_code: int
    sentence: str
    verdicts: dict[str, int]
    findings: tuple[Finding, ...] = ()
    changes: dict[str, Change] | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        schema_version: Version of this document's layout.
        plan: What was decided beforehand.
        environment: What it depends on.
        results: One per finished case, in plan order.
        summary: The run in one place.
        execution: How it went.
    """

    schema_version: int = SCHEMA_VERSION
    plan: Plan
    environment: Environment
    results: tuple[CaseResult, ...]
    summary: Summary
    execution: Execution

    def digest(self) -> str:
        """SHA-256 of everything but `execution`."""
        body = msgspec.to_builtins(self)
        del body["execution"]
        return hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()

    def _repr_html_(self) -> str:
        return shown_in_notebook("record_html", self)

    def planned(self, name: str) -> PlannedCase:
        """The plan of a case.

        Raises:
            UsageError: When the plan has no such case.
        """
        for case in self.plan.cases:
            if case.name == name:
                return case
        raise UsageError(f"case {name!r} is not in the plan of this record")


def shown_in_notebook(how: str, what: CaseResult | Record) -> str:
    """HTML of a result or record; the layer of reports is asked by name, as it lies above."""
    shown: str = getattr(importlib.import_module("audit.render.notebook"), how)(what)
    return shown


def write_record(record: Record, path: str | Path) -> None:
    """Write a record; a reader sees the old file or the new one, never half of it."""
    write_atomically(Path(path), encode(record))


def encode(record: Record) -> bytes:
    """The record as JSON, one line per case so that two records can be compared line by line."""
    lines = [msgspec.json.encode(result) for result in record.results]
    rest = msgspec.to_builtins(msgspec.structs.replace(record, results=()))
    del rest["results"]
    head = msgspec.json.encode(rest)[:-1]
    return head + b',\n"results":[\n' + b",\n".join(lines) + b"\n]}\n"


def read_record(path: str | Path) -> Record:
    """Read a record.

    Raises:
        UsageError: When the file is missing, is no record, or is of another schema version.
    """
    record: Record = decode(Path(path), Record, "record")
    return record


def decode(path: Path, kind: Any, what: str) -> Any:
    """Read a versioned JSON document of type `kind`.

    Raises:
        UsageError: When the file is missing, not of that form, or of another schema version.
    """
    try:
        raw = msgspec.json.decode(path.read_bytes())
        version = raw.get("schema_version") if isinstance(raw, dict) else None
    except OSError as error:
        raise UsageError(f"{path}: cannot read the {what}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: expected a {what} in JSON: {error}") from None
    if version != SCHEMA_VERSION:
        newer = isinstance(version, int) and version > SCHEMA_VERSION
        remedy = "update dpaudit" if newer else "write it again with this version of dpaudit"
        raise UsageError(
            f"{path}: expected a {what} of schema version {SCHEMA_VERSION}, got {version!r}; "
            f"{remedy}"
        )
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: not a valid {what}: {error}") from None


def finite(value: float) -> float | None:
    """The number, or None when it is infinite or NaN: records hold finite numbers only."""
    return float(value) if np.isfinite(value) else None
