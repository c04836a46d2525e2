"""From one Python output to its numbers and its form, whatever it is made of.

Numbers become *leaves*, by a path that says where they are; all else is spelled out in the *form*.
Numbers that are written in a text or kept in the attributes of an object are numbers too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_EXACT_INTEGERS = 2**53
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_MOST_NUMBERS = 64
_DEEPEST = 50


@dataclass(frozen=True)
class Raised:
    """An exception that one trial ended in: an outcome like any other."""

    kind: str
    message: str = ""


def encode(x: Any, path: str, leaves: dict[str, float], above: tuple[int, ...] = ()) -> str:
    """Write the numbers in `x` to `leaves` and return its form.

    Args:
        x: An output, or a part of one.
        path: Where it is.
        leaves: Path to number; filled.
        above: Identities of what it is a part of.
    """
    if x is None:
        return "None"
    if isinstance(x, Raised):
        _encode_text(x.message, f"{path}.message", leaves)
        return f"raised {x.kind}"
    if isinstance(x, np.ndarray | np.generic):
        return _encode_array(np.asarray(x), path, leaves, above)
    if isinstance(x, bool | int | float | complex):
        return _encode_number(x, path, leaves)
    if isinstance(x, Decimal | Fraction):
        return _encode_exact(x, path, leaves)
    if isinstance(x, str):
        leaves[f"{path}.len"] = len(x)
        _encode_text(x, path, leaves)
        return type(x).__name__
    if isinstance(x, bytes | bytearray):
        leaves[path], leaves[f"{path}.len"] = category(bytes(x).hex()), len(x)
        return type(x).__name__
    if id(x) in above or len(above) > _DEEPEST:
        return f"{type(x).__name__} again"
    return _encode_container(x, path, leaves, (*above, id(x)))


def _encode_text(text: str, path: str, leaves: dict[str, float]) -> None:
    """A text as a whole and, where there are numbers in it, these and the words around them."""
    leaves[path] = category(text)
    numbers = list(itertools.islice(_NUMBER.finditer(text), _MOST_NUMBERS))
    for i, found in enumerate(numbers):
        leaves[f"{path}.number[{i}]"] = float(found.group())
    if numbers:
        leaves[f"{path}.words"] = category(_NUMBER.sub("#", text))


def _encode_number(x: Any, path: str, leaves: dict[str, float]) -> str:
    if isinstance(x, complex):
        leaves[f"{path}.real"], leaves[f"{path}.imag"] = x.real, x.imag
    elif isinstance(x, int) and abs(x) > _EXACT_INTEGERS:
        leaves[path] = math.copysign(_to_float(abs(x)), 1 if x > 0 else -1)
        leaves[f"{path}.exact"] = category(hex(x))  # str() refuses more than 4,300 digits
    else:
        leaves[path] = float(x)
    return type(x).__name__


def _encode_exact(x: Decimal | Fraction, path: str, leaves: dict[str, float]) -> str:
    """A number that a float rounds: its size, and a code where the rounding loses something."""
    missing = isinstance(x, Decimal) and x.is_nan()
    leaves[path] = number = math.nan if missing else _to_float(x)
    if missing or number != x:
        leaves[f"{path}.exact"] = category(str(x))
    return type(x).__name__


def _to_float(x: int | Decimal | Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, 1 if x > 0 else -1)


def _encode_array(x: Array, path: str, leaves: dict[str, float], above: tuple[int, ...]) -> str:
    form = f"array[{x.dtype.kind}]{list(x.shape)}"
    if x.dtype.kind not in "biuf":
        parts = enumerate(x.ravel().tolist())
        inner = [encode(v, f"{path}[{i}]", leaves, above) for i, v in parts]
        return form + _summary(inner)
    flat = x.astype(float)
    for index in np.ndindex(x.shape):
        leaves[path + "".join(f"[{i}]" for i in index)] = float(flat[index])
    return form


def _encode_container(x: Any, path: str, leaves: dict[str, float], above: tuple[int, ...]) -> str:
    kind = type(x).__name__
    if hasattr(x, "to_dict") and hasattr(x, "dtypes"):  # pandas objects, without importing it
        x = {"index": list(x.index), "values": x.to_numpy(), "kind": str(x.dtypes)}
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        x = {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    elif isinstance(x, set | frozenset):
        x = sorted(x, key=repr)
    if isinstance(x, Mapping):
        leaves[f"{path}.len"] = len(x)
        parts = [f"{k!r}:{encode(v, f'{path}[{k!r}]', leaves, above)}" for k, v in x.items()]
        return f"{kind}{{{','.join(parts)}}}"
    if isinstance(x, Sequence):
        leaves[f"{path}.len"] = len(x)
        return kind + _summary([encode(v, f"{path}[{i}]", leaves, above) for i, v in enumerate(x)])
    leaves[path] = category(_ADDRESS.sub("0x", repr(x)))
    inner = [f"{k}:{encode(v, f'{path}.{k}', leaves, above)}" for k, v in _attributes(x)]
    return f"object {kind}" + (f"{{{','.join(inner)}}}" if inner else "")


def _attributes(x: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of what an object keeps: its dictionary, then its slots."""
    if isinstance(x, type | ModuleType):
        return
    yield from sorted((k, v) for k, v in getattr(x, "__dict__", {}).items() if not callable(v))
    for owner in type(x).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(x, name):
                yield name, getattr(x, name)


def _summary(parts: list[str]) -> str:
    if len(parts) > 1 and len(set(parts)) == 1:
        return f"[{len(parts)} x {parts[0]}]"
    return f"[{','.join(parts)}]"


def category(text: str) -> float:
    """A stable number for a text: equal texts, equal numbers; different ones almost never."""
    return float(
        int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:6], "big")
    )
