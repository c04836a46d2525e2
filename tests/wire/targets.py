"""Targets that end their process, for ``--isolate``; what they do depends on data > 0.5."""

import ctypes
import os
import signal
import time

import numpy as np

HELD: list[bytes] = []


def segfault(data, rng):
    if data > 0.5:
        ctypes.string_at(0)
    return 0.0


def abort(data, rng):
    if data > 0.5:
        os.abort()
    return 0.0


def exits(data, rng):
    if data > 0.5:
        os._exit(3)
    return 0.0


def exits_well(data, rng):
    if data > 0.5:
        os._exit(0)
    return 0.0


def leaves(data, rng):
    if data > 0.5:
        raise SystemExit(0)
    return 0.0


def kills_itself(data, rng):
    if data > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def hoards(data, rng):
    if data > 0.5:
        return float(len(bytes(10**12)))
    return 0.0


def interrupts(data, rng):
    if data > 0.5:
        raise KeyboardInterrupt
    return 0.0


def exits_block(data, n, rng):
    if data > 0.5:
        os._exit(3)
    return np.zeros(n)


def noisy_crash(data, rng):
    """Ends its process whenever the noise is large."""
    value = data + rng.laplace()
    if value > 1.5:
        os._exit(9)
    return value


def noisy_crash_block(data, n, rng):
    value = data + rng.laplace(size=n)
    if (value > 1.5).any():
        os._exit(9)
    return {"value": value, "pair": np.stack([value, -value], axis=1)}


def two_columns(data, n, rng):
    return {"z": data + rng.laplace(size=n), "a": rng.laplace(size=n)}


def sleeps(data, rng):
    time.sleep(1000)


def spins(data, rng):
    while True:
        pass


def forks(data, rng):
    """Its copy returns into the player's code as well, and must be heard nowhere."""
    os.fork()
    return data + rng.laplace()


def breeds(data, rng):
    if os.fork() == 0:
        time.sleep(1000)
    return data + rng.laplace()


def kills_supervisor(data, rng):
    os.kill(os.getppid(), signal.SIGKILL)
    return 0.0


def kills_group(data, rng):
    os.killpg(0, signal.SIGKILL)


def closes_everything(data, rng):
    os.closerange(0, 1000)
    return 0.0


def prints(data, rng):
    print("=" * 100)
    os.write(1, b"." * 1000)
    return data + rng.laplace()


def mixed(data, rng):
    draw = rng.laplace() + data
    if draw < -1:
        return None
    if draw < 0:
        raise ValueError(f"negative: {draw}")
    return {"draw": draw, "words": ["low", "high"], "big": 2**80, "ragged": [[1], [True, 2.5]]}


class Box:
    """An input that no JSON can show."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Box({self.value})"


class Boxed:
    """A mechanism whose inputs are objects of its own, and which knows its density."""

    @property
    def claim(self):
        from audit import PureDp

        return PureDp(epsilon=1.0, relation="add-remove", source="Boxed")

    def pairs(self):
        from audit import Pair

        return (Pair(Box(0.0), Box(1.0), "one apart", differs=(0,)),)

    def run(self, data, n, rng):
        return {"value": data.value + rng.laplace(size=n)}

    def log_likelihood_ratio(self, views, pair):
        left, right = pair.left.value, pair.right.value
        return abs(views["value"] - right) - abs(views["value"] - left)


def boxed_laplace():
    """The reference mechanism with everything that it knows about itself."""
    from algorithms.calibration import Laplace

    return Laplace(epsilon=1.0)


def half_declared():
    """Half of the noise that it declares, which plays without noise tell exactly (DP020)."""
    from algorithms.calibration import Laplace

    return Laplace(epsilon=1.0).noise_scaled(0.5)
