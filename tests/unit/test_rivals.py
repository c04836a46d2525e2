"""Re-implemented procedures of other auditors refute half noise and spare the claim that holds.

Seeds are fixed; a procedure refutes a true claim with probability at most .001, StatDP about so.
"""

import numpy as np
import pytest

from tests.benchmark.rivals import RIVALS
from tests.benchmark.verdicts import ALPHA, player

SCALES = {"StatDP": 0.05, "DP-Sniper": 2e-4, "dp-auditorium, hockey stick": 1.0}


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_half_noise_is_refuted_and_whole_noise_is_not(rival):
    scale = SCALES[rival.name]
    for seed in range(2):
        rng = np.random.Generator(np.random.SFC64(seed))
        broken, honest = (
            rival.decide(player(ratio, rng), 1.0, ALPHA, rng, scale) for ratio in (0.5, 1.0)
        )
        assert broken.refuted
        assert not honest.refuted
        assert abs(broken.samples - scale * rival.samples) <= 0.01 * broken.samples
