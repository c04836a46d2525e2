"""What `audit.examine` does besides auditing."""

import os
import signal

import numpy as np
import pytest

import audit
from audit.errors import UsageError
from audit.plan import Settings


def interrupted(data, rng):
    if data > 0:
        os.kill(os.getpid(), signal.SIGINT)
    return data + rng.laplace()


def test_an_interrupted_audit_ends_as_an_interruption():
    with pytest.raises(KeyboardInterrupt):
        audit.examine(
            interrupted, claim=audit.PureDp(epsilon=1.0), pairs=[audit.Pair(0.0, 1.0)], trials=400
        )


def noisy(data, rng):
    return data + rng.laplace()


def test_numbers_of_other_libraries_are_settings_too():
    given = {"trials": np.int64(200), "alpha": np.float64(0.01), "seed": np.int32(3), "group": 1}
    claim = audit.PureDp(epsilon=np.log(3.0))
    result = audit.examine(noisy, claim=claim, pairs=[(0.0, 1.0)], **given)
    assert result.verdict != "error"
    settings = Settings(trials=400.0, alpha=np.float32(0.25), seed=np.int8(3), early_stop=np.True_)
    kinds = [type(getattr(settings, name)) for name in ("trials", "alpha", "seed", "early_stop")]
    assert kinds == [int, float, int, bool]


@pytest.mark.parametrize(
    "wrong", [{"trials": "400"}, {"trials": 400.5}, {"alpha": None}, {"seed": 1.5}, {"group": "2"}]
)
def test_settings_that_are_no_numbers_are_refused(wrong):
    name, value = next(iter(wrong.items()))
    with pytest.raises(UsageError, match=f"{name}: expected .*{value}"):
        audit.examine(noisy, claim="eps=1", pairs=[(0.0, 1.0)], **wrong)
