"""Records of strangers are data: reading them imports nothing, starts nothing, leaves no folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from audit.record import encode
from tests.cli.console import audit
from tests.records import CLAIMS, one, record_of

MARK = "from pathlib import Path\nPath('imported').write_text('')\n"
COMMANDS = {
    "report": ("report", "r.json", "-f", "text", "-f", "markdown", "-f", "html", "-f", "junit"),
    "sarif": ("report", "r.json", "-f", "sarif", "-f", "github", "-f", "json"),
    "index": ("report", "r.json", "--index", "index.html"),
    "compare": ("compare", "r.json", "r.json"),
    "accept": ("accept", "r.json", "--reason", "why", "--baseline", "b.json"),
}
TARGETS = ("canary_module:f", "exec:touch imported", "../../../etc/passwd", "pickle:loads")


@pytest.fixture(params=TARGETS)
def folder(request, tmp_path, monkeypatch):
    """A folder with a module that leaves a mark, and a record that names a target."""
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    monkeypatch.syspath_prepend(str(inside))
    Path("canary_module.py").write_text(MARK)
    document = json.loads(encode(record_of([one("a", CLAIMS[0], "subject", "refuted")])))
    document["plan"]["cases"][0].update(target=request.param, name="../../" + request.param)
    document["results"][0]["name"] = "../../" + request.param
    Path("r.json").write_text(json.dumps(document))
    yield tmp_path
    sys.modules.pop("canary_module", None)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_on_records_runs_what_they_name(name, folder) -> None:
    assert audit(*COMMANDS[name]).code in (0, 1)
    assert "canary_module" not in sys.modules
    assert not Path("imported").exists()
    assert [p.name for p in folder.iterdir()] == ["inside"]
    assert {p.name for p in Path().iterdir()} <= {
        *("r.json", "canary_module.py", "index.html", "b.json"),
    }


def test_the_commands_that_do_say_so() -> None:
    for command in ("pin", "run"):
        assert "imports" in audit(command, "--help").out.lower()
    assert "pin only records that you trust" in " ".join(audit("pin", "--help").out.split())


def test_files_of_pins_stay_in_their_folder_and_differ() -> None:
    from audit.pins import _file_names

    names = ["../../escaped", "..", "a/b", "a-b", "x" * 5_000, "\0", "", "C:\\nul", "a\nb"]
    names += ["Case", "cAsE", "X" * 5_000, "nul", "AUX.txt", "com1", "console"]
    files = _file_names(names)
    assert len({file.lower() for file in files}) == len(files)  # as Windows and macOS see it
    assert files[-1] == "console"
    for file in files:
        assert Path(file).name == file
        assert not file.startswith(".")
        assert len(file) < 120
        assert file.partition(".")[0].lower() not in {"nul", "aux", "com1"}
