"""What the commands around an audit do: check, list, explain, selftest, and the settings of run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import click

from audit import rules
from audit.cases import Asked, parse_pair, requests_for
from audit.config import CaseConfig
from audit.engine import run as play
from audit.errors import UsageError
from audit.limits import Limits
from audit.plan import Settings, make_plan
from audit.progress import progress_of
from audit.registry import attack_names, catalogue, matching, resolve
from audit.selftest import as_it_must, outcome, selftest_requests
from audit.workers import Workers


def show_settings(ctx: click.Context, from_profile: Collection[str] = ()) -> None:
    """Print every setting and where it came from."""
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        label = source.name.lower().replace("_", " ") if source else "default"
        label = "profile" if name in from_profile else label
        click.echo(f"{name} = {value!r} ({'file' if label == 'default map' else label})")


def check(
    target: str, *, claim: str, view: str, pairs: Any, column: str, seed: int, **apart: Any
) -> int:
    """Print one line per check; 0 when all pass, 1 otherwise."""
    from audit.contract import check_mechanism

    given = [parse_pair(left, right) for left, right in pairs]
    config = CaseConfig(target=target, claim=claim, view=view, pairs=given, column=column)
    limits = Limits(apart["isolate"], apart["memory_limit"], apart["time_limit"])
    request = requests_for(Asked(config, "--claim", limits=limits))[0][0]
    shown = request.pairs or tuple(request.mechanism.pairs())
    lines = check_mechanism(request.mechanism, shown, request.claim, request.view, seed)
    for line in lines:
        click.echo(f"{'ok  ' if line.passed else 'FAIL'}  {line.name:<14} {line.message}")
    return 0 if all(line.passed for line in lines) else 1


def list_catalogue(pattern: str) -> None:
    """Print the names that match a pattern."""
    names = matching(pattern)
    for name in names:
        entry = catalogue()[name]
        mark = "*" if entry.reference else " "
        click.echo(f"{mark} {name:<34} {entry.role:<14} {entry.summary}")
    click.echo("\n* in the reference set\nattacks: " + ", ".join(attack_names()))
    if not names:
        raise UsageError(f"no catalogue name matches {pattern!r}")


def explain(topic: str) -> None:
    """Print the page of a rule or of a mechanism."""
    entry = catalogue().get(topic)
    if entry is None:
        click.echo(rules.explain(topic), nl=False)
        return
    mechanism: Any = resolve(topic)
    lines = [f"{topic}: {entry.summary}", f"role: {entry.role}", f"built by: {entry.target}"]
    lines += [f"parameters: {dict(entry.parameters)}", f"claim: {mechanism.claim}"]
    if mechanism.claim is not None:
        lines.append(f"view: {entry.view or mechanism.claim.view}; {mechanism.claim.relation}")
        lines.append(f"source: {mechanism.claim.source}")
    lines += [f"pair: {pair.label}" for pair in mechanism.pairs()]
    lines.append("\n" + (type(mechanism).__doc__ or "").strip())
    click.echo("\n".join(lines))


def selftest(targets: Sequence[str], *, trials: int, alpha: float, seed: int, jobs: int) -> int:
    """Null tests and planted twins; 0 when both come out as they must, 3 otherwise."""
    settings = Settings(trials=trials, alpha=alpha, seed=seed)
    plan, cases = make_plan(selftest_requests(targets), settings)
    with progress_of(cases) as progress:
        record = play(plan, cases, Workers(jobs=jobs, progress=progress))
    failures = 0
    for result in record.results:
        good = as_it_must(result)
        failures += not good
        click.echo(f"{'ok  ' if good else 'FAIL'}  {result.name:<44} {outcome(result)}")
    click.echo(f"wrong with probability at most {alpha:g} for the null tests together")
    return 3 if failures else 0
