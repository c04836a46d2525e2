"""Composition: what several releases cost together, from loose to exact.

* **basic** and **advanced** composition (Dwork, Rothblum and Vadhan 2010; Dwork and Roth 2014,
  Theorem 3.20), and the rule that shares a budget by the latter;
* **optimal** composition of k copies (Kairouz, Oh and Viswanath 2015, Theorem 3.3);
* sums of Gaussian parameters (Dong, Roth and Su 2022, Corollary 3.3);
* sums of *loss bounds*: a privacy loss bounded in law by ``a + q chi_2``, as objective
  perturbation of a generalised linear model has, convolved numerically with losses rounded up.

Claim: none; these are the formulas that claims are computed with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from audit.claim import gaussian_delta
from audit.errors import UsageError

Floats = npt.NDArray[np.float64]

_CELLS = 1 << 16
_TAIL = 9.0
_RESOLUTION = 1e-10


def basic(epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    """``(k eps, k delta)``."""
    return calls * epsilon, calls * delta


def advanced(epsilon: float, delta: float, calls: int, slack: float) -> tuple[float, float]:
    """``(sqrt(2 k ln(1/d')) eps + k eps (e^eps - 1), k delta + d')`` with slack d'."""
    spread = math.sqrt(2 * calls * math.log(1 / slack)) * epsilon
    return spread + calls * epsilon * math.expm1(epsilon), calls * delta + slack


def advanced_share(epsilon: float, calls: int, slack: float) -> float:
    """Budget of one of `calls` releases by the rule ``eps / (2 sqrt(2 k ln(1/d')))``."""
    return epsilon / (2 * math.sqrt(2 * calls * math.log(1 / slack)))


def capped_share(epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    """Budget of one of at most `calls` releases: ``eps/sqrt(8 k ln(2/delta))``, ``delta/(2k)``."""
    return advanced_share(epsilon, calls, delta / 2), delta / (2 * calls)


def optimal(epsilon: float, delta: float, calls: int) -> list[tuple[float, float]]:
    """All corners ``(eps, delta)`` that k releases of (epsilon, delta)-DP meet, the best possible.

    Returns:
        For i = 0, ..., floor(k/2): ``((k - 2i) eps, 1 - (1 - delta)^k (1 - d_i))``.
    """
    whole = calls * math.log(math.exp(epsilon) + 1)
    corners = []
    for i in range(calls // 2 + 1):
        excess = sum(
            special.binom(calls, j)
            * (
                math.exp((calls - j) * epsilon - whole)
                - math.exp((calls - 2 * i + j) * epsilon - whole)
            )
            for j in range(i)
        )
        corners.append(((calls - 2 * i) * epsilon, 1 - (1 - delta) ** calls * (1 - float(excess))))
    return corners


def gaussian_sum(*parameters: float) -> float:
    """``sqrt(sum mu_i^2)``; later releases may depend on earlier ones."""
    return math.sqrt(sum(mu**2 for mu in parameters))


def rayleigh_delta(epsilon: float, offset: float, width: float) -> float:
    """``E[(1 - e^(eps - L))_+]`` for a loss ``L = offset + width chi_2``.

    Args:
        epsilon: Where the profile is wanted, >= 0.
        offset: What is lost for certain.
        width: q > 0, the multiplier of a chi variable with two degrees of freedom.
    """
    h = epsilon - offset
    z = max(0.0, h / width)
    # e^h q sqrt(2 pi) e^(q^2/2) Phi(-z - q), in logarithms: the factors may overflow.
    lost = math.log(width * math.sqrt(2 * math.pi)) + h + width**2 / 2
    lost += float(special.log_ndtr(-z - width))
    return math.exp(-(z**2) / 2) - math.exp(h - width * z - z**2 / 2) + math.exp(lost)


def loss_bound_delta(
    epsilon: float, *, calls: int, offset: float, width: float, mu: float = 0.0
) -> float:
    """Profile of `calls` releases with loss at most ``offset + width chi_2`` and a Gaussian one.

    Why the sum is a bound: given the past, each loss is below its bound in law, and the profile
    increases with the loss (Zhu, Dong and Wang 2022, Theorem 10, for adaptive composition).
    Losses are rounded up to a grid, so the result is never below the exact convolution.

    Args:
        epsilon: Where the profile is wanted, >= 0.
        calls: Number of releases with that bound.
        offset: As in `rayleigh_delta`, for each call.
        width: As in `rayleigh_delta`.
        mu: Parameter of all Gaussian releases together; 0 for none.
    """
    if calls == 1 and mu == 0:
        return rayleigh_delta(epsilon, offset, width)
    start, step, mass, lost = _convolved(calls, width, mu)
    loss = start + calls * offset + step * np.arange(len(mass))
    beyond = loss > epsilon
    gained = mass[beyond] * -np.expm1(epsilon - loss[beyond])
    return min(1.0, float(gained.sum()) + lost)


@lru_cache(maxsize=64)
def loss_bound_epsilon(
    delta: float, *, calls: int, offset: float, width: float, mu: float = 0.0
) -> float:
    """Smallest epsilon at which `loss_bound_delta` is at most `delta` (rounded up).

    Raises:
        UsageError: When none up to 10,000 is.
    """

    def above(epsilon: float) -> bool:
        found = loss_bound_delta(epsilon, calls=calls, offset=offset, width=width, mu=mu)
        return found > delta

    return smallest(above, 1.0, 1e4, "epsilon")


def smallest(above: Callable[[float], bool], start: float, limit: float, name: str) -> float:
    """Where a predicate turns false, by doubling and halving (rounded up).

    Args:
        above: A function of one number that is true below the answer and false from it on.
        start: First guess, > 0.
        limit: Give up beyond it.
        name: What is being solved for, for the error.

    Raises:
        UsageError: When the predicate is still true at `limit`.
    """
    low, high = 0.0, start
    while above(high):
        low, high = high, 2 * high
        if low > limit:
            raise UsageError(
                f"accounting: expected an answer below {limit:g}, but no {name} suffices. "
                "Relax the budget"
            )
    while high - low > _RESOLUTION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def gaussian_profile(mu: float, epsilon: float) -> float:
    """Profile of mu-GDP at `epsilon`; 0 when mu is 0, 1 when it is infinite."""
    if mu == 0 or math.isinf(mu):
        return float(mu > 0)
    return gaussian_delta(mu, epsilon)


@lru_cache(maxsize=32)
def _convolved(calls: int, width: float, mu: float) -> tuple[float, float, Floats, float]:
    """Law of the summed loss without its offset: first value, step, masses, mass given up."""
    one, each = width * _TAIL, mu**2 / 2
    low, high = each - _TAIL * mu, each + _TAIL * mu
    step = (calls * one + high - low) / (_CELLS - calls - 2)
    grid = np.arange(math.ceil(one / step) + 1) * step
    above = np.exp(-((grid / width) ** 2) / 2)
    chi = np.concatenate([[0.0], above[:-1] - above[1:]])
    law = np.fft.rfft(chi, _CELLS) ** calls
    lost = calls * float(above[-1])
    if mu > 0:
        edges = low + step * np.arange(math.ceil((high - low) / step) + 1)
        below = special.ndtr((edges - each) / mu)
        normal = np.diff(below, prepend=0.0)
        law = law * np.fft.rfft(normal, _CELLS)
        lost += float(1 - below[-1])
    mass = np.maximum(np.fft.irfft(law, _CELLS), 0.0)
    return (low if mu > 0 else 0.0), step, np.asarray(mass, dtype=float), lost
