"""--isolate: a crash is an outcome of its trial; everything else is as without it."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from audit import read_record
from audit.child import close_all
from audit.errors import MechanismError, ProcessError
from audit.isolate import Answer, Spec, isolated
from audit.limits import Limits
from audit.mechanism import FunctionMechanism, play, play_singly
from audit.registry import resolve
from audit.view import Views
from tests.cli.console import GIVEN, audit, run, target
from tests.wire import targets
from tests.wire.processes import carrying, none_left

pytestmark = pytest.mark.skipif("sys.platform == 'win32'", reason="needs fork")
DENSITY = "algorithms.calibration:Laplace"
STREAM = '{"outcomes": [1, 0, 1]}', '{"outcomes": [0, 0, 1]}'


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Every test runs in a folder of its own, and leaves no process behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OF_THIS_TEST", str(tmp_path))
    yield tmp_path
    close_all()
    mark = f"OF_THIS_TEST={tmp_path}\0".encode()
    assert none_left(lambda: [pid for pid in carrying(b"DPAUDIT_CHILD=") if marked(pid, mark)])


def marked(pid, mark):
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def hostile(name):
    return f"tests.wire.targets:{name}"


def apart(name, **limits):
    return resolve(hostile(name), limits=Limits(isolate=True, **limits))


def digest():
    return read_record(Path("out/record.json")).digest()


WELL_BEHAVED = {
    "one trial": (target("noisy"), *GIVEN),
    "a block": (target("noisy_block"), *GIVEN),
    "refuted": (target("half_noise"), *GIVEN),
    "words": (target("word"), *GIVEN),
    "mapping": (target("mapping"), *GIVEN),
    "own claim and pairs": (target("Slip"),),
    "raises on one side": (target("raises_on_one_side"), *GIVEN),
    "raises always": (target("raises_always"), *GIVEN),
    "no axis": (target("wrong_axis"), *GIVEN),
    "changes its input": (target("changes_input"), "--claim", "eps=1", "--pair", "[0.0]", "[1.0]"),
    "shares a draw": (target("shared_draw"), *GIVEN),
    "anything": (hostile("mixed"), *GIVEN),
    "policy": (target("Average"), "--claim", "eps=1", "--pair", *STREAM, "--view", "actions_after"),
    "inputs of its own": (hostile("Boxed"), "--attack", "likelihood"),
    "half of the declared noise": (hostile("half_declared"), "--attack", "likelihood"),
    "exact density": (hostile("boxed_laplace"), "--attack", "likelihood"),
    "group": (target("noisy"), "--claim", "eps=1", "--pair", "0.0", "2.0", "--group", "2"),
    "without noise": (target("noisy_block"), *GIVEN, "--attack", "shift"),
    "sweep": (DENSITY, "--sweep", "epsilon=1:2:2", "--attack", "likelihood"),
}


SLOW = {"words", "mapping", "sweep", "group", "raises always", "shares a draw"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in WELL_BEHAVED]
)
def test_the_record_is_the_same_bit_for_bit(name):
    words = (*WELL_BEHAVED[name], "--attack", "leaf", "--attack", "form")
    plain, record = run(*words, trials=200).code, digest()
    assert run(*words, "--isolate", trials=200).code == plain
    assert digest() == record


@pytest.mark.slow
def test_the_record_does_not_depend_on_the_number_of_workers():
    words = (hostile("noisy_crash"), *GIVEN, "--isolate", "--no-early-stop", "--attack", "leaf")
    run(*words, trials=200)
    record = digest()
    run(*words, "--jobs", 2, trials=200)
    assert digest() == record
    get_reusable_executor().shutdown(wait=True)


ENDINGS = {
    "segfault": "process ended by SIGSEGV",
    "abort": "process ended by SIGABRT",
    "exits": "process ended by exit code 3",
    "exits_well": "process ended by exit code 0",
    "exits_block": "process ended by exit code 3",
    "kills_itself": "process ended by SIGKILL",
    "interrupts": "process ended by exit code 1",
    "leaves": "SystemExit",
    "hoards": "MemoryError",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_how_a_process_ends_is_an_outcome(name):
    right = play(apart(name), 1.0, 3, np.random.default_rng(0))
    assert set(right.form) == {f"raised {ENDINGS[name]}"}
    left = play(apart(name), 0.0, 3, np.random.default_rng(0))
    assert not any("raised" in form for form in left.form)


def test_a_play_without_noise_may_end_its_process():
    mechanism = apart("exits")
    shown = mechanism.quiet_play(0.0, 10)
    assert shown.views.matrix().tolist() == [[0.0]]
    assert shown.families == ()
    assert mechanism.quiet_play(1.0, 10) is None
    assert apart("noisy_crash").quiet_play(0.0, 0) is None  # a draw too many
    assert not any(
        "raised" in form for form in play(mechanism, 0.0, 3, np.random.default_rng(0)).form
    )


def test_a_crash_on_one_side_refutes():
    outcome = run(hostile("segfault"), *GIVEN, "--isolate", trials=200)
    assert outcome.code == 1
    (result,) = read_record(Path("out/record.json")).results
    assert result.exceptions == (0.0, 1.0)
    (note,) = [finding for finding in result.findings if finding.rule == "DP030"]
    assert "SIGSEGV" in note.message
    assert note.reproduce.endswith(" --isolate")


def test_a_crash_is_charged_to_the_trial_that_crashed():
    views = play(apart("noisy_crash"), 0.0, 60, np.random.default_rng(0))
    sound = play(
        FunctionMechanism(lambda data, rng: data + rng.laplace()), 0.0, 60, np.random.default_rng(0)
    )
    crashed = sound["value"] > 1.5
    assert 0 < crashed.sum() < 60
    assert np.array_equal(views.form == "raised process ended by exit code 9", crashed)
    assert np.array_equal(views["value"], np.where(crashed, np.nan, sound["value"]), equal_nan=True)


def test_a_block_that_crashes_is_played_singly():
    rng = np.random.default_rng(0)
    views = play(apart("noisy_crash_block"), 0.0, 60, rng)
    values = np.array([child.laplace() for child in np.random.default_rng(0).spawn(60)])
    crashed = values > 1.5
    assert 0 < crashed.sum() < 60
    assert np.array_equal(np.isnan(views["value"]), crashed)
    assert views["pair"].shape == (60, 2)
    assert np.array_equal(views["pair"][~crashed, 1], -values[~crashed])
    assert np.array_equal(views.form == "raised process ended by exit code 9", crashed)
    again = play_singly(apart("noisy_crash_block"), 0.0, 60, np.random.default_rng(0))
    assert np.array_equal(views.form, again.form)


def test_trials_played_singly_keep_the_order_of_their_columns():
    mine, theirs = resolve(hostile("two_columns")), apart("two_columns")
    one, other = (play_singly(m, 0.0, 5, np.random.default_rng(0)) for m in (mine, theirs))
    assert one.names == other.names == ("z", "a")
    assert np.array_equal(one.matrix(), other.matrix())
    assert list(one.form) == list(other.form)


def test_the_generator_is_left_where_the_target_left_it():
    first, second = (np.random.Generator(np.random.SFC64(5)) for _ in range(2))
    mine = resolve(target("noisy_block"))
    theirs = resolve(target("noisy_block"), limits=Limits(isolate=True))
    for _ in range(2):
        one, other = play(mine, 0.0, 7, first), play(theirs, 0.0, 7, second)
        assert np.array_equal(one["value"], other["value"])
    assert first.random() == second.random()
    assert first.spawn(1)[0].random() == second.spawn(1)[0].random()


@pytest.mark.parametrize("name", ["sleeps", "spins"])
def test_a_target_that_never_returns_is_an_error_in_time(name):
    with pytest.raises(ProcessError, match="time limit"):
        play(apart(name, seconds=3.0), 0.0, 1, np.random.default_rng(0))


@pytest.mark.parametrize("name", ["kills_supervisor", "kills_group"])
def test_a_target_that_kills_everything_is_an_error(name):
    with pytest.raises(ProcessError, match="SIGKILL"):
        play(apart(name), 0.0, 2, np.random.default_rng(0))


def test_a_target_that_closes_all_files_is_charged_for_it():
    views = play(apart("closes_everything"), 0.0, 2, np.random.default_rng(0))
    assert set(views.form) == {"raised process ended by exit code 1"}


@pytest.mark.parametrize("name", ["forks", "breeds", "prints"])
def test_what_else_a_target_does_is_not_heard(name):
    views = play(apart(name), 0.0, 4, np.random.default_rng(0))
    sound = play(resolve(target("noisy")), 0.0, 4, np.random.default_rng(0))
    assert np.array_equal(views["value"], sound["value"])


def test_hidden_state_is_not_reset_to_look_sound():
    for name in ("own_generator", "remembers"):
        run(target(name), *GIVEN, "--isolate", "--attack", "leaf", trials=400)
        (result,) = read_record(Path("out/record.json")).results
        assert "DP007" in {finding.rule for finding in result.findings}


@pytest.mark.parametrize(
    ("source", "code", "expected"),
    [
        ("import os; os._exit(4)", 3, "ended (exit code 4)"),
        ("import os; os.abort()", 3, "ended (SIGABRT)"),
        ("import sys; sys.exit(0)", 2, "cannot import it: SystemExit"),
        ("def f(:", 2, "cannot import it: SyntaxError"),
        ("import time; time.sleep(1000)", 3, "time limit"),
        ("class f:\n  claim = None\n  def pairs(self): 1/0\n  def run(self): 0", 3, "ZeroDivision"),
    ],
)
def test_an_import_that_goes_wrong(source, code, expected):
    Path("bad_import.py").write_text(source + "\n")
    seconds = 4 if "sleep" in source else 120
    outcome = run("bad_import:f", *GIVEN, "--isolate", "--time-limit", seconds)
    assert outcome.code == code
    assert expected in outcome.complaint
    assert not Path("out").exists()


@pytest.mark.slow
def test_a_late_target_is_an_error_of_its_case_only():
    words = (*GIVEN, "--isolate", "--time-limit", 10, "--attack", "leaf")
    outcome = run(hostile("sleeps"), target("noisy"), *words)
    assert outcome.code == 3
    verdicts = [result.verdict for result in read_record(Path("out/record.json")).results]
    assert verdicts == ["error", "unrefuted"]


REFUSED = {
    "memory without unit": (("--isolate", "--memory-limit", "12"), "such as 512M or 4G"),
    "memory of nothing": (("--isolate", "--memory-limit", "1K"), "at least 1M"),
    "no time": (("--isolate", "--time-limit", "0"), "seconds in"),
    "one run": (("--isolate", "--one-run", "--canaries", "10"), "no meaning here"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_limits_that_make_no_sense_are_refused(name):
    words, expected = REFUSED[name]
    given = GIVEN if name != "one run" else ()
    outcome = run(target("noisy" if given else "Slip"), *given, *words)
    assert outcome.code == 2
    assert expected in outcome.complaint
    assert not Path("out").exists()


def test_the_memory_limit_bounds_what_a_target_takes():
    Path("hungry.py").write_text(
        "def f(data, rng):\n    return float(len(bytearray(int(data) * 2**20)))\n"
    )
    small = resolve("hungry:f", limits=Limits(isolate=True, memory="256M"))
    forms = [play(small, size, 1, np.random.default_rng(0)).form[0] for size in (64, 512)]
    assert forms == ["float", "raised MemoryError"]


def test_check_works_on_isolated_targets():
    assert audit("check", target("noisy"), *GIVEN, "--isolate").code == 0
    outcome = audit("check", hostile("kills_group"), *GIVEN, "--isolate")
    assert outcome.code == 1
    assert "SIGKILL" in outcome.out


def test_the_configuration_can_isolate():
    Path("mine.toml").write_text(
        f'isolate = true\nmemory-limit = "2G"\ntime-limit = 60.0\n[[case]]\n'
        f'target = "{hostile("exits")}"\nclaim = "eps=1"\npairs = [[0.0, 1.0]]\n'
    )
    assert run("--config", "mine.toml", trials=200).code == 1
    assert run("--config", "mine.toml", "--show-settings").out.count("(file)") == 3


def test_answers_hold_no_pickles():
    views = Views(np.array(["a", "b\ud800", "a"], dtype=object), {"x": np.arange(3.0)})
    answer = Answer({"changed": False}, views, (np.eye(2),))
    again = Answer.unpack(answer.pack())
    assert again.header["changed"] is False
    assert list(again.views.form) == list(views.form)
    assert np.array_equal(again.views["x"], views["x"])
    assert np.array_equal(again.arrays[0], np.eye(2))
    with pytest.raises(ValueError, match="allow_pickle"):
        Answer.unpack(Answer({}, None, (np.array([{}], dtype=object),)).pack())


def test_an_isolated_mechanism_pickles_without_its_process():
    mechanism = pickle.loads(pickle.dumps(apart("exits")))
    assert play(mechanism, 0.0, 1, np.random.default_rng(0)).form[0] == "float"


def test_isolated_targets_are_never_imported_here():
    Path("unseen_here.py").write_text("def f(data, rng):\n    return data + rng.laplace()\n")
    mechanism = isolated(Spec("unseen_here:f", "", (), Limits(isolate=True)))
    play(mechanism, 0.0, 1, np.random.default_rng(0))
    with pytest.raises(ModuleNotFoundError):
        __import__("unseen_here")


def test_unknown_names_are_attribute_errors():
    assert not hasattr(apart("exits"), "canaries")
    assert targets.HELD == []
    with pytest.raises(MechanismError, match="leading axis"):
        play(
            resolve(target("wrong_axis"), limits=Limits(isolate=True)),
            0.0,
            2,
            np.random.default_rng(0),
        )
