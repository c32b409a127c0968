"""The charts of a replay: GPUs paid and used, dollars accumulated, waits, the costliest idle hours."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from pilotlight.facts.trace import IdleHour, Point
from pilotlight.report.svg import Frame, Scale, Tick, apart, area, axes, drawing, el, group, line, round_ticks, steps
from pilotlight.units import HOUR, Seconds, Usd, human

DAY = 24 * HOUR
Series = Mapping[str, Sequence[Point]]
"""Samples over time by policy, Pilotlight's among them; a sample holds until the next one."""


class Bucket(NamedTuple):
    """A stretch of a run: mean GPUs paid and used in it, dollars and waiting jobs at its end."""

    start: Seconds
    end: Seconds
    paid: float
    used: float
    usd: float
    waiting: int


def resample(points: Sequence[Point], most: int) -> list[Bucket]:
    """The run in at most ``most`` equal stretches. GPU counts are means over time, so areas stay true."""
    if len(points) < 2 or points[-1].t <= points[0].t:
        return []
    start, end = points[0].t, points[-1].t
    width = (end - start) / most
    edges = [start + i * width for i in range(most)] + [end]
    paid, used = _integral(points, "gpus_paid", edges), _integral(points, "gpus_used", edges)
    times = [p.t for p in points]
    last = [points[bisect_right(times, edge) - 1] for edge in edges[1:]]
    return [
        Bucket(a, b, (paid[i + 1] - paid[i]) / (b - a), (used[i + 1] - used[i]) / (b - a), float(p.usd), p.waiting)
        for i, (a, b, p) in enumerate(zip(edges, edges[1:], last, strict=False))
    ]


def _integral(points: Sequence[Point], name: str, edges: Sequence[float]) -> list[float]:
    """The area below a step function from its begin to each of the (sorted) edges."""
    areas, total, i = [], 0.0, 0
    for edge in edges:
        while i + 1 < len(points) and points[i + 1].t <= edge:
            total += getattr(points[i], name) * (points[i + 1].t - points[i].t)
            i += 1
        areas.append(total + getattr(points[i], name) * (edge - points[i].t))
    return areas


def gpus(policy: str, buckets: Sequence[Bucket], *, top: float, small: bool = False) -> Markup:
    """GPUs paid for as a pale area with GPUs in use before it: what stays pale was idle."""
    frame = Frame(470, 210, 44, 460, 26, 180) if small else Frame(960, 330, 52, 944, 28, 296)
    x = Scale(buckets[0].start, buckets[-1].end, frame.left, frame.right)
    y = Scale(0, top, frame.bottom, frame.top)
    end = [(x(buckets[-1].end), 0.0)]
    paid = [(x(b.start), y(b.paid)) for b in buckets]
    used = [(x(b.start), y(b.used)) for b in buckets]
    paid, used = ([*path, (end[0][0], path[-1][1])] for path in (paid, used))
    hover = [
        el(
            "rect",
            el("title", f"{when(b.start)}: {b.paid:,.1f} GPUs paid, {b.used:,.1f} in use, {b.waiting:,} jobs waiting"),
            class_="hover", x=x(b.start), width=x(b.end) - x(b.start), y=frame.top, height=frame.bottom - frame.top,
        )
        for b in buckets
    ]  # fmt: skip
    y_ticks = [(v, f"{v:,g}") for v in round_ticks(top, 3 if small else 5)]
    return drawing(
        frame,
        f"{policy}: GPUs paid for and in use",
        f"Over {human(buckets[-1].end - buckets[0].start)}, on average "
        f"{_mean([b.paid for b in buckets]):,.1f} paid for and {_mean([b.used for b in buckets]):,.1f} in use.",
        axes(frame, x, y, _days(x, 5 if small else 9), y_ticks, "GPUs"),
        el("path", class_="paid", d=area(paid, frame.bottom)),
        el("path", class_="used", d=area(used, frame.bottom)),
        group(hover),
    )


def dollars(runs: Mapping[str, Sequence[Bucket]], paid: Mapping[str, Usd], bound: Usd) -> Markup:
    """Dollars accumulated by every policy, what each ``paid`` in all, and the lower bound as a line to end at.

    A policy that ends at more than twice the next one leaves the frame, and its label says where it went:
    drawn to scale it would press all others together.
    """
    frame = Frame(960, 390, 64, 690, 28, 354)
    ends = {name: float(paid[name]) for name in runs}
    top = max(float(bound), _framed([*ends.values()])) * 1.04
    begin, finish = min(r[0].start for r in runs.values()), max(r[-1].end for r in runs.values())
    x, y = Scale(begin, finish, frame.left, frame.right), Scale(0, top, frame.bottom, frame.top)
    labels = apart([max(frame.top, y(v)) for v in (*ends.values(), float(bound))], 20, frame.top + 4, frame.bottom)
    lines = [
        el(
            "path",
            el("title", f"{name}: ${ends[name]:,.0f}"),
            class_=f"line c{i}",
            d=line([(x(run[0].start), y(0)), *((x(b.end), y(b.usd)) for b in run if b.usd <= top)]),
        )
        for i, (name, run) in enumerate(runs.items())
    ]
    names = [
        _label(f"{name} ${ends[name]:,.0f}{' ↑' if ends[name] > top else ''}", i, frame.right, labels[i])
        for i, name in enumerate(runs)
    ]
    floor = el("line", class_="bound", x1=frame.left, x2=frame.right, y1=y(float(bound)), y2=y(float(bound)))
    return drawing(
        frame,
        "Dollars accumulated",
        "; ".join(f"{name} ${usd:,.0f}" for name, usd in ends.items()) + f"; lower bound ${bound:,.0f}.",
        axes(frame, x, y, _days(x, 9), [(v, f"${v:,.0f}") for v in round_ticks(top)], "dollars so far"),
        floor,
        group(reversed(lines)),
        group(names),
        el("text", f"lower bound ${bound:,.0f}", class_="label faint", x=frame.right + 22, y=labels[-1] + 4),
    )


def waits(by_policy: Mapping[str, Sequence[Seconds]]) -> Markup:
    """For every policy the share of jobs (y) that waited no longer than so many seconds (x, log of 1 + s)."""
    frame = Frame(960, 390, 64, 690, 28, 354)
    ordered = {name: sorted(w) for name, w in by_policy.items() if w}
    longest = 1.3 * max(60.0, *(w[-1] for w in ordered.values()))
    low = math.floor(min(_share(w, 0) for w in ordered.values()) * 10) / 10
    x = Scale(0, longest, frame.left, frame.right, math.log1p)
    y = Scale(low, 1, frame.bottom, frame.top)
    samples = [math.expm1(math.log1p(longest) * i / 240) for i in range(241)]
    middle = {name: _share(w, 10.0) for name, w in ordered.items()}
    labels = apart([y(v) for v in middle.values()], 20, frame.top + 4, frame.bottom)
    lines = [
        el(
            "path",
            el("title", f"{name}: {_share(w, 0):.1%} at once, {_share(w, 60):.1%} within a minute"),
            class_=f"line c{i}",
            d=steps([(x(s), y(_share(w, s))) for s in samples]),
        )
        for i, (name, w) in enumerate(ordered.items())
    ]
    names = [
        _label(f"{name} {_share(w, 0):.0%} at once", i, frame.right, labels[i])
        for i, (name, w) in enumerate(ordered.items())
    ]
    share_ticks = [(1 - below, f"{1 - below:.0%}") for below in round_ticks(1 - low)]
    return drawing(
        frame,
        "Share of jobs that waited at most so long",
        "; ".join(f"{name} {_share(w, 0):.0%} at once, {_share(w, 60):.0%} within 60 s" for name, w in ordered.items()),
        axes(frame, x, y, [(v, t) for v, t in _WAIT_TICKS if v <= longest], share_ticks, "share of jobs"),
        group(reversed(lines)),
        group(names),
    )


def idle_hours(hours: Sequence[IdleHour]) -> Markup:
    """The given hours as bars of idle dollars, costliest at the top."""
    ranked = sorted(hours, key=lambda h: (-h.usd, h.start))
    frame = Frame(960, 24 + 28 * len(ranked), 120, 700, 12, 12 + 28 * len(ranked))
    x = Scale(0, float(ranked[0].usd) or 1, frame.left, frame.right)
    rows = []
    for i, hour in enumerate(ranked):
        y = frame.top + 28 * i
        text = f"${hour.usd:,.2f} for {hour.gpus:,.1f} idle GPUs"
        rows += [
            el("text", when(hour.start), class_="tick end", x=frame.left - 10, y=y + 17),
            el("rect", el("title", f"{when(hour.start)}: {text}"), class_="bar", rx=3, x=frame.left, y=y + 3,
               width=max(1.0, x(float(hour.usd)) - frame.left), height=20),
            el("text", text, class_="label", x=x(float(hour.usd)) + 8, y=y + 17),
        ]  # fmt: skip
    about = f"The costliest, {when(ranked[0].start)}, cost ${ranked[0].usd:,.2f}."
    return drawing(frame, "The costliest idle hours", about, group(rows))


def when(t: Seconds) -> str:
    """A moment of a run as "day 3, 14:00"."""
    day, rest = divmod(t, DAY)
    return f"day {day + 1:.0f}, {rest // HOUR:02.0f}:{rest % HOUR // 60:02.0f}"


_WAIT_TICKS: list[Tick] = [
    (0, "0"), (1, "1 s"), (10, "10 s"), (60, "1 min"), (180, "3 min"), (600, "10 min"),
    (HOUR, "1 h"), (6 * HOUR, "6 h"), (DAY, "1 day"), (7 * DAY, "1 week"),
]  # fmt: skip


def _days(x: Scale, most: int) -> list[Tick]:
    """Ticks at whole days where there are two or more, else at hours."""
    unit, name = (DAY, "day") if x.hi - x.lo >= 2 * DAY else (HOUR, "hour")
    count = int((x.hi - x.lo) / unit) + 1
    every = max(1, math.ceil(count / most))
    return [(x.lo + i * unit, f"{name} {i + 1}") for i in range(0, count, every)]


def _label(text: str, colour: int, x: float, y: float) -> Markup:
    return el("line", class_=f"line c{colour}", x1=x + 4, x2=x + 18, y1=y, y2=y) + el(
        "text", text, class_="label strong" if colour == 0 else "label", x=x + 22, y=y + 4
    )


def _framed(ends: Sequence[float]) -> float:
    """The most dollars to draw: all, save one peer that is far above; never Pilotlight, who comes first."""
    highest, *others = sorted(ends, reverse=True)
    return others[0] if others and highest > 2 * others[0] and highest != ends[0] else highest


def _share(ordered: Sequence[float], at_most: float) -> float:
    return bisect_right(ordered, at_most) / len(ordered)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
