"""``python -m audit``."""

from audit.cli import main
from audit.threads import ask_for_one_thread

ask_for_one_thread()
main(prog_name="python -m audit")
