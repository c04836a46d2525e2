"""The noise-scaled twin against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import audit
from algorithms.calibration import Exponential, Laplace, RandomisedResponse
from audit.judge import TWINS
from audit.mechanism import FunctionMechanism
from audit.power import accuracy_needed, gaussian_reach


def caught(mechanism: object, **settings: object) -> dict[str, float | None]:
    result = audit.examine(
        mechanism, trials=20_000, alpha=0.05, seed=4, attacks=["likelihood"], **settings
    )
    return result.could_have_caught


def test_the_twin_of_laplace_is_the_laplace_family() -> None:
    """Estimated from about 2,500 guesses: standard error .05; tolerance four of them."""
    found = caught(Laplace(epsilon=1.0))
    assert found[TWINS] == pytest.approx(found["laplace noise"], abs=0.2)
    assert found[TWINS] >= found["revealing box"]


def test_the_twin_of_randomised_response_is_the_box() -> None:
    """Estimated from 3,750 guesses: standard error .04; tolerance four of them."""
    found = caught(RandomisedResponse(epsilon=1.0))
    assert found[TWINS] == pytest.approx(found["revealing box"], abs=0.16)


def test_the_twin_of_a_broken_mechanism_may_have_more_noise() -> None:
    """True epsilon 2: the twin that is just caught is near 1.07; tolerance four errors of .05."""
    assert caught(Laplace(epsilon=1.0, scale=0.5), early_stop=False)[TWINS] < 1.3


def test_no_twin_without_a_profile_or_scalable_noise() -> None:
    laplace = Laplace(epsilon=1.0)
    plain = FunctionMechanism(laplace.run, laplace.claim, tuple(laplace.pairs()), batched=True)
    result = audit.examine(plain, trials=1_000, alpha=0.05, attacks=["leaf"])
    assert TWINS not in result.could_have_caught


def test_twins_do_not_decide_about_blindness() -> None:
    """A mechanism whose own attack needs far more than the friendliest one is not blind."""
    result = audit.examine(
        Exponential(epsilon=1.0), trials=20_000, alpha=0.05, seed=1, attacks=["likelihood"]
    )
    assert result.verdict == "unrefuted"


def test_accuracy_needed_is_what_gaussian_reach_inverts() -> None:
    share = accuracy_needed(0.268, 15_000, 0.018)
    assert share is not None
    assert 0.553 < share < 0.575
    assert gaussian_reach(0.268, 1e-5, 15_000, 0.018) is not None
    assert accuracy_needed(60.0, 10, 0.01) is None
    assert np.isfinite(share)
