"""Upper limits of what a rule measures, also after a stop that the counts chose."""

import math

import numpy as np
import pytest
from scipy import special, stats

from audit.bounds import clopper_pearson_upper
from audit.measured import _anytime_upper, log_odds, log_odds_lower, log_odds_upper


def test_the_estimate():
    assert log_odds(0, 0) == 0
    assert log_odds(1, 3) == 0
    assert log_odds(30, 10) == pytest.approx(math.log(30.5 / 10.5))


@pytest.mark.parametrize(("right", "wrong"), [(0, 0), (5, 0), (30, 10), (10, 30), (900, 300)])
@pytest.mark.parametrize("alpha", [0.05, 1e-5])
def test_limits_are_ordered(right, wrong, alpha):
    given = {"alpha": alpha, "stopped": False}
    whole = log_odds_upper(right, wrong, early_stop=False, **given)
    could = log_odds_upper(right, wrong, early_stop=True, **given)
    did = log_odds_upper(right, wrong, alpha, early_stop=True, stopped=True)
    assert log_odds(right, wrong) <= whole <= could <= did
    assert math.isinf(did) == (wrong == 0)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize(("right", "wrong"), [(0, 0), (5, 0), (30, 10), (10, 30), (900, 300)])
def test_lower_limits_lie_below_the_estimate(right, wrong, stopped):
    lower = log_odds_lower(right, wrong, 0.05, stopped=stopped)
    assert 0 <= lower <= log_odds(right, wrong)
    assert log_odds_lower(900, 300, 0.05, stopped=stopped) > 0.8


def test_without_stopping_it_is_clopper_and_pearson():
    limit = log_odds_upper(30, 10, 0.05, early_stop=False, stopped=False)
    assert limit == pytest.approx(special.logit(clopper_pearson_upper(30, 40, 0.05)))


def test_the_anytime_limit_solves_its_equation():
    right, wrong, alpha = 30, 10, 0.05
    p = _anytime_upper(right, right + wrong, alpha)
    mixture = special.betaln(right + 0.5, wrong + 0.5) - special.betaln(0.5, 0.5)
    likelihood = right * math.log(p) + wrong * math.log1p(-p)
    assert mixture - likelihood == pytest.approx(-math.log(alpha), abs=1e-6)
    assert p > right / (right + wrong)


def test_the_anytime_limit_holds_at_its_worst_moment():
    """Stopped where the limit is lowest; false alarm of this test 1e-4 (binomial)."""
    alpha, p, runs = 0.05, 0.7, 400
    rng = np.random.default_rng(0)
    looks = (5, 10, 20, 40, 80, 160, 320)
    missed = 0
    for _ in range(runs):
        right = np.cumsum(rng.random(max(looks)) < p)
        missed += min(_anytime_upper(int(right[n - 1]), n, alpha) for n in looks) < p
    assert missed <= stats.binom.isf(1e-4, runs, alpha)
    fixed = sum(
        min(clopper_pearson_upper(int(right[n - 1]), n, alpha) for n in looks) < p
        for right in (np.cumsum(rng.random(max(looks)) < p) for _ in range(runs))
    )
    assert fixed > stats.binom.isf(1e-4, runs, alpha)  # a fixed-size limit does not
