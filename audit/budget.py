"""How a case spends what it has: its error budget on tests, its trials on scouting and blocks."""

from __future__ import annotations

import math

from audit.claim import AnyClaim, GaussianDp, RenyiClaim
from audit.planned import Shares

_SCOUT_SHARE = 0.25
_WHITE_BOX_SHARE = 0.15
_ENOUGH_TO_SAVE = 4_000
_CONTRACT_SHARE = 0.03
_MOST_SCOUTED = 200_000
FEWEST_A_SIDE = 32
_USUAL_TRIALS = 20_000
_FIRST_BLOCK = 24
_LARGEST_BLOCK = 2000


def divide(alpha: float, claim: AnyClaim, *, white_box: bool) -> Shares:
    """Divide a case's error budget over the tests that it will take.

    Half goes to the betting test, nearly all of the rest to the fixed-size test; the profile at
    other deltas, and in a white-box case certificate and calibration, get a fortieth each. Claims
    about Renyi divergences are betted against in their own terms with half of it, Gaussian ones
    with three tenths and another half for the fixed-size test of mu.
    """
    extra = 0.025 * alpha if white_box else 0.0
    profile = 0.025 * alpha
    betting, renyi, parameter = (alpha * share for share in _betting_renyi_parameter(claim))
    fixed = alpha - betting - renyi - parameter - 2 * extra - profile
    return Shares(
        betting=betting,
        fixed=fixed,
        profile=profile,
        parameter=parameter,
        renyi=renyi,
        certificate=extra,
        calibration=extra,
    )


def _betting_renyi_parameter(claim: AnyClaim) -> tuple[float, float, float]:
    if isinstance(claim, GaussianDp):
        return 0.1, 0.3, 0.5
    return (0.2, 0.5, 0.0) if isinstance(claim, RenyiClaim) else (0.5, 0.0, 0.0)


def scouting_trials(trials: int, *, white_box: bool = False, pairs: int = 1) -> int:
    """Trials to scout with: a quarter of the usual budget, a smaller share of a larger one.

    A score that is known exactly leaves less to find out. A small budget pays at least the contract
    tests and a few trials for every pair, up to two fifths of it. Scouted views are kept, so a
    budget of millions scouts no more than one of two millions does.
    """
    share = _WHITE_BOX_SHARE if white_box and trials >= _ENOUGH_TO_SAVE else _SCOUT_SHARE
    share *= min(1.0, float(_USUAL_TRIALS / trials) ** 0.25)
    least = 10 * contract_size(trials) + 2 * FEWEST_A_SIDE * sum(pairs_by_stage(pairs))
    return max(min(int(trials * share), _MOST_SCOUTED), min(least, 2 * trials // 5))


def contract_size(trials: int) -> int:
    """Trials of one call of the contract tests, which make ten."""
    return min(64, max(4, int(trials * _CONTRACT_SHARE / 8)))


def pairs_by_stage(pairs: int) -> tuple[int, int, int]:
    """How many pairs each stage of scouting keeps."""
    return pairs, max(min(pairs, 2), math.ceil(pairs / 4)), 1


def block_sizes(trials: int, smallest: int = 8) -> tuple[int, ...]:
    """Sizes of the testifying blocks: small at first, so that a gross leak stops early.

    About eight looks per doubling of the evidence, at most 2,000 trials a block.

    Args:
        trials: Testifying trials.
        smallest: Fewest trials that are worth a call of the mechanism.
    """
    sizes, done = [], 0
    while done < trials:
        size = max(smallest, done // 11 if done else _FIRST_BLOCK)
        sizes.append(min(size, _LARGEST_BLOCK, trials - done))
        done += sizes[-1]
    return tuple(sizes)
