"""Pins: a counterexample that was found, as a small file that ``audit run`` plays again.

A pin is data: the name of the target, the claim, the pair and, where it is simple, the event.
Nothing in it is executed, but the target that it names is imported (or started, if it is a command)
as for any other word of a command line. So is the target that a record names when it is pinned.
Read pins and records of strangers before that; all other commands on records import nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from audit.claim import AnyClaim
from audit.errors import UsageError
from audit.event import Event
from audit.files import write_atomically
from audit.mechanism import Mechanism
from audit.pair import Pair
from audit.plan import Request, as_json
from audit.record import (
    SCHEMA_VERSION,
    CaseResult,
    Finding,
    PairSummary,
    PlannedCase,
    Record,
    Verdict,
    decode,
    read_record,
)
from audit.registry import battery, resolve
from audit.replay import Finished

SUFFIX = ".pin.json"
_LONGEST_NAME = 100
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


class PinnedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A pair in a file.

    Attributes:
        label: Its label; of a mechanism's own pair, where there are no inputs.
        relation: How the inputs are neighbours.
        records: How many records they may differ in.
        left: The left input.
        right: The right input.
        own: Whether the mechanism offers the pair itself.
    """

    label: str
    relation: str = "declared"
    records: int = 1
    left: Any = None
    right: Any = None
    own: bool = False


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One counterexample.

    Attributes:
        schema_version: Version of this document's layout.
        name: Name of the case.
        target: Catalogue name or ``module:attr``.
        column: Name of a policy's recorded actions.
        parameters: Parameters of the target that a sweep set.
        claim: The claim that was audited.
        view: The audited projection.
        pair: The pair.
        attack: The attack that found it, which is fitted again where there is no event.
        event: The event, where it is simple.
        trials: Budget of mechanism runs.
        expected: The verdict that was found.
    """

    schema_version: int = SCHEMA_VERSION
    name: str
    target: str
    claim: AnyClaim
    view: str
    pair: PinnedPair
    attack: str
    expected: Verdict
    trials: int
    column: str = ""
    parameters: dict[str, float] = {}
    event: Event | None = None


def pin(path: Path, name: str, out: Path) -> list[Path]:
    """Write a file for a case of a record, or for every refuted one.

    Args:
        path: The record.
        name: The case; empty for all refuted ones.
        out: Folder of the files.

    Raises:
        UsageError: For an unknown case, nothing to pin, or a pair that is no plain data.
    """
    record = read_record(path)
    results = [r for r in record.results if name in ("", r.name)]
    if not results:
        raise UsageError(f"case {name!r}: expected one of {', '.join(_names(record))}")
    found = [r for r in results if r.choice and r.verdict == "refuted"]
    if not found:
        raise UsageError(f"{path}: no refuted case to pin{f' called {name!r}' if name else ''}")
    pins = [_pin(r, record.planned(r.name)) for r in found]
    files = [out / f"{name}{SUFFIX}" for name in _file_names([made.name for made in pins])]
    for file, made in zip(files, pins, strict=True):
        document = msgspec.json.format(msgspec.json.encode(made), indent=2)
        write_atomically(file, document + b"\n")
    return files


def _names(record: Record) -> list[str]:
    return [result.name for result in record.results]


def _file_names(names: Sequence[str]) -> list[str]:
    """Names that stay in their folder, fit into any file system, and differ there.

    Windows and macOS do not tell capitals apart, and Windows keeps the names of its devices.
    """
    plain = [re.sub(r"[^A-Za-z0-9.=+-]+", "-", name).strip("-.") or "case" for name in names]
    plain = [f"case-{name}" if _DEVICES.match(name) else name for name in plain]
    folded = [name.lower() for name in plain]
    return [
        short
        if len(short) <= _LONGEST_NAME and folded.count(short.lower()) == 1
        else f"{short[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        for name, short in zip(names, plain, strict=True)
    ]


def _pin(result: CaseResult, planned: PlannedCase) -> Pin:
    choice = result.choice
    if choice is None:
        raise UsageError(f"case {result.name!r} has no attack to pin")
    return Pin(
        name=planned.name,
        target=planned.target,
        column=planned.column,
        parameters=planned.parameters,
        claim=planned.claim,
        view=planned.view,
        pair=_pinned_pair(choice.pair_of(planned), planned),
        attack=choice.attack,
        event=choice.simple,
        trials=planned.trials,
        expected=result.verdict,
    )


def _pinned_pair(pair: PairSummary, planned: PlannedCase) -> PinnedPair:
    """The pair by its label where it is the mechanism's own, else its inputs."""
    mechanism = _mechanism(planned.target, planned.claim, planned.column, planned.parameters)
    records = planned.group
    if _own(mechanism, pair.label, as_json_of=pair) is not None:
        return PinnedPair(label=pair.label, relation=pair.relation, records=records, own=True)
    try:
        left, right = json.loads(pair.left), json.loads(pair.right)
    except (ValueError, RecursionError):
        raise UsageError(
            f"case {planned.name!r}: its pair cannot be pinned, since its inputs are too large or "
            "no plain data; give --pair LEFT RIGHT as JSON"
        ) from None
    return PinnedPair(
        label=pair.label, relation=pair.relation, records=records, left=left, right=right
    )


def _own(mechanism: Mechanism, label: str, as_json_of: PairSummary | None = None) -> Pair | None:
    """The mechanism's own pair of that label, and of these inputs where they are known."""
    for pair in mechanism.pairs():
        named = (pair.label or f"differs at {pair.position}") == label
        given = as_json_of
        if named and (given is None or _starts_alike(as_json(pair.left), given.left)):
            return pair
    return None


def _starts_alike(shortened: str, text: str) -> bool:
    return text.startswith(shortened.removesuffix("…"))


def _mechanism(
    target: str, claim: AnyClaim, column: str, parameters: Mapping[str, float]
) -> Mechanism:
    return resolve(target, claim, column=column, parameters=parameters or None)


def pinned(words: Sequence[str]) -> tuple[list[tuple[Request, Verdict]], list[str]]:
    """The cases of the pin files among the words of a command line, and the other words."""
    files = [word for word in words if word.endswith(SUFFIX)]
    others = [word for word in words if not word.endswith(SUFFIX)]
    return [pinned_request(Path(word)) for word in files], others


def pinned_request(path: Path) -> tuple[Request, Verdict]:
    """The case of a pin file, and the verdict that was found.

    Raises:
        UsageError: When it is no pin, or its target or pair is gone.
    """
    found: Pin = decode(path, Pin, "pin")
    mechanism = _mechanism(found.target, found.claim, found.column, found.parameters)
    pair = _pair(mechanism, found.pair, path)
    request = Request(
        name=found.name,
        target=found.target,
        mechanism=mechanism,
        claim=found.claim,
        attacks=(Finished("pinned", found.event),) if found.event else battery([found.attack]),
        pairs=(pair,),
        view=found.view,
        trials=found.trials,
        word=str(path),
        group=found.pair.records,
        parameters=found.parameters,
        column=found.column,
    )
    return request, found.expected


def _pair(mechanism: Mechanism, pinned: PinnedPair, path: Path) -> Pair:
    if not pinned.own:
        return Pair(
            pinned.left, pinned.right, pinned.label, pinned.relation, records=pinned.records
        )
    own = _own(mechanism, pinned.label)
    if own is None:
        raise UsageError(f"{path}: the mechanism has no pair {pinned.label!r} any more; pin again")
    return own


def no_longer(record: Record, pins: Sequence[tuple[Request, Verdict]]) -> list[Finding]:
    """Findings about the pins, as `pinned` read them, that came out differently."""
    expected = {request.name: verdict for request, verdict in pins}
    return [
        Finding.about(
            record.planned(result.name),
            "DP008",
            f"pinned as {expected[result.name]}, now {result.verdict}",
        )
        for result in record.results
        if expected.get(result.name, result.verdict) != result.verdict
    ]
