"""Workflows, snippets and the hook: they parse, and their audit commands exist."""

import re
import shlex

import click
import pytest
import yaml

from audit.cli import main
from tests.docs.readme import FILES, ROOT

FOUND = {
    "ci.yml": (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"),
    "hooks": (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"),
    **{name: text for name, text in FILES.items() if name.endswith(".yml")},
}


def strings(value):
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [str(value)]


def audits():
    texts = [text for document in FOUND.values() for text in strings(yaml.safe_load(document))]
    return [text for text in texts if text.startswith("python -m audit ")]


@pytest.mark.parametrize("command", audits())
def test_every_audit_command_parses(command):
    words = shlex.split(command)[3:]
    context = main.make_context("audit", words)
    with context:
        name, sub, rest = main.resolve_command(context, list(words))
        assert sub.make_context(name, rest, parent=context).params["formats"] is not None


def test_there_is_a_command_per_document():
    assert len(audits()) == 5
    with pytest.raises(click.ClickException):
        main.resolve_command(main.make_context("audit", ["runs"]), ["runs"])


def test_the_matrix_is_what_the_package_promises():
    workflow = yaml.safe_load(FOUND["ci.yml"])
    promised = re.findall(
        r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text()
    )
    test = workflow["jobs"]["test"]
    systems = ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert test["strategy"]["matrix"] == {"os": systems, "python": promised}
    assert test["runs-on"] == "${{ matrix.os }}"
    assert [step["run"] for step in test["steps"] if "run" in step and "if" not in step] == [
        "pip install -e '.[dev]'",
        "python -m pytest -n auto",
    ]


def test_steps_give_no_more_rights_than_they_need():
    workflow = yaml.safe_load(FOUND["ci.yml"])
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job.get("permissions", {}) for name, job in workflow["jobs"].items()}
    assert [name for name, given in rights.items() if "write" in given.values()] == ["audit"]


def test_the_hook_of_the_readme_is_offered():
    (hook,) = yaml.safe_load(FOUND["hooks"])
    snippet = yaml.safe_load(FOUND["pre-commit-config.yml"])
    assert [used["id"] for used in snippet["repos"][0]["hooks"]] == [hook["id"]]
    assert {"id", "name", "entry", "language"} <= set(hook)
