import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Every test runs in a folder of its own, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("TRIALS", "ALPHA", "SEED", "JOBS", "OUT"):
        monkeypatch.delenv(f"AUDIT_RUN_{name}", raising=False)
    return tmp_path
