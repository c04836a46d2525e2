"""Rules and catalogue: every page says cause, effect and remedy; every name says what it is."""

import inspect
import re
from pathlib import Path

import pytest

from audit.registry import catalogue
from audit.rule import Rule
from audit.rules import RULES

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_says_cause_effect_and_remedy(code):
    rule = RULES[code]
    page = inspect.cleandoc(rule.__doc__)
    parts = re.findall(r"^(Cause|Effect|Remedy): \S", page, re.MULTILINE)
    assert parts == ["Cause", "Effect", "Remedy"]
    assert rule.code == code
    assert rule.title
    assert page.splitlines()[0].endswith(".")


def test_codes_are_well_formed_and_titles_unique():
    assert len(RULES) == len(Rule.__subclasses__())
    assert all(re.fullmatch(r"DP\d{3}", code) for code in RULES)
    assert len({rule.title for rule in RULES.values()}) == len(RULES)


def test_every_code_in_the_sources_is_a_rule():
    used = {
        code
        for path in (ROOT / "audit").rglob("*.py")
        for code in re.findall(r"\bDP\d{3}\b", path.read_text())
    }
    assert used <= set(RULES)


def test_every_catalogue_line_says_what_it_is():
    for name, entry in catalogue().items():
        assert entry.summary, name
        assert entry.role in ("subject", "control", "informational"), name
        broken = name.startswith(("broken/", "peers/mabwiser-"))  # no promise, or a false one
        loose = entry.role == "informational" and name.endswith("-loose")
        assert broken == (entry.role == "control" or loose), name
