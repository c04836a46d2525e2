"""From one Python output to its numbers and its form, whatever it is made of.

Numbers become *leaves*, by a path that says where they are; all else is spelled out in the *form*.
Numbers that are written in a text or kept in the attributes of an object are numbers too.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import hashlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from audit.errors import UsageError
from audit.outcome import Drained, drained, require_run
from audit.outcome import Raised as Raised

Array = npt.NDArray[Any]

EXACT_INTEGERS = 2**53
_LOW = 2**30 - 1  # what `audit.quantise` keeps
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_MOST_NUMBERS = 64
_DEEPEST = 50
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (gets the zone of what it is compared with)
_USUAL_SIZE = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}


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
        whole = x if isinstance(x, np.ma.MaskedArray) else np.asarray(x)
        return _encode_array(whole, path, leaves, above)
    for kinds, encoder in _ATOMS:
        if isinstance(x, kinds):
            return encoder(x, path, leaves)
    require_run(x, f"output {path or 'of act'}")
    if id(x) in above or len(above) > _DEEPEST:
        return f"{type(x).__name__} again"
    try:
        return _encode_container(x, path, leaves, (*above, id(x)))
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  (an object's own code, such as its __repr__)
        return f"object {type(x).__name__} that raises {type(error).__name__}"


def _encode_string(x: str, path: str, leaves: dict[str, float]) -> str:
    leaves[f"{path}.len"] = len(x)
    _encode_text(x, path, leaves)
    return type(x).__name__


def _encode_bytes(x: bytes | bytearray, path: str, leaves: dict[str, float]) -> str:
    leaves[path], leaves[f"{path}.len"] = category(bytes(x).hex()), len(x)
    return type(x).__name__


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
    elif isinstance(x, int) and abs(x) > EXACT_INTEGERS:
        leaves[path] = math.copysign(_to_float(abs(x)), 1 if x > 0 else -1)
        leaves[f"{path}.exact"] = category(hex(x))  # str() refuses more than 4,300 digits
    else:
        leaves[path] = float(x)
    return type(x).__name__


def _encode_time(x: Any, path: str, leaves: dict[str, float]) -> str:
    leaves[path], zone = _seconds(x), getattr(x, "tzinfo", None)
    return f"{type(x).__name__} {zone}" if zone else type(x).__name__


def _seconds(x: dt.date | dt.time | dt.timedelta) -> float:
    """A duration, a time of day, or a date as seconds since 1970 on its own clock."""
    if isinstance(x, dt.datetime):
        return float((x - _EPOCH.replace(tzinfo=x.tzinfo)).total_seconds())
    if isinstance(x, dt.date):
        return 86400.0 * (x - _EPOCH.date()).days
    if isinstance(x, dt.time):
        return 3600.0 * x.hour + 60.0 * x.minute + x.second + 1e-6 * x.microsecond
    return float(x.total_seconds())


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


_ATOMS: tuple[tuple[tuple[type, ...], Callable[[Any, str, dict[str, float]], str]], ...] = (
    ((bool, int, float, complex), _encode_number),
    ((Decimal, Fraction), _encode_exact),
    ((str,), _encode_string),
    ((bytes, bytearray), _encode_bytes),
    ((dt.date, dt.time, dt.timedelta), _encode_time),
)


def _encode_array(x: Array, path: str, leaves: dict[str, float], above: tuple[int, ...]) -> str:
    if isinstance(x, np.ma.MaskedArray):
        hidden = encode(np.ma.getmaskarray(x), f"{path}.mask", leaves)
        return f"masked {hidden} {_encode_array(np.asarray(x), path, leaves, above)}"
    form = f"array[{type_of(x)}]{list(x.shape)}"
    if x.dtype.kind not in "biufmM":
        parts = enumerate(x.ravel().tolist())
        inner = [encode(v, f"{path}[{i}]", leaves, above) for i, v in parts]
        return form + _summary(inner)
    flat, low = x.astype(float), low_bits(x)
    if x.dtype.kind in "mM":
        flat[np.isnat(x)] = np.nan
    for index in np.ndindex(x.shape):
        place = path + "".join(f"[{i}]" for i in index)
        leaves[place] = float(flat[index])
        if low is not None and not np.isnan(low[index]):
            leaves[f"{place}.low"] = float(low[index])
    return form


def low_bits(x: Array) -> Array | None:
    """The lower 30 bits of entries that a float rounds, NaN for others; None if there are none."""
    if x.dtype.kind not in "iumM" or x.dtype.itemsize < _USUAL_SIZE["i"]:
        return None
    whole = x if x.dtype.kind in "iu" else x.astype(np.int64)
    rounded = (whole > EXACT_INTEGERS) | (whole < -EXACT_INTEGERS)
    if x.dtype.kind in "mM":
        rounded &= ~np.isnat(x)
    return np.where(rounded, whole & whole.dtype.type(_LOW), np.nan) if rounded.any() else None


def type_of(x: Array) -> str:
    """Kind of an array's entries; size, unit and fields where these are not the usual ones."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    if kind in "mM":
        return x.dtype.str[1:]
    if x.dtype.names:
        return f"{kind} {', '.join(x.dtype.names)}"
    return kind if _USUAL_SIZE.get(kind, size) == size else f"{kind}{size}"


def _encode_container(x: Any, path: str, leaves: dict[str, float], above: tuple[int, ...]) -> str:
    x = drained(x)
    kind, x = (x.kind, x.items) if isinstance(x, Drained) else (type(x).__name__, _plain(x))
    if isinstance(x, Mapping):
        leaves[f"{path}.len"] = len(x)
        items = enumerate(x.items())
        return f"{kind}{{{','.join(_encode_item(i, kv, path, leaves, above) for i, kv in items)}}}"
    if isinstance(x, Sequence):
        leaves[f"{path}.len"] = len(x)
        return kind + _summary([encode(v, f"{path}[{i}]", leaves, above) for i, v in enumerate(x)])
    leaves[path] = category(_ADDRESS.sub("0x", repr(x)))
    inner = [f"{k}:{encode(v, f'{path}.{k}', leaves, above)}" for k, v in _attributes(x)]
    if hasattr(x, "__array__") and not isinstance(x, type):
        inner.append(encode(np.asarray(x), f"{path}.array", leaves, above))
    return f"object {kind}" + (f"{{{','.join(inner)}}}" if inner else "")


def _encode_item(
    i: int, item: tuple[Any, Any], path: str, leaves: dict[str, float], above: tuple[int, ...]
) -> str:
    """A key and its value. A key that holds a fraction may be noisy, so it is a value itself."""
    key, name = item[0], repr(item[0])
    if any(not float(found.group()).is_integer() for found in _NUMBER.finditer(name)):
        name = f"key {i}"
        encode(key, f"{path}.{name}", leaves, above)
    return f"{name}:{encode(item[1], f'{path}[{name}]', leaves, above)}"


def _plain(x: Any) -> Any:
    """What an object of a known kind holds, as arrays, mappings and sequences."""
    if hasattr(x, "to_dict") and hasattr(x, "dtypes") and hasattr(x, "index"):
        return _of_pandas(x)  # without importing it
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}
    if isinstance(x, set | frozenset):
        return sorted(x, key=repr)
    if isinstance(x, MappingView):
        return list(x)  # type: ignore[call-overload]
    return x


def _of_pandas(x: Any) -> dict[str, Any]:
    kinds = [str(kind) for kind in np.atleast_1d(np.asarray(x.dtypes, dtype=object))]
    named = list(getattr(x, "columns", ())), getattr(x, "name", None), dict(x.attrs)
    return {"index": list(x.index), "values": x.to_numpy(), "kind": repr((kinds, *named))}


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
