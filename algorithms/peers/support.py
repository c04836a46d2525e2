"""What all adapters share: the import, the version, one release after the other.

Claim: none; it is the adapters' own.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError

Floats = npt.NDArray[np.float64]


def needed(module: str, package: str) -> Any:
    """A module of another library.

    Args:
        module: Such as ``opendp.prelude``.
        package: The distribution that it comes from.

    Raises:
        UsageError: When it is not installed, or does not work with what is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        raise _missing(package, error) from None


def source(package: str, what: str) -> str:
    """Where a claim comes from: library, version and statement.

    Raises:
        UsageError: When the library is not installed.
    """
    try:
        return f"{package} {metadata.version(package)}: {what}"
    except metadata.PackageNotFoundError as error:
        raise _missing(package, error) from None


def _missing(package: str, error: Exception) -> UsageError:
    return UsageError(
        f"peers: {package} cannot be imported ({error}); install it with "
        "pip install 'dpaudit[peers]'"
    )


def one_by_one(
    release: Callable[[np.random.Generator], Any], n: int, rng: np.random.Generator
) -> Floats:
    """`n` releases, each with a generator of its own; their warnings are not ours.

    Returns:
        Shape (n, ...).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray([release(child) for child in rng.spawn(n)], dtype=float)


def legacy(rng: np.random.Generator) -> np.random.RandomState:
    """A generator of the kind that older libraries take."""
    words = rng.integers(2**32, size=4).tolist()
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(words)))
