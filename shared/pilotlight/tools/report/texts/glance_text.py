"""A cluster at a glance, for a terminal: what needs a person first, then what is lit, what waits and what is left."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from pilotlight.tools.glance.glance import Glance, Ticked
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.tools.report.texts.first_work_text import steps_line
from pilotlight.tools.report.texts.why_text import FATE
from pilotlight.units import an_hour, at_least, cents, count_of, human, of_unknown_price


def lines(seen: Glance) -> Iterator[RenderableType]:
    """Line by line."""
    yield Text(f"{seen.cluster}  {seen.at:%Y-%m-%d %H:%M:%S} UTC  mode {seen.mode}", style="bold")
    if seen.advice:
        yield Text(f"  {seen.advice}", style="yellow")
    for need in seen.needs:
        yield Text(f"  needs a person: {need}", style="bold red")
    for pause in seen.paused:
        what = "all pools" if pause.pool == "*" else f"pool {pause.pool}"
        whom = f" by {pause.by}" if pause.by else ""
        back = "pilotlight resume" + ("" if pause.pool == "*" else f" --pool {pause.pool}")
        yield Text(f"  paused: {what} since {pause.at:%m-%d %H:%M}{whom}: {pause.reason}; {back}", style="yellow")
    yield Text("  ticks: " + ", ".join(_tick(tick) for tick in seen.ticks))
    yield Text(f"  {_counts(seen)}")
    yield Text(f"  lit: {_lit(seen)}")
    if seen.nodes:
        yield _nodes(seen)
    for group in seen.waiting:
        more = f" and {group.pods - 1} more" if group.pods > 1 else ""
        place = f" [{group.where}]" if group.where else ""
        yield Text(f"  {FATE.get(group.verdict, group.verdict)}: {group.first}{more}{place}: {group.why}")
    for one in seen.new_nodes:
        yield Text(f"  {steps_line(one)}")
    if seen.budgets:
        yield _budgets(seen)
    for rest in seen.resting:
        yield Text(f"  resting until {rest.until:%H:%M:%S}: {rest.offering}: {rest.why}", style="yellow")


def _lit(seen: Glance) -> str:
    if seen.unseen:
        return "not known"
    boots = sum(node.verdict == "boots" for node in seen.nodes)
    coming = f", {boots} on {'its' if boots == 1 else 'their'} way" if boots else ""
    usd = f"{at_least(seen.usd_per_hour, seen.unpriced)}{of_unknown_price(seen.unpriced)}"
    return f"{count_of(len(seen.nodes) - boots, 'node')}{coming}, {usd}"


def _tick(tick: Ticked) -> str:
    never = "never" if tick.scheduled else "not yet"
    return f"{tick.function} {never if tick.age_s is None else human(tick.age_s) + ' ago'}"


def _counts(seen: Glance) -> str:
    letters = "dead letters are kept elsewhere" if seen.letters is None else count_of(seen.letters, "dead letter")
    prices = "" if seen.prices_age_s is None else f", oldest price {human(seen.prices_age_s)}"
    alerts = "1 alert on its way" if seen.alerts_waiting == 1 else f"{seen.alerts_waiting} alerts on their way"
    return f"{count_of(seen.held, 'hold')}, {alerts}, {letters}{prices}"


def _nodes(seen: Glance) -> Sheet:
    sheet = Sheet(
        Column("node", "name"),
        Column("pool", "name"),
        Column("price", "figure"),
        Column(""),
        Column("because", "words"),
    )
    for node in seen.nodes:
        sheet.add(node.node, node.pool, an_hour(node.usd_per_hour), node.verdict, node.why)
    return sheet


def _budgets(seen: Glance) -> Sheet:
    sheet = Sheet(Column("budget", "name"), Column("left", "figure"), Column("of", "figure"), Column("step"))
    for one in seen.budgets:
        hours = one.measure == "gpu_hours"
        left, limit = (f"{n:,.1f} GPU-h" if hours else cents(n) for n in (one.left, one.limit))
        sheet.add(one.budget, left, limit, one.step or "-")
    return sheet
