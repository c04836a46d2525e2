"""Comma-separated files from users: read strictly, refused with file, row, column and remedy."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from audit.errors import UsageError

Rows = list[tuple[int, list[str]]]


def read_rows(path: Path) -> tuple[list[str], Rows]:
    """Header and non-empty rows of a UTF-8 file.

    Returns:
        The column names, and every row with its number in the file (the header is row 1).

    Raises:
        UsageError: When the file cannot be read, is not CSV, or a row does not fit the header.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [(i, row) for i, row in _numbered(path, csv.reader(file, strict=True)) if row]
    except UnicodeDecodeError as error:
        refuse(
            str(path),
            f"expected UTF-8 text, got byte 0x{error.object[error.start]:02x}. "
            "Save the file as 'CSV UTF-8'",
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        refuse(str(path), f"cannot be read: {reason}. Check the path and its permissions")
    if not rows or rows[0][0] != 1:
        refuse(str(path), "row 1: expected a header with the column names, got an empty line")
    header = [name.strip() for name in rows[0][1]]
    for i, row in rows[1:]:
        if len(row) != len(header):
            refuse(
                str(path),
                f"row {i}: expected {len(header)} cells as in the header, got {len(row)}. "
                "Quote cells that contain commas",
            )
    return header, rows[1:]


def locate(path: str, header: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Where the named columns are.

    Raises:
        UsageError: When one is missing or appears twice.
    """
    for name in columns:
        if header.count(name) > 1:
            refuse(path, f"row 1: column {name!r} appears {header.count(name)} times. Rename one")
        if name not in header:
            hint = "Separate the columns by commas" if ";" in header[0] else "Correct the name"
            refuse(path, f"row 1: no column {name!r}; there are {', '.join(header)}. {hint}")
    return {name: header.index(name) for name in columns}


def finite_number(path: str, row: int, name: str, cell: str) -> float:
    """The number in a cell.

    Raises:
        UsageError: When it is blank, no number, or not finite.
    """
    place, text = f"row {row}, column {name!r}", cell.strip()
    if not text:
        refuse(path, f"{place}: expected a number, got a blank. Fill it in or drop the row")
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        refuse(path, f"{place}: expected a finite number, got {text!r}. Correct or drop the row")
    return value


def refuse(path: str, problem: str) -> NoReturn:
    """Refuse a file.

    Raises:
        UsageError: Always, naming the file.
    """
    raise UsageError(f"{path}: {problem}")


def _numbered(path: Path, rows: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    i = 0
    while True:
        i += 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            refuse(str(path), f"row {i}: not valid CSV ({error}). Close its quotes")
        yield i, row
