"""Noise of a tree of Gaussian releases for an (epsilon, delta) budget, three ways.

One record touches at most ``m`` nodes; each releases a statistic of L2 sensitivity D with
independent N(0, sigma^2) noise. The published algorithms differ in how they share the budget
among the nodes, so the rule is a named parameter:

* **basic**: (epsilon/m, delta/m) a node by basic composition, each node by the classical Gaussian
  mechanism (Dwork and Roth 2014, Theorem A.1);
* **advanced**: epsilon/sqrt(8 m ln(2/delta)) and delta/(2m) a node by advanced composition
  (Dwork, Rothblum and Vadhan 2010), nodes as before; better than basic for m > 8 ln(2/delta) only;
* **exact**: m nodes are together sqrt(m) D/sigma-Gaussian DP (Dong, Roth and Su 2022), inverted
  through the exact profile (Balle and Wang 2018). No slack at all.

The classical formula needs a budget below 1 per node; outside it a warning is given.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from audit.claim import gaussian_mu


def basic(epsilon: float, delta: float, nodes: int, sensitivity: float) -> float:
    """``D m sqrt(2 ln(1.25 m/delta)) / epsilon``.

    Args:
        epsilon: Budget of all nodes together.
        delta: Budget of all nodes together.
        nodes: The most nodes m that one record touches.
        sensitivity: L2 sensitivity D of one node, in the units of sigma.

    Returns:
        The standard deviation sigma of a node's noise.
    """
    return _classical(epsilon / nodes, delta / nodes, sensitivity)


def advanced(epsilon: float, delta: float, nodes: int, sensitivity: float) -> float:
    """``D sqrt(8 m ln(2/delta)) sqrt(2 ln(2.5 m/delta)) / epsilon``; arguments as in `basic`."""
    share = math.sqrt(8 * nodes * math.log(2 / delta))
    return _classical(epsilon / share, delta / (2 * nodes), sensitivity)


def exact(epsilon: float, delta: float, nodes: int, sensitivity: float) -> float:
    """``D sqrt(m) / mu(epsilon, delta)``; arguments as in `basic`."""
    return sensitivity * math.sqrt(nodes) / gaussian_mu(epsilon, delta)


def _classical(epsilon: float, delta: float, sensitivity: float) -> float:
    if epsilon >= 1:
        warnings.warn(
            f"the classical Gaussian formula is proved for epsilon < 1 per node, got {epsilon:.3g};"
            " use calibration='exact'",
            UserWarning,
            stacklevel=4,
        )
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


CALIBRATIONS: dict[str, Callable[[float, float, int, float], float]] = {
    "basic": basic,
    "advanced": advanced,
    "exact": exact,
}
