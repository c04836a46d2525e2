"""What is left of a process tree: everything that carries its mark in its environment."""

import time
from pathlib import Path

MARK = b"DPAUDIT_CHILD="
HAS_PROC = Path("/proc/self/environ").exists()


def alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def carrying(word):
    """Ids of running processes with that text in their environment."""
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if word in place.read_bytes() and alive(place.parent.name):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def none_left(find, seconds=30.0):
    """Whether `find` comes to find nothing; killed processes take a moment, more on a busy machine.

    What is really left sleeps far longer than this.
    """
    deadline = time.monotonic() + seconds
    while find() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not find()
