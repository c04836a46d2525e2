"""From what a user typed to requests for cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from audit.attack import Attack
from audit.claim import RELATIONS, AnyClaim
from audit.claim_text import parse_claim
from audit.config import CaseConfig
from audit.domain import parse_domain
from audit.errors import UsageError
from audit.group import in_groups
from audit.limits import Limits
from audit.mechanism import Mechanism, capability
from audit.pair import Pair
from audit.plan import Request
from audit.record import Finding, Role
from audit.registry import battery, catalogue, matching, proposer, resolve
from audit.rounds import column_of
from audit.sweep import suffix, words
from audit.table import Table, customer_pairs

ROLES: tuple[Role, ...] = ("subject", "control", "informational")


@dataclass(frozen=True)
class Asked:
    """One target with everything given for it.

    Attributes:
        config: Target, claim, view, pairs and so on.
        origin: Where the claim was given.
        table: A user's own data.
        options: Command-line words that reproduce what is not in the target itself.
        parameters: Parameters of the target that a sweep sets.
        limits: How commands and isolated targets are kept apart.
    """

    config: CaseConfig
    origin: str = ""
    table: Table | None = None
    options: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


def reference_names() -> list[str]:
    """The catalogue entries that a run without arguments audits."""
    return [name for name, entry in catalogue().items() if entry.reference]


def select(words: Sequence[str], configured: Sequence[CaseConfig]) -> list[CaseConfig]:
    """The cases that the words of a command line name.

    Args:
        words: Case names, catalogue names or patterns, or ``module:attr``; none for all.
        configured: Cases of the configuration file.
    """
    if not words:
        return list(configured) or [CaseConfig(target=name) for name in reference_names()]
    by_name = {case.name or case.target: case for case in configured}
    chosen: list[CaseConfig] = []
    for word in words:
        if word in by_name:
            chosen.append(by_name[word])
        elif "*" in word and matching(word):
            chosen.extend(CaseConfig(target=name) for name in matching(word))
        else:
            chosen.append(CaseConfig(target=word))
    return chosen


def requests_for(asked: Asked) -> tuple[list[Request], list[Finding]]:
    """The requests of one target: one, or two when two sources claim different things.

    Raises:
        UsageError: For a missing claim, an unknown role, or unusable pairs.
    """
    config = asked.config
    entry = catalogue().get(config.target)
    given = _given_claim(asked)
    pairs = _given_pairs(config)
    mechanism = resolve(
        config.target,
        given,
        pairs,
        column=config.column or column_of(config.view),
        parameters=asked.parameters,
        limits=asked.limits,
    )
    if asked.table is not None:
        mechanism, pairs = _on_table(mechanism, asked.table, pairs)
    own = mechanism.claim
    if given is None and own is None:
        raise UsageError(f"target {config.target!r} states no claim; give --claim 'eps=1'")
    claims = _claims(given, own)
    word = config.name or config.target
    name = word + suffix(asked.parameters)
    role = _role(config.role or (entry.role if entry else "subject"), name)
    made = [
        Request(
            name=name if i == 0 else f"{name} (its own claim)",
            target=config.target,
            mechanism=mechanism,
            claim=claim,
            attacks=_attacks(config),
            pairs=pairs,
            role=role,
            view=config.view or (entry.view if entry else ""),
            options=(*asked.options, *words(asked.parameters)),
            trials=config.trials,
            word=word,
            siblings=len(claims),
            parameters=asked.parameters,
            domain=None if config.domain is None else parse_domain(config.domain),
            proposer=proposer(),
            column=config.column,
        )
        for i, claim in enumerate(claims)
    ]
    notes = _differing(made, asked)
    return (
        [_of_group(request, config.group) for request in made] if config.group > 1 else made
    ), notes


def _of_group(request: Request, records: int) -> Request:
    """The request about a group of records instead of one."""
    claim = request.claim.group(records)
    mechanism, pairs = in_groups(request.mechanism, claim, request.pairs, records)
    return replace(request, mechanism=mechanism, claim=claim, pairs=pairs, group=records)


def _given_claim(asked: Asked) -> AnyClaim | None:
    config = asked.config
    if not config.claim:
        return None
    context = {"source": asked.origin or "given"}
    if config.view:
        context["view"] = config.view
    if config.relation:
        context["relation"] = config.relation
    return parse_claim(config.claim, **context)


def _claims(given: AnyClaim | None, own: AnyClaim | None) -> list[AnyClaim]:
    """The given claim first, then the mechanism's own when it says something else."""
    if given is None or own is None:
        return [claim for claim in (given, own) if claim is not None]
    placed = msgspec.structs.replace(
        given,
        view=given.view if given.view != "output" else own.view,
        relation=given.relation if given.relation != "declared" else own.relation,
        unit=own.unit,
    )
    if placed.same_promise(own):
        return [placed]
    return [placed, own]


def _differing(made: Sequence[Request], asked: Asked) -> list[Finding]:
    if len(made) < 2:
        return []
    message = (
        f"{asked.origin or 'the given claim'} says {made[0].claim}, the mechanism says "
        f"{made[1].claim} ({made[1].claim.source or 'no source'}); both are audited"
    )
    return [Finding(rule="DP003", case=made[0].name, message=message)]


def _given_pairs(config: CaseConfig) -> tuple[Pair, ...]:
    relation = config.relation or "declared"
    if relation not in RELATIONS:
        raise UsageError(f"relation {relation!r}: expected one of {', '.join(RELATIONS)}")
    if config.group < 1:
        raise UsageError(f"group: expected at least 1 changed record, got {config.group}")
    return tuple(
        Pair(left, right, f"given {i + 1}", relation, records=config.group)
        for i, (left, right) in enumerate(config.pairs)
    )


def _on_table(
    mechanism: Mechanism, table: Table, pairs: tuple[Pair, ...]
) -> tuple[Mechanism, tuple[Pair, ...]]:
    """The mechanism on a user's own customers."""
    fitted = capability(mechanism, "with_table")
    if fitted is not None:
        return fitted(table), pairs
    return mechanism, pairs or tuple(customer_pairs(table))


def _attacks(config: CaseConfig) -> tuple[Attack, ...]:
    return battery(config.attacks or None)


def _role(role: str, name: str) -> Role:
    for known in ROLES:
        if role == known:
            return known
    raise UsageError(f"case {name!r}: expected a role in {', '.join(ROLES)}; got {role!r}")


def parse_pair(left: str, right: str) -> tuple[Any, Any]:
    """Two inputs from JSON text, or from ``@FILE.json``.

    Raises:
        UsageError: When either is not JSON.
    """
    return read_json(left, "--pair"), read_json(right, "--pair")


def read_json(text: str, source: str) -> Any:
    """What JSON text, or a file ``@FILE.json``, holds.

    Args:
        text: As typed.
        source: Where it was typed.

    Raises:
        UsageError: When it is no JSON.
    """
    if text.startswith("@"):
        source = text[1:]
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:  # no such file, no UTF-8, no name of a file
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"{source}: cannot read the JSON: {why}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no JSONDecodeError
        raise UsageError(
            f"{source}: expected JSON such as 0.0 or [0, 1]; got {text[:60]!r}: {error}"
        ) from None


def with_flags(case: CaseConfig, **flags: Any) -> CaseConfig:
    """The case with the command line's flags, which win over the file."""
    given = {name: value for name, value in flags.items() if value}
    return msgspec.structs.replace(case, **given)
