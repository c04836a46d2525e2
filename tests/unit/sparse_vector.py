"""Exact law of the sparse vector that stops after two positives, by quadrature."""

import numpy as np
from scipy import stats


def law_of(queries, threshold=1.0, cutoff=2, epsilon=1.0):
    """Answers (1 above, 0 below, -1 not answered) to their probability."""
    edges = np.arange(-200.0, 201.0)
    node, weight = np.polynomial.legendre.leggauss(20)
    noise = ((edges[:-1] + 0.5)[:, None] + node / 2).ravel()
    weights = np.tile(weight / 2, len(edges) - 1) * stats.laplace.pdf(noise, 0, 4 / epsilon)
    above = [stats.laplace.sf(threshold + noise - q, 0, 4 / (3 * epsilon)) for q in queries]
    law = {}

    def extend(answers, mass):
        if len(answers) == len(queries) or sum(answers) == cutoff:
            law[answers + (-1,) * (len(queries) - len(answers))] = float(mass.sum())
            return
        p = above[len(answers)]
        extend((*answers, 1), mass * p)
        extend((*answers, 0), mass * (1 - p))

    extend((), weights)
    return law
