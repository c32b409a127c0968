"""JSON read without a library of YAML: it is taken as YAML takes it, or left to YAML."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.json_text import LARGEST, read_json
from pilotlight.codec.policy_yaml import read_document

TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.sampled_from((None, 1)))
def test_json_means_what_yaml_takes_it_for(table: dict[str, Any], indent: int | None) -> None:
    """Words, numbers and moments of a policy in JSON are those of the same text read as YAML; one with escapes of
    letters is left to that."""
    text = json.dumps(table, indent=indent)
    meant = None if "\\u" in text else read_document(text, "f")
    assert read_json(text) == read_json(text.encode()) == meant


def test_numbers_stay_the_text_that_was_written() -> None:
    """No price passes through a binary float."""
    assert read_json('{"a": 0.10, "b": [1e3, -7]}') == {"a": "0.10", "b": ["1e3", "-7"]}


LEFT = {
    "YAML": "a: 1\n",
    "a key twice": '{"a": 1, "a": 2}',
    "a key twice within": '{"b": {"a": 1, "a": 2}}',
    "brackets of YAML": "{a: 1}",
    "what is no number": '{"a": NaN}',
    "what has no end": '{"a": -Infinity}',
    "a comma too many": '{"a": 1,}',
    "a list": "[1]",
    "nothing": "",
    "more behind it": '{"a": 1} {"b": 2}',
    "what is nested deep": '{"a":' * 30 + "1" + "}" * 30,
    "what is nested without end": '{"a": ' * 10_000,
    "what is long": '{"a": "' + "a" * LARGEST + '"}',
    "half a letter": '{"a": "\\ud800"}',
    "a letter beyond ASCII": '{"a": "é"}',
    "a sign that cannot be printed": '{"a": "\x7f"}',
    "bytes that are no text": b'{"a": "\xff"}',
}


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_all_else_is_left_to_yaml(text: str | bytes) -> None:
    """What is no JSON, or has a key twice, is read as YAML, whose errors name the line."""
    assert read_json(text) is None
