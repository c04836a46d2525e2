"""Wheel and sdist: complete, and the installed wheel works by itself."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("audit", "algorithms", "attacks")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folder with wheel and sdist, built offline from a clean copy of the sources."""
    pytest.importorskip("hatchling")
    target = tmp_path_factory.mktemp("dist")
    script = (
        "import sys; from hatchling import build\n"
        "build.build_sdist(sys.argv[1]); build.build_wheel(sys.argv[1])"
    )
    subprocess.run(
        [sys.executable, "-c", script, target], cwd=ROOT, check=True, capture_output=True
    )
    return target


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


def sources(*suffixes):
    return {
        str(path.relative_to(ROOT))
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_code_templates_types_and_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert sources(".py", ".html", ".css", ".md") <= names
    assert {f"{package}/py.typed" for package in SOURCES} <= names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(SOURCES)


def test_the_sdist_holds_tests_and_documents_too(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert sources(".py", ".html", ".css") <= names
    assert {"README.md", "LICENSE", "CITATION.cff", "CHANGELOG.md", "pyproject.toml"} <= names
    assert "tests/packaging/test_distribution.py" in names
    assert not any("__pycache__" in name or name.startswith("audit-report") for name in names)


def test_the_metadata_are_complete(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
    text = archive.read(name).decode()
    for line in ("Name: dpaudit", "License-Expression: MIT", "Requires-Python: >=3.11"):
        assert f"{line}\n" in text
    assert "# dpaudit" in text
    points = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
    assert "[audit.mechanisms]" in points
    assert "[audit.attacks]" in points


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel installed without its dependencies, into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run(
        [sys.executable, *words, "--target", target, wheel], check=True, capture_output=True
    )
    return target


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--help",), "Audit the privacy of online decision-makers"),
        (("--version",), "dpaudit, version 0.1.0"),
        (("list", "calibration/*"), "calibration/laplace"),
        (("explain", "DP001"), "DP001: claim refuted"),
        (("run", "calibration/laplace", "--trials", "400", "--jobs", "1"), "None of 1 audited"),
    ],
)
def test_the_installed_wheel_works(words, expected, installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "OPENBLAS_NUM_THREADS": "1"}
    where = "import sys, audit; assert audit.__file__.startswith(sys.argv[1]), audit.__file__\n"
    run = "import runpy; sys.argv[0:2] = ['audit']; runpy.run_module('audit', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", where + run, str(installed), *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
