"""``python -m audit``."""

from audit.cli import main

main(prog_name="python -m audit")
