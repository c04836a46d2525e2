"""The command line: ``python -m audit``. Only declarations; the work is in `audit.commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from audit.errors import AuditError
from audit.shell import ErrorGroup, fail

_EXISTING = click.Path(path_type=Path, dir_okay=False)


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


@click.group(
    cls=ErrorGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "AUDIT"},
)
@click.version_option(package_name="dpaudit", prog_name="dpaudit")
def main() -> None:
    """Audit the privacy of online decision-makers: certified lower bounds on epsilon.

    Exit codes: 0 nothing refuted, 1 a claim refuted or worse than the baseline, 2 bad input,
    3 no verdict (blind, failed, or a known-broken control not caught), 130 interrupted.
    """


@main.command()
@click.argument("targets", nargs=-1, metavar="[TARGET|CASE]...")
@click.option(
    "--config",
    type=_EXISTING,
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
    "--column", default="", help="Name of a policy's recorded actions: actions or prices."
)
@click.option("--data", type=_EXISTING, help="CSV file of your own customers.")
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
@click.option("--backend", default="loky", show_default=True, help="A joblib backend.")
@click.option(
    "--early-stop/--no-early-stop",
    default=True,
    show_default=True,
    help="End a case as soon as it is refuted.",
)
@click.option(
    "--bits/--no-bits",
    default=False,
    show_default=True,
    help="Put floating-point rounding in scope.",
)
@click.option("--baseline", type=_EXISTING, help="Accepted state to compare with.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("audit-report"),
    show_default=True,
    help="Directory of record.json and report.html.",
)
@click.option(
    "-f",
    "--format",
    "formats",
    multiple=True,
    metavar="NAME[=PATH]",
    help="Also render text, json, markdown or html, to a file or stdout; repeatable.",
)
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
    "--dry-run", is_flag=True, help="Print the plan, its cost and what it could catch; run nothing."
)
@click.option(
    "--show-settings", is_flag=True, help="Print every setting and where it came from; run nothing."
)
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> None:
    """Audit targets: catalogue names or patterns, configured cases, or module:attr.

    With no target: the cases of [tool.audit] if there are any, else the reference set.
    """
    from audit import commands

    if options["show_settings"]:
        commands.show_settings(ctx)
        return
    source = ctx.get_parameter_source("trials")
    options["insist"] = source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    ctx.exit(commands.run(ctx.obj, commands.RunOptions.of(options)))


@main.command()
@click.argument("records", nargs=-1, required=True, type=_EXISTING)
@click.option(
    "-f",
    "--format",
    "formats",
    multiple=True,
    metavar="NAME[=PATH]",
    help="text, json, markdown or html; text by default.",
)
@click.option("--baseline", type=_EXISTING, help="Accepted state to compare with.")
@click.pass_context
def report(
    ctx: click.Context, records: tuple[Path, ...], formats: tuple[str, ...], baseline: Path | None
) -> None:
    """Render records again; several records of one plan's shards are merged."""
    from audit import documents

    ctx.exit(documents.report(records, formats, baseline))


@main.command()
@click.argument("record", type=_EXISTING)
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
    type=_EXISTING,
    default=Path("audit-baseline.json"),
    show_default=True,
    help="File to write.",
)
def accept(record: Path, reasons: tuple[str, ...], expires: str, baseline: Path) -> None:
    """Write the baseline from a record; every refuted subject needs a reason."""
    from audit import documents

    documents.accept(record, reasons, expires, baseline)


@main.command()
@click.argument("target")
@click.option("--claim", default="", help="Claim of a target without one.")
@click.option("--view", default="", help="Audited projection.")
@click.option(
    "--pair",
    "pairs",
    nargs=2,
    multiple=True,
    metavar="LEFT RIGHT",
    help="Neighbouring inputs as JSON.",
)
@click.option("--column", default="", help="Name of a policy's recorded actions.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.pass_context
def check(ctx: click.Context, /, target: str, **options: Any) -> None:
    """Check the contract of a mechanism: shapes, seeding, hidden state, mutation, picklability.

    Exit code 0 when all checks pass, 1 when one fails.
    """
    from audit import commands

    ctx.exit(commands.check(target, **options))


@main.command("list")
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the catalogue: mechanisms (with their role) and attacks."""
    from audit import commands

    commands.list_catalogue(pattern)


@main.command()
@click.argument("file", required=False, type=_EXISTING)
@click.option(
    "--counts",
    type=int,
    nargs=4,
    default=None,
    metavar="TP FP TN FN",
    help="Plain counts instead of a file; positive guesses 'in'.",
)
@click.option("--in-column", default="in", show_default=True, help="Column of the coins: 1 or 0.")
@click.option(
    "--score-column", default="score", show_default=True, help="Column of scores; high means in."
)
@click.option("--claim", required=True, help="The claim, such as 'eps=1,delta=1e-6' or 'mu=.5'.")
@click.option("--view", default="", help="The view that the scores were computed from.")
@click.option("--relation", default="", help="Neighbour relation of the claim.")
@click.option(
    "--placed",
    type=click.Choice(["in-out", "swapped"]),
    default="in-out",
    show_default=True,
    help="Canaries were there or not (add-remove), or one of two records (replace-one).",
)
@click.option("--canaries", type=int, default=0, help="All canaries of --counts, guessed or not.")
@click.option(
    "--guesses", type=int, default=0, help="How many rows are guessed; by power if omitted."
)
@click.option("--independent", is_flag=True, help="Each row is a run of its own.")
@click.option(
    "--posterior",
    is_flag=True,
    help="Scores are P(in | output, coins of the rows above); pure claims only.",
)
@click.option(
    "--alpha",
    type=float,
    default=1e-3,
    show_default=True,
    help="Probability that the certified statements are wrong.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Shuffles --independent rows.")
@click.option(
    "-f",
    "--format",
    "formats",
    multiple=True,
    metavar="NAME[=PATH]",
    help="text, json, markdown or html, to a file or stdout; text by default; repeatable.",
)
@click.pass_context
def score(ctx: click.Context, /, **options: Any) -> None:
    """Audit the scores of a run that already was: one row per canary, coin and score.

    The rows of FILE share one run, or a few, unless --independent says otherwise. Needs no
    mechanism; the exit codes are those of run.
    """
    from audit import production

    ctx.exit(production.score(production.ScoreOptions(**options)))


@main.command()
@click.argument("topic")
def explain(topic: str) -> None:
    """Explain a rule (DP001) or a catalogue name."""
    from audit import commands

    commands.explain(topic)


@main.command()
@click.argument("name", type=click.Choice(["record", "baseline", "config"]))
def schema(name: str) -> None:
    """Print the JSON Schema of a document."""
    from audit import documents

    documents.schema(name)


@main.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--trials", type=int, default=20_000, show_default=True)
@click.option("--alpha", type=float, default=1e-3, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--jobs", type=int, default=-1, show_default=True)
@click.pass_context
def selftest(ctx: click.Context, /, targets: tuple[str, ...], **options: Any) -> None:
    """Prove that the gate works: nothing certified on equal inputs, planted bugs caught."""
    from audit import commands

    ctx.exit(commands.selftest(targets, **options))
