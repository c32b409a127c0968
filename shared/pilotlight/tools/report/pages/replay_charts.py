"""Charts of a replay: GPUs paid and used, peers beside Pilotlight in GPUs and dollars, waits, costly idle hours."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from pilotlight.tools.replay.traces.trace_job import IdleHour
from pilotlight.tools.report.pages.axis_ticks import WAIT_TICKS, day_ticks, labels_with_room, signed_ticks
from pilotlight.tools.report.pages.replay_samples import Bucket, day_and_hour
from pilotlight.tools.report.pages.svg import (
    Frame,
    Scale,
    area,
    axes,
    drawing,
    el,
    group,
    line,
    round_ticks,
    steps,
)
from pilotlight.units import Seconds, Usd, human

WIDE, NARROW = Frame(860, 330, 58, 850, 28, 296), Frame(340, 240, 60, 332, 28, 206)
"""Every chart is drawn for a wide window and for a narrow one, so that letters keep their size."""


OFF = 25.0
"""A peer that is so many times as far above Pilotlight as the next leaves the frame."""

FAR = 3.0
"""The lower bound is drawn where it is at most so many times as far as any peer."""


class Chart(NamedTuple):
    """One chart in both sizes, and what its lines or areas are: class names with words."""

    wide: Markup
    narrow: Markup
    legend: tuple[tuple[str, str], ...] = ()


def gpus(policy: str, buckets: Sequence[Bucket], *, top: float) -> Chart:
    """GPUs paid for as a pale area with GPUs in use before it: what stays pale was idle."""
    wide, narrow = (_gpus(policy, buckets, top, frame) for frame in (WIDE, NARROW))
    return Chart(wide, narrow, (("box paid", "paid for"), ("box used", "in use")))


def _gpus(policy: str, buckets: Sequence[Bucket], top: float, frame: Frame) -> Markup:
    x = Scale(buckets[0].start, buckets[-1].end, frame.left, frame.right)
    y = Scale(0, top, frame.bottom, frame.top)
    paid, used = (_held([(x(b.start), y(v)) for b, v in each], frame) for each in _pairs(buckets))
    hover = [
        _hover(frame, x, b, f"{b.paid:,.1f} GPUs paid, {b.used:,.1f} in use, {b.waiting:,} jobs waiting")
        for b in buckets
    ]
    return drawing(
        frame,
        f"{policy}: GPUs paid for and in use",
        f"Over {human(buckets[-1].end - buckets[0].start)}, on average "
        f"{_mean([b.paid for b in buckets]):,.1f} paid for and {_mean([b.used for b in buckets]):,.1f} in use.",
        axes(frame, x, y, day_ticks(x, _ticks(frame)), [(v, f"{v:,g}") for v in round_ticks(top)], "GPUs"),
        el("path", class_="paid", d=area(paid, frame.bottom)),
        el("path", class_="used", d=area(used, frame.bottom)),
        group(hover),
    )


def _pairs(buckets: Sequence[Bucket]) -> tuple[list[tuple[Bucket, float]], list[tuple[Bucket, float]]]:
    return [(b, b.paid) for b in buckets], [(b, b.used) for b in buckets]


def _held(points: list[tuple[float, float]], frame: Frame) -> list[tuple[float, float]]:
    """Steps up to the right edge."""
    return [*points, (frame.right, points[-1][1])]


def peer_difference(policy: str, theirs: Sequence[Bucket], ours: Sequence[Bucket]) -> Chart:
    """GPUs that a peer paid for beyond Pilotlight's, above a line for more and below it for fewer, on its own scale."""
    apart_ = [b.paid - o.paid for b, o in zip(theirs, ours, strict=True)]
    wide, narrow = (_beside(policy, theirs, apart_, frame) for frame in (WIDE, NARROW))
    return Chart(wide, narrow, (("box more", "more than Pilotlight"), ("box less", "fewer")))


def _beside(policy: str, theirs: Sequence[Bucket], gaps: Sequence[float], frame: Frame) -> Markup:
    x = Scale(theirs[0].start, theirs[-1].end, frame.left, frame.right)
    high, low = max(1.0, *gaps), min(-1.0, *gaps)
    y = Scale(low, high, frame.bottom, frame.top)
    ticks = signed_ticks(low, high, "{:+,g}", 0.12 * (high - low))
    more, fewer = (
        _held([(x(b.start), y(pick(0.0, gap))) for b, gap in zip(theirs, gaps, strict=True)], frame)
        for pick in (max, min)
    )
    hover = [
        _hover(frame, x, b, f"{b.paid:,.1f} GPUs paid, {gap:+,.1f} beside Pilotlight")
        for b, gap in zip(theirs, gaps, strict=True)
    ]
    return drawing(
        frame,
        f"{policy}: GPUs paid for beyond Pilotlight's",
        f"On average {_mean(gaps):+,.1f}, at most {max(gaps):+,.1f}, at least {min(gaps):+,.1f}.",
        axes(frame, x, y, day_ticks(x, _ticks(frame)), ticks, "GPUs"),
        el("path", class_="more", d=area(more, y(0))),
        el("path", class_="less", d=area(fewer, y(0))),
        _across("zero", frame, y(0)),
        group(hover),
    )


def dollars(runs: Mapping[str, Sequence[Bucket]], paid: Mapping[str, Usd], bound: Usd) -> Chart:
    """Dollars that every peer had paid beyond Pilotlight (the line at zero), and the lower bound as a line to end at.

    ``paid`` is what each paid in all. A peer that ends far above the others leaves the frame, and its label says so:
    drawn to scale it would press all others together.
    """
    (first, ours), *others = runs.items()
    gaps = {name: [b.usd - o.usd for b, o in zip(run, ours, strict=True)] for name, run in others}
    to_bound = float(bound - paid[first])
    top = 1.06 * _framed([max(each) for each in gaps.values()] or [1.0])
    least = min((min(each) for each in gaps.values()), default=0.0)
    near = -to_bound <= FAR * max(top, -least)
    low = 1.06 * min(least, to_bound if near else 0.0)
    wide, narrow = (_dollars(ours, gaps, (low, top), to_bound if near else None, frame) for frame in (WIDE, NARROW))
    ends = {name: float(paid[name] - paid[first]) for name, _ in others}
    legend = [("line c0", f"{first} ${paid[first]:,.0f}")]
    for i, (name, end) in enumerate(ends.items(), 1):
        beyond = max(gaps[name]) > top
        legend.append((f"line c{i}", f"{name} {dollars_apart(end)}{', leaves the frame ↑' if beyond else ''}"))
    below = f"lower bound {dollars_apart(to_bound)}{'' if near else ', below the frame ↓'}"
    return Chart(wide, narrow, (*legend, ("line bound", below)))


def _dollars(
    ours: Sequence[Bucket],
    gaps: Mapping[str, Sequence[float]],
    span: tuple[float, float],
    bound: float | None,
    frame: Frame,
) -> Markup:
    low, top = span
    x = Scale(ours[0].start, ours[-1].end, frame.left, frame.right)
    y = Scale(low, top, frame.bottom, frame.top)
    lines = [
        el(
            "path",
            el("title", f"{name}: {dollars_apart(gap[-1])}"),
            class_=f"line c{i}",
            d=line([(x(ours[0].start), y(0)), *((x(b.end), y(v)) for b, v in zip(ours, gap, strict=True) if v <= top)]),
        )
        for i, (name, gap) in enumerate(gaps.items(), 1)
    ]
    ticks = signed_ticks(low, top, "{}", 0.1 * (top - low))
    shown = [(v, dollars_apart(v, short=frame is NARROW)) for v, _ in ticks]
    return drawing(
        frame,
        "Dollars paid beyond Pilotlight's",
        "; ".join(f"{name} {dollars_apart(gap[-1])}" for name, gap in gaps.items()) + ".",
        axes(frame, x, y, day_ticks(x, _ticks(frame)), shown, "dollars beyond Pilotlight"),
        _across("bound", frame, y(bound)) if bound is not None else Markup(),
        _across("line c0", frame, y(0)),
        group(reversed(lines)),
    )


def _across(kind: str, frame: Frame, at: float) -> Markup:
    return el("line", class_=kind, x1=frame.left, x2=frame.right, y1=at, y2=at)


def dollars_apart(usd: float, *, short: bool = False) -> str:
    """A difference in dollars: "+$1,587", "-$70"; ``short`` "+$1.6k"."""
    sign = "+" if usd > 0 else "-" if usd < 0 else ""
    size = abs(usd)
    if short and size >= 1000:
        return f"{sign}${size / 1000:,.3g}k"
    return f"{sign}${size:,.0f}"


def waits(by_policy: Mapping[str, Sequence[Seconds]]) -> Chart:
    """For every policy the share of jobs (y) that waited no longer than so many seconds (x, log of 1 + s)."""
    ordered = {name: sorted(w) for name, w in by_policy.items() if w}
    wide, narrow = (_waits(ordered, frame) for frame in (WIDE, NARROW))
    names = ((f"line c{i}", f"{name} {_share(w, 0):.0%} at once") for i, (name, w) in enumerate(ordered.items()))
    return Chart(wide, narrow, tuple(names))


def _waits(ordered: Mapping[str, Sequence[Seconds]], frame: Frame) -> Markup:
    longest = 1.3 * max(60.0, *(w[-1] for w in ordered.values()))
    low = math.floor(min(_share(w, 0) for w in ordered.values()) * 10) / 10
    x = Scale(0, longest, frame.left, frame.right, math.log1p)
    y = Scale(low, 1, frame.bottom, frame.top)
    samples = [math.expm1(math.log1p(longest) * i / 240) for i in range(241)]
    lines = [
        el(
            "path",
            el("title", f"{name}: {_share(w, 0):.1%} at once, {_share(w, 60):.1%} within a minute"),
            class_=f"line c{i}",
            d=steps([(x(s), y(_share(w, s))) for s in samples]),
        )
        for i, (name, w) in enumerate(ordered.items())
    ]
    share_ticks = [(1 - below, f"{1 - below:.0%}") for below in round_ticks(1 - low)]
    x_ticks = labels_with_room([(v, t) for v, t in WAIT_TICKS if v <= longest], x, 58.0)
    return drawing(
        frame,
        "Share of jobs that waited at most so long",
        "; ".join(f"{name} {_share(w, 0):.0%} at once, {_share(w, 60):.0%} within 60 s" for name, w in ordered.items()),
        axes(frame, x, y, x_ticks, share_ticks, "share of jobs"),
        group(reversed(lines)),
    )


def idle_hours(hours: Sequence[IdleHour]) -> list[tuple[str, str, float]]:
    """The given hours, costliest first: when, what was idle, and the length of a bar in percent."""
    ranked = sorted(hours, key=lambda h: (-h.usd, h.start))
    most = float(ranked[0].usd) or 1.0
    return [
        (day_and_hour(h.start), f"${h.usd:,.2f} for {h.gpus:,.1f} idle GPUs", 100 * float(h.usd) / most) for h in ranked
    ]


def _ticks(frame: Frame) -> int:
    return 9 if frame is WIDE else 4


def _hover(frame: Frame, x: Scale, at: Bucket, text: str) -> Markup:
    return el(
        "rect",
        el("title", f"{day_and_hour(at.start)}: {text}"),
        class_="hover",
        x=x(at.start),
        width=x(at.end) - x(at.start),
        y=frame.top,
        height=frame.bottom - frame.top,
    )


def _framed(tops: Sequence[float]) -> float:
    """The most dollars to draw: all, save one peer that is far above."""
    highest, *others = sorted(tops, reverse=True)
    kept = others[0] if others and highest > OFF * max(others[0], 1.0) else highest
    return max(kept, 1.0)


def _share(ordered: Sequence[float], at_most: float) -> float:
    return bisect_right(ordered, at_most) / len(ordered)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
