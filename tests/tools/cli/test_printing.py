"""Lines of text as wide as a terminal: broken between words, and left alone in a pipe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group
from rich.text import Text

from pilotlight.tools.cli.printing import console, fit_line, fit_text, say

LINE = "  buy       3 nodes, $66.066/h: 2 x a100/p4d.24xlarge/on-demand, 1 x t4/g4dn.xlarge/on-demand"
WORDS = st.lists(st.text("abc-/$.", min_size=1, max_size=30), min_size=1, max_size=30)


@given(words=WORDS, indent=st.integers(0, 6), width=st.integers(20, 200))
def test_a_line_keeps_its_words_within_the_width(words: list[str], indent: int, width: int) -> None:
    """Every word stands once and in order, and only a word that is too long by itself stands out."""
    found = fit_line(" " * indent + " ".join(words), width)
    assert found.split() == words
    assert all(len(line) <= width or len(line.split()) == 1 for line in found.splitlines())


def test_what_goes_on_stands_below_the_text() -> None:
    """A label's text goes on below that text, another line a little further in."""
    assert fit_line(LINE, 60).splitlines()[1].startswith("            a100/p4d")
    assert fit_line("    because it is the least of all that can hold it", 30).splitlines()[1].startswith("      all")


@given(words=WORDS, indent=st.integers(0, 6), width=st.integers(40, 200))
def test_a_styled_line_is_broken_alike(words: list[str], indent: int, width: int) -> None:
    """Its words and styles stay, within the width; none of it is changed where no terminal is."""
    line = Text(" " * indent) + Text(" ".join(words), style="red")
    out = Console(width=width)
    assert fit_text(line, out) == [line]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.isatty", lambda _: True)
        found = fit_text(line, out)
    assert [word for part in found for word in part.plain.split()] == words
    assert all(len(part.plain.rstrip()) <= width for part in found)


@pytest.mark.parametrize(("terminal", "columns", "lines"), [(True, "60", 3), (True, "200", 1), (False, "60", 1)])
def test_the_width_is_the_terminals(
    terminal: bool, columns: str, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """COLUMNS goes before what it tells itself; a line in a pipe stays one all the same."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("os.isatty", lambda _: terminal)
    say([LINE])
    assert len(capsys.readouterr().out.splitlines()) == lines


def test_a_line_in_a_pipe_is_broken_nowhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a header that names a cluster, its world and its state, alone or in a group with a table."""
    head = "cluster local, " + " ".join(["a pretend world at http://127.0.0.1:8080"] * 8)
    monkeypatch.delenv("COLUMNS", raising=False)
    console().print(head, markup=False)
    console().print(Group(Text(head), Text("next")))
    assert capsys.readouterr().out.splitlines() == [head, head, "next"]
