"""Whatever a user can mistype ends in one line on stderr, exit code 2, and no file."""

from pathlib import Path

import pytest

from tests.cli.console import GIVEN, audit, run, target

NOISY = (target("noisy"), *GIVEN)
LAPLACE = "calibration/laplace"

REFUSED = {
    "unknown word": (("nonsense",), "catalogue name, module:attr"),
    "misspelt name": (("calibration/laplase",), "did you mean calibration/laplace"),
    "pattern without match": (("zzz*",), "catalogue name, module:attr"),
    "no such module": (("no_such_module:f", *GIVEN), "No module named 'no_such_module'"),
    "no such attribute": ((target("missing"), *GIVEN), "no attribute 'missing'"),
    "no such twin": (("algorithms.broken:missing",), "no attribute 'missing'"),
    "no module": ((":noisy", *GIVEN), "module:attr"),
    "no attribute": (("tests.data.targets:", *GIVEN), "module:attr"),
    "a number as target": ((target("number"), *GIVEN), "got int"),
    "too many arguments": ((target("four_arguments"), *GIVEN), "f(data, rng)"),
    "class that fails": ((target("CannotBeBuilt"), *GIVEN), "ValueError: no way"),
    "no claim": ((target("noisy"), "--pair", "0", "1"), "give --claim"),
    "no pairs": ((target("noisy"), "--claim", "eps=1"), "give --pair"),
    "claim without number": ((*NOISY, "--claim", "eps"), "name=number"),
    "claim of unknown name": ((*NOISY, "--claim", "foo=1"), "got foo"),
    "negative claim": ((*NOISY, "--claim", "eps=-1"), "epsilon > 0"),
    "NaN claim": ((*NOISY, "--claim", "eps=nan"), "finite epsilon"),
    "delta of 1": ((*NOISY, "--claim", "eps=1,delta=1"), "delta < 1"),
    "pair not JSON": ((target("noisy"), "--claim", "eps=1", "--pair", "{", "1"), "expected JSON"),
    "pair file missing": ((*NOISY, "--pair", "@no.json", "1"), "no.json: cannot read"),
    "unknown view": ((*NOISY, "--view", "colours"), "view 'colours'"),
    "unknown relation": ((*NOISY, "--relation", "cousins"), "replace-one, add-remove, declared"),
    "no neighbours": ((*NOISY, "--relation", "replace-one"), "exactly one record"),
    "unknown attack": ((*NOISY, "--attack", "magic"), "attack 'magic'"),
    "no number": ((*NOISY, "--trials", "many"), "'many' is not a valid integer"),
    "too few trials": ((*NOISY, "--trials", "199"), "at least 200"),
    "alpha of 0": ((*NOISY, "--alpha", "0"), "probability in (0, 0.5)"),
    "alpha of 0.5": ((*NOISY, "--alpha", "0.5"), "probability in (0, 0.5)"),
    "alpha NaN": ((*NOISY, "--alpha", "nan"), "probability in (0, 0.5)"),
    "negative seed": ((*NOISY, "--seed", "-1"), "integer >= 0"),
    "equal inputs": (
        (target("noisy"), "--claim", "eps=1", "--pair", "[0, 1]", "[0, 1]"),
        "two inputs that differ",
    ),
    "a file for a module": (("mine.py:noisy", *GIVEN), "did you mean mine:noisy?"),
    "a file alone": (("./mine.py", *GIVEN), "did you mean mine:FUNCTION?"),
    "a builtin": (("builtins:max", *GIVEN), "cannot see what it takes"),
    "a constant": ((target("constant"), *GIVEN), "it takes nothing and returned int"),
    "an async function": ((target("later"), *GIVEN), "asyncio.run"),
    "no jobs": ((*NOISY, "--jobs", "0"), "jobs 0"),
    "unknown backend": ((*NOISY, "--backend", "magic"), "backend 'magic'"),
    "unknown format": ((*NOISY, "-f", "pdf"), "text, json, markdown"),
    "unknown option": ((*NOISY, "--fast"), "No such option '--fast'"),
    "no baseline": ((*NOISY, "--baseline", "no.json"), "no.json: cannot read"),
    "no configuration": ((*NOISY, "--config", "no.toml"), "no.toml: cannot read"),
    "same case twice": ((LAPLACE, LAPLACE), "unique names"),
    "columns without data": ((LAPLACE, "--context", "age"), "give --data"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_run_refuses(name):
    words, expected = REFUSED[name]
    outcome = run(*words)
    assert outcome.code == 2
    assert outcome.out == ""
    assert expected in outcome.complaint
    assert not Path("out").exists()


@pytest.mark.parametrize(("text", "got"), [("[tool.audits]", "[tool.audits]"), ("[tool]", "none")])
def test_a_file_without_its_table_does_not_audit_something_else(text, got, tmp_path):
    """The reference set would be green."""
    (tmp_path / "gate.toml").write_text(text)
    outcome = run("--config", "gate.toml")
    assert outcome.code == 2
    assert f"expected a table [tool.audit], got {got}" in outcome.complaint


@pytest.mark.parametrize(
    "source", ['raise ValueError("at import")', "def f(:", "import sys\nsys.exit(0)"]
)
def test_a_module_that_cannot_be_imported_is_refused(source, tmp_path):
    module = f"unusable_{abs(hash(source))}"
    Path(f"{module}.py").write_text(source + "\n")
    outcome = run(f"{module}:f", *GIVEN)
    assert outcome.code == 2
    assert "cannot import it" in outcome.complaint


OTHERS = {
    "unknown command": (("walk",), "No such command 'walk'"),
    "unknown option": (("--fast",), "No such option '--fast'"),
    "report of nothing": (("report",), "Missing argument"),
    "report of a missing file": (("report", "no.json"), "no.json: cannot read the record"),
    "accept of a missing file": (("accept", "no.json"), "no.json: cannot read the record"),
    "unknown rule": (("explain", "DP999"), "expected one of DP001"),
    "unknown schema": (("schema", "novel"), "'novel' is not one of"),
    "check of nothing": (("check", "nonsense"), "catalogue name, module:attr"),
    "check of an unknown view": (("check", *NOISY, "--view", "colours"), "view 'colours'"),
    "selftest without claim": (("selftest", target("noisy")), "states no claim"),
    "selftest with few trials": (("selftest", LAPLACE, "--trials", "5"), "at least 200"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_commands_refuse(name):
    words, expected = OTHERS[name]
    outcome = audit(*words)
    assert outcome.code == 2
    assert expected in outcome.complaint


def test_a_pattern_without_match_is_refused_by_list():
    outcome = audit("list", "zzz*")
    assert outcome.code == 2
    assert outcome.complaint == "error: no catalogue name matches 'zzz*'"


DATA = {
    "missing file": (None, "cannot be read: no such file"),
    "empty file": (b"", "expected a header"),
    "no customers": (b"age,bought\n", "expected customers below the header"),
    "one customer": (b"age,bought\n3,0\n", "at least two customers"),
    "missing column": (b"a,bought\n1,1\n2,0\n", "no column 'age'"),
    "semicolons": (b"age;bought\n1;1\n", "Separate the columns by commas"),
    "text": (b"age,bought\nyoung,1\n3,0\n", "got 'young'"),
    "blank": (b"age,bought\n,1\n3,0\n", "got a blank"),
    "out of bounds": (b"age,bought\n300,1\n3,0\n", "outside the declared bounds"),
    "infinite": (b"age,bought\ninf,1\n3,0\n", "finite number"),
    "short row": (b"age,bought\n1\n3,0\n", "expected 2 cells"),
    "not text": (b"\xff\xfe\x00", "expected UTF-8"),
}


@pytest.mark.parametrize("name", DATA)
def test_unusable_data_are_refused(name):
    content, expected = DATA[name]
    if content is not None:
        Path("mine.csv").write_bytes(content)
    columns = ("--context", "age", "--outcome", "bought", "--bounds", "age=0:100,bought=0:1")
    outcome = run("pricing/private-cov", "--data", "mine.csv", *columns)
    assert outcome.code == 2
    assert expected in outcome.complaint
    assert "mine.csv" in outcome.complaint or "customer" in outcome.complaint
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((), "--data needs --context, --outcome, --bounds"),
        (("--context", "age", "--outcome", "bought"), "--data needs --bounds"),
        (("--context", "age", "--outcome", "bought", "--bounds", "age"), "column=low:high"),
        (("--context", "age", "--outcome", "bought", "--bounds", "age=0:x"), "column=low:high"),
        (("--context", "age", "--outcome", "bought", "--bounds", "age=0:9"), "no public bounds"),
        (
            ("--context", "age", "--outcome", "bought", "--bounds", "age=9:0,bought=0:1"),
            "low < high",
        ),
        (
            ("--context", "age", "--outcome", "age", "--bounds", "age=0:9"),
            "two roles",
        ),
    ],
)
def test_incomplete_data_options_are_refused(columns, expected):
    Path("mine.csv").write_text("age,bought\n1,1\n3,0\n")
    outcome = run("pricing/private-cov", "--data", "mine.csv", *columns)
    assert outcome.code == 2
    assert expected in outcome.complaint
    assert not Path("out").exists()


CASE = f'[[tool.audit.case]]\ntarget = "{target("noisy")}"\nclaim = "eps=1"\n'
CONFIGS = {
    "no TOML": ("[tool.audit", "expected TOML"),
    "no table": ("tool = 3", "expected a table"),
    "no tool.audit table": ("[tool]\naudit = 3", "Expected `object`"),
    "unknown key": ("[tool.audit]\nspeed = 1", "unknown field `speed`"),
    "wrong type": ('[tool.audit]\ntrials = "many"', "`tool.audit.trials`"),
    "case without target": ("[[tool.audit.case]]\nname = 'x'", "required field `target`"),
    "half a pair": (CASE + "pairs = [[0.0]]", "length 2"),
    "unknown role": (CASE + "pairs = [[0.0, 1.0]]\nrole = 'boss'", "got 'boss'"),
    "too few trials": (CASE + "pairs = [[0.0, 1.0]]\ntrials = 5", "at least 200"),
    "negative trials": (CASE + "pairs = [[0.0, 1.0]]\ntrials = -5", "at least 200"),
    "missing baseline": ("[tool.audit]\nbaseline = 'no.json'", "no.json: cannot read"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_unusable_configurations_are_refused(name):
    text, expected = CONFIGS[name]
    Path("mine.toml").write_text(text + "\n")
    outcome = audit("run", "--config", "mine.toml", "--jobs", 1, "--out", "out")
    assert outcome.code == 2
    assert expected in outcome.complaint
    assert not Path("out").exists()


@pytest.mark.parametrize("option", ["--out", "-f"])
def test_a_path_below_a_file_is_refused(option):
    Path("file").write_text("")
    value = "file/below" if option == "--out" else "text=file/below"
    outcome = audit("run", *NOISY, "--trials", 400, "--jobs", 1, option, value)
    assert outcome.code == 2
    assert "file" in outcome.err.splitlines()[-1]
