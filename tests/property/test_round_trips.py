"""What is written is read as the same, bit for bit: records, baselines, configurations, claims."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.baseline import accept, read_baseline, write_baseline
from audit.claim import AnyClaim
from audit.claim_text import parse_claim
from audit.config import CaseConfig, Config, read_config
from audit.record import encode, read_record, write_record
from tests.fuzz.mutate import as_toml
from tests.property.test_curves import ALL, EXACT
from tests.records import KINDS, one, record_of

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
JSON = st.recursive(
    st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
CASES = st.builds(
    CaseConfig,
    target=WORDS,
    name=WORDS,
    claim=WORDS,
    pairs=st.lists(st.tuples(JSON, JSON), max_size=2),
    trials=st.integers(0, 2**60),
    attacks=st.lists(WORDS, max_size=2),
    domain=st.none() | st.dictionaries(NAMES, JSON, max_size=2),
)
CONFIGS = st.builds(
    Config,
    trials=st.none() | st.integers(0, 2**60),
    alpha=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    early_stop=st.none() | st.booleans(),
    threats=st.none() | st.lists(WORDS, max_size=2),
    out=st.none() | WORDS.filter(lambda text: "\0" not in text),
    case=st.lists(CASES, max_size=3),
)


@given(CONFIGS)
def test_configurations(config: Config) -> None:
    table = msgspec.to_builtins(config)
    table["case"] = [{k: v for k, v in case.items() if v is not None} for case in table["case"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "c.toml")
        path.write_bytes(as_toml({"tool": {"audit": table}}))
        assert msgspec.to_builtins(read_config(path)) == msgspec.to_builtins(config)


@settings(max_examples=12)
@given(
    st.lists(st.tuples(NAMES, EXACT, st.sampled_from(KINDS)), max_size=3, unique_by=lambda c: c[0]),
    WORDS,
    st.booleans(),
)
def test_records(cases: list, text: str, complete: bool) -> None:
    results = [
        one(name, claim, role, verdict, seed)
        for seed, (name, claim, (role, verdict)) in enumerate(cases)
        if claim.points()
    ]
    record = record_of(results, text, complete=complete)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.json")
        write_record(record, path)
        again = read_record(path)
        assert again == record
        assert again.digest() == record.digest()
        assert encode(again) == path.read_bytes()
        if complete:
            baseline = accept(record, {"*": "why"}, "2100-01-01")
            write_baseline(baseline, path)
            assert read_baseline(path) == baseline


@given(ALL)
def test_claims(claim: AnyClaim) -> None:
    assert msgspec.json.decode(msgspec.json.encode(claim), type=AnyClaim) == claim
    numbers = {k: v for k, v in msgspec.structs.asdict(claim).items() if isinstance(v, float)}
    text = ",".join(f"{name}={value!r}" for name, value in numbers.items() if value)
    assert parse_claim(text).same_promise(claim) or numbers.get("delta") == 0
