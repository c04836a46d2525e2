"""Where the evidence came from, in words: pair, attack, event."""

from __future__ import annotations

import re

from audit.record import CaseResult, PlannedCase
from audit.render.sentences import of_one_run
from audit.render.wording import NOTHING, one_line, whole
from audit.view import kept_rounds

_ENTRY = re.compile(r"([A-Za-z_]\w*)\[(\d+)\](?!\[)")
_GUESSES, _SIDES = "guesses ", "left "


def origin_sentence(planned: PlannedCase, result: CaseResult) -> str:
    """Pair, attack and event in a sentence; empty when nothing testified."""
    choice = result.choice
    if choice is None:
        return ""
    attack, event = one_line(choice.attack, 100), event_in_words(result)
    if event.startswith((_GUESSES, _SIDES)):
        told = f"guessed {event.removeprefix(_GUESSES)}"
    elif any(choice.guess):
        told = f"guessed by the {event or 'score'}"
    else:
        told = f"found nothing to guess by ({event or 'no score'})"
    if of_one_run(result) or not 0 <= choice.pair < len(planned.pairs):
        return f"The evidence came from one run: the attack {attack} {told}."
    pair = planned.pairs[choice.pair]
    ordered = pair.position > 0 or any(rounds.own for rounds in result.rounds)
    where = f", whose inputs first differ at position {whole(pair.position + 1)}" if ordered else ""
    label = one_line(pair.label, 200) or NOTHING
    return f"The evidence came from the pair “{label}”{where}: the attack {attack} {told}."


def event_in_words(result: CaseResult) -> str:
    """The frozen event, with ``prices[6]`` as *prices in round 7* where entries are rounds."""
    choice = result.choice
    event = one_line(choice.event, 600).rstrip(".") if choice else ""
    ordered = {rounds.column: rounds for rounds in result.rounds if rounds.in_order}

    def named(entry: re.Match[str]) -> str:
        rounds = ordered.get(entry[1])
        if rounds is None:
            return entry[0]
        base, _, which = result.view.rpartition("_")
        kept = kept_rounds(rounds.total, which if base == entry[1] else "all", rounds.own)
        index = int(entry[2])
        return f"{entry[1]} in round {kept[index] + 1}" if index < len(kept) else entry[0]

    return _ENTRY.sub(named, event)
