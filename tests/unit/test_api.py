"""What `audit.examine` does besides auditing."""

import os
import signal

import pytest

import audit


def interrupted(data, rng):
    if data > 0:
        os.kill(os.getpid(), signal.SIGINT)
    return data + rng.laplace()


def test_an_interrupted_audit_ends_as_an_interruption():
    with pytest.raises(KeyboardInterrupt):
        audit.examine(
            interrupted, claim=audit.PureDp(epsilon=1.0), pairs=[audit.Pair(0.0, 1.0)], trials=400
        )
