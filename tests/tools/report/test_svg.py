"""The drawing functions: escaping, scales, ticks and label placement."""

import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.tools.report.pages.svg import Scale, apart, area, el, round_ticks, steps

positions = st.lists(st.floats(0, 300), min_size=1, max_size=8)


@given(text=st.text(st.characters(blacklist_categories=["Cs", "Cc"])))
def test_any_text_survives_as_text_and_never_as_markup(text: str) -> None:
    """Whatever is written into an element or an attribute is read back unchanged."""
    read = ElementTree.fromstring(el("text", text, aria_label=text))
    assert (read.text or "") == text
    assert read.attrib["aria-label"] == text


@given(lo=st.floats(0, 1e6), extent=st.floats(1, 1e6), share=st.floats(0, 1))
@pytest.mark.parametrize("warp", [float, math.log1p], ids=["a linear scale", "a logarithmic scale"])
def test_a_scale_maps_its_ends_to_its_ends_and_keeps_order(
    warp: object, lo: float, extent: float, share: float
) -> None:
    """The lowest value lands at the start, the highest at the end, all others between."""
    scale = Scale(lo, lo + extent, 50, 250, warp)  # type: ignore[arg-type]
    assert scale(lo) == pytest.approx(50)
    assert scale(lo + extent) == pytest.approx(250)
    assert 50 - 1e-6 <= scale(lo + share * extent) <= 250 + 1e-6


@pytest.mark.parametrize(
    ("top", "ticks"),
    [
        pytest.param(0, [0], id="nothing to show has one tick at zero"),
        pytest.param(10, [0, 2, 4, 6, 8, 10], id="ten is counted in twos"),
        pytest.param(498, [0, 100, 200, 300, 400], id="a count in the hundreds is counted in hundreds"),
        pytest.param(0.6, [0, 0.2, 0.4, 0.6], id="shares are counted in fifths"),
    ],
)
def test_ticks_are_round_numbers(top: float, ticks: list[float]) -> None:
    """Ticks step by 1, 2 or 5 times a power of ten and stay within the top."""
    assert round_ticks(top) == pytest.approx(ticks)


@given(wanted=positions)
def test_labels_do_not_overlap_and_keep_their_order(wanted: list[float]) -> None:
    """Labels end up at least the gap apart, inside the frame, in the order of what they name."""
    placed = apart(wanted, 20, 0, 300)
    ordered = sorted(placed)
    assert all(b - a >= 20 - 1e-6 for a, b in pairwise(ordered))
    assert ordered[0] >= -1e-6
    assert ordered[-1] <= 300
    assert [placed[i] for i in sorted(range(len(wanted)), key=lambda i: wanted[i])] == ordered


def test_a_step_path_holds_each_value_until_the_next_point() -> None:
    """Between two points the line runs level, and an area closes on its base line."""
    points = [(0.0, 10.0), (5.0, 4.0)]
    assert steps(points) == "M0.0 10.0H5.0V4.0"
    assert area(points, 20) == "M0.0 10.0H5.0V4.0V20.0H0.0Z"
