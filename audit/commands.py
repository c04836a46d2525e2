"""What the commands do."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import msgspec

from audit import baseline as baselines
from audit import pins, render, rules
from audit.cases import Asked, parse_pair, read_json, requests_for, select, with_flags
from audit.config import CaseConfig, Config
from audit.confirm import confirm, in_two
from audit.documents import Output, parse_format, render_all
from audit.engine import Progress, Workers
from audit.engine import run as play
from audit.errors import UsageError
from audit.files import write_atomically
from audit.judge import reach
from audit.once import Once
from audit.plan import Case, Request, Settings, make_plan
from audit.record import Finding, Plan, Record, write_record
from audit.registry import attack_names, catalogue, matching
from audit.selftest import as_it_must, outcome, selftest_requests
from audit.summary import INTERRUPTED, summarise
from audit.sweep import steps_of
from audit.table import Table, parse_bounds, read_table


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
    backend: str
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
        )


def run(config: Config, options: RunOptions) -> int:
    """Plan, run, compare with the baseline, write record and reports; returns the exit code."""
    outputs = [parse_format(text) for text in options.formats] or [("text", None)]
    old = baselines.read_baseline(options.baseline) if options.baseline else None
    requests, notes = _gather(config, options)
    if options.one_run or options.canaries or options.guesses:
        return _run_once(requests, notes, old, outputs, options)
    settings = options.settings()
    plan, cases = make_plan(requests, in_two(settings) if options.confirm else settings)
    if options.dry_run:
        _print_plan(plan)
        return 0
    with _progress(cases) as progress:
        workers = Workers(
            jobs=options.jobs,
            backend=options.backend,
            log=options.out / "blocks.jsonl",
            resume=options.resume,
            progress=progress,
        )
        record = play(plan, cases, workers)
        if options.confirm and record.execution.complete:
            record = confirm(record, requests, settings, workers)
    notes = [*notes, *pins.no_longer(record, options.targets)]
    return _finish(record, notes, old, outputs, options)


def _run_once(
    requests: Sequence[Request],
    notes: Sequence[Finding],
    old: baselines.Baseline | None,
    outputs: Sequence[Output],
    options: RunOptions,
) -> int:
    """The same with one run and many canaries per case."""
    for name in ("pairs", "attacks", "data", "domain", "resume", "threats", "group", "confirm"):
        if getattr(options, name):
            raise UsageError(f"--one-run: --{name.removesuffix('s')} has no meaning here; drop it")
    if not options.one_run or options.canaries < 1:
        raise UsageError("--one-run needs --canaries, and those and --guesses need --one-run")
    once = Once.plan(requests, options.settings(), options.canaries, options.guesses)
    if options.dry_run:
        click.echo(once.describe())
        return 0
    return _finish(once.play(), notes, old, outputs, options)


def _finish(
    record: Record,
    notes: Sequence[Finding],
    old: baselines.Baseline | None,
    outputs: Sequence[Output],
    options: RunOptions,
) -> int:
    if notes:
        record = _annotate(record, notes)
    if old:
        record = baselines.compare(record, old)
    return _publish(record, options.out, outputs)


def _annotate(record: Record, notes: Sequence[Finding]) -> Record:
    """The record with what was found before it ran, each finding at its case."""
    results = []
    for result in record.results:
        command = record.planned(result.name).reproduce
        own = [n for n in notes if n.case == result.name]
        found = tuple(msgspec.structs.replace(note, reproduce=command) for note in own)
        results.append(msgspec.structs.replace(result, findings=(*found, *result.findings)))
    summary = summarise(record.plan, results)
    return msgspec.structs.replace(record, results=tuple(results), summary=summary)


def _gather(config: Config, options: RunOptions) -> tuple[list[Request], list[Finding]]:
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
    pinned, targets = pins.pinned(options.targets)
    requests = [request for request, _ in pinned]
    notes: list[Finding] = []
    for case in select(targets, config.case) if targets or not pinned else ():
        origin = "--claim" if options.claim else "the configuration"
        words = _option_words(options, configured=case in config.case)
        for parameters in settings:
            asked = Asked(with_flags(case, **flags), origin, table, words, parameters)
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
    for case in plan.cases:
        epsilon, delta = case.claim.points()[0]
        caught = reach(case, epsilon, delta)
        families = ", ".join(f"{k} {v:.3g}" if v else f"{k} none" for k, v in caught.items())
        click.echo(
            f"{case.name}: {case.claim} in view {case.view}; {case.trials} trials "
            f"({case.scouting} to scout); could catch epsilon at delta {delta:g}: {families}"
        )
    total = sum(case.trials for case in plan.cases)
    click.echo(f"cost: {total} mechanism runs at the most")


@contextmanager
def _progress(cases: Sequence[Case]) -> Iterator[Progress]:
    """A bar on a terminal, a line per finished case elsewhere; both on stderr."""
    if not sys.stderr.isatty():
        yield _line_per_case
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("auditing", total=len(cases))
        shares: dict[str, float] = {}

        def update(case: str, share: float) -> None:
            shares[case] = share
            bars.update(task, completed=sum(shares.values()), description=case[-40:])

        yield update


def _line_per_case(case: str, share: float) -> None:
    if share >= 1.0:
        click.echo(f"done: {case}", err=True)


def show_settings(ctx: click.Context) -> None:
    """Print every setting and where it came from."""
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        label = source.name.lower().replace("_", " ") if source else "default"
        click.echo(f"{name} = {value!r} ({'file' if label == 'default map' else label})")


def check(target: str, *, claim: str, view: str, pairs: Any, column: str, seed: int) -> int:
    """Print one line per check; 0 when all pass, 1 otherwise."""
    from audit.checks import check_mechanism

    given = [parse_pair(left, right) for left, right in pairs]
    config = CaseConfig(target=target, claim=claim, view=view, pairs=given, column=column)
    request = requests_for(Asked(config, "--claim"))[0][0]
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
    mechanism = entry.build()
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
    with _progress(cases) as progress:
        record = play(plan, cases, Workers(jobs=jobs, progress=progress))
    failures = 0
    for result in record.results:
        good = as_it_must(result)
        failures += not good
        click.echo(f"{'ok  ' if good else 'FAIL'}  {result.name:<44} {outcome(result)}")
    click.echo(f"wrong with probability at most {alpha:g} for the null tests together")
    return 3 if failures else 0
