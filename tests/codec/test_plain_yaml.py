"""Plain YAML read without a library: it is taken as the library takes it, or left to the library."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec import bounded_yaml
from pilotlight.codec.plain_yaml import LARGEST, MEANT, TEXT, read_plain
from pilotlight.codec.policy_yaml import read_document
from pilotlight.errors import BadPolicy

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "infra" / "terraform" / "examples").glob("*/*.yaml"))
PIECES = (
    *" \n:,#{}[]\"'-?.~<=*&!|>%@+/\\az01",
    *(
        ": ",
        " #",
        ",\n",
        "\n  ",
        "\n- ",
        "\n...",
        "---",
        '"q: #"',
        "'it'",
        "yes",
        "on: ",
        "null",
        "<<: ",
        "key:",
        "k: v",
    ),
    *("{a: 1}", '{"a": 1}', "[a, b]", "[{c: d}]", "a:b", "1.50", "0x1f", "2026-11-01", "18:00"),
)
SEEDS = (
    *(path.read_text() for path in EXAMPLES),
    "a:\n- b: 1\n  c: [x,\n  y]\n- d\ne: {f: yes, g: ''}\n",
    '{"a": [{"b": "c"}]}\n',
)


def _whole(text: str, meant: Any) -> Any:
    """What the library makes of a text, or that it is no YAML."""
    try:
        return read_document(text, "f") if meant is MEANT else bounded_yaml.load(text)
    except (BadPolicy, yaml.YAMLError):
        return "no YAML"


def _exact(value: Any) -> Any:
    """A value in which true, 1 and "1" differ, and in which a table's order tells."""
    match value:
        case dict():
            return [(_exact(key), _exact(inner)) for key, inner in value.items()]
        case list():
            return ["list", *map(_exact, value)]
    return type(value).__name__, value


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file of the examples, or nothing, with a few pieces of YAML put somewhere, in the place of what was there."""
    text = draw(st.sampled_from(("", *SEEDS)))
    for piece in draw(st.lists(st.sampled_from(PIECES), max_size=12 if not text else 4)):
        begins = draw(st.integers(0, len(text))) if text in SEEDS or draw(st.booleans()) else len(text)
        text = text[:begins] + piece + text[begins + draw(st.sampled_from((0, 0, 1, 3))) :]
    return text


@given(texts(), st.sampled_from((MEANT, TEXT)))
def test_what_is_plain_is_what_the_library_makes_of_it(text: str, meant: Any) -> None:
    """Values, their types and their order are the same, and no mistake passes for plain."""
    found = read_plain(text, meant)
    if found is not None:
        assert _exact(found) == _exact(_whole(text, meant))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_first_policies_and_prices_are_plain(path: Path) -> None:
    """What a first deployment begins with needs no library, as bytes or text, with JSON's brackets or without."""
    whole = bounded_yaml.load(path.read_bytes())
    assert read_plain(path.read_bytes(), TEXT) == read_plain(path.read_text(), TEXT) == whole
    assert read_plain(json.dumps(whole), TEXT) == read_plain(json.dumps(whole, indent=1), TEXT) == whole


def test_words_numbers_and_moments() -> None:
    """Words mean what YAML 1.1 says; numbers and moments stay the text that was written."""
    text = 'a: yes\nb: "yes"\nc: [Off, ~, null, 1e3, 1.10]\nd:\ne: {f: 010, g: 2026-11-01, h: 18:00}\n'
    parts = {"c": [False, None, None, "1e3", "1.10"], "e": {"f": "010", "g": "2026-11-01", "h": "18:00"}}
    assert read_plain(text, MEANT) == {"a": True, "b": "yes", "c": parts["c"], "d": None, "e": parts["e"]}
    assert read_plain("a: yes\nb:\n", TEXT) == {"a": "yes", "b": ""}


NOT_PLAIN = {
    "a key twice": "a: 1\na: 2\n",
    "a key twice in brackets": "{a: 1, a: 2}",
    "a key that is a word": "on: 1\n",
    "an anchor": "a: &x 1\n",
    "a merge": "a:\n  <<: {b: 1}\n",
    "a tag": "a: !!int 1\n",
    "text of several lines": "a: b\n  c\n",
    "a block of text": "a: |\n  b\n",
    "an escape": 'a: "\\n"\n',
    "a quote in quotes": "a: 'it''s'\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a tab": "a:\tb\n",
    "letters beyond ASCII": "a: é\n",
    "brackets that stay open": "a: [b\n",
    "a key with nothing above it": "a: 1\n  b: 2\n",
    "a list at the top": "- a\n",
    "nothing": "# only a comment\n",
    "what is nested deep": "a: " + "[" * 50 + "]" * 50,
    "what is large": "a: b\n" + "#" * LARGEST,
}


@pytest.mark.parametrize("text", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_all_else_is_left_to_the_library(text: str) -> None:
    """What has more of YAML in it, or a mistake, is not plain: the library reads it, or says where it is wrong."""
    assert read_plain(text, MEANT) is None
    assert read_plain(text.encode(), TEXT) is None
