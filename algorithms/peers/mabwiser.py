"""MABWiser: bandits that promise no privacy, as positive controls.

Claim: none of the library's. The claim here is one that a user might wish for; an audit that sees
anything at all must refute it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algorithms.peers.support import needed
from audit.claim import PureDp
from audit.onebyone import OneByOne
from audit.pair import Pair

_ROUNDS = 8
_KNOWN = (0.5, 0.4)


@dataclass
class Bandit:
    """Two arms, one customer at a time, starting from one public observation per arm.

    Attributes:
        rule: Name of a learning policy.
        options: Its parameters.
        seed: Seed of the library's own generator.
    """

    rule: str
    options: dict[str, float]
    seed: int
    mab: Any = field(init=False)

    def __post_init__(self) -> None:
        library = needed("mabwiser.mab", "mabwiser")
        rule = getattr(library.LearningPolicy, self.rule)(**self.options)
        self.mab = library.MAB([0, 1], rule, seed=self.seed)
        self.mab.fit([0, 1], list(_KNOWN))

    def act(self) -> int:
        """The arm for the next customer."""
        return int(self.mab.predict())

    def observe(self, action: int, outcome: float) -> None:
        """Learn the reward of that arm."""
        self.mab.partial_fit([action], [outcome])


@dataclass(frozen=True)
class Maker:
    """Makes bandits from a seed; unlike a closure it can be pickled."""

    rule: str
    options: dict[str, float]

    def __call__(self, seed: int) -> Bandit:
        """A fresh bandit."""
        return Bandit(self.rule, self.options, seed)


def bandit(rule: str, wish: float, **options: float) -> OneByOne:
    """A bandit that is wished to be `wish`-DP in what later customers see of it.

    Args:
        rule: ``UCB1``, ``EpsilonGreedy`` or ``Softmax``.
        wish: The epsilon that is wished for.
        **options: Parameters of the rule.
    """
    claim = PureDp(
        epsilon=wish,
        view="actions_after",
        relation="replace-one",
        source="a wish: MABWiser promises no privacy",
    )
    rewards = np.zeros((_ROUNDS, 2))
    first = rewards.copy()
    first[0] = 1.0
    pair = Pair({"outcomes": first}, {"outcomes": rewards}, "first reward 1 or 0", "replace-one")
    return OneByOne(Maker(rule, options), promised=claim, inputs=(pair,))
