"""A fork bomb with a limit: ``bomb.py FILE MOST WHEN``; a policy that is fine until WHEN.

Every process writes its id to FILE, leaves the group, and forks itself again, until there were
MOST of them; those that are left sleep.
"""

import json
import os
import sys
import time
from pathlib import Path


def explode(file: Path, most: int) -> None:
    """Fork again and again; half of the processes leave the group."""
    while True:
        with file.open("a") as log:
            log.write(f"{os.getpid()}\n")
        if len(file.read_text().split()) >= most:
            break
        if os.fork() == 0 and os.getpid() % 2:
            os.setsid()
        time.sleep(0.002)
    time.sleep(1000)


def light(file: Path, most: int) -> None:
    """Start a bomb, and wait until it has grown to a quarter, however busy the machine is."""
    if os.fork() == 0:
        explode(file, most)
    while not file.exists() or len(file.read_text().split()) < most // 4:
        time.sleep(0.01)


def main() -> None:
    file, most, when = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["type"] == when:
            light(file, most)
        kind = {"hello": "hello", "data": "ok", "run": "outputs"}.get(ask["type"])
        if kind is None:
            return
        outputs = {"outputs": [0.0] * ask["n"]} if kind == "outputs" else {}
        print(json.dumps({"id": ask["id"], "type": kind, **outputs}), flush=True)


def forks_much(data, rng):
    """As a target of ``--isolate``: most of it happens on one side."""
    if data > 0.5 and not Path("pids").exists():
        light(Path("pids"), 60)
    return rng.laplace()


if __name__ == "__main__":
    main()
