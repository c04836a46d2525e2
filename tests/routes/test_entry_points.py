"""Mechanisms, attacks and renderers of another package are found by their entry points."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CODE = '''
"""A package with extensions of every kind."""

import audit


@audit.claims("eps=1", pairs=[(0.0, 1.0)])
def noisy(data, n, rng):
    """Adds Laplace noise."""
    return data + rng.laplace(size=n)


class Pricing:
    """Prices at the noisy demand."""

    def act(self, context):
        return 1.0

    def observe(self, outcome):
        pass


class Threshold:
    name, slow, learns, description, log_odds = "threshold", False, False, "below one half", False

    def applies(self, game):
        return True

    def fit(self, game, left, right, rng):
        return self

    def __call__(self, views):
        return -views.matrix()[:, 0]


def render_line(record, *, width, color):
    return record.summary.sentence + "\\n"
'''
POINTS = """
[audit.mechanisms]
shop/noisy = extensions:noisy
shop/pricing = extensions:Pricing
[audit.attacks]
threshold = extensions:Threshold
[audit.renderers]
line = extensions:render_line
"""


def package(where, points):
    info = where / "extensions-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extensions\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (where / "extensions.py").write_text(CODE)
    return where


def audit(site, *words):
    path = os.pathsep.join([str(ROOT), str(site)])
    done = subprocess.run(
        [sys.executable, "-m", "audit", *words],
        cwd=site,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return package(tmp_path_factory.mktemp("site"), POINTS)


def test_names_are_listed_with_what_they_are(site):
    code, out, _ = audit(site, "list", "shop/*")
    assert code == 0
    assert "shop/noisy" in out
    assert "Adds Laplace noise." in out
    assert "Prices at the noisy demand." in out
    assert "threshold" in out.splitlines()[-1]


def test_another_package_is_audited_attacked_and_rendered(site):
    """Not refuted; over seeds with probability at least .999."""
    words = ["run", "shop/noisy", "--attack", "threshold", "--trials", "400", "--jobs", "1"]
    code, out, err = audit(site, *words, "-f", "line")
    assert code == 0, err
    assert out == "None of 1 audited claim refuted.\n"
    code, out, err = audit(site, "explain", "shop/noisy")
    assert "claim: 1-DP" in out, err


def test_a_policy_is_an_entry_point_too(site):
    code, out, err = audit(site, "check", "shop/pricing", "--claim", "eps=1")
    assert "ok    view" in out, err
    assert code == 0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ("[audit.mechanisms]\nshop/lost = extensions:lost\n", "'shop/lost' of extensions"),
        ("[audit.mechanisms]\ncalibration/laplace = extensions:noisy\n", "is taken"),
        ("[audit.renderers]\ntext = extensions:render_line\n", "is taken"),
    ],
)
def test_a_package_that_cannot_be_used_is_named(points, message, tmp_path):
    site = package(tmp_path / "site", points)
    words = ["run", "calibration/laplace", "--trials", "400", "--jobs", "1", "-f", "text"]
    code, _, err = audit(site, *words)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
