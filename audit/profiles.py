"""Profiles: the three occasions on which an audit runs, as named settings.

``ci`` is the default: the seed is pinned, so unchanged code gives the same record, and the betting
test ends a case as soon as it is refuted. ``quick`` plays a tenth of the trials, for a look while
writing code; it cannot become a baseline. ``nightly`` plays ten times the trials on a fresh seed,
which the record keeps so that the run can be replayed, and adds what shows that the audit itself
works: known-broken controls, null tests and planted twins.

A profile changes what the configuration or the defaults say. What the command line or the
environment says stays as it is.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click
import msgspec
from click.core import ParameterSource

from audit.cases import Asked, requests_for
from audit.config import CaseConfig
from audit.errors import UsageError
from audit.plan import FEWEST_TRIALS, Request
from audit.registry import catalogue
from audit.selftest import self_tests

CI = "ci"
_SEED_BITS = 53
"""As many as every JSON reader keeps exactly."""


@dataclass(frozen=True)
class Profile:
    """Named settings.

    Attributes:
        factor: What numbers of trials are multiplied by.
        fresh: Whether the seed is drawn anew.
        tested: Whether controls, null tests and planted twins are added.
    """

    factor: float = 1.0
    fresh: bool = False
    tested: bool = False

    def trials(self, number: int) -> int:
        """A number of trials under this profile; one that is too small anyway stays."""
        if number < FEWEST_TRIALS or self.factor == 1:
            return number
        return max(FEWEST_TRIALS, round(number * self.factor))

    def case(self, config: CaseConfig) -> CaseConfig:
        """A configured case with its own number of trials changed."""
        return msgspec.structs.replace(config, trials=self.trials(config.trials))


PROFILES = {CI: Profile(), "quick": Profile(0.1), "nightly": Profile(10.0, fresh=True, tested=True)}


def settle(ctx: click.Context) -> set[str]:
    """Apply the chosen profile to the parameters of a command.

    Returns:
        The names of the parameters that now have their value from the profile.

    Raises:
        UsageError: For a fresh seed where several runs must share one.
    """
    profile, changed = PROFILES[ctx.params["profile"]], set()
    if profile.factor != 1 and not _given(ctx, "trials"):
        ctx.params["trials"] = profile.trials(ctx.params["trials"])
        changed.add("trials")
    if profile.fresh and not _given(ctx, "seed"):
        for name in ("shard", "resume"):
            if ctx.params[name]:
                raise UsageError(
                    f"--profile {ctx.params['profile']} draws a fresh seed, but --{name} needs "
                    "that of the other runs: give --seed"
                )
        ctx.params["seed"] = secrets.randbits(_SEED_BITS)
        changed.add("seed")
        seed = ctx.params["seed"]
        click.echo(f"fresh seed {seed}: --seed {seed} plays the same again", err=True)
    return changed


def _given(ctx: click.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def with_tests(requests: Sequence[Request], name: str, *, trials: int, seed: int) -> list[Request]:
    """The requests, and under a profile that tests the audit itself, what tests it.

    Args:
        requests: What was asked for.
        name: The profile.
        trials: Budget per case.
        seed: Seed of the run.
    """
    if not PROFILES[name].tested:
        return list(requests)

    def settings(request: Request) -> tuple[str, ...]:
        budget = request.trials or trials
        return ("--profile", name, "--trials", str(budget), "--seed", str(seed))

    subjects = [request for request in requests if request.role == "subject"]
    made = [
        replace(test, command=_command(request, settings(request)))
        for request in subjects
        for test in self_tests(request)
    ]
    return [*requests, *made, *_controls({request.name for request in requests})]


def _command(request: Request, settings: Sequence[str]) -> str:
    word = request.word or request.target
    return shlex.join(["python", "-m", "audit", "run", word, *request.options, *settings])


def _controls(known: set[str]) -> list[Request]:
    names = [
        name
        for name, entry in catalogue().items()
        if entry.reference and entry.role == "control" and name not in known
    ]
    return [
        request for name in names for request in requests_for(Asked(CaseConfig(target=name)))[0]
    ]
