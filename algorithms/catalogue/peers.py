"""Other libraries: one line each. They need the extra ``peers``."""

from typing import Any

from audit.entry import Entry


def _opendp(attr: str, summary: str, **parameters: Any) -> Entry:
    target = f"algorithms.peers.opendp:{attr}"
    return Entry(target, parameters, reference=False, summary=f"OpenDP: {summary}")


def _diffprivlib(attr: str, summary: str, **parameters: Any) -> Entry:
    target = f"algorithms.peers.diffprivlib:{attr}"
    return Entry(target, parameters, reference=False, summary=f"diffprivlib: {summary}")


def _mabwiser(rule: str, wish: float, summary: str, **options: float) -> Entry:
    return Entry(
        "algorithms.peers.mabwiser:bandit",
        {"rule": rule, "wish": wish, **options},
        role="control",
        reference=False,
        summary=f"MABWiser: {summary}, no privacy promised",
    )


_LOGISTIC = {"kind": "LogisticRegression", "options": {"fit_intercept": False}}
_LINEAR = {"kind": "LinearRegression", "another": 1.0, "options": {"fit_intercept": False}}

PEERS: dict[str, Entry] = {
    "peers/opendp-laplace": _opendp("Additive", "Laplace noise", kind="laplace", scale=1.0),
    "peers/opendp-laplace-composed": _opendp(
        "Additive",
        "8 answers, claim of dp-accounting",
        kind="laplace",
        scale=4.0,
        answers=8,
        delta=1e-3,
    ),
    "peers/opendp-gaussian": _opendp(
        "Additive", "Gaussian noise, its zCDP claim", kind="gaussian", scale=3.0
    ),
    "peers/opendp-gaussian-accounted": _opendp(
        "Additive", "Gaussian noise, claim of dp-accounting", kind="gaussian", scale=3.0, delta=1e-3
    ),
    "peers/opendp-tree": _opendp("Tree", "binary tree over 8 counts"),
    "peers/opendp-noisy-max": _opendp("NoisyMax", "index of the largest score"),
    "peers/diffprivlib-laplace": _diffprivlib(
        "Additive", "Laplace noise", kind="Laplace", epsilon=1.0
    ),
    "peers/diffprivlib-gaussian": _diffprivlib(
        "Additive", "Gaussian noise", kind="Gaussian", epsilon=0.9, delta=1e-3
    ),
    "peers/diffprivlib-gaussian-analytic": _diffprivlib(
        "Additive", "Gaussian noise, exact", kind="GaussianAnalytic", epsilon=1.0, delta=1e-3
    ),
    "peers/diffprivlib-quantile": _diffprivlib("Quantile", "median of 5 numbers", epsilon=1.0),
    "peers/diffprivlib-logistic": _diffprivlib(
        "Regression", "logistic regression, data norm 1", epsilon=1.0, **_LOGISTIC
    ),
    "peers/diffprivlib-logistic-intercept": _diffprivlib(
        "Regression",
        "logistic regression, data norm 1, intercept",
        kind="LogisticRegression",
        epsilon=1.0,
    ),
    "peers/diffprivlib-logistic-norm-100": _diffprivlib(
        "Regression",
        "logistic regression, data norm 100, C 0.01",
        kind="LogisticRegression",
        epsilon=1.0,
        smallest=-100.0,
        largest=100.0,
        options={"fit_intercept": False, "C": 0.01},
    ),
    "peers/diffprivlib-linear": _diffprivlib(
        "Regression", "linear regression, features in [-1, 1]", epsilon=1.0, **_LINEAR
    ),
    "peers/diffprivlib-linear-from-0": _diffprivlib(
        "Regression", "linear regression, features in [0, 1]", epsilon=0.5, smallest=0.0, **_LINEAR
    ),
    "peers/mabwiser-ucb1": _mabwiser("UCB1", 5.0, "UCB1", alpha=1.0),
    "peers/mabwiser-epsilon-greedy": _mabwiser("EpsilonGreedy", 2.0, "epsilon-greedy", epsilon=0.1),
    "peers/mabwiser-softmax": _mabwiser("Softmax", 1.0, "softmax", tau=0.1),
}
