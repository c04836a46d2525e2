"""The JSON report: the record itself."""

from __future__ import annotations

import msgspec

from audit.record import Record


def render_json(record: Record, *, width: int, color: bool) -> str:  # noqa: ARG001
    """The record as indented JSON, the same characters that `audit.record.write_record` writes.

    Numbers are finite: JSON has no word for the others, and the encoder writes them as null.
    """
    return msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n"
