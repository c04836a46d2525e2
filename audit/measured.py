"""How much one frozen rule measures: an estimate, and an upper confidence limit of it.

Not a bound on anybody's privacy: a better rule would measure more. It is what a baseline
remembers, so that a later run can say that more leaks than was measured then.
"""

from __future__ import annotations

import math

from scipy import optimize, special

from audit.bounds import clopper_pearson_upper


def log_odds(right: int, wrong: int) -> float:
    """Estimated log odds of a right guess, at least 0; 0 without guesses."""
    return max(0.0, math.log((right + 0.5) / (wrong + 0.5)))


def log_odds_upper(
    right: int, wrong: int, alpha: float, *, early_stop: bool, stopped: bool
) -> float:
    """Upper confidence limit of the log odds of a right guess, at least 0; infinite if unknown.

    Why this is valid: guesses of one frozen rule are independent, each right with one probability
    p. With early stopping there are two events in which the limit may fail, and each gets half of
    alpha: a sample of the planned size, where Clopper and Pearson hold, and one that ended when
    the counts pleased, where only the limit of `_anytime_upper` does.

    Args:
        right: Right guesses.
        wrong: Wrong guesses.
        alpha: Probability that the limit is below the truth.
        early_stop: Whether the sample could have ended early.
        stopped: Whether it did.
    """
    share = alpha / 2 if early_stop else alpha
    limit = _anytime_upper if stopped else clopper_pearson_upper
    upper = limit(right, right + wrong, share)
    return max(0.0, math.log(upper / (1 - upper))) if upper < 1 else math.inf


def log_odds_lower(right: int, wrong: int, alpha: float, *, stopped: bool) -> float:
    """Lower confidence limit of the log odds of a right guess, at least 0.

    Why this is valid: it is the upper limit of the log odds of a wrong guess, turned round, with
    half of alpha for either way in which a sample may have ended (`log_odds_upper`).
    """
    limit = _anytime_upper if stopped else clopper_pearson_upper
    upper = limit(wrong, right + wrong, alpha / 2) if right + wrong else 1.0
    return max(0.0, math.log((1 - upper) / upper)) if upper < 1 else 0.0


def _anytime_upper(right: int, guesses: int, alpha: float) -> float:
    """Upper confidence limit of a proportion, at any stopping time.

    Why this is valid: under the true p the likelihood of the guesses, averaged over p' ~
    Beta(1/2, 1/2), over that at p is a non-negative martingale that starts at 1 (Robbins 1970), so
    by Ville's inequality it ever reaches 1/alpha with probability at most alpha. The limit is the
    largest p at which it has not; beyond the observed share the ratio grows with p.
    """
    wrong = guesses - right
    if wrong == 0:
        return 1.0
    mixture = special.betaln(right + 0.5, wrong + 0.5) - special.betaln(0.5, 0.5)

    def excess(p: float) -> float:
        likelihood = special.xlogy(right, p) + special.xlog1py(wrong, -p)
        return float(mixture - likelihood + math.log(alpha))

    share, top = right / guesses, 1 - 1e-12
    return 1.0 if excess(top) < 0 else float(optimize.brentq(excess, share, top))
