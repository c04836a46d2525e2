"""Commands that make and keep records: run, report, accept. The work is in `audit.commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from audit.errors import AuditError
from audit.shell import EXISTING, FORMATS, apart, fail, main, rendered


def _config(ctx: click.Context, _param: click.Parameter, value: Path | None) -> Any:
    """Read the configuration before the other options, so that it can give their defaults."""
    from audit.config import read_config

    try:
        config = read_config(value)
    except AuditError as error:
        fail(ctx, error, 2)
    ctx.default_map = {**config.defaults(), **(ctx.default_map or {})}
    ctx.obj = config
    return value


@main.command()
@click.argument("targets", nargs=-1, metavar="[TARGET|CASE]...")
@click.option(
    "--config",
    type=EXISTING,
    is_eager=True,
    callback=_config,
    help="TOML file with [tool.audit]; pyproject.toml by default.",
)
@click.option(
    "--claim", default="", help="Claim of a target, such as 'eps=1,delta=1e-6', 'mu=.5', 'rho=.1'."
)
@click.option(
    "--view", default="", help="Audited projection: output, transcript, actions, prices_after, ..."
)
@click.option(
    "--relation", default="", help="Neighbour relation of the pairs: replace-one, add-remove."
)
@click.option(
    "--pair",
    "pairs",
    nargs=2,
    multiple=True,
    metavar="LEFT RIGHT",
    help="Neighbouring inputs as JSON or @FILE.json; repeatable.",
)
@click.option(
    "--domain",
    default="",
    metavar="JSON",
    help='Search pairs in a domain such as \'{"bounds": [0, 1], "sizes": [0, 20]}\' or @FILE.json.',
)
@click.option(
    "--column", default="", help="Name of a policy's recorded actions: actions or prices."
)
@click.option("--data", type=EXISTING, help="CSV file of your own customers.")
@click.option("--context", default="", help="Its context columns, comma-separated.")
@click.option("--outcome", default="", help="Its outcome column.")
@click.option("--price", default="", help="Its price column.")
@click.option(
    "--bounds", default="", help="Public bounds, such as 'age=0:100,price=0:2,bought=0:1'."
)
@click.option("--attack", "attacks", multiple=True, help="Use only this attack; repeatable.")
@click.option(
    "--trials",
    type=int,
    default=20_000,
    show_default=True,
    help="Mechanism runs per case, scouting included.",
)
@click.option(
    "--alpha",
    type=float,
    default=1e-3,
    show_default=True,
    help="Probability that a certified statement of the run is wrong.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all random streams.")
@click.option(
    "--jobs", type=int, default=-1, show_default=True, help="Worker processes; -1 for one per core."
)
@click.option(
    "--memory",
    default="",
    metavar="SIZE",
    help="What all processes may take together, such as 1GiB; where it is little, fewer work.",
)
@click.option(
    "--backend",
    default="loky",
    show_default=True,
    help="A joblib backend; dask and ray leave this machine.",
)
@click.option(
    "--scheduler",
    default="",
    metavar="ADDRESS",
    help="Running dask scheduler or ray head to join; workers are started here without it.",
)
@click.option(
    "--early-stop/--no-early-stop",
    default=True,
    show_default=True,
    help="End a case as soon as it is refuted.",
)
@click.option(
    "--threat",
    "threats",
    multiple=True,
    metavar="NAME",
    help="Put an opt-in threat in scope: bits, duration or seed; repeatable.",
)
@click.option(
    "--profile",
    type=click.Choice(["ci", "quick", "nightly"]),
    default="ci",
    show_default=True,
    help="quick: a tenth of the trials, never a baseline. nightly: ten times the trials, a fresh "
    "seed, controls, null tests and planted twins.",
)
@click.option("--baseline", type=EXISTING, help="Accepted state to compare with.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("audit-report"),
    show_default=True,
    help="Directory of record.json and report.html.",
)
@rendered(f"Also render {FORMATS}, to a file or stdout.")
@click.option(
    "--resume", is_flag=True, help="Use the finished blocks of an interrupted run in --out."
)
@click.option(
    "--one-run", is_flag=True, help="Play each target once, on many canaries: for slow mechanisms."
)
@click.option("--canaries", type=int, default=0, help="Canaries of --one-run.")
@click.option(
    "--guesses", type=int, default=0, help="How many of them are guessed; by power if omitted."
)
@click.option(
    "--group",
    type=click.IntRange(min=1),
    default=None,
    help="Inputs differ in this many records; the claim is what the stated one implies for them.",
)
@click.option(
    "--sweep",
    default="",
    metavar="NAME=LOW:HIGH[:STEPS]",
    help="One case per value of a parameter of the target, such as epsilon=0.1:4.",
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Play refuted cases again on fresh streams; both must refute, each with half of alpha.",
)
@apart
@click.option(
    "--shard",
    default="",
    metavar="I/N",
    help="Play every N-th case only, from the I-th on; 'report' makes one record of all shards.",
)
@click.option(
    "--dry-run", is_flag=True, help="Print the plan, its cost and what it could catch; run nothing."
)
@click.option(
    "--show-settings", is_flag=True, help="Print every setting and where it came from; run nothing."
)
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> None:
    """Audit targets: catalogue names or patterns, configured cases, module:attr or exec:COMMAND.

    With no target: the cases of [tool.audit] if there are any, else the reference set. A target
    FILE.pin.json plays a stored counterexample; it imports what the file names, as any target.
    """
    from audit import commands, profiles, tool_commands

    from_profile = profiles.settle(ctx)
    options |= ctx.params
    if options["show_settings"]:
        tool_commands.show_settings(ctx, from_profile)
        return
    source = ctx.get_parameter_source("trials")
    options["insist"] = source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    ctx.exit(commands.run(ctx.obj, commands.RunOptions.of(options)))


@main.command()
@click.argument("records", nargs=-1, required=True, type=EXISTING)
@rendered(f"{FORMATS}; text by default.")
@click.option("--baseline", type=EXISTING, help="Accepted state to compare with.")
@click.option(
    "--index",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Instead of merging, write one page over all records, with the trend of every case.",
)
@click.pass_context
def report(
    ctx: click.Context,
    records: tuple[Path, ...],
    formats: tuple[str, ...],
    baseline: Path | None,
    index: Path | None,
) -> None:
    """Render records again; several records of one plan's shards are merged."""
    from audit import documents

    if index is not None:
        if formats or baseline:
            raise click.UsageError("--index writes a page of its own; drop -f and --baseline")
        documents.index(records, index)
        return
    ctx.exit(documents.report(records, formats, baseline))


@main.command()
@click.argument("old", type=EXISTING)
@click.argument("new", type=EXISTING)
@rendered(f"{FORMATS}; text by default.")
@click.pass_context
def compare(ctx: click.Context, old: Path, new: Path, formats: tuple[str, ...]) -> None:
    """Compare two records, by bounds: what is new, known, worse, weaker or resolved in NEW.

    Exit codes as those of run, with all that OLD found accepted.
    """
    from audit import documents

    ctx.exit(documents.compare(old, new, formats))


@main.command()
@click.argument("record", type=EXISTING)
@click.option(
    "--reason",
    "reasons",
    multiple=True,
    metavar="[CASE=]WHY",
    help="Why a refuted case is accepted; repeatable.",
)
@click.option("--expires", default="", help="Date (YYYY-MM-DD) after which acceptances lapse.")
@click.option(
    "--baseline",
    type=EXISTING,
    default=Path("audit-baseline.json"),
    show_default=True,
    help="File to write.",
)
def accept(record: Path, reasons: tuple[str, ...], expires: str, baseline: Path) -> None:
    """Write the baseline from a record; every refuted subject needs a reason."""
    from audit import documents

    documents.accept(record, reasons, expires, baseline)


@main.command()
@click.argument("record", type=EXISTING)
@click.argument("case", default="")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder of the files; the current one if omitted.",
)
def pin(record: Path, case: str, out: Path) -> None:
    """Store refuted cases of a record, or one of them, as files that run plays again.

    Imports the targets that RECORD names, or starts them: pin only records that you trust.
    """
    from audit import pins

    for path in pins.pin(record, case, out):
        click.echo(f"pin: {path}")
