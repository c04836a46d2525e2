"""The JSON report: the record itself."""

from __future__ import annotations

from audit.record import Record, encode


def render_json(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as JSON, the same characters that `audit.record.write_record` writes.

    Numbers are finite: JSON has no word for the others, and the encoder writes them as null.
    """
    return encode(record).decode()
