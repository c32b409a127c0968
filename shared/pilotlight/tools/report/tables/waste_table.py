"""GPUs that are held and not used, as JSON's figures and as a table with its evidence."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from rich.console import Console

from pilotlight.decide.utilisation.gpu_waste import Waste
from pilotlight.decide.utilisation.idle_pods import IdlePod
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.tools.advice.fragmentation import Fragments
from pilotlight.tools.advice.ways_to_share import WAYS, Kept, SharingAdvice
from pilotlight.tools.advice.weeks_of_use import Hours, MeteredWeeks, total
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import count_of, human, round_usd

PARTS = ("idle", "beyond", "spare", "rest")
"""They add up to what is held."""


class Found(NamedTuple):
    """All that a look found. ``fragments``: None without kube-state-metrics; ``books``: without the meter's days."""

    telemetry: Telemetry
    rows: Sequence[Waste]
    sharing: Mapping[str, Kept]
    """By owner, instead of spare and rest."""
    price: Decimal
    weeks: Mapping[date, Hours]
    fragments: Fragments | None
    books: MeteredWeeks | None


def usd_of(row: Waste, part: str) -> Decimal:
    """Dollars an hour of one of ``PARTS``."""
    usd: Decimal = getattr(row, f"{part}_usd")
    return usd


def shared_usd(found: Found, owner: str = "", way: str = "") -> Decimal:
    """Dollars an hour that sharing saves: by the safest way, or by one; of an owner, or of all."""
    kept = [one for name, one in found.sharing.items() if owner in ("", name)]
    advice = (advice for one in kept for advice in (one.ways if way else (one.advice,)) if way in ("", advice.kind))
    return sum((one.saved_usd(found.price) for one in advice), Decimal(0))


def watts_of(row: Waste) -> str:
    """The mean draw of its idle GPUs, each; nothing where it is not known."""
    return "" if row.watts is None else f"{row.watts:,.0f}"


def figures(found: Found) -> dict[str, Any]:
    """Every figure and its evidence."""
    sums = {f"{part}_usd_per_hour": _sum(found.rows, part) for part in PARTS}
    return {
        "metric": found.telemetry.metric,
        "samples": found.telemetry.samples,
        "step_s": found.telemetry.step_s,
        "usd_per_gpu_hour": found.price,
        "usd_per_hour": sum((row.usd_per_hour for row in found.rows), Decimal(0)),
        **sums,
        "sharing_usd_per_hour": shared_usd(found),
        "sharing_usd_per_hour_by_way": {way: shared_usd(found, way=way) for way in WAYS},
        "owners": [_owner(row, found) for row in found.rows],
        "weeks": [{"begins": str(monday), **_week(hours, found.price)} for monday, hours in found.weeks.items()],
        "all_weeks": _week(total(dict(found.weeks)), found.price),
        "fragmentation": _fragments(found.fragments, found.price),
        "metered": {**found.books._asdict(), "total": found.books.total} if found.books else None,
    }


def _owner(row: Waste, found: Found) -> dict[str, Any]:
    parts = {f"{part}_usd_per_hour": usd_of(row, part) for part in PARTS}
    kept = found.sharing.get(row.owner)
    return {
        "owner": row.owner,
        "gpus": int(row.held) if row.held.is_integer() else round(row.held, 6),
        "mean_activity": row.activity,
        "usd_per_hour": row.usd_per_hour,
        **parts,
        "watts": row.watts,
        "idle": [_idle(one) for one in row.idle],
        "beyond": [_idle(one) for one in row.beyond],
        "replicas": row.replicas._asdict() if row.replicas else None,
        "spare": row.spare,
        "sharing_usd_per_hour": shared_usd(found, row.owner),
        "sharing": [_way(one, found.price) for one in kept.ways] if kept else [],
    }


def _way(one: SharingAdvice, price: Decimal) -> dict[str, Any]:
    return {
        "way": one.kind,
        "pods": one.pods,
        "devices": one.devices,
        "saved_usd_per_hour": one.saved_usd(price),
        "asks": {pod.pod: asked for pod, asked in one.resources},
        "why": one.why,
        "risk": one.risk,
    }


def _idle(one: IdlePod) -> dict[str, Any]:
    return {
        "pod": one.pod,
        "device": one.device,
        "silent_s": one.silent_s,
        **one.evidence.seen._asdict(),
        "own": one.evidence.own._asdict(),
        "days": one.evidence.days._asdict(),
        "own_days": one.evidence.own_days._asdict(),
    }


def _week(hours: Hours, price: Decimal) -> dict[str, Any]:
    usd = {f"{name}_usd": price * Decimal(repr(round(value, 6))) for name, value in hours._asdict().items()}
    gpu_hours = {f"{name}_gpu_hours": value for name, value in hours._asdict().items()}
    return {"gpu_hours": hours.held, "usd": sum(usd.values(), Decimal(0)), **gpu_hours, **usd}


def _fragments(found: Fragments | None, price: Decimal) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "free": found.all_free,
        "stranded": found.stranded,
        "stranded_usd_per_hour": price * found.stranded,
        "score": found.score,
        "by_node": dict(found.free),
        "waiting": list(found.waiting),
    }


def _sum(rows: Sequence[Waste], part: str) -> Decimal:
    return sum((usd_of(row, part) for row in rows), Decimal(0))


def show(found: Found, out: Console) -> None:
    """Print the table, then a line for each thing that was found, then the trend."""
    names = ("GPUs", "activity", "$/h", *(f"{part} $/h" for part in PARTS), "by sharing $/h")
    drawn = any(row.watts is not None for row in found.rows)
    names += ("W of an idle GPU",) * drawn
    table = Sheet(Column("owner", "name"), *(Column(name, "figure") for name in names))
    for row in found.rows:
        dollars = (row.usd_per_hour, *(usd_of(row, part) for part in PARTS), shared_usd(found, row.owner))
        cells = [f"{row.held:.4g}", f"{row.activity:.0%}", *(f"${usd:,.2f}" for usd in dollars)]
        table.add(row.owner, *cells, *[watts_of(row)] * drawn)
    sums = [sum((row.usd_per_hour for row in found.rows), Decimal(0))]
    sums += [*(_sum(found.rows, part) for part in PARTS), shared_usd(found)]
    held = sum(row.held for row in found.rows)
    table.add("all", f"{held:.6g}", "", *(f"${usd:,.2f}" for usd in sums), *[""] * drawn, style="bold")
    out.print(table)
    for line in evidence(found):
        out.print(line, markup=False)
    trend = Sheet(
        Column("week of", "name"), *(Column(n, "figure") for n in ("GPU-hours", "$", "silent $", "working $"))
    )
    for monday, hours in found.weeks.items():
        week = _week(hours, found.price)
        dollars = (week["usd"], week["silent_usd"], week["working_usd"])
        trend.add(str(monday), f"{hours.held:,.1f}", *(f"${usd:,.2f}" for usd in dollars))
    out.print(trend)
    span = human(found.telemetry.samples * found.telemetry.step_s)
    out.print(
        f"Activity is {found.telemetry.metric}, over {span}. Idle, beyond, spare and rest add up to what is held; "
        "sharing is instead of the last two."
    )


def evidence(found: Found) -> Iterator[str]:
    """A line for each thing that was found, with the figures that it rests on."""
    for row in found.rows:
        for what, those in (("idle", row.idle), ("beyond use", row.beyond)):
            for one in those:
                which = f"{one.device} of {one.pod}" if what == "beyond use" else one.pod
                yield f"{what}: {which} for {human(one.silent_s)} ({one.evidence})"
        if row.replicas and row.spare:
            kept, least = row.replicas, row.replicas.advised[-1]
            yield (
                f"spare: {row.owner} runs {row.running}, {least} would do now ({kept.mean:.1f} of "
                f"{kept.mean_running:.1f} on average; demand over 95 % of those in {kept.over:.2%} of the samples)"
            )
        if shared := found.sharing.get(row.owner):
            yield from _ways(shared, found.price)
    yield _fragments_line(found)
    if found.books:
        b = found.books
        yield (
            f"meter: nodes cost ${b.total:,.2f} in these days = silent ${b.silent:,.2f} + working ${b.working:,.2f} + "
            f"room ${b.room:,.2f} + not seen by telemetry ${b.unseen:,.2f} + idle nodes ${b.idle:,.2f} + "
            f"shared ${b.shared:,.2f}"
        )


def _ways(kept: Kept, price: Decimal) -> Iterator[str]:
    """A line for each way that reaches something, or one that says why none does."""
    if kept.advice.kind == "none":
        yield f"sharing: not {kept.advice.owner}: {kept.advice.why}"
    for one in kept.ways:
        asks = " or ".join(sorted({asked for _, asked in one.resources}))
        yield (
            f"sharing: {count_of(one.pods, 'pod')} of {one.owner} on {count_of(one.devices, 'device')} by {one.kind} "
            f"save ${one.saved_usd(price):,.2f}/h: each asks for {asks}; {one.why}. Risk: {one.risk}"
        )


def _fragments_line(found: Found) -> str:
    told = found.fragments
    if told is None:
        return "fragmentation: not known; the Prometheus has no nodes with GPUs of kube-state-metrics"
    usd = round_usd(found.price * told.stranded)
    waits = (
        f"waiting: {count_of(len(told.waiting), 'pod')} for {count_of(told.waiting[0], 'GPU')} or more"
        if told.waiting
        else "no pod waits"
    )
    return (
        f"fragmentation: {count_of(told.all_free, 'free GPU')} on {count_of(len(told.free), 'node')}, "
        f"{told.stranded} of them (${usd:,}/h) can be taken by nothing that waits ({waits}; score {told.score:.2f})"
    )
