"""Speed of the pricing family, as ratios measured in one run on one core.

Process time, the best of three; absolute rates are printed for information only. The loops are
the same algorithms, one trial at a time, numpy inside.
"""

import math
import time
import tracemalloc
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from scipy import optimize, special

from algorithms.pricing.constants import constants
from algorithms.pricing.market import market_of, sample_market
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.releasers import Drawn
from algorithms.pricing.rounds import play
from audit.engine import Workers, run
from audit.plan import Request, Settings, make_plan
from audit.registry import battery

pytestmark = pytest.mark.benchmark


def best_of_three(work):
    spent = []
    for _ in range(3):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def sfc(seed):
    return np.random.Generator(np.random.SFC64(seed))


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


def test_private_cov_against_its_normals_and_its_loop():
    cov, block = PrivateCov(dimension=4, records=1023), 1000
    data = cov.pairs()[0].left
    whole = best_of_three(lambda: cov.run(data, block, sfc(0)))
    normals = best_of_three(lambda: sfc(0).standard_normal((block, 1023, 10)))
    loop = best_of_three(lambda: looped_cov(cov, data["features"], sfc(0)))
    print(f"PrivateCov: {whole / normals:.2f}x its normals, {block * loop / whole:.0f}x its loop")
    assert whole <= 2 * normals
    assert block * loop >= 80 * whole


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


def test_policy_against_its_loop():
    public, block = constants("working"), 4000
    data = sample_market(public.rounds)
    market = market_of(data, public)
    loop = best_of_three(lambda: looped_policy(public, data, sfc(1)))

    def whole():
        drawn = Drawn(public, market, block, sfc(0), keep=False)
        return play(public, market, drawn, block)

    start = time.process_time()
    course = whole()
    spent = time.process_time() - start
    print(f"policy: {block / spent:.0f} trials/s, {block * loop / spent:.0f}x its loop")
    assert course.calls.mean() >= 5
    assert block * loop >= 40 * spent


def peak_of_an_audit(mechanism, attack, trials):
    """Most memory that was taken, with equal scouting and blocks of 250 whatever the budget."""
    request = Request("case", "case", mechanism, mechanism.claim, battery([attack]))
    plan, (case,) = make_plan([request], Settings(trials=trials, early_stop=False))
    planned = msgspec.structs.replace(case.planned, scouting=500, blocks=(250,) * (trials // 250))
    plan = msgspec.structs.replace(plan, cases=(planned,))
    tracemalloc.start()
    record = run(plan, [replace(case, planned=planned)], Workers(jobs=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert record.results[0].trials == trials
    return peak


def test_memory_does_not_depend_on_the_number_of_trials():
    """Blocks leave their counts behind, some tens of kilobytes, and none of their views.

    From 20,000 trials on a certificate takes its largest number of runs, 1,000.
    """
    cov = PrivateCov(dimension=4, records=255)
    few, many = (peak_of_an_audit(cov, "likelihood", trials) for trials in (20_000, 60_000))
    print(f"memory: {few / 1e6:.0f} MB for 20,000 trials, {many / 1e6:.0f} MB for 60,000")
    assert many <= 1.2 * few
