"""Completion of the first word: names of commands, before the command line is imported."""

import os
import subprocess
import sys

import pytest

from pilotlight.tools.cli.command_table import COMMANDS
from pilotlight.tools.cli.front_help import completed_names

HEAVY = ("typer", "rich", "yaml", "pilotlight.wiring")
RUN = f"""
import sys
from pilotlight.tools.cli.entry import run
try:
    run()
finally:
    print("heavy", [name for name in {HEAVY} if name in sys.modules])
"""


def asked(words: str, word: int) -> dict[str, str]:
    """What bash sets as it asks."""
    return {"_PILOTLIGHT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(word)}


def test_names_come_before_anything_heavy_is_imported() -> None:
    """The table of commands answers: no typer, no rich, no YAML."""
    environ = {**os.environ, **asked("pilotlight re", 1)}
    done = subprocess.run([sys.executable, "-c", RUN], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["resume", "reconcile", "reclaim", "report", "replay", "heavy []"]


@pytest.mark.parametrize(
    ("words", "word"), [("pilotlight plan --o", 2), ("pilotlight --", 1)], ids=["a later word", "an option"]
)
def test_other_words_are_typers(words: str, word: int) -> None:
    """Options and what follows a command are told by the command itself."""
    assert completed_names(asked(words, word)) is None


def test_nobody_asks_without_the_variable() -> None:
    """And an empty word is begun by every name."""
    assert completed_names({}) is None
    assert completed_names(asked("pilotlight", 1)) == [name for commands in COMMANDS.values() for name in commands]
