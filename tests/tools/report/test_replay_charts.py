"""The charts of a replay: what is averaged, what leaves the frame, what hovering tells."""

from decimal import Decimal
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.tools.replay.traces.trace_job import IdleHour, Point
from pilotlight.tools.report.pages import replay_charts as charts
from pilotlight.tools.report.pages.axis_ticks import signed_ticks
from pilotlight.tools.report.pages.replay_samples import busy_until, resample, samples_until

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
    drawn = sum(b.paid * (b.end - b.start) for b in resample(run, most))
    held = sum(p.gpus_paid * (q.t - p.t) for p, q in pairwise(run))
    assert drawn == pytest.approx(held, rel=1e-6, abs=1e-3)


def test_resampling_takes_dollars_and_queue_at_the_end_of_a_stretch(run: list[Point]) -> None:
    """GPU counts are means over a stretch; dollars and waiting jobs are those at its end."""
    first, second = resample(run[:3], 2)
    assert (first.paid, first.used, first.usd, first.waiting) == (8, 6, 40.0, 2)
    assert (second.paid, second.used, second.usd, second.waiting) == (16, 16, 120.0, 0)


def test_a_run_of_one_moment_has_no_curve(run: list[Point]) -> None:
    """A single sample spans no time, so nothing is drawn."""
    assert resample(run[:1], 10) == []


def test_hovering_over_gpus_tells_when_and_how_many(run: list[Point]) -> None:
    """Each stretch names its moment, GPUs paid, GPUs in use and jobs waiting."""
    titles = _titles(charts.gpus("keda", resample(run, 3), top=16).wide)
    assert titles[0] == "day 1, 00:00: 8.0 GPUs paid, 6.0 in use, 2 jobs waiting"
    assert len(titles) == 3


def test_a_peer_is_drawn_by_how_it_differs(run: list[Point]) -> None:
    """What it paid for beyond Pilotlight's GPUs, each stretch with the difference, more or less."""
    ours = resample(run, 3)
    theirs = [b._replace(paid=b.paid + more) for b, more in zip(ours, (4.0, -2.0, 0.0), strict=True)]
    drawn = charts.peer_difference("keda", theirs, ours)
    assert _titles(drawn.wide)[:2] == [
        "day 1, 00:00: 12.0 GPUs paid, +4.0 beside Pilotlight",
        "day 2, 00:00: 14.0 GPUs paid, -2.0 beside Pilotlight",
    ]
    assert {"-2", "0", "+4"} <= set(_texts(drawn.narrow))


def test_one_far_dearer_peer_leaves_the_frame_and_says_so(run: list[Point]) -> None:
    """A peer far above the next is marked with an arrow, and the others keep the height."""
    ours = resample(run, 3)
    dear, near = ([b._replace(usd=b.usd * times) for b in ours] for times in (10, 1.1))
    paid = {"pilotlight": Decimal(120), "keda": Decimal(132), "always-on": Decimal(1200)}
    drawn = charts.dollars({"pilotlight": ours, "keda": near, "always-on": dear}, paid, Decimal(100))
    assert [words for _, words in drawn.legend] == [
        "pilotlight $120",
        "keda +$12",
        "always-on +$1,080, leaves the frame ↑",
        "lower bound -$20",
    ]
    assert _texts(drawn.wide)[0] == "-$20"


def test_a_bound_far_below_does_not_press_the_peers_together(run: list[Point]) -> None:
    """It is named with what it is below, and not drawn."""
    ours = resample(run, 3)
    near = [b._replace(usd=b.usd * 1.01) for b in ours]
    paid = {"pilotlight": Decimal(120), "keda": Decimal("121.2")}
    drawn = charts.dollars({"pilotlight": ours, "keda": near}, paid, Decimal(20))
    assert drawn.legend[-1][1] == "lower bound -$100, below the frame ↓"
    assert 'class="bound"' not in drawn.wide


@pytest.mark.parametrize(
    ("usd", "short", "said"),
    [
        pytest.param(1587.4, False, "+$1,587", id="more"),
        pytest.param(-70.0, False, "-$70", id="less"),
        pytest.param(0.0, True, "$0", id="the same"),
        pytest.param(-12_340.0, True, "-$12.3k", id="short, in thousands"),
    ],
)
def test_differences_have_their_sign(usd: float, short: bool, said: str) -> None:
    """Before the dollars."""
    assert charts.dollars_apart(usd, short=short) == said


def test_an_axis_ends_before_the_few_last_gpus() -> None:
    """Of three weeks with a week of work and one GPU after it a week is drawn; none is cut for less than a tenth."""
    work = [Point(t=n * 3600.0, gpus_paid=90, gpus_used=80, usd=Decimal(n), waiting=0) for n in range(168)]
    last = [Point(t=n * 3600.0, gpus_paid=1, gpus_used=1, usd=Decimal(n), waiting=0) for n in (168, 500)]
    end = busy_until([*work, *last])
    assert 168 <= end / 3600 < 172
    assert samples_until([*work, *last], end)[-1] == Point(t=end, gpus_paid=1, gpus_used=1, usd=Decimal(168), waiting=0)
    assert busy_until(work) == 167 * 3600.0


@given(low=st.floats(-1e6, 0), high=st.floats(0, 1e6))
def test_an_axis_of_differences_has_zero_on_it(low: float, high: float) -> None:
    """And round values within its ends, in order."""
    ticks = signed_ticks(low, high, "{:g}", 0.0)
    assert (0.0, "0") in ticks
    assert [v for v, _ in ticks] == sorted(v for v, _ in ticks)
    assert all(low <= v <= high for v, _ in ticks)


def test_waits_tell_the_share_that_started_at_once() -> None:
    """The legend of a policy carries the share of its jobs that waited 0 s."""
    drawn = charts.waits({"pilotlight": [0.0, 0.0, 0.0, 190.0], "keda": [0.0, 30.0, 190.0, 4000.0]})
    assert [words for _, words in drawn.legend] == ["pilotlight 75% at once", "keda 25% at once"]
    assert "keda: 25.0% at once, 50.0% within a minute" in _titles(drawn.narrow)


def test_idle_hours_are_ranked_by_dollars() -> None:
    """The costliest hour stands at the top, with its moment, dollars and GPUs; bars are parts of it."""
    cheap = IdleHour(start=3600.0, usd=Decimal("2.50"), gpus=1)
    dear = IdleHour(start=90_000.0, usd=Decimal("65.54"), gpus=16)
    (first, said, share), (second, _, less) = charts.idle_hours([cheap, dear])
    assert (first, said, share) == ("day 2, 01:00", "$65.54 for 16.0 idle GPUs", 100)
    assert (second, round(less, 1)) == ("day 1, 01:00", 3.8)


def _titles(drawn: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(drawn).iter(f"{SVG}title")]


def _texts(drawn: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(drawn).iter(f"{SVG}text")]
