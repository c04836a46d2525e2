"""Errors that a user can act on.

Every message says what was expected, what came, where, and the remedy. The command line prints
the message without a traceback and exits with code 2 (`UsageError`) or 3 (`MechanismError`).
"""


class AuditError(Exception):
    """Base of all errors that the toolkit raises on purpose."""


class UsageError(AuditError):
    """Bad input: a setting, a file, a claim or a pair that cannot be audited as given."""


class MechanismError(AuditError):
    """The audited implementation could not be played at all, so there is no verdict."""


class ProcessError(MechanismError):
    """The process that plays the implementation failed: no trial's outcome, and no verdict."""
