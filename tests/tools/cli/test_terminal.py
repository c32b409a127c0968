"""Names and messages of others on a terminal: shown by their escapes, never obeyed."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pilotlight.tools.cli import terminal
from pilotlight.tools.cli.terminal import Shown, teach_rich, visible_text

HOSTILE = {
    "a colour": "\x1b[31mred",
    "a title of the window": "\x1b]0;owned\x07",
    "a link": "\x1b]8;;https://evil.example\x1b\\here",
    "the second set of controls": "\x9b2J",
    "a line that is overwritten": "safe\rgone",
    "text turned around": "\u202egnp.exe",
    "an isolate": "\u2066x\u2069",
    "half a character": "\ud83d",
}
BAD = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x2069, 0xD83D)} - {"\n", "\t"}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_of_it_reaches_the_terminal(text: str) -> None:
    """However it is printed: plainly, as bytes, in a table or as text of Rich."""
    teach_rich()
    plain = io.StringIO()
    Shown(plain).write(text)
    table = Table()
    table.add_column(text)
    table.add_row(text, Text(text))
    coloured = io.StringIO()
    console = Console(file=coloured, force_terminal=True, color_system=None, width=200)
    console.print(table)
    console.print(text, Text("a").append(text))
    assert not BAD & set(plain.getvalue())
    assert not BAD & set(coloured.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", ""))
    assert plain.getvalue() == visible_text(text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_json_stays_the_same_json(text: str) -> None:
    """What a program reads is what was said."""
    assert json.loads(visible_text(json.dumps(text, ensure_ascii=False))) == text


def test_plain_text_stays() -> None:
    """Lines, tabs, accents and signs are what people wrote."""
    text = "nlp/träning-0\t$1.50\n→ ok ✓ 日本"
    assert visible_text(text) == text


def test_rich_keeps_its_own_colours() -> None:
    """What we colour is coloured, through the same stream."""
    behind = io.StringIO()
    Console(file=Shown(behind), force_terminal=True, color_system="standard").print(Text("x", style="red"))  # type: ignore[arg-type]
    assert behind.getvalue() == "\x1b[31mx\x1b[0m\n"


def test_consoles_of_rich_are_made_in_one_place() -> None:
    """Rich is taught what a terminal may have when the first console is made: none is made beside it."""
    cli = Path(terminal.__file__).parent
    assert [str(path) for path in cli.rglob("*.py") if " Console(" in path.read_text()] == [terminal.__file__]


def test_a_command_of_plain_lines_imports_no_rich(tmp_path: Path) -> None:
    """Rich is a seventh of what such a command took to begin."""
    code = "import atexit, sys; atexit.register(lambda: print('rich' in sys.modules)); sys.argv = ['', 'why', 'x']"
    run = f"{code}; from pilotlight.tools.cli.entry import run; run()"
    at = {**os.environ, "PILOTLIGHT_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", run], env=at, capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.returncode) == ("False\n", 2)
