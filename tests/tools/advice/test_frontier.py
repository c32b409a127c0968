"""Dollars against waits: who is beaten, and what is recommended."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.tools.advice.frontier import TOLERANCE, Run, ahead, cheapest_within, efficient_runs, knee, usd_at

CURVE = [Run(10, 300), Run(30, 150), Run(100, 120), Run(200, 110)]
RUNS = st.lists(st.builds(Run, st.integers(0, 10_000), st.integers(1, 1_000_000)), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("peer", "beaten"),
    [
        pytest.param(Run(20, 225), False, id="on the line between two runs"),
        pytest.param(Run(20, 222), True, id="cheaper by over a hundredth at equal wait"),
        pytest.param(Run(20, 223), False, id="cheaper by less than a hundredth"),
        pytest.param(Run(500, 108), True, id="beyond the last run that one counts"),
        pytest.param(Run(5, 200), True, id="quicker than all and cheaper than the dearest"),
        pytest.param(Run(5, 400), False, id="quicker than all and dearer"),
    ],
)
def test_a_peer_beats_a_curve_by_over_a_hundredth_at_its_wait(peer: Run, beaten: bool) -> None:
    """Linear between our runs, and beyond the last one that one's dollars."""
    assert (ahead(CURVE, peer) > TOLERANCE) is beaten


@given(RUNS)
def test_every_run_is_dominated_or_on_the_curve(runs: list[Run]) -> None:
    """Dollars fall as waits grow along the curve, and each run has one of it as quick and as cheap."""
    curve = efficient_runs(runs)
    assert all(a.wait_s < b.wait_s and a.usd > b.usd for a, b in pairwise(curve))
    assert all(any(k.wait_s <= run.wait_s and k.usd <= run.usd for k in curve) for run in runs)
    assert all(usd_at(curve, run.wait_s) == pytest.approx(run.usd) for run in curve)
    assert knee(curve) in curve


def test_the_knee_is_where_little_more_is_saved() -> None:
    """Most of the waiting gone for little of the dollars."""
    assert knee(CURVE) == Run(30, 150)
    assert knee(CURVE[:1]) == CURVE[0]


def test_a_longest_wait_is_met_by_the_cheapest_run() -> None:
    """The cheapest run that waits no longer, or none."""
    assert cheapest_within(CURVE, 150) == Run(100, 120)
    assert cheapest_within(CURVE, 5) is None
