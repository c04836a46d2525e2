"""The command group: errors end in one line on stderr and the documented exit code."""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from audit.errors import AuditError, MechanismError
from audit.interruption import terminable
from audit.limits import MEMORY, SECONDS

Command = TypeVar("Command", bound=Callable[..., Any])
BAD_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.ENOENT),
}
EXHAUSTED = {
    *(errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else []),
}


class ErrorGroup(click.Group):
    """Turns errors into one line and the documented exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The command's own arguments; an unknown option is bad input like any other."""
        for word in args:
            if any("\ud800" <= letter <= "\udfff" for letter in word):
                fail(ctx, f"argument {word!r}: expected UTF-8 text, got other bytes; rename it", 2)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            fail(ctx, error, 2)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; 2 for bad input, 3 when there can be no verdict, 130 on Ctrl-C."""
        never_closed()
        same_text_everywhere()
        try:
            with terminable():
                return super().invoke(ctx)
        except (click.exceptions.Exit, SystemExit):
            raise
        except MechanismError as error:
            fail(ctx, error, 3)
        except (AuditError, click.ClickException) as error:
            fail(ctx, error, 2)
        except KeyboardInterrupt:
            fail(ctx, "interrupted", 130)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(0)
        except BaseException as error:  # noqa: BLE001  (1 would mean refuted)
            crash(ctx, error)


def crash(ctx: click.Context, error: BaseException) -> NoReturn:
    """End after an error that nobody expected, or one of the operating system."""
    if isinstance(error, OSError) and error.errno in BAD_PATH:
        fail(ctx, error, 2)
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        fail(ctx, f"{_told(error)}; make room and run again, with --resume after a run", 3)
    traceback.print_exception(error)
    fail(ctx, "dpaudit itself failed, so there is no verdict; please report it", 3)


def never_closed() -> None:
    """A service may start a program without standard streams; nobody reads, and nothing fails."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def same_text_everywhere() -> None:
    """UTF-8 and plain newlines on stdout and stderr, as in files, unless they are a terminal.

    Windows gives pipes and redirected files a code page without most of our signs, and a report
    must not end in an encoding error. What a terminal cannot show is replaced there.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def fail(ctx: click.Context, error: object, code: int) -> NoReturn:
    """Print one line on stderr and end with an exit code."""
    text = str(error)
    if isinstance(error, click.ClickException):
        text = error.format_message()
    elif isinstance(error, OSError):
        text = _told(error)
    click.echo(f"error: {' '.join(text.split())}", err=True)
    ctx.exit(code)


def _told(error: OSError) -> str:
    return f"{error.filename or 'output'}: {error.strerror}"


EXISTING = click.Path(path_type=Path, dir_okay=False)
FORMATS = "text, json, markdown, html, junit, sarif or github"


def rendered(text: str) -> Callable[[Command], Command]:
    """The option of a command that renders records."""
    return click.option(
        "-f", "--format", "formats", multiple=True, metavar="NAME[=PATH]", help=text
    )


def apart(command: Command) -> Command:
    """The options of a command that plays targets in processes of their own."""
    for option in (
        click.option(
            "--time-limit",
            type=float,
            default=SECONDS,
            show_default=True,
            help="Seconds for one block of trials of exec:COMMAND or --isolate.",
        ),
        click.option(
            "--memory-limit",
            default=MEMORY,
            show_default=True,
            help="What --isolate lets a target take beyond its imports, such as 512M.",
        ),
        click.option(
            "--isolate/--no-isolate",
            default=False,
            show_default=True,
            help="Play Python targets in a process of their own: one that crashes is an outcome.",
        ),
    ):
        command = option(command)
    return command


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
