"""What a rule is: a code, a title, and a docstring that is its page."""

from __future__ import annotations

import inspect


class Rule:
    """Base of all rules.

    Attributes:
        code: The stable code.
        title: A few words.
    """

    code = ""
    title = ""

    @classmethod
    def page(cls) -> str:
        """The text that ``explain`` prints."""
        return f"{cls.code}: {cls.title}\n\n{inspect.cleandoc(cls.__doc__ or '')}\n"
