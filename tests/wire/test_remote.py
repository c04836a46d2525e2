"""Commands in any language: examples, values, seeds, policies, records, the schema."""

import json
import math
import pickle
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from audit import read_record, wire
from audit.child import close_all
from audit.errors import ProcessError, UsageError
from audit.limits import Limits
from audit.mechanism import FunctionMechanism, Played, play
from audit.remote import remote
from audit.streams import Phase, Side, stream
from tests.cli.console import ROOT, audit, run
from tests.wire.processes import HAS_PROC, carrying, none_left

HERE = Path(__file__).parent
EXAMPLES = HERE / "examples"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close_all()


def command(*words):
    return "exec:" + shlex.join(map(str, words))


def python(name, *words):
    return command(sys.executable, HERE / name, *words)


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}")


def javascript(_folder):
    return command("node", EXAMPLES / "noisy.js")


def compiled(folder):
    program = folder / "noisy"
    source = EXAMPLES / "noisy.c"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", program, source, "-lm"], check=True)
    return command(program)


def policy(_folder):
    return command(sys.executable, EXAMPLES / "average.py")


@pytest.mark.parametrize(
    ("example", "code"),
    [
        pytest.param(javascript, 1, marks=needs("node")),
        pytest.param(compiled, 0, marks=needs("cc")),
        pytest.param(policy, 0),
    ],
)
def test_examples(example, code, tmp_path):
    # over seeds, the two that keep their claim would be refuted with probability at most 0.001
    words = (example(tmp_path), "--attack", "leaf")
    outcome = run(*words, trials=2000)
    assert outcome.code == code, outcome.out + outcome.err
    record = read_record(Path("out/record.json"))
    assert record.results[0].verdict == ("refuted" if code else "unrefuted")
    assert "(hello)" in record.results[0].claim.source
    again = run(*words, "--jobs", 2, trials=2000)
    assert again.code == code
    assert read_record(Path("out/record.json")).digest() == record.digest()


@needs("cc")
def test_the_c_example_draws_laplace_noise_from_its_seed(tmp_path):
    mechanism = remote(compiled(tmp_path), None, ())
    first, again, other = (
        play(mechanism, 0, 4000, np.random.default_rng(seed))["value"] for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.isin(first, other).any()
    # mean of |x| is 1 with standard error 1/sqrt(4000): out of 5 of them with probability < 1e-6
    assert abs(np.abs(first).mean() - 1) < 5 / math.sqrt(4000)


def played(output, n=3, **data):
    text = {"text": json.dumps(output)}  # not-a-number may be an output, but no input
    return play(remote(python("echo.py"), None, ()), {**text, **data}, n, rng())


def rng():
    return np.random.default_rng(0)


def as_python(output, n=3):
    return play(FunctionMechanism(lambda data, rng: output), None, n, rng())


VALUES = {
    "null": None,
    "true": True,
    "false": False,
    "number": 2.5,
    "empty string": "",
    "string": "täxt \u2028 \U0001f600",
    "lone surrogate": "\ud800",
    "empty list": [],
    "empty object": {},
    "ragged": [[1.0], [2.0, [3.0, None]], "x", [True]],
    "object": {"a": 1.0, "b": {"c": [0.5]}, "": None},
    "nan": math.nan,
    "infinities": [math.inf, -math.inf],
    "tiny": [5e-324, -0.0, 1.7976931348623157e308],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_become_views_as_those_of_python(name):
    theirs, ours = played(VALUES[name]), as_python(VALUES[name])
    assert list(theirs.form) == list(ours.form)
    assert theirs.names == ours.names
    assert np.array_equal(theirs.matrix(), ours.matrix(), equal_nan=True)
    assert np.array_equal(np.signbit(theirs.matrix()), np.signbit(ours.matrix()))


def test_all_values_have_views_of_their_own():
    seen = {(v.form[0], tuple(map(repr, v.matrix()[0]))) for v in map(played, VALUES.values())}
    assert len(seen) == len(VALUES)


@pytest.mark.parametrize(
    ("spelt", "number"),
    [({"float": "NaN"}, math.nan), ({"float": "Infinity"}, math.inf), (1, 1.0), (10**25, 1e25)],
)
def test_numbers_are_doubles_however_they_are_spelt(spelt, number):
    theirs, ours = played(spelt), as_python(number)
    assert list(theirs.form) == list(ours.form) == ["float"] * 3
    assert np.array_equal(theirs["value"], ours["value"], equal_nan=True)


@pytest.mark.parametrize("output", [{"float": 1.0}, {"float": "nan"}, {"float": None}])
def test_other_objects_stay_objects(output):
    assert played(output).form[0].startswith("dict")


def test_a_trial_that_raised_is_an_outcome():
    views = played(0.0, raised={"1": {"kind": "ValueError", "message": "no"}})
    assert list(views.form) == ["float", "raised ValueError", "float"]
    assert np.isfinite(views["value.message"][1])


def test_a_seed_is_all_64_bits_of_its_addressed_stream():
    mechanism = remote(python("echo.py"), None, ())
    at = stream(3, "case", Phase.TESTIFY, Side.LEFT, 5)
    (seed,) = mechanism.run({"seed": True}, 1, at)
    expected = stream(3, "case", Phase.TESTIFY, Side.LEFT, 5).integers(2**64, dtype=np.uint64)
    assert seed == str(expected)
    seeds = {int(mechanism.run({"seed": True}, 1, rng)[0]) for rng in rng().spawn(64)}
    assert len(seeds) == 64
    assert max(seeds) > 2**60


def test_much_on_stderr_does_not_block():
    assert played(1.0, stderr=10**6)["value"].tolist() == [1.0] * 3


def test_a_slow_command_has_its_time():
    slow = remote(python("echo.py"), None, (), limits=Limits(seconds=30.0))
    assert play(slow, {"output": 1.0, "seconds": 0.7}, 2, rng())["value"].tolist() == [1.0, 1.0]
    hasty = remote(python("echo.py"), None, (), limits=Limits(seconds=3.0))
    with pytest.raises(ProcessError, match="time limit"):
        play(hasty, {"output": 1.0, "seconds": 30.0}, 2, rng())


def test_data_that_are_no_json_are_refused():
    for data in ({"output": math.nan}, {"output": object()}, {"output": {1, 2}}):
        with pytest.raises(UsageError, match="finite numbers"):
            play(remote(python("echo.py"), None, ()), data, 2, rng())


def test_arrays_can_be_data():
    views = play(remote(python("echo.py"), None, ()), {"output": np.arange(3.0)}, 2, rng())
    assert views.form[0] == "list[3 x float]"


class Copycat:
    """What ``echo.py`` plays as a policy, in Python."""

    def __init__(self, kind):
        self.kind = kind

    def start(self, n, rng):
        self.seen = np.zeros(n)

    def act(self, context):
        return self.seen.astype(self.kind) + (context or 0)

    def observe(self, outcome):
        self.seen = outcome


@pytest.mark.parametrize(
    ("word", "kind", "data"),
    [
        ("prices", float, {"outcomes": [1, 0.5, 2], "contexts": [0, 1, 3]}),
        ("arms", int, {"outcomes": [[1, 0], [0, 1], [1, 1]]}),
    ],
)
def test_policies_play_as_those_in_python(word, kind, data):
    mechanism = remote(python("echo.py", word), None, ())
    theirs = play(mechanism, data, 4, rng())
    ours = play(Played(lambda: Copycat(kind), column=mechanism.column), data, 4, rng())
    assert list(theirs.form) == list(ours.form)
    assert np.array_equal(theirs[mechanism.column], ours[mechanism.column])


@pytest.mark.parametrize("word", ["no arm", "half an arm"])
def test_an_action_must_be_an_arm_where_arms_have_outcomes(word):
    mechanism = remote(python("echo.py", word), None, ())
    with pytest.raises(ProcessError, match="no arm of 0 to 1"):
        play(mechanism, {"outcomes": [[1, 0], [0, 1]]}, 2, rng())


def test_a_policy_needs_outcomes():
    with pytest.raises(UsageError, match="'outcomes'"):
        play(remote(python("echo.py", "prices"), None, ()), [1, 2], 2, rng())


def test_a_given_claim_is_about_the_stated_view():
    words = ("--claim", "eps=1", "--pair", '{"outcomes": [1, 0]}', '{"outcomes": [0, 0]}')
    outcome = run(python("echo.py", "prices"), *words, "--dry-run")
    assert outcome.code == 0
    assert "in view prices_all" in outcome.out


def test_a_command_pickles_without_its_process():
    mechanism = pickle.loads(pickle.dumps(remote(python("echo.py"), None, ())))
    assert play(mechanism, {"output": 1.0}, 2, rng())["value"].tolist() == [1.0, 1.0]


GIVEN = ("--claim", "eps=1", "--pair", '{"output": 0}', '{"output": 1}')


def test_exit_codes(tmp_path):
    hostile = python("hostile.py", "exits", tmp_path / "pids")
    codes = {
        "refuted": run(python("echo.py"), *GIVEN, trials=200).code,
        "no such program": run("exec:no-such-program", *GIVEN, "--out", "none").code,
        "swept": run(python("echo.py"), *GIVEN, "--sweep", "x=1:2", "--out", "none").code,
        "silent": run(command("true"), *GIVEN, "--out", "none").code,
        "dies in a run": run(hostile, "--out", "some").code,
    }
    assert codes == {
        "refuted": 1,
        "no such program": 2,
        "swept": 2,
        "silent": 3,
        "dies in a run": 3,
    }
    assert not Path("none").exists()
    (result,) = read_record(Path("some/record.json")).results
    assert result.verdict == "error"
    assert "exit code 3" in result.findings[0].message


def test_check_and_configuration_take_commands():
    assert audit("check", python("echo.py"), *GIVEN).code == 0
    pair = [{"output": 0}, {"output": 0, "seconds": 0}]  # both answer alike
    case = {"target": python("echo.py"), "claim": "eps=1", "pairs": [pair]}
    lines = [f"{name} = {json.dumps(value)}" for name, value in case.items()]
    text = "\n".join(lines).replace('": ', '" = ')
    Path("mine.toml").write_text(f"[[case]]\n{text}\n")
    outcome = run("--config", "mine.toml", trials=200)
    assert outcome.code in (0, 3), outcome.err
    assert read_record(Path("out/record.json")).results[0].epsilon_lower == 0


def test_the_committed_schema_is_the_printed_one():
    outcome = audit("schema", "wire")
    assert outcome.code == 0
    assert outcome.out == (ROOT / "audit" / "schema" / "wire.json").read_text()


REPLIES = [
    {"type": "hello", "id": 1, "claim": "eps=1", "pairs": [[0, 1]], "kind": "policy"},
    {"type": "ok", "id": 2},
    {"type": "outputs", "id": 3, "outputs": [None, {"float": "NaN"}], "raised": {}},
    {"type": "actions", "id": 4, "actions": [0, 1.5]},
    {"type": "error", "id": 5, "message": "out of licences"},
]
REQUESTS = [
    wire.AskHello(id=1),
    wire.Data(id=2, data=[0.5]),
    wire.Run(id=3, n=8, seed="18446744073709551615"),
    wire.Act(id=4),
    wire.Observe(id=5, outcomes=[0, 1]),
    wire.Bye(id=6),
]


def test_messages_follow_the_schema():
    schema = json.loads((ROOT / "audit" / "schema" / "wire.json").read_text())
    for request in REQUESTS:
        for reply in REPLIES:
            found = {"request": json.loads(wire.encode(request)), "reply": reply}
            jsonschema.validate(found, schema)
    for wrong in ({"type": "ok"}, {"type": "ok", "id": 1, "more": 2}, {"type": "outputs", "id": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"request": found["request"], "reply": wrong}, schema)
        with pytest.raises(ValueError, match="field"):
            wire.decode(json.dumps(wrong).encode())


def test_fields_keep_their_order_for_readers_without_a_json_library():
    line = wire.encode(wire.Run(id=3, n=8, seed="5"))
    assert line == b'{"type":"run","id":3,"n":8,"seed":"5"}\n'


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc to see what is left")
def test_children_end_with_the_last_answer():
    play(remote(python("echo.py"), None, ()), {"output": 1.0}, 2, rng())
    close_all()
    assert none_left(lambda: carrying(f"{Path.cwd()}".encode()))
