"""Cases that are played once each, on many canaries: the plan, the runs, the record."""

from __future__ import annotations

import datetime as dt
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass

from audit.canaries import Game, coins, game_of, play_once, record_of
from audit.engine import environment
from audit.errors import MechanismError, UsageError
from audit.execution import Execution
from audit.judge import failed
from audit.mechanism import Mechanism
from audit.onerun_judge import canary_pair, judge_canaries, one_run_plan, one_run_shares, testify
from audit.onerun_power import Design, plan_one_run
from audit.plan import Request, Settings, as_json
from audit.record import CaseResult, Plan, PlannedCase, Record, Shares
from audit.streams import Phase, Side, stream
from audit.summary import summarise


class Clock:
    """When it started, so that a record can say how long it took."""

    def __init__(self) -> None:
        self._started, self._clock = dt.datetime.now(dt.UTC), time.perf_counter()

    def record(self, plan: Plan, results: Sequence[CaseResult]) -> Record:
        """The record of a finished run."""
        return Record(
            plan=plan,
            environment=environment(),
            results=tuple(results),
            summary=summarise(plan, results),
            execution=Execution(
                started=self._started.isoformat(timespec="seconds"),
                seconds=round(max(0.0, time.perf_counter() - self._clock), 3),
                jobs=1,
            ),
        )


@dataclass(frozen=True)
class Once:
    """A run of several cases, each played once on many canaries.

    Attributes:
        fixed: The plan.
        cases: What plays it.
    """

    fixed: Plan
    cases: tuple[_Case, ...]

    @classmethod
    def plan(
        cls, requests: Sequence[Request], settings: Settings, canaries: int, guesses: int = 0
    ) -> Once:
        """Divide the error budget, choose the designs, and write the plan down.

        Args:
            requests: The cases.
            settings: Error budget and seed; trials and early stopping have no meaning here.
            canaries: Canaries per case.
            guesses: Guesses per case; the number that could catch most when 0.

        Raises:
            UsageError: For no case, one that offers no canaries, or a number out of range.
        """
        if not requests or canaries < 1 or not 0 <= guesses <= canaries:
            raise UsageError(
                "one run: expected a case, --canaries >= 1 and --guesses at most as many, got "
                f"{len(requests)} cases, {canaries} and {guesses}; give --canaries alone"
            )
        alpha = settings.alpha / len(requests)
        cases = tuple(_Case.of(r, settings, alpha, canaries, guesses) for r in requests)
        planned = tuple(case.planned for case in cases)
        return cls(one_run_plan(planned, settings), cases)

    def describe(self) -> str:
        """The plan in words: what each case costs and could catch."""
        lines = []
        for case in self.cases:
            reach = [f"{k} {v:.3g}" if v else f"{k} none" for k, v in case.design.caught.items()]
            lines.append(
                f"{case.planned.name}: {case.planned.claim} in view {case.planned.view}; one run, "
                f"{case.design.guesses} of {case.design.canaries} canaries guessed; could catch "
                f"epsilon at delta {case.design.delta:g}: {', '.join(reach)}"
            )
        return "\n".join([*lines, "cost: one mechanism run per case"])

    def play(self) -> Record:
        """Play every case once; a record like any other, whose trials are canaries."""
        clock = Clock()
        return clock.record(self.fixed, [case.play(self.fixed) for case in self.cases])


@dataclass(frozen=True)
class _Case:
    """A planned case with what plays it."""

    planned: PlannedCase
    design: Design
    mechanism: Mechanism
    game: Game

    @classmethod
    def of(
        cls, request: Request, settings: Settings, alpha: float, canaries: int, guesses: int
    ) -> _Case:
        if request.claim.relation == "add-remove":
            raise UsageError(
                f"case {request.name!r}: canaries replace one record by another, but the claim is "
                "about adding and removing one; audit it with many runs, or claim replace-one"
            )
        game = game_of(request.mechanism, canaries, request.name)
        shares = one_run_shares(request.claim, alpha)
        design = plan_one_run(request.claim, canaries, shares, guesses)
        planned = _planned_run(request, settings, alpha, design, shares, game)
        return cls(planned, design, request.mechanism, game)

    def play(self, plan: Plan) -> CaseResult:
        """Toss the coins, run once, guess and judge."""
        name, seed = self.planned.name, plan.seed
        left = coins(seed, name, self.design.canaries)
        rng = stream(seed, name, Phase.TESTIFY, Side.LEFT, 0)
        try:
            scores = play_once(self.mechanism, self.game, self.planned.view, left, rng)
        except MechanismError as error:
            return failed(self.planned, str(error))
        said = testify(self.design, scores, left, "canary scores")
        return judge_canaries(plan, self.planned, said, self.design.caught)


def _planned_run(
    request: Request,
    settings: Settings,
    alpha: float,
    design: Design,
    shares: Shares,
    game: Game,
) -> PlannedCase:
    where = game.positions[0]
    words = ["python", "-m", "audit", "run", request.target, *request.options, "--one-run"]
    words += ["--canaries", str(design.canaries), "--guesses", str(design.guesses)]
    words += ["--alpha", f"{alpha:g}", "--seed", str(settings.seed)]
    return PlannedCase(
        name=request.name,
        target=request.target,
        role=request.role,
        claim=request.claim,
        view=request.view or request.claim.view,
        pairs=(
            canary_pair(
                f"{design.canaries} canaries of one run, each left or right by its own coin",
                "replace-one",
                as_json(record_of(game.left, where)),
                as_json(record_of(game.right, where)),
            ),
        ),
        attacks=("canary scores",),
        trials=design.canaries,
        scouting=0,
        blocks=(design.canaries,),
        alpha=alpha,
        shares=shares,
        reproduce=shlex.join(words),
    )
