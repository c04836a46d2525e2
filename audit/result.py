"""Results: what came out of one case, as it stands in a record.

A value that does not fit together cannot be made, whether in this program or from a file.
"""

from __future__ import annotations

import importlib
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

import msgspec
import numpy as np

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.event import Event
from audit.evidence import Counts, Evidence
from audit.planned import Count, Level, PairSummary, PlannedCase, Probability, Role
from audit.renyi import RenyiBet
from audit.sequences import Rounds

Guess = Annotated[int, msgspec.Meta(ge=-1, le=1)]
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
        renyi: The bet against the Renyi divergences of a claim that limits them.
        forecast: Epsilon that scouting cautiously expected testimony to certify.
        played: The chosen pair in full, to be pasted.
        simple: The score as data, where it is a simple event.

    Raises:
        ValueError: When there is not one posterior and one guess per bin, or the Renyi bet is on
            other bins.
    """

    pair: Count
    attack: str
    event: str
    edges: tuple[float, ...]
    posterior: tuple[Probability, ...]
    guess: tuple[Guess, ...]
    epsilon: Level
    delta: Probability
    test: Test
    ranks: bool = False
    renyi: RenyiBet | None = None
    forecast: float = 0.0
    played: PairSummary | None = None
    simple: Event | None = None

    def __post_init__(self) -> None:
        if not len(self.posterior) == len(self.guess) == len(self.edges) + 1:
            raise ValueError(
                "expected one posterior and one guess per score bin and one edge fewer, got "
                f"{len(self.posterior)}, {len(self.guess)} and {len(self.edges)}"
            )
        if self.renyi is not None and len(self.renyi.posterior) != len(self.posterior):
            raise ValueError(
                f"expected {len(self.posterior)} posteriors of the Renyi bet, one per score bin, "
                f"got {len(self.renyi.posterior)}"
            )
        if any(low >= high for low, high in pairwise(self.edges)):
            raise ValueError("expected increasing edges")

    def pair_of(self, planned: PlannedCase) -> PairSummary:
        """The pair, in full where the record has it."""
        return self.played or planned.pairs[self.pair]


def right_and_wrong(choice: Choice, total: Counts) -> tuple[Counts, Counts]:
    """Right and wrong guesses of the frozen rule, per bin.

    Args:
        choice: The frozen choice.
        total: Counts, shape (2, bins).

    Returns:
        Two arrays of shape (bins,); abstaining bins hold zeros.
    """
    guess = np.asarray(choice.guess)
    right = np.where(guess > 0, total[0], 0) + np.where(guess < 0, total[1], 0)
    wrong = np.where(guess > 0, total[1], 0) + np.where(guess < 0, total[0], 0)
    return right, wrong


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """A pair that the pair search tried.

    Attributes:
        label: Its label.
        trials: Trials that it got.
        evidence: Largest area under a curve beyond 1/2, less a standard error; -1 if unplayable.
        loss: Its exact loss without noise, in scales of the noise; None where not known.
    """

    label: str
    trials: Count
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

    delta: Probability
    theorem: float
    accountant: float | None
    certificate: float
    runs: Count
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


class CaseResult(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
        parameter_lower: Certified lower bound on the claim's own parameter (mu, rho, an epsilon
            of Renyi); None when the claim has none, or its test had not ended.
        could_have_caught: Family of alternatives to the smallest true epsilon that would have
            been refuted with probability 0.8; None where no epsilon would.
        parameter_caught: Smallest parameter of a claim about Renyi divergences at which Gaussian
            noise would have been refuted with probability 0.8; None for other claims, and where
            no noise would.
        profile: Certified ``(delta, epsilon_lower)`` at several deltas.
        stopped: Whether the case ended early; then only the anytime bound is reported.
        trials: Testifying trials that count.
        scouting: Scouting trials.
        exceptions: Share of trials that raised, left and right.
        choice: What scouting froze; None when the mechanism failed.
        counts: Evidence in its plain form, by block.
        log_wealth: Log-wealth of the bet against the claim after each block: on its Renyi
            divergences where it limits them, else on its confronted point.
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
    epsilon_lower: Level = 0.0
    delta: Probability = 0.0
    alpha: Probability = 0.0
    estimate: float = 0.0
    estimate_upper: Level | None = None
    parameter_lower: Level | None = None
    could_have_caught: dict[str, Level | None] = {}
    parameter_caught: Level | None = None
    profile: tuple[tuple[Probability, Level], ...] = ()
    stopped: bool = False
    trials: Count = 0
    scouting: Count = 0
    exceptions: tuple[Probability, Probability] = (0.0, 0.0)
    choice: Choice | None = None
    counts: dict[str, list[list[int]]] = {}
    log_wealth: tuple[float, ...] = ()
    ladder: Ladder | None = None
    findings: tuple[Finding, ...] = ()
    confirmation: CaseResult | None = None
    searched: tuple[Tried, ...] = ()
    rounds: tuple[Rounds, ...] = ()

    def require_fit(self, planned: PlannedCase) -> None:
        """Check the result against its plan.

        Raises:
            ValueError: For a pair that was not planned, or counts that are none.
        """
        if self.choice and self.choice.pair >= len(planned.pairs):
            raise ValueError(f"case {self.name[:100]!r}: pair {self.choice.pair} was not planned")
        try:
            _ = self.evidence
        except UsageError as error:
            raise ValueError(f"case {self.name[:100]!r}: {error}") from None

    @property
    def found_out(self) -> bool:
        """Whether something broken was found: by counting, or in its own density or noise."""
        rules = {finding.rule for finding in self.findings}
        return self.verdict == "refuted" or bool(rules & CONVICTING)

    @property
    def silent(self) -> bool:
        """Whether it was played and nothing was certified, as it must be on equal inputs."""
        return self.verdict != "error" and self.certified[1] == 0

    @property
    def certified(self) -> tuple[str, float]:
        """Name and bound of what was certified: epsilon, or else the claim's own parameter."""
        if self.epsilon_lower > 0 or not self.parameter_lower:
            return "epsilon", self.epsilon_lower
        return self.claim.symbol, self.parameter_lower

    @cached_property
    def evidence(self) -> Evidence:
        """The evidence table."""
        bins = len(self.choice.posterior) if self.choice else 0
        return Evidence.from_rows(bins, self.counts)

    def _repr_html_(self) -> str:
        return shown_in_notebook("result_html", self)


def shown_in_notebook(how: str, what: object) -> str:
    """HTML of a result or record; the layer of reports is asked by name, as it lies above."""
    shown: str = getattr(importlib.import_module("audit.render.notebook"), how)(what)
    return shown
