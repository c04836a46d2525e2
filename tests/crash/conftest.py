from pathlib import Path

import pytest

from tests.cli.console import audit
from tests.crash.runs import LONG, digest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Every test runs in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Digest of the run when nothing happens to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("whole"))
        assert audit(*LONG, "--jobs", 1).code == 0
        assert Path("out/record.json").exists()
        return digest()
