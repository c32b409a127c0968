"""The charts of a replay: what is averaged, what leaves the frame, what hovering tells."""

from decimal import Decimal
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.facts.trace import IdleHour, Point
from pilotlight.report import replay_charts as charts

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def runs(draw: st.DrawFn) -> list[Point]:
    """Samples at growing times with any GPU counts."""
    gaps = draw(st.lists(st.floats(0.1, 1e5), min_size=2, max_size=30))
    times = [sum(gaps[:i]) for i in range(len(gaps))]
    counts = st.floats(0, 5000)
    return [Point(t=t, gpus_paid=draw(counts), gpus_used=draw(counts), usd=Decimal(0), waiting=0) for t in times]


@given(run=runs(), most=st.integers(1, 50))
def test_resampling_keeps_the_gpu_hours(run: list[Point], most: int) -> None:
    """However coarse the drawing, the area below it is the GPU-hours of the run."""
    drawn = sum(b.paid * (b.end - b.start) for b in charts.resample(run, most))
    held = sum(p.gpus_paid * (q.t - p.t) for p, q in pairwise(run))
    assert drawn == pytest.approx(held, rel=1e-6, abs=1e-3)


def test_resampling_takes_dollars_and_queue_at_the_end_of_a_stretch(run: list[Point]) -> None:
    """GPU counts are means over a stretch; dollars and waiting jobs are those at its end."""
    first, second = charts.resample(run[:3], 2)
    assert (first.paid, first.used, first.usd, first.waiting) == (8, 6, 40.0, 2)
    assert (second.paid, second.used, second.usd, second.waiting) == (16, 16, 120.0, 0)


def test_a_run_of_one_moment_has_no_curve(run: list[Point]) -> None:
    """A single sample spans no time, so nothing is drawn."""
    assert charts.resample(run[:1], 10) == []


def test_hovering_over_gpus_tells_when_and_how_many(run: list[Point]) -> None:
    """Each stretch names its moment, GPUs paid, GPUs in use and jobs waiting."""
    titles = _titles(charts.gpus("keda", charts.resample(run, 3), top=16))
    assert titles[0] == "day 1, 00:00: 8.0 GPUs paid, 6.0 in use, 2 jobs waiting"
    assert len(titles) == 3


def test_one_far_dearer_peer_leaves_the_frame_and_says_so(run: list[Point]) -> None:
    """A peer at over twice the next is marked with an arrow, and the others keep the height."""
    ours = charts.resample(run, 3)
    dear = [b._replace(usd=b.usd * 7) for b in ours]
    paid = {"pilotlight": Decimal(120), "keda": Decimal(120), "always-on": Decimal(840)}
    texts = _texts(charts.dollars({"pilotlight": ours, "keda": ours, "always-on": dear}, paid, Decimal(100)))
    assert "always-on $840 ↑" in texts
    assert "pilotlight $120" in texts
    assert "lower bound $100" in texts


def test_pilotlight_never_leaves_the_frame(run: list[Point]) -> None:
    """Were Pilotlight the dear one, the scale would be its own."""
    peer = charts.resample(run, 3)
    ours = [b._replace(usd=b.usd * 7) for b in peer]
    paid = {"pilotlight": Decimal(840), "keda": Decimal(120)}
    assert "pilotlight $840" in _texts(charts.dollars({"pilotlight": ours, "keda": peer}, paid, Decimal(100)))


def test_waits_tell_the_share_that_started_at_once() -> None:
    """The label of a policy carries the share of its jobs that waited 0 s."""
    drawn = charts.waits({"pilotlight": [0.0, 0.0, 0.0, 190.0], "keda": [0.0, 30.0, 190.0, 4000.0]})
    assert {"pilotlight 75% at once", "keda 25% at once"} <= set(_texts(drawn))
    assert "keda: 25.0% at once, 50.0% within a minute" in _titles(drawn)


def test_idle_hours_are_ranked_by_dollars() -> None:
    """The costliest hour stands at the top, with its moment, dollars and GPUs."""
    cheap = IdleHour(start=3600.0, usd=Decimal("2.50"), gpus=1)
    dear = IdleHour(start=90_000.0, usd=Decimal("65.54"), gpus=16)
    assert _titles(charts.idle_hours([cheap, dear])) == [
        "day 2, 01:00: $65.54 for 16.0 idle GPUs",
        "day 1, 01:00: $2.50 for 1.0 idle GPUs",
    ]


def _titles(drawn: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(drawn).iter(f"{SVG}title")]


def _texts(drawn: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
