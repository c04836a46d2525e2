"""A suite whose evidence has an exactly known law: label streams instead of mechanisms.

Scouting is skipped: each case has its frozen choice and, per side, the law of the score bin. The
rest is the real thing: plan, testifying loop in waves of blocks, early stopping, judge, summary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np
from scipy import special, stats

from audit import engine, judge
from audit.claim import AnyClaim, ApproxDp, GaussianDp, PureDp
from audit.mechanism import FunctionMechanism
from audit.pair import Pair
from audit.plan import Case, Request, Settings, make_plan
from audit.power import could_have_caught
from audit.record import Choice, Record
from audit.scout import Scouted
from audit.streams import Side

PAIRS = (Pair(0.0, 1.0),)
MU = 1.0


@dataclass(frozen=True)
class Stream:
    """A frozen attack on views whose score bins have a known law.

    Attributes:
        choice: What scouting would have frozen.
        laws: Probability of each bin, shape (2, bins): left, then right.
    """

    choice: Choice
    laws: np.ndarray

    @property
    def game(self) -> Stream:
        return self

    def play_sides(self, sizes, streams, order) -> dict[bool, np.ndarray]:
        return {
            left: streams[left].multinomial(n, self.laws[Side.LEFT if left else Side.RIGHT])
            for left, n in sizes.items()
        }

    def tabulate(self, left: np.ndarray, right: np.ndarray, order: object) -> np.ndarray:
        return np.stack([left, right])


def told(epsilon: float, delta: float = 0.0, abstain: float = 0.0) -> np.ndarray:
    """The revealing box: bins (sure right, right, silent, left, sure left) per side."""
    heard = (1 - abstain) * (1 - delta)
    right, wrong = special.expit(epsilon), special.expit(-epsilon)
    left = np.array([0, wrong * heard, abstain * (1 - delta), right * heard, delta])
    return np.stack([left, left[::-1]])


def shifted(mu: float, bins: int = 24) -> np.ndarray:
    """Two normal laws, mu apart, in equal bins of the score."""
    edges = np.linspace(-3, 3, bins - 1)
    halves = [np.diff(stats.norm.cdf(edges, m, 1), prepend=0, append=1) for m in (mu / 2, -mu / 2)]
    return np.stack(halves)


def stream_of(claim: AnyClaim, laws: np.ndarray, point: int, **chosen: object) -> Stream:
    """A stream with the posterior and the guesses that its law implies."""
    epsilon, delta = claim.points()[point]
    posterior = np.round((laws[0] + 1e-9) / (laws.sum(0) + 2e-9), 6).clip(1e-6, 1 - 1e-6)
    given = {"test": "binomial", "ranks": False, **chosen}
    choice = Choice(
        pair=0,
        attack="stream",
        event="the likelier side",
        edges=tuple(np.linspace(-1, 1, laws.shape[1] - 1).tolist()),
        posterior=tuple(posterior.tolist()),
        guess=tuple(int(s) for s in np.sign(posterior - 0.5)),
        epsilon=epsilon,
        delta=delta,
        **given,  # type: ignore[arg-type]
    )
    return Stream(choice, laws)


def streams(claimed: float, true: float) -> dict[str, tuple[AnyClaim, Stream]]:
    """Four cases, each exactly at `true` and claiming `claimed` (the Gaussian one at MU times)."""
    pure, point = PureDp(epsilon=claimed), ApproxDp(epsilon=claimed, delta=0.01)
    curve, mu = GaussianDp(mu=MU * claimed), MU * true
    return {
        "pure, by counting": (pure, stream_of(pure, told(true), 0)),
        "pure, ranked": (pure, stream_of(pure, told(true, abstain=0.5), 0, test="ranked")),
        "with delta": (point, stream_of(point, told(true, 0.01), 0, test="ranked")),
        "gaussian": (curve, stream_of(curve, shifted(mu), 2)),
    }


def ci_run(suite: dict[str, tuple[AnyClaim, Stream]], seed: int, settings: Settings) -> Record:
    """One run of a CI job on the suite."""
    requests = [
        Request(name, name, FunctionMechanism(abs, claim, PAIRS), claim, (), PAIRS)
        for name, (claim, _) in suite.items()
    ]
    plan, cases = make_plan(requests, Settings(**{**vars(settings), "seed": seed}))

    def scouted(case: Case, _plan: object) -> Scouted:
        frozen = suite[case.planned.name][1]
        return Scouted(frozen, 0, (0.0, 0.0), (), None, None, (), 0.0)  # type: ignore[arg-type]

    with (
        mock.patch.object(engine, "scout_case", scouted),
        mock.patch.object(judge, "could_have_caught", _REACH),
    ):
        return engine.run(plan, cases)


_REACH = cache(could_have_caught)
"""What could have been caught depends on the plan alone, which all runs share."""
