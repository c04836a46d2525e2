"""Commands around an audit: check, list, score, utility, explain, schema, selftest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from audit.shell import EXISTING, FORMATS, apart, main, rendered


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
@apart
@click.option("--seed", type=int, default=0, show_default=True)
@click.pass_context
def check(ctx: click.Context, /, target: str, **options: Any) -> None:
    """Check the contract of a mechanism: claim, pairs, shapes, seeding, hidden state and more.

    Exit code 0 when all checks pass, 1 when one fails.
    """
    from audit import tool_commands

    ctx.exit(tool_commands.check(target, **options))


@main.command("list")
@click.argument("pattern", default="*")
def list_(pattern: str) -> None:
    """List the catalogue: mechanisms (with their role) and attacks."""
    from audit import tool_commands

    tool_commands.list_catalogue(pattern)


@main.command()
@click.argument("file", required=False, type=EXISTING)
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
@rendered(f"{FORMATS}; text by default; repeatable.")
@click.pass_context
def score(ctx: click.Context, /, **options: Any) -> None:
    """Audit the scores of a run that already was: one row per canary, coin and score.

    The rows of FILE share one run, or a few, unless --independent says otherwise. Needs no
    mechanism; the exit codes are those of run.
    """
    from audit import production

    ctx.exit(production.score(production.ScoreOptions(**options)))


@main.command()
@click.argument("name")
@click.option("--horizons", default="", help="Numbers of rounds, comma-separated.")
@click.option("--epsilons", default="", help="Promised epsilons, comma-separated.")
@click.option("--runs", type=int, default=200, show_default=True, help="Runs per point.")
@click.option("--seed", type=int, default=0, show_default=True, help="Root of all random streams.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file ending in .html, with pictures, or in .md; the table goes to stdout if omitted.",
)
@click.option(
    "--record",
    type=EXISTING,
    help="Record of audits of NAME, such as a sweep over epsilon: shows certified and claimed.",
)
@click.pass_context
def utility(ctx: click.Context, /, name: str, **options: Any) -> None:
    """Measure what privacy costs: regret against rounds and epsilon, beside the guarantee."""
    from audit import utility_command

    ctx.exit(utility_command.utility(name, **options))


@main.command()
@click.argument("topic")
def explain(topic: str) -> None:
    """Explain a rule (DP001) or a catalogue name."""
    from audit import tool_commands

    tool_commands.explain(topic)


@main.command()
@click.argument("name", type=click.Choice(["record", "baseline", "config", "wire", "pin"]))
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
    from audit import tool_commands

    ctx.exit(tool_commands.selftest(targets, **options))
