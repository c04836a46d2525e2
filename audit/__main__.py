"""``python -m audit``."""

from audit.cli import main
from audit.interruption import keep_exit_code
from audit.threads import ask_for_one_thread

ask_for_one_thread()
keep_exit_code()
main(prog_name="python -m audit")
