"""Faults in what surrounds a value, and in the parameters that are read off the data."""

import time
from dataclasses import replace

import numpy as np

from audit.domain import Domain
from tests.faults.table import Line


def scaled_by_the_range(data, rng):
    low, high = min(data), max(data)
    return (data[1] - low) / (high - low) + rng.laplace() / 100


def domain_from_the_largest_code(data, rng):
    counts = np.bincount(data)
    return (counts + rng.laplace(size=len(counts))).tolist()


def classes_from_the_labels(data, rng):
    return {label: data.count(label) + rng.laplace() for label in sorted(set(data))}


def edges_from_the_data(data, rng):
    counts, edges = np.histogram(data, bins=4)
    return {"counts": counts + rng.laplace(size=4), "edges": edges}


def length(data, rng):
    return [rng.laplace() for _ in data]


def small_counts_left_out(data, rng):
    return {k: v + rng.laplace() for k, v in data.items() if v > 0}


def missing_step(data, rng):
    return [x + rng.laplace() if x else None for x in data]


def raises_on_one_side(data, rng):
    if sum(data) > 2:
        raise ValueError("too large")
    return rng.laplace()


def not_a_number(data, rng):
    return float(np.mean(data)) * 0 + rng.laplace() if data else float("nan")


def exact_diagnostic(data, rng):
    return {"sum": sum(data) + rng.laplace(), "converged": sum(data) < 3}


def trailing_bits(data, n, rng):
    return data + rng.laplace(size=n)


def run_time(data, rng):
    if data:  # even no sleep at all gives the processor away, for as long as others want it
        time.sleep(0.002 * data)
    return rng.laplace()


def exact_number_in_a_text(data, rng):
    return f"noisy sum {sum(data) + rng.laplace():.3f} of {len(data)} records, mean {sum(data):.2f}"


def exact_number_in_a_message(data, rng):
    if rng.random() < 0.5:
        return rng.laplace()
    raise RuntimeError(f"no convergence after {rng.integers(1000)} steps at {sum(data):.3f}")


class Result:
    def __init__(self, total, noisy):
        self.noisy, self._total = noisy, total


def exact_number_in_an_attribute(data, rng):
    return Result(sum(data), sum(data) + rng.laplace())


def standardised(data, rng):
    spread = max(data) - min(data)
    return rng.laplace() if spread else "constant"


def warned(data, rng):
    out = [sum(data) + rng.laplace()]
    return [*out, "few records"] if len(data) < 5 else out


ONES = [1.0, 0.0, 1.0]

LEAKS = (
    Line("minimum and maximum from the data", scaled_by_the_range, [0, 1, 2], [0.5, 1, 2]),
    Line("domain size from the largest code", domain_from_the_largest_code, [0, 1], [0, 7]),
    Line("class list from the labels", classes_from_the_labels, ["a", "b"], ["a", "c"], slow=False),
    Line("histogram edges from the data", edges_from_the_data, [0.0, 1.0, 2.0], [0.0, 1.0, 3.0]),
    Line("length of the output", length, ONES, [*ONES, 1.0], slow=False),
    Line("keys of the output", small_counts_left_out, {"a": 1, "b": 0}, {"a": 1, "b": 1}),
    Line("a missing step", missing_step, [1, 0, 1], [1, 1, 1]),
    Line("an exception on one side", raises_on_one_side, ONES, [*ONES, 1.0], slow=False),
    Line("not a number", not_a_number, [], [1.0], slow=False),
    Line("an exact diagnostic beside a private output", exact_diagnostic, ONES, [*ONES, 1.0]),
    Line("trailing bits", trailing_bits, 0.0, 1.0, trials=20_000, threats=("bits",)),
    Line("run time", run_time, 0.0, 1.0, trials=400, threats=("duration",)),
    Line("an exact number in a text", exact_number_in_a_text, ONES, [1.0] * 3, slow=False),
    Line("an exact number in a message", exact_number_in_a_message, ONES, [1.0] * 3),
    Line("an exact number in an attribute", exact_number_in_an_attribute, ONES, [1.0] * 3),
    Line(
        "constant data",
        standardised,
        domain=Domain(bounds=(0, 1), sizes=(2, 20)),
    ),
    Line(
        "a warning at a size",
        warned,
        domain=Domain(bounds=(0, 1), sizes=(0, 20), relation="add-remove"),
        trials=2000,
    ),
)
LEAKS = tuple(replace(line, single=line.function is not trailing_bits) for line in LEAKS)
