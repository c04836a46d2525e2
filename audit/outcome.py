"""What one trial ends in: an exception with all that it tells, or an output that shows itself."""

from __future__ import annotations

import itertools
from asyncio import CancelledError
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from audit.errors import ProcessError, UsageError

FAILURES = (Exception, SystemExit, GeneratorExit, CancelledError)
"""What counts as an outcome when user code raises it: ``sys.exit`` must not end the audit."""

NO_OUTCOME = (UsageError, ProcessError)
"""What does not: bad input, and a process apart that failed as a whole."""

MOST_ITEMS = 8192
"""Of one trial that are kept, whatever other trials emit."""

LAZY = (Coroutine, AsyncIterator, Iterator)
"""What a method may return whose code has not run."""
_ASYNC = (Coroutine, AsyncIterator)
_MOST_CAUSES = 8


@dataclass(frozen=True)
class Raised:
    """An exception that one trial ended in: an outcome like any other.

    Attributes:
        kind: Its type.
        message: Its text.
    """

    kind: str
    message: str = ""


@dataclass(frozen=True)
class Drained:
    """What an iterator gave, one item after the other.

    Attributes:
        kind: The iterator's type.
        items: What it gave; ends in `Raised` when it raised, and with "..." when it went on.
    """

    kind: str
    items: tuple[Any, ...]


def raised(error: BaseException) -> Raised:
    """An exception as a traceback shows it: its text and notes, and those of what led to it."""
    texts, seen = [_text(error)], {id(error)}
    cause = _cause(error)
    while cause is not None and id(cause) not in seen and len(seen) < _MOST_CAUSES:
        seen.add(id(cause))
        texts.append(f"{type(cause).__name__}: {_text(cause)}")
        cause = _cause(cause)
    return Raised(type(error).__name__, "\n".join(texts))


def _cause(error: BaseException) -> BaseException | None:
    hidden = error.__suppress_context__
    return error.__cause__ or (None if hidden else error.__context__)


def _text(error: BaseException) -> str:
    try:
        return "\n".join([str(error), *map(str, getattr(error, "__notes__", ()))])
    except Exception:  # noqa: BLE001  (user code)
        return ""


def plain(text: str) -> str:
    """A text that any file can hold: what is no UTF-8 is spelt out."""
    return text.encode(errors="backslashreplace").decode()


def drained(output: Any) -> Any:
    """The output; what it gives when it is an iterator, for only then does its code run."""
    if not isinstance(output, Iterator):
        return output
    items: list[Any] = []
    try:
        items += itertools.islice(output, MOST_ITEMS)
        items += ["..."] * (len(items) == MOST_ITEMS)
    except FAILURES as error:
        items.append(raised(error))
    return Drained(type(output).__name__, tuple(items))


def require_run(output: Any, name: str, kinds: tuple[type, ...] = _ASYNC) -> None:
    """An output whose code has not run is refused: what did not run cannot leak.

    Raises:
        UsageError: For a coroutine or an asynchronous generator, or one of `kinds`.
    """
    if isinstance(output, kinds):
        if isinstance(output, Coroutine):
            output.close()
        raise UsageError(
            f"{name}: expected an answer, got a {type(output).__name__}, whose code has not run. "
            "Wrap what is async or a generator, such as lambda data, rng: asyncio.run(f(data, rng))"
        )
