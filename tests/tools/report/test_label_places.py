"""Names beside dots: none lies on a dot, on another name or over an edge, also where dots crowd."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.tools.report.pages.label_places import Box, Dot, boxes

EDGE = Box(0, 0, 800, 400)


def named(*at: tuple[float, float]) -> list[Dot]:
    """Dots there, each with a name of 150 by 16."""
    return [Dot(x, y, 6, 150, 16) for x, y in at]


CROWDS = {
    "one alone": [(400.0, 200.0)],
    "one in each corner": [(6.0, 6.0), (794.0, 6.0), (6.0, 394.0), (794.0, 394.0)],
    "five at nearly one place": [(400.0 + n, 200.0 + 2 * n) for n in range(5)],
    "eight in a column at the right edge": [(790.0, 40.0 + 20 * n) for n in range(8)],
}


@pytest.mark.parametrize("at", CROWDS.values(), ids=CROWDS)
def test_names_lie_apart(at: list[tuple[float, float]]) -> None:
    """No name covers another, or a dot, or leaves the drawing."""
    dots = named(*at)
    found = boxes(dots, EDGE)
    assert [pair for pair in combinations(found, 2) if pair[0].shared_area(pair[1])] == []
    rims = [Box(d.x - d.r, d.y - d.r, d.x + d.r, d.y + d.r) for d in dots]
    assert [(name, rim) for name in found for rim in rims if name.shared_area(rim)] == []
    assert all(b.left >= 0 and b.top >= 0 and b.right <= 800 and b.bottom <= 400 for b in found)


def test_a_name_keeps_off_a_curve() -> None:
    """A line that goes through where a name would stand moves it."""
    (beside,) = boxes(named((100, 200)), EDGE)
    (moved,) = boxes(named((100, 200)), EDGE, [(100, 200), (700, 200)])
    assert moved != beside
    assert not moved.shared_area(Box(100, 198, 700, 202))


@given(st.lists(st.tuples(st.floats(10, 790), st.floats(10, 390)), min_size=1, max_size=6))
def test_each_dot_has_its_name(at: list[tuple[float, float]]) -> None:
    """Wherever dots are there is one box each, of the name's size."""
    found = boxes(named(*at), EDGE)
    assert [(round(b.right - b.left), round(b.bottom - b.top)) for b in found] == [(150, 16)] * len(at)
