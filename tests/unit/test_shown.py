"""What a policy showed before it raised is part of its trial."""

import numpy as np
import pytest

import audit
from audit.mechanism import Played, play
from audit.view import part_of, project


class Leaving:
    """Serves two customers; `where` raises in the third round."""

    def __init__(self, where=""):
        self.where, self.served = where, 0

    def start(self, n, rng):
        self.served = 0

    def act(self, context):
        if (self.where, self.served) == ("act", 2):
            raise ValueError("stock is 7")
        return float(self.served)

    def observe(self, outcome):
        self.served += 1
        if (self.where, self.served) == ("observe", 3):
            raise ValueError("stock is 7")


@pytest.mark.parametrize("kind", [audit.OneByOne, Played])
@pytest.mark.parametrize(
    ("where", "shown"), [("act", [0, 1, np.nan, np.nan]), ("observe", [0, 1, 2, np.nan])]
)
def test_what_a_policy_showed_before_it_raised_is_seen(kind, where, shown):
    """And what the exception told is told to the customers of its round."""
    data = {"outcomes": np.ones(4)}
    views = play(kind(lambda: Leaving(where)), data, 3, np.random.default_rng(0))
    assert set(views.form) == {"raised ValueError"}
    np.testing.assert_array_equal(views["actions"], np.tile(shown, (3, 1)))
    stock = part_of("actions", ".raised.message.number[0]")
    np.testing.assert_array_equal(views[stock][0], [np.nan, np.nan, 7, np.nan])
    assert np.nanmax(project(views, "actions_after", (1,))[stock]) == 7
    assert np.isnan(project(views, "actions_after", (2,))[stock]).all()


def test_a_policy_that_cannot_be_built_raises_in_every_round_there_is():
    for rounds in (0, 2):
        data = {"outcomes": np.ones(rounds)}
        views = play(audit.OneByOne(lambda: 1 / 0), data, 3, np.random.default_rng(0))
        assert set(views.form) == {"raised ZeroDivisionError"}
        assert views["actions"].shape == (3, rounds)
        assert np.isnan(views["actions"]).all()


def test_a_leak_before_an_exception_is_found():
    """Power on a fixed seed, no false alarm to state."""

    class Tells:
        def __init__(self, rng):
            self.heard, self.lucky = [0.0], rng.random() < 0.1

        def act(self):
            if len(self.heard) == 3 and not self.lucky:
                raise ValueError("out of stock")
            return 0.0 if self.lucky else self.heard[-1]

        def observe(self, outcome):
            self.heard.append(outcome)

    pair = audit.Pair({"outcomes": [1.0, 0.0, 0.0]}, {"outcomes": [0.0, 0.0, 0.0]})
    claim = audit.PureDp(epsilon=1.0, view="actions_after")
    result = audit.examine(audit.OneByOne(Tells), claim=claim, pairs=[pair], trials=1000)
    assert result.verdict == "refuted"
