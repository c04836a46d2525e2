"""Pictures over time: what was certified after how many trials, and what each round shows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from audit.bounds import log_wealth
from audit.record import CaseResult, PlannedCase
from audit.render.sentences import claimed_epsilon, of_one_run
from audit.render.strip import Strip, span
from audit.render.wording import count, number, one_line, whole
from audit.sequences import SHARE, Rounds

Floats = npt.NDArray[np.float64]

_NULLS = 64
_MOST_POINTS = 64
_MOST_MARKS = 8
_DASHES = ("", "6 2", "2 2")


def certified_path(result: CaseResult, betting: float) -> tuple[Floats, Floats]:
    """What the betting test certifies after each block: epsilon at the case's delta.

    Why this is valid: as in `audit.bounds.anytime_epsilon`, with a coarser grid of nulls. The
    grid is made for the picture, so the path is for the eye; the verdict has the fine grid.

    Args:
        result: A result with evidence in blocks.
        betting: Error budget of the betting test.

    Returns:
        Trials so far and the certified epsilons, both from 0 and not decreasing; empty without
        evidence.
    """
    choice, prefixes = result.choice, result.evidence.prefixes()
    if choice is None or len(prefixes) == 0 or of_one_run(result) or not 0 < betting < 1:
        return np.empty(0), np.empty(0)
    top = min(max(result.epsilon_lower, choice.epsilon), 60.0)
    grid = np.linspace(0.0, 1.02 * top, _NULLS)
    wealth = log_wealth(prefixes, choice.posterior, grid, choice.delta)
    rejected = np.maximum.accumulate(wealth, axis=1) >= -math.log(betting)
    passed = np.logical_and.accumulate(rejected, axis=0).sum(axis=0)
    reached = np.where(passed > 0, grid[np.maximum(passed - 1, 0)], 0.0)
    trials = prefixes.sum(axis=(1, 2)).astype(float)
    return np.append(0.0, trials), np.append(0.0, reached)


def growth(result: CaseResult, planned: PlannedCase) -> str:
    """Certified epsilon against trials, beside the claim; empty without evidence in blocks."""
    trials, reached = certified_path(result, planned.shares.betting)
    claimed = claimed_epsilon(result)
    if len(trials) == 0 or claimed is None:
        return ""
    some = np.unique(np.linspace(0, len(trials) - 1, _MOST_POINTS).round().astype(int))
    last = float(trials[-1])
    top = max(claimed, result.epsilon_lower, float(reached.max()))
    strip = Strip("Certified epsilon against trials", (0.0, last), span([1.05 * top], zero=True))
    strip.level(claimed, "claim")
    strip.line(trials[some].tolist(), reached[some].tolist(), "measured")
    strip.line([last], [result.epsilon_lower], "certified")
    trials_in_all = count(result.trials, "trial", "trials")
    return strip.svg("0", trials_in_all, heights=(0.0, claimed))


def sequence(rounds: Rounds) -> str:
    """The sequence on both sides: mean and the middle 80 % of values, or shares of values."""
    x = [at + 1.0 for at in rounds.rounds]
    sides = ((rounds.left, "left", ""), (rounds.right, "right", "4 2"))
    values = [v for lines, _, _ in sides for line in lines for v in line]
    strip = Strip(_title("Both sides over the rounds", rounds), _across(rounds), span(values))
    _mark(strip, rounds)
    shares = rounds.lines[0].startswith(SHARE)
    for lines, ink, dash in sides:
        if not shares:
            strip.band(x, lines[1], lines[2], ink)
        for line, other in zip(lines if shares else lines[:1], _DASHES, strict=False):
            strip.line(x, line, ink, dash=other or dash)
    return strip.svg(*_ends(rounds))


def leak(rounds: Rounds) -> str:
    """How far apart the sides are in each round, and how far noise alone would put them."""
    top = span([max(rounds.gap), 1.1 * rounds.noise], zero=True)
    strip = Strip(_title("Gap between the sides by round", rounds), _across(rounds), top)
    _mark(strip, rounds)
    strip.bars([at + 1.0 for at in rounds.rounds], rounds.gap, "measured")
    if rounds.noise < 1:
        strip.level(rounds.noise, "axis")
    return strip.svg(*_ends(rounds))


def told(rounds: Rounds) -> str:
    """Which rounds give the pair away, in words."""
    loud = [(gap, at) for gap, at in zip(rounds.gap, rounds.rounds, strict=True)]
    over = [at for gap, at in loud if gap > rounds.noise]
    trials = f"{whole(rounds.trials[0])} and {whole(rounds.trials[1])} scouting trials"
    if not over:
        return (
            f"No single {_word(rounds)} stands out: in {trials} all gaps stay within what equal"
            " sides would show. A leak may still be spread over several."
        )
    gap, at = max(loud, key=lambda pair: (pair[0], -pair[1]))
    others = count(len(over), _word(rounds), _word(rounds).replace("y", "ie") + "s")
    return (
        f"{_word(rounds).capitalize()} {whole(at + 1)} tells most: the probability of passing some"
        f" threshold there differs by {number(gap)} between the sides. {others} shown"
        f" {'stands' if len(over) == 1 else 'stand'} out of the noise of {trials}."
    )


def _word(rounds: Rounds) -> str:
    return "round" if rounds.in_order else "entry"


def _title(what: str, rounds: Rounds) -> str:
    from markupsafe import escape

    return str(escape(f"{what}: {one_line(rounds.column, 60)}"))


def _across(rounds: Rounds) -> tuple[float, float]:
    shown = (*rounds.rounds, *rounds.own)
    return min(shown) + 0.5, max(*shown, rounds.total - 1) + 1.5


def _mark(strip: Strip, rounds: Rounds) -> None:
    for at in rounds.own[:_MOST_MARKS]:
        strip.mark(at + 1.0)


def _ends(rounds: Rounds) -> tuple[str, str]:
    first, last = _across(rounds)
    return f"{_word(rounds)} {first + 0.5:.0f}", f"{_word(rounds)} {last - 0.5:.0f}"
