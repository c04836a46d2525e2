"""Mutations of what a stranger may send: of the bytes, and of the document that they spell."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

NUMBERS = (
    *(0, 1, -1, 2, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30, -(10**19)),
    *(0.5, -0.0, 1e-320, 5e-324, 1e300, -1e308, 1.7976931348623157e308, 0.1 + 0.2),
)
TEXTS = (
    *("", " ", "\0", "a\nb", "NaN", "1e999", "../../../escaped", "/etc/passwd", "C:\\nul", "-f"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)"),
    *("{{ 7 * 7 }}", "%s%n", "\u202e\u0000", "\x1b[31m", "😀", "\ud800", "x" * 3_000, "٣", "1_0"),
    *("[bold", "eps=1", "eps=1e308", "mu=1e-300", "rho=1e9", "order=1,eps=1", "replace-one"),
    *("output", "prices_after", "DP001", "refuted", "one-run", "2026-02-30", "subject", "::error"),
    *("os:getcwd", "sys:exit", "exec:false", "builtins:print", "tests.data.targets:noisy"),
)
TOKENS = (
    *(text.encode("utf-8", "surrogatepass") for text in TEXTS),
    *(b"[", b"]" * 9, b"{", b"}", b'"', b",", b",,", b"\n", b"\r", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"null", b"NaN", b"Infinity", b"-", b"1e400", b"[" * 5_000, b"'''", b"#", b"=", b"0x", b";"),
)
Place = tuple[Any, ...]


def mutated_document(value: Any, rng: Random) -> Any:
    """A copy with one to four changes at random places."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(value))
        path = rng.choice(places)
        if not path:
            return foreign(rng)
        parent = _at(value, path[:-1])
        _change(parent, path[-1], value, places, rng)
    return value


def foreign(rng: Random, depth: int = 0) -> Any:
    """Any JSON value, from the awkward ones."""
    kind = rng.randrange(7 if depth < 3 else 5)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind < 4:
        return rng.choice(TEXTS)
    if kind == 4:
        return rng.choice((None, True, False, [], {}))
    inner = [foreign(rng, depth + 1) for _ in range(rng.randrange(4))]
    return inner if kind == 5 else {str(rng.choice(TEXTS)): x for x in inner}


def mutated_bytes(data: bytes, rng: Random) -> bytes:
    """The bytes with one to six changes."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        start = rng.randrange(len(data) + 1)
        stop = min(len(data), start + rng.choice((0, 1, 1, 2, 8, 64, 1000)))
        new = rng.choice((b"", rng.choice(TOKENS), rng.randbytes(2), data[start:stop] * 2))
        data = data[:start] + new + data[stop:]
    return data


def as_json(value: Any) -> bytes:
    """JSON; lone surrogates stay escaped."""
    return json.dumps(value).encode()


def as_toml(table: dict[str, Any]) -> bytes:
    """TOML, one key of the top table per line; what TOML cannot say is left out."""
    lines = [f"{_key(k)} = {_toml(v)}" for k, v in table.items() if _sayable(v)]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _places(value: Any, path: Place = ()) -> Any:
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, key))


def _at(value: Any, path: Place) -> Any:
    for key in path:
        value = value[key]
    return value


def _change(parent: Any, key: Any, whole: Any, places: list[Place], rng: Random) -> None:
    what, old = rng.randrange(8), parent[key]
    if what > 5 and isinstance(old, int | float):
        parent[key] = rng.choice((-old, old + 1, old * 2, old / 3, old * 1000, bool(old)))
    elif what > 5 and isinstance(old, str):
        parent[key] = rng.choice((old + rng.choice(TEXTS), old[1:], old.swapcase(), old * 3))
    elif what == 0:
        del parent[key]
    elif what == 1:
        parent[key] = copy.deepcopy(_at(whole, rng.choice(places[: len(places) // 2 + 1])))
    elif what == 2 and isinstance(parent, dict):
        parent[rng.choice(TEXTS)] = parent.pop(key)
    elif what == 3 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    else:
        parent[key] = foreign(rng)


def _sayable(value: Any) -> bool:
    return value is not None


def _key(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inner = (f"{_key(k)} = {_toml(v)}" for k, v in value.items() if _sayable(v))
        return "{" + ", ".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(v) for v in value if _sayable(v)) + "]"
    return _key(value) if isinstance(value, str) else json.dumps(value)
