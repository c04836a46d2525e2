"""Speed, power and scale, measured as the command line runs: on one thread."""

from audit.threads import ask_for_one_thread

ask_for_one_thread()
