"""A pricing policy as a process of its own: prices at the noised average demand so far."""

import json
import random
import sys


class NoisyAverage:
    """Plays n trials side by side, each with the same seed's next draws."""

    def __init__(self, n, seed):
        self.random, self.total, self.rounds = random.Random(seed), [0.0] * n, 0

    def laplace(self):
        return 7.0 * (self.random.expovariate(1) - self.random.expovariate(1))

    def act(self):
        return [(total + self.laplace()) / max(1, self.rounds) for total in self.total]

    def observe(self, outcomes):
        self.total = [a + b for a, b in zip(self.total, outcomes, strict=True)]
        self.rounds += 1


HELLO = {
    "type": "hello",
    "kind": "policy",
    "name": "noisy average",
    "claim": "eps=1",
    "view": "prices_after",
    "column": "prices",
    "pairs": [[{"outcomes": [1, 0, 1, 1, 0, 1]}, {"outcomes": [0, 0, 1, 1, 0, 1]}]],
}


def answer(ask, policy):
    """The reply to one request, and the policy from now on."""
    if ask["type"] == "hello":
        return HELLO, policy
    if ask["type"] == "run":
        return {"type": "ok"}, NoisyAverage(ask["n"], int(ask["seed"]))
    if ask["type"] == "act":
        return {"type": "actions", "actions": policy.act()}, policy
    policy.observe(ask["outcomes"])
    return {"type": "ok"}, policy


def main():
    policy = None
    for line in sys.stdin:
        ask = json.loads(line)
        if ask["type"] == "bye":
            return
        reply, policy = answer(ask, policy)
        print(json.dumps({"id": ask["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
