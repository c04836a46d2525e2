"""The command line: ``python -m audit``. Only declarations; the work is in `audit.commands`."""

from audit import cli_run, cli_tools
from audit.shell import main

__all__ = ["cli_run", "cli_tools", "main"]
