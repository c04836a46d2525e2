"""Calibration weights: small mechanisms whose privacy curve is known exactly.

An audit of one of these has a right answer, so they calibrate the instrument: the certified
epsilon may not exceed the truth, and should come close to it. Each one knows its exact law, its
worst pair and its noise scale, and can be built with a wrong `scale` while its claim stays.
"""

from algorithms.calibration.additive import DiscreteLaplace, Gaussian, Laplace
from algorithms.calibration.selection import Exponential, NoisyMax, RandomisedResponse

__all__ = [
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "NoisyMax",
    "RandomisedResponse",
]
