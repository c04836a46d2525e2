"""What is fuzzed: parsers in this process, and whole commands on mutated files.

A target takes a mutated input and plays it. It returns where the input is good, raises one of the
documented errors (`REFUSALS`) where it is not, and anything else is a find.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from audit import blocklog, wire
from audit.baseline import accept, compare, read_baseline, state_of, write_baseline
from audit.cases import Asked, parse_pair, read_json, requests_for
from audit.claim_text import parse_claim
from audit.config import read_config
from audit.documents import merge
from audit.domain import parse_domain
from audit.errors import AuditError
from audit.limits import Limits
from audit.plan import Settings, make_plan
from audit.record import Record, encode, read_record
from audit.scores import read_scores
from audit.shard import parse_shard
from audit.sweep import steps_of
from audit.table import parse_bounds, read_table
from tests.fuzz import commands, conversation
from tests.fuzz.mutate import as_json, as_toml, foreign, mutated_bytes, mutated_document

REFUSALS = (AuditError, commands.RefusedError)
DATA = Path(__file__).parents[1] / "data"
CONFIG = {
    "trials": 400,
    "alpha": 0.01,
    "seed": 3,
    "jobs": 1,
    "out": "elsewhere",
    "early-stop": False,
    "threats": ["bits"],
    "memory-limit": "512M",
    "time-limit": 20.0,
    "profile": "ci",
    "case": [
        {
            "target": "tests.data.targets:noisy",
            "name": "mine",
            "claim": "eps=1,delta=1e-6",
            "pairs": [[[0.5], [1.0]], [[1, 2], [1, 3]]],
            "relation": "replace-one",
            "view": "output",
            "role": "control",
            "trials": 300,
            "attacks": ["leaf"],
            "group": 1,
        },
        {
            "target": "tests.data.targets:noisy_block",
            "claim": "mu=0.5",
            "domain": {"bounds": [0, 1], "sizes": [0, 6], "dimension": 2, "relation": "both"},
        },
    ],
}
SCORES = "in,score\n" + "".join(f"{i % 2},{(i * 7919) % 101 / 50 - 1}\n" for i in range(60))
CUSTOMERS = "age,price,bought\n" + "".join(f"{20 + i},{i / 10},{i % 2}\n" for i in range(6))
WORDS = (
    "eps=1,delta=1e-6",
    "order=8,eps=1",
    "age=0:100,price=0:2",
    "epsilon=0.1:4:3",
    "1/3",
    "[0]",
)
BLOCKS = (30, 8)


@dataclass(frozen=True)
class Target:
    """A parser or command.

    Attributes:
        make: Input number and generator to a mutated input.
        play: What is done with it; the folder is the current one, and empty.
        weight: Share of the inputs.
    """

    make: Callable[[Random], bytes]
    play: Callable[[bytes], object]
    weight: int


def documents(seeds: Callable[[], list[Any]], spell: Callable[[Any], bytes] = as_json) -> Any:
    """Mutated documents: three in four by structure, the rest by bytes, some by both."""

    def make(rng: Random) -> bytes:
        document = rng.choice(seeds())
        how = rng.randrange(8)
        try:
            data = spell(mutated_document(document, rng) if how < 6 else document)
        except AttributeError:  # no table is left to be spelled
            data = as_json(foreign(rng))
        return mutated_bytes(data, rng) if how > 4 else data

    return make


def texts(*seeds: str) -> Callable[[Random], bytes]:
    """Mutated bytes."""
    return lambda rng: mutated_bytes(rng.choice(seeds).encode(), rng)


@cache
def small_records() -> list[Any]:
    """A record of two cases, a partial one, and a shard."""
    whole = commands.small_record()
    shard = msgspec.structs.replace(whole.plan, shard=(1, 2))
    found = [whole, msgspec.structs.replace(whole, plan=shard)]
    return [json.loads(encode(record)) for record in found]


@cache
def small_baselines() -> list[Any]:
    """The baseline of the small record."""
    record = msgspec.convert(small_records()[0], Record)
    return [json.loads(msgspec.json.encode(accept(record, {"*": "known"}, "2100-01-01")))]


def pins() -> list[Any]:
    """Pins of targets that can be imported, with and without an event."""
    claim = {"kind": "pure", "epsilon": 1.0, "view": "output"}
    pair = {"label": "given", "relation": "declared", "left": 0.0, "right": 1.0}
    pin = {"schema_version": 1, "name": "p", "target": "tests.data.targets:noisy", "claim": claim}
    pin |= {"view": "output", "attack": "leaf", "expected": "refuted", "trials": 400, "pair": pair}
    event = {"kind": "leaf", "description": "value at least 0.5", "leaf": "value", "centre": 0.5}
    own = {**pin, "target": "tests.data.targets:Slip", "pair": {"label": "one apart", "own": True}}
    return [pin, {**pin, "event": event}, own]


def log_lines() -> list[Any]:
    """Lines of a block log."""
    line = {"plan": "p", "case": "c", "choice": "k", "bins": 3, "block": 0}
    return [{**line, "rows": [[0, 10, 5], [2, 5, 10]]}, {**line, "block": 1, "rows": [[1, 4, 4]]}]


def written(name: str, play: Callable[[Path], object]) -> Callable[[bytes], object]:
    """`play` on a file that holds the input."""

    def on_file(data: bytes) -> object:
        path = Path(name)
        path.write_bytes(data)
        return play(path)

    return on_file


def play_config(path: Path) -> None:
    """Read, resolve, plan, and write the plan down."""
    config = read_config(path)
    defaults = config.defaults()
    names = ("trials", "alpha", "seed", "early_stop")
    given = {name: defaults[name] for name in names if name in defaults}
    settings = Settings(**given, threats=tuple(defaults.get("threats", ())))
    limits = Limits(memory=defaults.get("memory_limit", "4G"))
    requests = [r for case in config.case for r in requests_for(Asked(case, limits=limits))[0]]
    plan, _ = make_plan(requests, settings)
    msgspec.json.decode(msgspec.json.encode(plan), type=type(plan))


def play_record(path: Path) -> None:
    """Read, merge, and write again; what is written is read as the same."""
    record = read_record(path)
    path.write_bytes(encode(merge([record])))
    assert read_record(path) == record


def play_judged(path: Path) -> None:
    """Compare a record with itself, and accept it."""
    record = read_record(path)
    encode(compare(record, state_of(record)))
    write_baseline(accept(record, {"*": "why"}), Path("baseline.json"))


def play_baseline(path: Path) -> None:
    """Compare a record with a baseline."""
    encode(compare(msgspec.convert(small_records()[0], Record), read_baseline(path)))


def play_log(data: bytes) -> None:
    """No line of a log counts unless it fits the plan's block."""
    path = Path("blocks.jsonl")
    path.write_bytes(data)
    case = msgspec.convert(small_records()[0], Record).plan.cases[0]
    planned = msgspec.structs.replace(case, name="c", blocks=BLOCKS)
    found = blocklog.BlockLog(path, "p", resume=True).blocks(planned, "k", 3)
    for block, counts in found.items():
        assert counts.shape == (2, 3)
        assert counts.min() >= 0
        assert counts.sum() == BLOCKS[block]


def play_words(data: bytes) -> None:
    """Every small language of the command line on the same text."""
    text = data.decode("utf-8", "surrogateescape")
    readers: tuple[Callable[[str], Any], ...] = (
        parse_claim,
        parse_bounds,
        parse_domain,
        parse_shard,
        steps_of,
        lambda t: parse_pair(t, t),
        lambda t: Limits(memory=t),
        lambda t: read_json(t, "--domain"),
    )
    good = 0
    for read in readers:
        try:
            read(text)
            good += 1
        except AuditError:
            continue
    if not good:
        raise AuditError("none of them")


def play_customers(path: Path) -> None:
    """Customers of a user."""
    bounds = {"age": (0.0, 100.0), "price": (0.0, 2.0), "bought": (0.0, 1.0)}
    read_table(path, context=["age"], outcome="bought", price="price", bounds=bounds)


def play_wire(data: bytes) -> None:
    """One reply."""
    try:
        wire.decode(data)
    except ValueError as error:
        raise AuditError(str(error)) from None


def answers(rng: Random) -> bytes:
    """A packed answer of an isolated process with some bytes changed."""
    return mutated_bytes(_packed(), rng)


_packed = cache(conversation.packed)


def replies() -> list[Any]:
    """Replies of every kind."""
    return [reply for kind in conversation.REPLIES.values() for reply in kind]


def _toml(table: dict[str, Any]) -> bytes:
    return as_toml({"tool": {"audit": table}})


def log_of(rng: Random) -> bytes:
    """Some mutated lines among good ones."""
    make = documents(log_lines)
    return b"\n".join([make(rng), *map(as_json, log_lines()), make(rng)])


assert tomllib.loads(_toml(CONFIG).decode())["tool"]["audit"] == CONFIG  # the seed is good itself

TARGETS: dict[str, Target] = {
    "wire": Target(documents(replies), play_wire, 200),
    "conversation": Target(conversation.make, conversation.play, 120),
    "words": Target(texts(*WORDS), play_words, 80),
    "log": Target(log_of, play_log, 80),
    "config": Target(documents(lambda: [CONFIG], _toml), written("c.toml", play_config), 120),
    "scores": Target(texts(SCORES), written("s.csv", read_scores), 80),
    "customers": Target(texts(CUSTOMERS), written("t.csv", play_customers), 80),
    "record": Target(documents(small_records), written("r.json", play_record), 120),
    "judged": Target(documents(small_records), written("r.json", play_judged), 60),
    "baseline": Target(documents(small_baselines), written("b.json", play_baseline), 40),
    "answer": Target(answers, conversation.play_isolated, 40),
}
TARGETS |= {
    f"command {name}": Target(make, play, weight)
    for name, make, play, weight in (
        ("words", documents(lambda: commands.LINES), commands.words, 15),
        ("run --config", documents(lambda: [CONFIG], _toml), commands.run_config, 15),
        ("score", texts(SCORES), commands.score, 10),
        ("report", documents(small_records), commands.report, 8),
        ("compare", documents(small_records), commands.compare, 15),
        ("accept", documents(small_records), commands.accept, 15),
        ("report --baseline", documents(small_baselines), commands.report_baseline, 10),
        ("run PIN", documents(pins), commands.run_pin, 10),
        ("pin", documents(small_records), commands.pin, 10),
        ("report -f html", documents(small_records), commands.report_html, 1),
    )
}


def chosen(names: tuple[str, ...]) -> Iterator[tuple[str, Target]]:
    """The named targets, or all."""
    yield from ((name, t) for name, t in TARGETS.items() if not names or name in names)
