"""Numbers and foreign strings as a report shows them.

Bounds are rounded towards safety: what is certified is rounded down, what could have been caught
is rounded up. Strings that come from users lose the power to steer a terminal or a text's
direction before any format sees them.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

NOTHING = "–"
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = {"\u200c", "\u200d"}
_MOST_DIGITS = 12


def number(value: float | None, rounding: str = ROUND_HALF_EVEN, digits: int = 3) -> str:
    """A number with `digits` significant digits, such as ``0.94``, ``20`` or ``1e-5``.

    Args:
        value: The number; None and what is not finite are shown as a dash.
        rounding: A rounding mode of `decimal`.
        digits: Significant digits.
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    exact = Decimal(repr(float(value)))
    if exact == 0:
        return "0"
    last = Decimal((0, (1,), exact.adjusted() - digits + 1))
    rounded = exact.quantize(last, rounding=rounding)
    if -3 <= rounded.adjusted() < 6:
        return _without_zeros(f"{rounded:f}")
    mantissa, _, power = f"{rounded:.{digits - 1}e}".partition("e")
    return f"{_without_zeros(mantissa)}e{int(power)}"


def floor(value: float | None) -> str:
    """A lower bound, rounded down."""
    return number(value, ROUND_FLOOR)


def side_by_side(certified: float, claimed: float) -> tuple[str, str]:
    """A certified bound and a claim, with enough digits to show which one is larger."""
    shown = (NOTHING, NOTHING)
    for digits in range(3, _MOST_DIGITS):
        shown = number(certified, ROUND_FLOOR, digits), number(claimed, digits=digits)
        if NOTHING in shown or (float(shown[0]) > float(shown[1])) == (certified > claimed):
            break
    return shown


def ceiling(value: float | None) -> str:
    """An upper bound, rounded up."""
    return number(value, ROUND_CEILING)


def percent(share: float) -> str:
    """A probability in per cent: all the nines of a confidence, and never a false 100 %."""
    digits = 3 if share < 0.99 else 2 + math.ceil(-math.log10(max(1 - share, 1e-15)))
    return f"{number(100 * share, digits=digits)} %"


def whole(count: int) -> str:
    """An integer with separators, such as ``20,000``."""
    return f"{count:,}"


def count(number_of: int, one: str, many: str) -> str:
    """A number of things, such as ``1 case`` or ``40 cases``."""
    return f"{whole(number_of)} {one if number_of == 1 else many}"


def tidy(claim: object) -> str:
    """A claim in words, with exponents as elsewhere: ``(1, 1e-5)-DP``."""
    return re.sub(r"e([+-])0*(\d)", lambda m: f"e{m[1].strip('+')}{m[2]}", str(claim))


def seconds(duration: float) -> str:
    """A time span, such as ``0.4 s`` or ``12 min 5 s``."""
    if duration < 60:
        return f"{number(duration, digits=2)} s"
    minutes, rest = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def clean(text: str) -> str:
    r"""Text whose control, format and lone surrogate characters are spelt out, as ``\x1b``.

    Line breaks stay. Nothing that is left can move a cursor, ring a bell or turn the direction of
    what follows.
    """
    return "".join(_visible(sign) for sign in text)


def one_line(text: str, longest: int = 0) -> str:
    """Clean text on one line, shortened in its middle when it is longer than `longest` > 0."""
    flat = " ".join(clean(text).split())
    if not 0 < longest < len(flat):
        return flat
    head = (longest - 1) * 2 // 3
    return f"{flat[:head]}…{flat[len(flat) - (longest - 1 - head) :]}"


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _visible(sign: str) -> str:
    if sign == "\n" or sign in _JOINERS or unicodedata.category(sign) not in _INVISIBLE:
        return sign
    return sign.encode("ascii", "backslashreplace").decode() if sign > "\x7f" else _hex(sign)


def _hex(sign: str) -> str:
    return f"\\x{ord(sign):02x}"
