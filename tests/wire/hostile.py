"""Commands that misbehave: ``hostile.py NAME FILE``; every process writes its id to FILE.

Each does at ``hello`` or at ``run`` what its name says; all else it does as it should.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

OK_HELLO = {"type": "hello", "claim": "eps=1", "pairs": [[0, 1]]}


def say(text):
    os.write(1, text.encode() if isinstance(text, str) else text)


def reply(ask, **fields):
    say(json.dumps({"id": ask["id"], **fields}) + "\n")


def outputs(ask, values):
    reply(ask, type="outputs", outputs=values)


def note_process():
    with Path(sys.argv[2]).open("a") as file:
        file.write(f"{os.getpid()}\n")


def sleep(*_):
    time.sleep(1000)


def grandchild(*, leave):
    if os.fork() == 0:
        if leave:
            os.setsid()
            if os.fork():
                os._exit(0)
        note_process()
        time.sleep(1000)


def parent_of(ask, *, leave, stay):
    grandchild(leave=leave)
    while len(Path(sys.argv[2]).read_text().split()) < 2:  # until it has noted itself
        time.sleep(0.01)
    if stay:
        time.sleep(1000)
    os._exit(4)


def endless(piece):
    while True:
        say(piece)


def drip(ask):
    while True:
        say(" ")
        time.sleep(0.02)


def deaf(ask):
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    time.sleep(1000)


def noisy_stderr(ask):
    for _ in range(500):
        os.write(2, b"x" * 65536)
    os.write(2, b"\nlast words\n")
    os._exit(7)


def close_stdout(ask):
    os.close(1)
    time.sleep(1000)


def twice(ask):
    outputs(ask, [0.0] * ask["n"])
    outputs(ask, [0.0] * ask["n"])


def torn(ask):
    say(f'{{"type": "outputs", "id": {ask["id"]}, "outp')
    os._exit(0)


AT_RUN = {
    "kills itself": lambda ask: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda ask: os.kill(os.getpid(), signal.SIGSEGV),
    "exits": lambda ask: os._exit(3),
    "sleeps": sleep,
    "stops itself": lambda ask: os.kill(os.getpid(), signal.SIGSTOP),
    "ignores signals": deaf,
    "closes stdout": close_stdout,
    "drips": drip,
    "endless line": lambda ask: endless(b"x" * 65536),
    "floods": lambda ask: endless('{"type": "ok", "id": 0}\n' * 1000),
    "invalid UTF-8": lambda ask: say(b'{"type": "\xff\xfe"}\n'),
    "no JSON": lambda ask: say("Loading model ...\n"),
    "empty line": lambda ask: say("\n"),
    "a list": lambda ask: say("[1, 2]\n"),
    "lower-case nan": lambda ask: say('{"type": "outputs", "id": 1, "outputs": [nan]}\n'),
    "deep nesting": lambda ask: say("[" * 100_000 + "]" * 100_000 + "\n"),
    "same key twice": lambda ask: say('{"type": "ok", "id": 1, "id": 2}\n'),
    "unknown field": lambda ask: reply(ask, type="outputs", outputs=[0], output=[]),
    "unknown type": lambda ask: reply(ask, type="views"),
    "outputs no list": lambda ask: outputs(ask, 3),
    "other reply": lambda ask: reply(ask, type="ok"),
    "other id": lambda ask: outputs({"id": ask["id"] + 1}, [0.0] * ask["n"]),
    "answers twice": twice,
    "too few": lambda ask: outputs(ask, [0.0] * (ask["n"] - 1)),
    "too many": lambda ask: outputs(ask, [0.0] * (ask["n"] + 1)),
    "raised nobody": lambda ask: reply(
        ask, type="outputs", outputs=[0.0] * ask["n"], raised={"999": {"kind": "ValueError"}}
    ),
    "torn answer": torn,
    "says error": lambda ask: reply(ask, type="error", message="out of licences"),
    "floods stderr": noisy_stderr,
    "grandchild holds stdout": lambda ask: parent_of(ask, leave=False, stay=False),
    "grandchild and sleeps": lambda ask: parent_of(ask, leave=False, stay=True),
    "daemon holds stdout": lambda ask: parent_of(ask, leave=True, stay=False),
    "daemon and sleeps": lambda ask: parent_of(ask, leave=True, stay=True),
}
AT_HELLO = {
    "hello exits": lambda ask: os._exit(3),
    "hello sleeps": sleep,
    "hello garbage": lambda ask: say("Welcome to R version 4.3\n"),
    "hello version": lambda ask: reply(ask, **OK_HELLO, version=2),
    "hello claim": lambda ask: reply(ask, **{**OK_HELLO, "claim": "eps=-1"}),
    "hello relation": lambda ask: reply(ask, **OK_HELLO, relation="cousins"),
    "hello kind": lambda ask: reply(ask, **OK_HELLO, kind="stream"),
    "hello pairs": lambda ask: reply(ask, **{**OK_HELLO, "pairs": [[1, 2, 3]]}),
}


def main():
    note_process()
    print("started", file=sys.stderr, flush=True)
    name = sys.argv[1]
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["type"] == "hello":
            AT_HELLO.get(name, lambda ask: reply(ask, **OK_HELLO))(ask)
        elif ask["type"] == "data":
            if name == "reads no data":
                sleep()
            reply(ask, type="ok")
        elif ask["type"] == "run":
            AT_RUN.get(name, lambda ask: outputs(ask, [0.0] * ask["n"]))(ask)
        else:
            return


if __name__ == "__main__":
    main()
