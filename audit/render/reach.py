"""From promise to proof in one line: what is claimed, known, certified, and could be caught."""

from __future__ import annotations

from audit.record import CaseResult
from audit.render.sentences import claimed_epsilon, smallest_caught
from audit.render.wording import number

WIDTH, HEIGHT = 120, 16


def shares(result: CaseResult) -> dict[str, float]:
    """How far each rung reaches, as multiples of the claim; without what is not known."""
    claimed, ladder = claimed_epsilon(result), result.ladder
    if not claimed:
        return {}
    found = {"certified": result.epsilon_lower / claimed}
    own = result.claim.parameter
    if own is not None and result.parameter_lower is not None:
        found["certified"] = max(found["certified"], result.parameter_lower / own)
    if ladder and ladder.theorem > 0:
        if ladder.accountant is not None:
            found["accountant"] = ladder.accountant / ladder.theorem
        found["certificate"] = ladder.certificate / ladder.theorem
    caught = smallest_caught(result)[1]
    could = [] if caught is None else [caught / claimed]
    if own is not None and result.parameter_caught is not None:
        could.append(result.parameter_caught / own)
    if could:
        found["could have caught"] = min(could)
    return found


def reach(result: CaseResult) -> str:
    """One ``<svg>`` element on a scale from 0 to twice the claim; empty when nothing testified."""
    found = shares(result)
    if not found:
        return ""
    words = ", ".join(f"{name} {number(share)}" for name, share in found.items())
    title = f"In multiples of the claim: {words}"
    end = _place(found["certified"])
    parts = [
        f'<path d="M0 8H{WIDTH}" stroke="var(--forbidden)" stroke-width="8"/>',
        f'<path d="M0 8H{end}" stroke="var(--measured)" stroke-width="8"/>',
        f'<path d="M{_place(1.0)} 0V16" stroke="var(--claim)" stroke-width="2"/>',
    ]
    looks = (
        ("accountant", "axis", ""),
        ("certificate", "certified", ""),
        ("could have caught", "caught", ' stroke-dasharray="2 2"'),
    )
    for name, ink, dash in looks:
        if name in found:
            at = _place(found[name])
            parts.append(f'<path d="M{at} 1V15" stroke="var(--{ink})" stroke-width="2"{dash}/>')
    return (
        f'<svg role="img" aria-label="{title}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f"<title>{title}</title>{''.join(parts)}</svg>"
    )


def _place(share: float) -> str:
    at = min(2.0, max(0.0, share)) / 2 * (WIDTH - 2) + 1
    return f"{at:.1f}"
