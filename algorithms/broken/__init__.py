"""Deliberately broken twins, each with its real privacy: an audit that misses one has failed.

Every ``broken/some-name`` of the catalogue is also an attribute ``some_name`` of this package,
built when it is asked for. Audited as ``algorithms.broken:some_name`` it is an ordinary subject
that gates, where the catalogue's own entry is a control that must be caught.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from audit.mechanism import Mechanism

_PREFIX = "broken/"


def __getattr__(name: str) -> Mechanism:
    from algorithms.catalogue import CATALOGUE

    entry = CATALOGUE.get(_PREFIX + name.replace("_", "-"))
    if entry is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    mechanism: Mechanism = entry.build()
    return mechanism


def __dir__() -> list[str]:
    from algorithms.catalogue import CATALOGUE

    names = [name.removeprefix(_PREFIX) for name in CATALOGUE if name.startswith(_PREFIX)]
    return sorted(name.replace("-", "_") for name in names)
