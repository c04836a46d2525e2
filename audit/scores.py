"""Audits without a mechanism: a file of scores, or four counts, from a run that already was.

A score file has one row per canary: whether it was in (or held the first of two records) by a
fair coin, and a score that was computed without the coin: the larger, the more it looks in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.attack import Game
from audit.canaries import rounded_scores
from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.evidence import LARGEST_COUNT, Evidence
from audit.freeze import Budget, freeze, with_renyi_bet
from audit.judge import judge
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.plan import FEWEST_TRIALS
from audit.record import CaseResult, Plan, PlannedCase
from audit.replay import Finished
from audit.sheet import finite_number, locate, read_rows, refuse
from audit.streams import Phase, Side, stream
from audit.view import Floats, Views

Bits = npt.NDArray[np.bool_]

PLACEMENTS = {"in-out": "add-remove", "swapped": "replace-one"}
_IN = frozenset({"1", "1.0", "in", "true", "yes"})
_OUT = frozenset({"0", "0.0", "out", "false", "no"})
_UNFAIR = 1e-6


@dataclass(frozen=True, eq=False)
class Scores:
    """A score file.

    Attributes:
        inside: Whether each canary was in, shape (m,).
        score: Its score, shape (m,).
    """

    inside: Bits
    score: Floats

    def __len__(self) -> int:
        return len(self.inside)


def read_scores(path: Path, in_column: str = "in", score_column: str = "score") -> Scores:
    """Read a score file.

    Args:
        path: Comma-separated UTF-8 file with a header row.
        in_column: Column with 1, in, true or yes, or else 0, out, false or no.
        score_column: Column with the scores.

    Raises:
        UsageError: For anything wrong with the file, naming file, row (the header is row 1),
            column and remedy; also when the coins were not fair.
    """
    name = str(path)
    header, rows = read_rows(path)
    where = locate(name, header, [in_column, score_column])
    if not rows:
        refuse(name, "expected canaries below the header, got none. Add one row a canary")
    inside = [_bit(name, row, in_column, cells[where[in_column]]) for row, cells in rows]
    score = [
        finite_number(name, row, score_column, cells[where[score_column]]) for row, cells in rows
    ]
    check_fair(f"{name}: column {in_column!r}", sum(inside), len(inside))
    return Scores(np.array(inside), np.array(score))


def check_fair(place: str, inside: int, canaries: int) -> None:
    """Refuse coins that were not fair: every bound here needs fair ones.

    A fair coin for every canary is refused with probability at most 1e-6.

    Raises:
        UsageError: When far more canaries were in than out, or the other way round.
    """
    fewer = min(inside, canaries - inside)
    if 2 * special.bdtr(fewer, canaries, 0.5) < _UNFAIR:
        raise UsageError(
            f"{place}: {inside} of {canaries} canaries are in, which fair coins do not give. "
            "Decide for every canary by a fair coin of its own, and list those left out too"
        )


def placed_relation(placed: str, relation: str) -> str:
    """The neighbour relation that canaries placed in this way speak of.

    Args:
        placed: ``in-out``: a canary is there or not; ``swapped``: one of two records is there.
        relation: Relation of the claim; that of the placement when empty.

    Raises:
        UsageError: When the claim is about another relation.
    """
    own = PLACEMENTS[placed]
    if relation not in ("", "declared", own):
        raise UsageError(
            f"relation {relation!r}: canaries placed {placed} audit claims about {own} neighbours; "
            "place them by the claim's relation, or claim what these neighbours are promised"
        )
    return relation or own


def shuffled(scores: Scores, seed: int, name: str) -> Scores:
    """The rows in an order that neither the file nor the coins decide."""
    order = stream(seed, name, Phase.SCOUT, Side.LABELS, 0).permutation(len(scores))
    return Scores(scores.inside[order], scores.score[order])


def judge_independent(plan: Plan, planned: PlannedCase, scores: Scores) -> CaseResult:
    """The result when every row is an independent trial of its own.

    Why this is valid: bins and threshold are frozen on the first rows in shuffled order, the rest
    testifies, and the coins are fair and independent, as in any audit with many runs.

    Args:
        plan: The run's plan.
        planned: The case's plan.
        scores: At least 200 rows.

    Raises:
        UsageError: For fewer rows, or when all the scouting rows are on one side.
    """
    if len(scores) < FEWEST_TRIALS:
        raise UsageError(
            f"--independent: expected at least {FEWEST_TRIALS} rows, got {len(scores)}; add rows"
        )
    mixed = shuffled(scores, plan.seed, planned.name)
    values, inside = rounded_scores(mixed.score), mixed.inside
    parts = np.split(np.arange(len(scores)), np.cumsum((planned.scouting, *planned.blocks))[:-1])
    views = [_views(values[parts[0]][inside[parts[0]] == side]) for side in (True, False)]
    budget = Budget(planned.claim, sum(planned.blocks), planned.shares.fixed)
    scorer = _ScoreColumn()
    attack = Finished("score file", scorer)
    frozen = freeze(_no_game(planned.claim), attack, scorer, views[0], views[1], budget, 0)
    counts = {
        block: frozen.tabulate(
            _views(values[rows][inside[rows]]),
            _views(values[rows][~inside[rows]]),
            stream(plan.seed, planned.name, Phase.ORDER, Side.LABELS, block),
        )
        for block, rows in enumerate(parts[1:])
    }
    choice = with_renyi_bet(frozen.choice, frozen.belief, planned)
    evidence = Evidence(len(choice.posterior), counts)
    return judge(plan, planned, choice, evidence, scouting=planned.scouting)


class _ScoreColumn:
    """The file's own scores."""

    description = "score of the file, thresholds from its scouting rows"

    def __call__(self, views: Views) -> Floats:
        return views["score"]


def _no_game(claim: AnyClaim) -> Game:
    absent = FunctionMechanism(lambda data, _rng: data, claim)
    return Game(absent, Pair(1, 0, label="in and out"), claim.view)


def _views(values: Floats) -> Views:
    return Views(np.full(len(values), "score", dtype=object), {"score": values})


def _bit(path: str, row: int, name: str, cell: str) -> bool:
    text = cell.strip().lower()
    if text not in _IN and text not in _OUT:
        refuse(
            path,
            f"row {row}, column {name!r}: expected 1 or in, 0 or out, got {cell.strip()!r}. "
            "Correct or drop the row",
        )
    return text in _IN


def check_counts(table: Sequence[int], canaries: int) -> int:
    """The number of canaries behind four counts.

    Args:
        table: True and false positives, true and false negatives.
        canaries: Canaries in all; those that were guessed when 0.

    Raises:
        UsageError: For a negative count, no guess at all, or more guesses than canaries.
    """
    guesses = sum(table)
    if min(table) < 0 or guesses == 0 or max(*table, canaries) > LARGEST_COUNT:
        raise UsageError(
            f"--counts: expected four counts from 0 to {LARGEST_COUNT} with a positive sum, got "
            f"{' '.join(map(str, table))} of {canaries or guesses} canaries; count every guess once"
        )
    if canaries and canaries < guesses:
        raise UsageError(
            f"--canaries {canaries}: fewer than the {guesses} guesses of --counts; count "
            "all canaries"
        )
    if not canaries:
        check_fair(
            "--counts (add --canaries if some were not guessed)", table[0] + table[3], guesses
        )
    return canaries or guesses
