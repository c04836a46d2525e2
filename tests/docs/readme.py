"""The README, taken apart: files to write, commands to run, code spans."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN_HERE = ("setup-run", "setup-test", "slow")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word behind it, and its text."""

    language: str
    word: str
    text: str

    @property
    def is_file(self) -> bool:
        """Whether the word names a file that holds this text."""
        return "." in self.word

    @property
    def commands(self) -> list[str]:
        """Shell commands, continued lines joined, comments dropped."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.partition("   #")[0].strip() for line in lines if line.strip()]


BLOCKS = [Block(*found) for found in _BLOCK.findall(TEXT)]
FILES = {block.word: block.text for block in BLOCKS if block.is_file}
COMMANDS = [
    command
    for block in BLOCKS
    if block.language == "bash" and not block.word
    for command in block.commands
]
APART = {block.word: block.commands for block in BLOCKS if block.word in _NOT_RUN_HERE}
PROSE = _BLOCK.sub("", TEXT)
SPANS = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", PROSE)]
