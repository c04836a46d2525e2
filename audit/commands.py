"""What the commands do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import click

from audit import baseline as baselines
from audit import pins, render
from audit.cases import Asked, parse_pair, read_json, requests_for, select, with_flags
from audit.cluster import joined
from audit.config import Config
from audit.confirm import confirm, in_two
from audit.documents import Output, parse_format, render_all
from audit.engine import run as play
from audit.errors import UsageError
from audit.files import write_atomically
from audit.footprint import Footprint
from audit.judge import parameter_reach, reach
from audit.limits import Limits
from audit.locate import CONFIGURED, located
from audit.lock import sole_user
from audit.once import Once
from audit.plan import Case, Request, Settings, make_plan
from audit.profiles import CI, PROFILES, with_tests
from audit.progress import progress_of, report_alone
from audit.record import Finding, Plan, Record, write_record
from audit.shard import parse_shard, shard_of
from audit.summary import INTERRUPTED, annotated
from audit.sweep import steps_of
from audit.table import Table, parse_bounds, read_table
from audit.workers import Workers

_MANY_RUNS = (
    "pairs",
    "attacks",
    "data",
    "domain",
    "resume",
    "threats",
    "group",
    "confirm",
    "isolate",
    "memory",
    "shard",
)
"""Options that one run has no use for."""


@dataclass(frozen=True)
class RunOptions:
    """Flags of ``run``, as the command line declares them."""

    targets: tuple[str, ...]
    config: Path | None
    claim: str
    view: str
    relation: str
    pairs: tuple[tuple[str, str], ...]
    domain: str
    column: str
    data: Path | None
    context: str
    outcome: str
    price: str
    bounds: str
    attacks: tuple[str, ...]
    trials: int
    insist: bool
    alpha: float
    seed: int
    jobs: int
    memory: str
    backend: str
    scheduler: str
    early_stop: bool
    threats: tuple[str, ...]
    baseline: Path | None
    out: Path
    formats: tuple[str, ...]
    resume: bool
    one_run: bool
    canaries: int
    guesses: int
    group: int
    sweep: str
    confirm: bool
    isolate: bool
    memory_limit: str
    time_limit: float
    shard: str
    profile: str
    dry_run: bool

    @classmethod
    def of(cls, options: dict[str, Any]) -> RunOptions:
        """From the parsed command line."""
        return cls(**{field.name: options[field.name] for field in fields(cls)})

    def settings(self) -> Settings:
        """The part that can change results."""
        return Settings(
            trials=self.trials,
            alpha=self.alpha,
            seed=self.seed,
            early_stop=self.early_stop,
            threats=self.threats,
            profile=self.profile,
        )


def run(config: Config, options: RunOptions) -> int:
    """Plan, run, compare with the baseline, write record and reports; returns the exit code."""
    footprint = Footprint.within(options.memory)
    outputs = [parse_format(text) for text in options.formats] or [("text", None)]
    old = baselines.read_baseline(options.baseline) if options.baseline else None
    pinned, targets = pins.pinned(options.targets)
    options = replace(options, targets=tuple(targets))
    with report_alone():
        requests, notes = _gather(config, options, [request for request, _ in pinned])
    if options.one_run or options.canaries or options.guesses:
        return _run_once(requests, notes, old, outputs, options)
    settings = options.settings()
    requests = with_tests(requests, options.profile, trials=options.trials, seed=options.seed)
    plan, cases = make_plan(requests, in_two(settings) if options.confirm else settings)
    plan, cases = shard_of(plan, cases, parse_shard(options.shard))
    if options.dry_run:
        _print_plan(plan)
        return 0
    with joined(options.backend, options.scheduler, options.jobs):
        workers = Workers(
            jobs=options.jobs,
            backend=options.backend,
            footprint=footprint,
            log=options.out / "blocks.jsonl",
            resume=options.resume,
        )
        with sole_user(options.out), progress_of(cases) as progress:
            record = _played(plan, cases, requests, replace(workers, progress=progress), options)
            notes = [*notes, *pins.no_longer(record, pinned)]
            return _finish(record, notes, old, outputs, options)


def _played(
    plan: Plan,
    cases: Sequence[Case],
    requests: Sequence[Request],
    workers: Workers,
    options: RunOptions,
) -> Record:
    with report_alone():
        record = play(plan, cases, workers)
        if options.confirm and record.execution.complete:
            record = confirm(record, requests, options.settings(), workers)
    return located(record, requests, options.config)


def _run_once(
    requests: Sequence[Request],
    notes: Sequence[Finding],
    old: baselines.Baseline | None,
    outputs: Sequence[Output],
    options: RunOptions,
) -> int:
    """The same with one run and many canaries per case."""
    for name in _MANY_RUNS:
        if getattr(options, name):
            raise UsageError(f"--one-run: --{name.removesuffix('s')} has no meaning here; drop it")
    if options.profile != CI:
        raise UsageError(f"--one-run: --profile {options.profile} has no meaning here; drop it")
    if not options.one_run or options.canaries < 1:
        raise UsageError("--one-run needs --canaries, and those and --guesses need --one-run")
    once = Once.plan(requests, options.settings(), options.canaries, options.guesses)
    if options.dry_run:
        click.echo(once.describe())
        return 0
    with sole_user(options.out):
        with report_alone():
            record = once.play()
        record = located(record, requests, options.config)
        return _finish(record, notes, old, outputs, options)


def _finish(
    record: Record,
    notes: Sequence[Finding],
    old: baselines.Baseline | None,
    outputs: Sequence[Output],
    options: RunOptions,
) -> int:
    if notes:
        record = annotated(record, notes)
    if old:
        record = baselines.compare(record, old)
    return _publish(record, options.out, outputs)


def _gather(
    config: Config, options: RunOptions, pinned: Sequence[Request]
) -> tuple[list[Request], list[Finding]]:
    """The pinned cases, then all others that were asked for, and what to tell about them."""
    table = _read_data(options)
    flags = {
        "claim": options.claim,
        "view": options.view,
        "relation": options.relation,
        "column": options.column,
        "attacks": list(options.attacks),
        "pairs": [parse_pair(left, right) for left, right in options.pairs],
        "trials": options.trials if options.insist else 0,
        "group": options.group,
        "domain": read_json(options.domain, "--domain") if options.domain else None,
    }
    settings = steps_of(options.sweep)
    limits = Limits(options.isolate, options.memory_limit, options.time_limit)
    requests = list(pinned)
    notes: list[Finding] = []
    for case in select(options.targets, config.case) if options.targets or not pinned else ():
        origin = "--claim" if options.claim else CONFIGURED
        words = _option_words(options, configured=case in config.case)
        for parameters in settings:
            own = with_flags(PROFILES[options.profile].case(case), **flags)
            asked = Asked(own, origin, table, words, parameters, limits)
            made, found = requests_for(asked)
            requests += made
            notes += found
    return requests, notes


def _option_words(options: RunOptions, *, configured: bool) -> tuple[str, ...]:
    words = ["--config", str(options.config)] if configured and options.config else []
    for name in (
        "claim",
        "view",
        "relation",
        "domain",
        "column",
        "data",
        "context",
        "outcome",
        "price",
        "bounds",
    ):
        value = getattr(options, name)
        words += [f"--{name}", str(value)] if value else []
    words += ["--group", str(options.group)] if options.group else []
    for attack in options.attacks:
        words += ["--attack", attack]
    for left, right in options.pairs:
        words += ["--pair", left, right]
    return tuple(words)


def _read_data(options: RunOptions) -> Table | None:
    if options.data is None:
        idle = [n for n in ("context", "outcome", "price", "bounds") if getattr(options, n)]
        if idle:
            raise UsageError(f"--{idle[0]} describes a file; give --data FILE.csv too")
        return None
    missing = [f"--{n}" for n in ("context", "outcome", "bounds") if not getattr(options, n)]
    if missing:
        raise UsageError(f"--data needs {', '.join(missing)} too: which columns, in which bounds")
    return read_table(
        options.data,
        context=[name.strip() for name in options.context.split(",")],
        outcome=options.outcome,
        price=options.price or None,
        bounds=parse_bounds(options.bounds),
    )


def _publish(record: Record, out: Path, outputs: Sequence[Output]) -> int:
    write_record(record, out / "record.json")
    write_atomically(out / "report.html", render.render(record, "html").encode())
    render_all(record, outputs)
    click.echo(f"record: {out / 'record.json'}\nreport: {out / 'report.html'}", err=True)
    if not record.execution.complete:
        click.echo("interrupted; finish it with the same command and --resume", err=True)
        return INTERRUPTED
    return record.summary.exit_code


def _print_plan(plan: Plan) -> None:
    click.echo(f"{len(plan.cases)} cases, alpha {plan.alpha:g} for the whole run, seed {plan.seed}")
    for case in plan.due:
        epsilon, delta = case.claim.points()[0]
        caught = reach(case, epsilon, delta)
        families = ", ".join(f"{k} {v:.3g}" if v else f"{k} none" for k, v in caught.items())
        own = parameter_reach(case)
        families += f"; {case.claim.symbol} {own:.3g}" if own else ""
        click.echo(
            f"{case.name}: {case.claim} in view {case.view}; {case.trials} trials "
            f"({case.scouting} to scout); could catch epsilon at delta {delta:g}: {families}"
        )
    total = sum(case.trials for case in plan.due)
    click.echo(f"cost: {total} mechanism runs at the most")
