"""A command that answers ``run`` with what its data say, for tests of values; and a policy."""

import json
import sys
import time


def outputs(ask, data):
    """The data's own ``outputs``, n of them; ``seed`` and ``raised`` where the data say so."""
    if data.get("seed"):
        return {"outputs": [ask["seed"]] * ask["n"]}
    if "stderr" in data:
        print("x" * data["stderr"], file=sys.stderr, flush=True)
    time.sleep(data.get("seconds", 0))
    output = json.loads(data["text"]) if "text" in data else data["output"]
    found = {"outputs": [output] * ask["n"]}
    return found | ({"raised": data["raised"]} if "raised" in data else {})


def policy_hello(kind):
    column = "prices" if kind == "prices" else "actions"
    return {"type": "hello", "kind": "policy", "column": column, "view": f"{column}_all"}


def answer(ask, state):
    kind = sys.argv[1] if len(sys.argv) > 1 else "batch"
    if ask["type"] == "hello":
        return {"type": "hello"} if kind == "batch" else policy_hello(kind)
    if ask["type"] == "data":
        state["data"] = ask["data"]
        state["given"] = state.get("given", 0) + 1
    elif ask["type"] == "run" and kind == "batch":
        return {"type": "outputs", **outputs(ask, state["data"])}
    elif ask["type"] == "run":
        state.update(n=ask["n"], seen=[0.0] * ask["n"])
    elif ask["type"] == "act":
        bonus = ask["context"] or 0
        wrong = {"no arm": 7, "half an arm": 0.5}.get(kind)
        return {"type": "actions", "actions": [wrong or x + bonus for x in state["seen"]]}
    elif ask["type"] == "observe":
        state["seen"] = ask["outcomes"]
    return {"type": "ok"}


def main():
    state = {}
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["type"] == "bye":
            return
        print(json.dumps({"id": ask["id"], **answer(ask, state)}), flush=True)


if __name__ == "__main__":
    main()
