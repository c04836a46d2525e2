"""Catalogue entries: a name, how to build what it names, and what part it plays."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One line of a catalogue; nothing is imported before it is built.

    Attributes:
        target: ``module:attr`` of a class or factory.
        parameters: Keyword arguments for it.
        role: ``subject`` (gates), ``control`` (known broken: must be refuted) or
            ``informational`` (reports only).
        reference: Whether ``python -m audit run`` with no arguments includes it.
        view: View to audit instead of the claim's own.
        summary: One line for ``python -m audit list``.
    """

    target: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    role: str = "subject"
    reference: bool = True
    view: str = ""
    summary: str = ""

    def build(self, **changed: Any) -> Any:
        """Import the target and call it with the parameters, some of them changed."""
        module, _, attr = self.target.partition(":")
        return getattr(importlib.import_module(module), attr)(**{**self.parameters, **changed})
