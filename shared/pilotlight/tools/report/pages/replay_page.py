"""A replay as one self-contained HTML page: no script, no font, no request when it is opened."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple, TypeVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pilotlight.tools.replay.traces.trace_job import IdleHour, Result
from pilotlight.tools.report.pages import dollars_and_waits
from pilotlight.tools.report.pages import replay_charts as charts
from pilotlight.tools.report.pages.replay_samples import (
    Bucket,
    Series,
    busy_until,
    day_and_hour,
    resample,
    samples_until,
)
from pilotlight.tools.report.tables.replay_table import columns_for, usd, wait
from pilotlight.units import Seconds

T = TypeVar("T")
_ACROSS = 240


def page(
    results: Sequence[Result],
    series: Series,
    waits: Mapping[str, Sequence[Seconds]],
    idle_hours: Sequence[IdleHour],
    *,
    title: str,
    trace_note: str,
    notes: Sequence[str] = (),
) -> str:
    """The page. Pilotlight's result comes first; ``series`` and ``waits`` are by the results' policy names.

    ``idle_hours`` are Pilotlight's. A policy without samples has no curve; a chart without data is left out.
    ``trace_note`` says which jobs these are, ``notes`` what else a reader must know to judge the figures.
    """
    ours = results[0]
    columns = columns_for(results)
    runs = _runs(results, series)
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(files(__package__).joinpath("replay_page.html").read_text("utf-8")).render(
        style=style(),
        title=title,
        ours=ours,
        sentence=sentence(ours),
        against=against(ours, results[1:]),
        tiles=_tiles(ours),
        against_wait=dollars_and_waits.chart(results) if len(results) > 1 else None,
        headings=[heading for heading, _ in columns],
        rows=[[cell(result) for _, cell in columns] for result in results],
        after=runs.after,
        own=_own(results, runs),
        peers=_peers(results, runs),
        dollars=_dollars(results, runs),
        waits=charts.waits(_named(results, waits)) if any(waits.values()) else None,
        idle=charts.idle_hours(idle_hours) if idle_hours else None,
        bound=usd(ours.bound_usd.integral),
        trace_note=trace_note.rstrip("."),
        notes=notes,
    )


def style() -> Markup:
    """The style sheet of every page, which is written into it."""
    return Markup(files(__package__).joinpath("page.css").read_text("utf-8"))


def sentence(ours: Result) -> str:
    """A sentence on what Pilotlight did."""
    jobs = (
        f"{ours.jobs_done:,} jobs" if ours.finished else f"{ours.jobs_done:,} of {ours.jobs:,} jobs, which is a failure"
    )
    times = "" if ours.x_integral is None else f", {ours.x_integral:.2f} times the lower bound"
    return f"Pilotlight paid {usd(ours.cost_usd)} for {jobs}{times}, at a mean wait of {wait(ours.wait_s.mean)}."


def against(ours: Result, peers: Sequence[Result]) -> str:
    """A sentence on the peers beside it: the cheapest, and the one with the shortest mean wait; empty without peers."""
    if not peers:
        return ""
    cheapest = min(peers, key=lambda r: r.cost_usd)
    quickest = min(peers, key=lambda r: (r.wait_s.mean, r.cost_usd))
    text = f"Of {len(peers)} peers the cheapest, {cheapest.policy}, {_compared(ours, cheapest)}"
    if quickest is cheapest:
        return f"{text}; none waited less."
    return f"{text}; the one with the shortest waits, {quickest.policy}, {_compared(ours, quickest)}."


def _compared(ours: Result, peer: Result) -> str:
    return f"paid {usd(peer.cost_usd)} ({_beside(ours, peer)}) at a mean wait of {wait(peer.wait_s.mean)}"


def _beside(ours: Result, peer: Result) -> str:
    ratio = float(peer.cost_usd / ours.cost_usd) if ours.cost_usd else 1.0
    if ratio >= 2:
        return f"{ratio:.1f} times as much"
    return f"{abs(ratio - 1):.1%} {'more' if ratio >= 1 else 'less'}"


def _tiles(ours: Result) -> list[tuple[str, str]]:
    """The figures that matter most, each with its name."""
    tiles = [
        (usd(ours.cost_usd), "paid"),
        ("-" if ours.x_integral is None else f"{ours.x_integral:.2f}×", "the lower bound"),
        ("-" if ours.utilization is None else f"{ours.utilization:.0%}", "of paid GPU-hours used"),
        (wait(ours.wait_s.mean), "mean wait"),
        (wait(ours.wait_s.p95), "P95 wait"),
        (f"{ours.launches:,}", "node launches"),
    ]
    return [*tiles, (f"{ours.interruptions:,}", "interruptions")] if ours.interruptions else tiles


class _Runs(NamedTuple):
    """Every policy's stretches up to one moment, and what is said of what comes after it."""

    drawn: dict[str, list[Bucket]]
    after: str = ""


def _runs(results: Sequence[Result], series: Series) -> _Runs:
    """Where the few last GPUs would leave most of an axis blank, it ends before them and says so."""
    named = {name: points for name, points in _named(results, series).items() if len(points) > 1}
    ours = named.get(results[0].policy)
    if not ours:
        return _Runs({})
    end = busy_until(ours)
    kept = {name: resample(samples_until(points, end), _ACROSS) for name, points in named.items()}
    drawn = {name: buckets for name, buckets in kept.items() if buckets}
    late = [p.gpus_used for p in ours if p.t >= end]
    if end >= ours[-1].t or not late:
        return _Runs(drawn)
    said = (
        f"The axes end at {day_and_hour(end)}: from then until {day_and_hour(ours[-1].t)} at most {max(late):,.0f} GPUs"
    )
    return _Runs(drawn, f"{said} were in use. They are in every figure, and not drawn.")


def _peers(results: Sequence[Result], runs: _Runs) -> list[tuple[str, charts.Chart]]:
    """Each peer's GPUs beside Pilotlight's."""
    ours = runs.drawn.get(results[0].policy)
    if ours is None:
        return []
    return [
        (name, charts.peer_difference(name, theirs, ours))
        for name, theirs in runs.drawn.items()
        if name != results[0].policy
    ]


def _own(results: Sequence[Result], runs: _Runs) -> charts.Chart | None:
    ours = runs.drawn.get(results[0].policy)
    top = max((b.paid for b in ours), default=0) * 1.04 or 1 if ours else 1
    return charts.gpus(results[0].policy, ours, top=top) if ours else None


def _dollars(results: Sequence[Result], runs: _Runs) -> charts.Chart | None:
    paid = {r.policy: r.cost_usd for r in results}
    if results[0].policy not in runs.drawn or len(runs.drawn) == 1:
        return None
    return charts.dollars(runs.drawn, paid, results[0].bound_usd.integral)


def _named(results: Sequence[Result], values: Mapping[str, T]) -> dict[str, T]:
    """The values in the results' order, so that a policy keeps its colour from chart to chart."""
    return {r.policy: values[r.policy] for r in results if r.policy in values}
