"""The command ``score``: a run that already was, as a file of scores or as four counts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from audit.budget import block_sizes, divide, scouting_trials
from audit.canaries import rounded_scores
from audit.claim import AnyClaim, PureDp
from audit.claim_text import parse_claim
from audit.documents import parse_format, render_all
from audit.errors import UsageError
from audit.once import Clock
from audit.onerun_judge import (
    Testimony,
    canary_pair,
    judge_canaries,
    one_run_plan,
    one_run_shares,
    testify,
    testify_by_posterior,
    testify_from_counts,
)
from audit.onerun_power import Design, plan_one_run, posterior_reach
from audit.plan import Settings
from audit.power import could_have_caught
from audit.record import CaseResult, Plan, PlannedCase, Shares
from audit.scores import (
    PLACEMENTS,
    Scores,
    check_counts,
    judge_independent,
    placed_relation,
    read_scores,
    shuffled,
)

PLACED = {"in-out": "in or out", "swapped": "one of two records"}


@dataclass(frozen=True)
class ScoreOptions:
    """Flags of ``score``, as the command line declares them."""

    file: Path | None
    counts: tuple[int, int, int, int] | None
    in_column: str
    score_column: str
    claim: str
    view: str
    relation: str
    placed: str
    canaries: int
    guesses: int
    independent: bool
    posterior: bool
    alpha: float
    seed: int
    formats: tuple[str, ...]

    def promised(self) -> AnyClaim:
        """The claim, about the relation of the canaries."""
        relation = placed_relation(self.placed, self.relation)
        context = {"source": "--claim", "relation": relation}
        if self.view:
            context["view"] = self.view
        return parse_claim(self.claim, **context)

    @property
    def name(self) -> str:
        """Name of the one case."""
        return str(self.file) if self.file else "counts"

    def command(self) -> str:
        """The command that does it again."""
        words = ["python", "-m", "audit", "score", *([str(self.file)] if self.file else [])]
        words += ["--counts", *map(str, self.counts)] if self.counts else []
        words += ["--claim", self.claim, "--placed", self.placed, "--alpha", f"{self.alpha:g}"]
        given = {
            "--in-column": self.in_column if self.file and self.in_column != "in" else "",
            "--score-column": self.score_column if self.score_column != "score" else "",
            "--relation": self.relation,
            "--view": self.view,
            "--canaries": self.canaries,
            "--guesses": self.guesses,
            "--seed": self.seed,
        }
        for flag, value in given.items():
            words += [flag, str(value)] if value else []
        words += ["--independent"] * self.independent + ["--posterior"] * self.posterior
        return shlex.join(words)


def score(options: ScoreOptions) -> int:
    """Audit a score file or counts, print the report; returns the exit code."""
    outputs = [parse_format(text) for text in options.formats] or [("text", None)]
    _check_score(options)
    started = Clock()
    claim = options.promised()
    if options.counts:
        plan, result = _from_counts(options, claim, options.counts)
    else:
        scores = read_scores(_file(options), options.in_column, options.score_column)
        plan, result = _from_scores(options, claim, scores)
    record = started.record(plan, (result,))
    render_all(record, outputs)
    return record.summary.exit_code


def _check_score(options: ScoreOptions) -> None:
    Settings(alpha=options.alpha, seed=options.seed)
    if bool(options.file) == bool(options.counts):
        raise UsageError("score: expected a file or --counts TP FP TN FN, and not both")
    if options.independent and options.posterior:
        raise UsageError("score: --independent and --posterior exclude each other; give one")
    if options.guesses < 0 or options.canaries < 0:
        raise UsageError("score: expected --guesses and --canaries to be positive numbers")
    if options.counts and (options.guesses or options.posterior):
        raise UsageError("score: --counts are guesses already; drop --guesses and --posterior")
    if options.file and options.canaries:
        raise UsageError("score: a file lists all canaries; drop --canaries")
    if options.guesses and (options.independent or options.posterior):
        raise UsageError("score: --guesses is for one run judged by its extremes; drop it")


def _file(options: ScoreOptions) -> Path:
    if options.file is None:
        raise UsageError("score: expected a file")
    return options.file


def _from_counts(
    options: ScoreOptions, claim: AnyClaim, table: tuple[int, int, int, int]
) -> tuple[Plan, CaseResult]:
    canaries, guesses = check_counts(table, options.canaries), sum(table)
    shares = one_run_shares(claim, options.alpha)
    design = plan_one_run(claim, canaries, shares, guesses)
    plan, planned = _plan(options, claim, canaries, shares)
    if options.independent:
        caught = could_have_caught(design.epsilon, design.delta, canaries, shares.fixed)
        said = testify_from_counts(design, table, "binomial")
    else:
        caught = dict(design.caught)
        said = testify_from_counts(design, table, design.test)
    return plan, judge_canaries(plan, planned, said, caught)


def _from_scores(options: ScoreOptions, claim: AnyClaim, scores: Scores) -> tuple[Plan, CaseResult]:
    if options.independent:
        return _from_trials(options, claim, scores)
    shares = one_run_shares(claim, options.alpha)
    plan, planned = _plan(options, claim, len(scores), shares)
    if options.posterior:
        design, said = _by_posterior(options, claim, scores)
    else:
        if options.guesses > len(scores):
            raise UsageError(
                f"--guesses {options.guesses}: more than the {len(scores)} canaries; lower it"
            )
        design = plan_one_run(claim, len(scores), shares, options.guesses)
        mixed = shuffled(scores, plan.seed, planned.name)  # ties go by position
        said = testify(design, rounded_scores(mixed.score), mixed.inside, "score file")
    return plan, judge_canaries(plan, planned, said, design.caught)


def _by_posterior(
    options: ScoreOptions, claim: AnyClaim, scores: Scores
) -> tuple[Design, Testimony]:
    if not isinstance(claim, PureDp):
        raise UsageError(f"--posterior: expected a pure claim such as 'eps=1', got {claim}")
    if not ((scores.score > 0) & (scores.score < 1)).all():
        row = int(((scores.score <= 0) | (scores.score >= 1)).argmax())
        raise UsageError(
            f"{options.name}: column {options.score_column!r}: expected posteriors strictly "
            f"between 0 and 1, got {scores.score[row]:g} for canary {row + 1}; clip it"
        )
    m, alpha = len(scores), options.alpha
    caught = posterior_reach(claim.epsilon, m, alpha)
    design = Design(m, m, claim.epsilon, 0.0, "e-value", caught)
    return design, testify_by_posterior(design, scores.score, scores.inside, alpha)


def _from_trials(options: ScoreOptions, claim: AnyClaim, scores: Scores) -> tuple[Plan, CaseResult]:
    shares = divide(options.alpha, claim, white_box=False)
    plan, planned = _plan(options, claim, len(scores), shares, independent=True)
    return plan, judge_independent(plan, planned, scores)


def _plan(
    options: ScoreOptions,
    claim: AnyClaim,
    canaries: int,
    shares: Shares,
    *,
    independent: bool = False,
) -> tuple[Plan, PlannedCase]:
    scouting = scouting_trials(canaries) if independent else 0
    one = "each trial" if options.independent else "each canary of one run"
    label = f"{one} {PLACED[options.placed]} by its own coin"
    planned = PlannedCase(
        name=options.name,
        target=options.name,
        role="subject",
        claim=claim,
        view=claim.view,
        pairs=(canary_pair(label, PLACEMENTS[options.placed], "in", "out"),),
        attacks=("score file" if options.file else "counts",),
        trials=canaries,
        scouting=scouting,
        blocks=block_sizes(canaries - scouting) if independent else (canaries,),
        alpha=options.alpha,
        shares=shares,
        reproduce=options.command(),
    )
    settings = Settings(alpha=options.alpha, seed=options.seed)
    return one_run_plan((planned,), settings), planned
