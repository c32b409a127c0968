"""Figures that others read have no digits which a division left."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.printable import printable

FIGURES = st.decimals(-(10**9), 10**9) | st.floats(-1e9, 1e9)
VALUES = st.recursive(
    FIGURES | st.text() | st.none(), lambda each: st.lists(each) | st.dictionaries(st.text(), each), max_leaves=20
)


def figures(value: Any) -> list[Decimal]:
    """Every figure of a value, in its order."""
    match value:
        case Decimal() | float():
            return [Decimal(value)]
        case dict():
            return [figure for item in value.values() for figure in figures(item)]
        case list():
            return [figure for item in value for figure in figures(item)]
    return []


@given(VALUES)
def test_every_figure_is_the_same_to_the_billionth(value: Any) -> None:
    """None is lost, moved, or changed by more than a billionth; all else stays."""
    found, before = printable(value), figures(value)
    after = figures(found)
    assert len(after) == len(before)
    assert all(abs(a - b) <= Decimal("6e-10") + abs(b) * Decimal("1e-15") for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize(
    ("figure", "printed"),
    [
        (Decimal(1) / Decimal(3), '"0.333333333"'),
        (Decimal("0E-7"), '"0"'),
        (Decimal("1.50"), '"1.50"'),
        (1 / 3, "0.333333333"),
        ({"a": [Decimal(2) / 3]}, '{"a":["0.666666667"]}'),
        (
            msgspec.Raw(b'{"usd":["0.33333333333333","a 0.33333333333333"]}'),
            '{"usd":["0.333333333","a 0.33333333333333"]}',
        ),
    ],
    ids=["a third", "nothing", "a shorter one", "a float", "inside a list", "in JSON that is written already"],
)
def test_a_figure_is_printed_short(figure: object, printed: str) -> None:
    """Nine digits after the point at most, and zero is 0."""
    assert msgspec.json.encode(printable(figure)).decode() == printed
