"""Reading a claim from text, as users write it in commands and configurations."""

from __future__ import annotations

from typing import Any

from audit.claim import AnyClaim, ApproxDp, GaussianDp, PureDp, RenyiDp, ZeroConcentratedDp
from audit.errors import UsageError

_KEYS: dict[frozenset[str], Any] = {
    frozenset({"epsilon"}): PureDp,
    frozenset({"epsilon", "delta"}): ApproxDp,
    frozenset({"mu"}): GaussianDp,
    frozenset({"rho"}): ZeroConcentratedDp,
    frozenset({"order", "epsilon"}): RenyiDp,
}


def parse_claim(text: str, **context: str) -> AnyClaim:
    """Read a claim such as ``eps=1,delta=1e-6``, ``mu=.5``, ``rho=.1`` or ``order=8,eps=1``.

    Args:
        text: Comma-separated ``name=number`` parts; ``eps`` abbreviates ``epsilon``.
        **context: ``view``, ``relation``, ``unit``, ``source``.

    Raises:
        UsageError: For an unknown name, a missing or bad number, or an unknown combination.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (piece.strip() for piece in part.partition("="))
        name = "epsilon" if name == "eps" else name
        if name in values:
            raise UsageError(f"claim {text!r}: {name} is given twice")
        try:
            values[name] = float(number)
        except ValueError:
            raise UsageError(f"claim {text!r}: expected name=number, got {part!r}") from None
    kind = _KEYS.get(frozenset(values))
    if kind is None:
        raise UsageError(
            f"claim {text!r}: expected eps=, or eps= and delta=, mu=, rho=, or order= and eps=;"
            f" got {', '.join(sorted(values))}"
        )
    if values.get("delta") == 0:
        del values["delta"]
        kind = PureDp
    arguments: dict[str, Any] = {**values, **context}
    claim: AnyClaim = kind(**arguments)
    return claim
