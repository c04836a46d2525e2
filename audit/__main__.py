"""``python -m audit``."""

from audit.cli import main
from audit.interruption import keep_exit_code

keep_exit_code()
main(prog_name="python -m audit")
