"""Which code was played: finished blocks count only for the code that made them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

_DEEPEST = 4


def fingerprint(subject: object) -> str:
    """Digest of the source files of every package that defines a part of a mechanism.

    A package is read whole, since a function may call anything beside it. Installed libraries that
    it calls are not read; their versions stand in the record.

    Args:
        subject: A mechanism, or a function or policy class inside one.
    """
    tops = {name.partition(".")[0] for name in _modules(subject, 0)} - {"builtins", "audit"}
    return hashlib.sha256("".join(_source(top) for top in sorted(tops)).encode()).hexdigest()


def _modules(part: Any, depth: int) -> Iterator[str]:
    named = part if hasattr(part, "__qualname__") else type(part)
    yield str(getattr(named, "__module__", "") or "")
    if depth < _DEEPEST and is_dataclass(part) and not isinstance(part, type):
        for field in fields(part):
            yield from _modules(getattr(part, field.name), depth + 1)
    inner = getattr(part, "func", None) or getattr(part, "__wrapped__", None)
    if inner is not None and depth < _DEEPEST:
        yield from _modules(inner, depth + 1)


@cache
def _source(top: str) -> str:
    module = sys.modules.get(top)
    folders = [Path(folder) for folder in getattr(module, "__path__", ())]
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    alone = getattr(module, "__file__", None)
    if not folders and alone:
        files = [Path(alone)]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + _bytes(file))
    return digest.hexdigest()


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
