"""Certificates speak of the law that is stated, whatever the code draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import audit
from algorithms.broken.pricing_bugs import BUGS, documented
from algorithms.calibration import Gaussian


@dataclass(frozen=True)
class Whisper(Gaussian):
    """A Gaussian release with a third of the noise that its density states."""

    def run(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        emitted = super().run(data, n, rng)
        (name,) = emitted
        return {name: data + (emitted[name] - data) / 3}

    def tilted_run(self, pair: audit.Pair, tilt: float, n: int, rng: np.random.Generator) -> Any:
        return Gaussian(epsilon=self.epsilon, delta=self.delta).tilted_run(pair, tilt, n, rng)


@pytest.mark.parametrize("seed", range(8))
def test_the_certificate_of_a_twin_is_that_of_its_stated_law(seed: int) -> None:
    result = audit.examine(Whisper(epsilon=4.0, delta=1e-5), trials=4_000, seed=seed)
    assert result.ladder is not None
    assert result.ladder.certificate <= 4.0  # wrong with probability 1e-3 / 40 a seed
    assert not result.ladder.calibrated
    assert {"DP014"} <= {finding.rule for finding in result.findings}
    assert "DP012" not in {finding.rule for finding in result.findings}


@pytest.mark.parametrize("number", [n for n in BUGS if BUGS[n].paper is not None])
def test_documented_mistakes_are_not_certified_above_their_documentation(number: str) -> None:
    case = documented(number, "exact", "paper")
    if getattr(case.paper, "tilted_run", None) is None:
        pytest.skip("no sampler of the documented law")
    result = audit.examine(case, trials=400, attacks=("likelihood",))
    assert "DP012" not in {finding.rule for finding in result.findings}
