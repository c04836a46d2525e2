"""Coverage of certificates, ranks, groups, fixed numbers of guesses and the cross-check.

Rows without a tolerance are exact; a row with one fails with probability 1e-4 when its bound is
exactly at its level.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from audit.crosscheck import fixed_guesses_epsilon
from tests.coverage import certificates, laws
from tests.coverage.test_coverage import check


def test_fixed_numbers_of_guesses_keep_their_level() -> None:
    check(certificates.fixed_rows((1_000,)), 0.045)


def test_group_claims_keep_their_level() -> None:
    check(certificates.group_rows(), 0.04)


def test_certificates_keep_their_level() -> None:
    """The box and a tilted Gaussian at 100 runs, 40 experiments each."""
    slack = laws.margin(certificates.ALPHA, 40)
    box = certificates.box_certificate_excess(1.0, 1e-2, 100, 40)
    tilted = certificates.gaussian_certificate_excess(1.0, 1e-5, 100, 40, tilted=True)
    assert max(box, tilted) <= certificates.ALPHA + slack


def test_calibration_keeps_its_level_under_optional_stopping() -> None:
    check(certificates.calibration_rows(400), 0.005)


def test_ranks_keep_their_level_in_coarse_bins() -> None:
    """Two unequal bins, 200 trials: 25 experiments reach 8 excesses with probability 1e-5."""
    assert certificates.rank_excess(0.268, 200, 0, 25) <= 7 / 25


def test_renyi_divergences_keep_their_level_under_optional_stopping() -> None:
    """At the divergence that is met exactly by the likelihood ratio that is bet with."""
    check(certificates.renyi_rows((200,), 400), 0.02)


def test_the_cross_check_keeps_its_level() -> None:
    check(certificates.crosscheck_rows(500), 0.005)


def test_a_number_of_guesses_that_data_choose_would_be_noticed() -> None:
    """The bound for fixed numbers breaks when an adversary picks the number by what is revealed.

    Exact: 300 trials, epsilon .1, delta .01, fewer than 60 guesses.
    """
    epsilon, delta, trials, alpha = 0.1, 1e-2, 300, 0.05
    numbers, weights = laws.revealed(trials, delta)
    worst = np.zeros(len(numbers))
    for r in range(1, 60):
        critical = laws.smallest(
            lambda v, r=r: fixed_guesses_epsilon(v, r, alpha, delta=delta, trials=trials) > epsilon,
            r,
        )
        known = np.minimum(numbers, r)
        tail = stats.binom.sf(critical - known - 1, r - known, special.expit(epsilon))
        worst = np.maximum(worst, tail)
    assert weights @ worst > 1.2 * alpha


@pytest.mark.coverage
@pytest.mark.parametrize(
    ("rows", "least"),
    [
        (certificates.fixed_rows, 0.049),
        (certificates.certificate_rows, 0.01),
        (certificates.calibration_rows, 0.01),
        (certificates.rank_rows, 0.03),
        (certificates.crosscheck_rows, 0.01),
    ],
)
def test_full_grids(rows: object, least: float) -> None:
    check(rows(), least)  # type: ignore[operator]
