"""Audit cases with known right answers: what must pass, what must be flagged.

Claim: as each case says. `KnownCase.epsilon` is the smallest epsilon that the mechanism has at
the claimed delta on its pair; a case must be flagged exactly when that exceeds the claim. Cases
that must pass mostly have no slack, so that careless event selection shows in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from algorithms.broken import cases_choices as choices
from algorithms.broken import cases_prices as prices
from algorithms.broken import cases_sums as sums
from algorithms.broken.known import KnownCase, KnownFunction
from algorithms.calibration import Gaussian, Laplace, NoisyMax
from audit.claim import AnyClaim, ApproxDp, PureDp, gaussian_mu
from audit.errors import UsageError
from audit.mechanism import FunctionMechanism, Mechanism
from audit.pair import Pair

_WIDTH = 1 / gaussian_mu(1.0, 1e-5)  # 3.730632: exactly (1, 1e-5)-DP for a distance of 1


def mechanism_of(case: str) -> Mechanism:
    """The mechanism of a known case, with its claim and pair; for catalogue entries.

    Raises:
        UsageError: When there is no such case.
    """
    if case not in CASES:
        raise UsageError(f"known case: expected one of {', '.join(CASES)}; got {case!r}")
    return CASES[case].mechanism


def _known(
    function: Callable[..., Any],
    likelihood: Callable[..., Any],
    claim: AnyClaim,
    pair: Pair,
    views: tuple[str, ...] = ("transcript", "output"),
    **settings: Any,
) -> KnownFunction:
    return KnownFunction(
        partial(function, **settings),
        claim,
        (pair,),
        batched=True,
        likelihood=partial(likelihood, **settings),
        likelihood_views=views,
    )


def _unknown(
    function: Callable[..., Any], claim: AnyClaim, pair: Pair, **settings: Any
) -> FunctionMechanism:
    return FunctionMechanism(partial(function, **settings), claim, (pair,), batched=True)


def _claim(delta: float = 0.0, relation: str = "declared", view: str = "output") -> AnyClaim:
    if delta:
        return ApproxDp(epsilon=1.0, delta=delta, relation=relation, view=view)
    return PureDp(epsilon=1.0, relation=relation, view=view)


def _items(horizon: int) -> Pair:
    rest = tuple(float(t % 2) for t in range(1, horizon))
    return Pair((0.0, *rest), (1.0, *rest), "first item", relation="replace-one")


def _one_more(record: Any, label: str) -> Pair:
    return Pair((), (record,), label, relation="add-remove")


def _customers() -> Pair:
    covariates, demands = [0.1 * t for t in range(1, 16)], [float(t % 2) for t in range(1, 16)]
    left = {"covariates": [0.0, *covariates], "demands": [0.0, *demands]}
    right = {"covariates": [1.0, *covariates], "demands": [1.0, *demands]}
    return Pair(left, right, "first customer", relation="replace-one")


def _priced(view: str) -> KnownFunction:
    return _known(
        prices.personal_prices,
        prices.prices_after_llr,
        _claim(relation="replace-one", view=view),
        _customers(),
        views=("prices_after",),
        scale=4.0,
    )


_COUNTS = (5.0, 3.0, 8.0, 0.0, 2.0, 9.0, 4.0, 1.0, 7.0, 6.0)
_BIN = Pair(_COUNTS, (6.0, *_COUNTS[1:]), "one bin one higher", relation="replace-one")
_HIGH, _LOW = (1.0,) * 5, (0.0,) * 5
_DIAGONAL = (1 / math.sqrt(10),) * 10


_SUMS: tuple[KnownCase, ...] = (
    KnownCase("C1", "count with Laplace noise", Laplace(1.0), 1.0, "pass"),
    KnownCase("C2", "count with the scale inverted", Laplace(0.5, scale=0.5), 2.0, "flag", 50),
    KnownCase("half-noise", "count with half the noise", Laplace(1.0, scale=0.5), 2.0, "flag", 200),
    KnownCase("C3", "number with Gaussian noise", Gaussian(1.0), 1.0, "pass"),
    KnownCase(
        "C4",
        "clipped to [-1, 1], noise for a distance of 1, but a record can be replaced",
        _known(
            sums.clipped_sum,
            sums.clipped_sum_llr,
            _claim(1e-5, "replace-one"),
            Pair((-1.0,), (1.0,), "opposite extremes", relation="replace-one"),
            dimension=1,
            scale=_WIDTH,
        ),
        2.1547,
        "flag",
        20_000,
    ),
    KnownCase(
        "C6",
        "100 coordinates clipped one by one, noise for one of them",
        _known(
            sums.clipped_sum,
            sums.clipped_sum_llr,
            _claim(1e-5, "add-remove"),
            _one_more((1.0,) * 100, "all coordinates at once"),
            dimension=100,
            scale=_WIDTH,
        ),
        14.43,
        "flag",
        50,
    ),
    KnownCase(
        "C7",
        "histogram of ten bins with one shared draw",
        _unknown(sums.shared_draw_histogram, _claim(relation="replace-one"), _BIN, scale=1.0),
        math.inf,
        "flag",
        20,
    ),
    KnownCase(
        "C24",
        "two answers, charged once",
        _known(
            sums.answered_twice,
            sums.answered_twice_llr,
            _claim(),
            Pair(0.0, 1.0, "count one higher"),
            scale=1.0,
        ),
        2.0,
        "flag",
        300,
    ),
    KnownCase(
        "C28",
        "second moment with symmetrised Gaussian noise",
        _known(
            sums.second_moment,
            sums.second_moment_llr,
            _claim(1e-5, "add-remove"),
            _one_more(_DIAGONAL, "one unit vector"),
            dimension=10,
            scale=_WIDTH,
        ),
        1.0,
        "pass",
    ),
)

_SEQUENCES: tuple[KnownCase, ...] = (
    KnownCase(
        "C14",
        "16 prefix sums from a binary tree",
        _known(
            sums.tree_prefix_sums,
            sums.tree_prefix_sums_llr,
            _claim(relation="replace-one"),
            _items(16),
            scale=5.0,
        ),
        1.0,
        "pass",
    ),
    KnownCase(
        "C15",
        "64 prefix sums with fresh noise each",
        _known(
            sums.fresh_prefix_sums,
            sums.fresh_prefix_sums_llr,
            _claim(relation="replace-one"),
            _items(64),
            scale=6.0,
        ),
        64 / 6,
        "flag",
        300,
    ),
    KnownCase(
        "C21-after",
        "personal prices, seen by later customers",
        _priced("prices_after"),
        1.0,
        "pass",
    ),
    KnownCase("C21-all", "personal prices, all seen", _priced("prices_all"), math.inf, "flag", 20),
)

_CHOICES: tuple[KnownCase, ...] = (
    KnownCase("C9", "noisy max of five scores", NoisyMax(1.0), 0.9998, "pass"),
    KnownCase(
        "C10", "noisy max with half the noise", NoisyMax(1.0, scale=1.0), 2.0, "flag", 10_000
    ),
    KnownCase(
        "C12",
        "sparse vector with exact queries and no cut-off",
        _unknown(
            choices.sparse_vector_exact_queries,
            _claim(),
            Pair((0.0, 1.0), (1.0, 0.0), "two queries swap"),
            scale=2.0,
        ),
        math.inf,
        "flag",
        200,
    ),
    KnownCase(
        "sparse-vector",
        "sparse vector whose query noise ignores the cut-off",
        _unknown(
            choices.sparse_vector_small_noise,
            _claim(),
            Pair(_HIGH + _LOW, _LOW + _HIGH, "two halves swap"),
            epsilon=1.0,
            threshold=1.0,
            cutoff=2,
        ),
        2.9595,
        "flag",
        3_000,
    ),
    KnownCase(
        "C19",
        "an arm dropped on noisy sums",
        _known(
            choices.drop_arm,
            choices.drop_arm_llr,
            _claim(),
            Pair((9.8, 0.0), (10.8, 0.0), "lead one longer"),
            lead=10.0,
            scale=1.0,
        ),
        0.5583,
        "pass",
    ),
    KnownCase(
        "C22",
        "maximum that raises when its weights underflow",
        FunctionMechanism(
            partial(choices.fragile_maximum, epsilon=1.0),
            _claim(relation="add-remove"),
            (Pair((1.0,) * 1490, (1.0,) * 1491, "one record too many", "add-remove"),),
        ),
        math.inf,
        "flag",
        20,
    ),
    KnownCase(
        "C25",
        "randomised response with a second coin",
        _known(
            choices.second_coin,
            choices.second_coin_llr,
            PureDp(epsilon=math.log(3)),
            Pair(0, 1, "the bit"),
            truth=0.75,
        ),
        math.log(15),
        "flag",
        50,
    ),
)

CASES: dict[str, KnownCase] = {c.id: c for c in (*_SUMS, *_SEQUENCES, *_CHOICES)}
