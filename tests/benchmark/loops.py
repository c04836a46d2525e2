"""The same algorithms written out by hand, one trial at a time, numpy inside."""

import math

import numpy as np
from scipy import optimize, special


def exp3_by_hand(losses, learner, rng):
    """One trial of EXP3 for noisy losses."""
    arms = losses.shape[1]
    total = np.zeros(arms)
    for row in losses:
        weights = np.exp(learner.eta * (total.min() - total))
        probs = (1 - learner.gamma) * weights / weights.sum() + learner.gamma / arms
        arm = np.searchsorted(np.cumsum(probs)[:-1], rng.random(), side="right")
        total[arm] += (row[arm] + rng.laplace(0.0, 1.0)) / probs[arm]


def looped_cov(cov, features, rng):
    """The textbook tree, one trial."""
    n, d = features.shape
    levels = n.bit_length()
    exact, noisy = np.zeros((levels, d, d)), np.zeros((levels, d, d))
    out = np.empty((n, d, d))
    for t in range(1, n + 1):
        j = (t & -t).bit_length() - 1
        exact[j] = exact[:j].sum(axis=0) + np.outer(features[t - 1], features[t - 1])
        z = np.triu(rng.normal(0.0, cov.scale, (d, d)))
        noisy[j] = exact[j] + z + np.triu(z, 1).T
        exact[:j] = noisy[:j] = 0
        out[t - 1] = sum(noisy[i] for i in range(levels) if t >> i & 1)
    return out


def looped_policy(public, data, rng):
    """The published policy, one trial."""
    d, grid, x, v = public.dimension, public.grid, data["contexts"], data["valuations"]
    theta, lam = np.zeros(d), np.linalg.inv(public.ridge_cov * np.eye(d))
    logdet, calls = d * math.log(public.ridge_cov), 0
    levels = public.rounds.bit_length()
    exact, noisy = np.zeros((levels, d, d)), np.zeros((levels, d, d))
    released, rows, bought = np.zeros((d, d)), [], []
    for t in range(public.rounds):
        if t < public.explore:
            price = rng.choice(grid)
        else:
            current = public.ridge_cov * np.eye(d) + released
            sign, log = np.linalg.slogdet(current)
            if (
                calls < public.cap
                and sign > 0
                and log > logdet + math.log(2)
                and np.linalg.eigvalsh(current)[0] > 0
            ):
                theta = looped_fit(public, np.array(rows), np.array(bought), rng)
                lam, logdet, calls = np.linalg.inv(current), log, calls + 1
            phi = np.hstack([np.tile(x[t], (len(grid), 1)), -np.outer(grid, x[t])]) / math.sqrt(2)
            width = np.sqrt(np.maximum(0, np.einsum("gi,ij,gj->g", phi, lam, phi)))
            demand = np.clip(special.expit(phi @ theta) + public.bonus * width, 0, 1)
            price = grid[np.argmax(grid * demand)]
        rows.append(np.concatenate([x[t], -price * x[t]]) / math.sqrt(2))
        bought.append(float(price <= v[t]))
        n = t + 1
        j = (n & -n).bit_length() - 1
        exact[j] = exact[:j].sum(axis=0) + np.outer(rows[-1], rows[-1])
        z = np.triu(rng.normal(0.0, public.sigma, (d, d)))
        noisy[j] = exact[j] + z + np.triu(z, 1).T
        exact[:j] = noisy[:j] = 0
        released = sum(noisy[i] for i in range(levels) if n >> i & 1)
    return calls


def looped_fit(public, phi, y, rng):
    """Constrained objective perturbation: Newton inside a bracketed search for the multiplier."""
    w = rng.normal(0.0, public.nu, phi.shape[1])

    def solve(ridge):
        theta = np.zeros(len(w))
        for _ in range(50):
            mean = special.expit(phi @ theta)
            gradient = phi.T @ (mean - y) + ridge * theta + w
            if np.linalg.norm(gradient) <= 1e-9 * public.nu:
                break
            hessian = (phi * (mean * (1 - mean))[:, None]).T @ phi + ridge * np.eye(len(w))
            theta = theta - np.linalg.solve(hessian, gradient)
        return theta

    theta = solve(public.ridge_mle)
    if np.linalg.norm(theta) <= public.radius:
        return theta

    def excess(k):
        return np.linalg.norm(solve(public.ridge_mle + k)) - public.radius

    return solve(public.ridge_mle + optimize.brentq(excess, 0.0, 1e3))
