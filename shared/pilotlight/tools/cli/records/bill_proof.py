"""``pilotlight bill --proof``: a month's bill proved by node, from the bill's own files and what was metered."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from pilotlight.decide.money.invoice_proof import InvoiceProof, NodeBill, NodeLife, NodeMeter, prove_invoice
from pilotlight.decide.money.metering import cuts, day_start, upto
from pilotlight.decide.money.node_hours import MICROS_PER_HOUR, lines
from pilotlight.decide.money.node_tally import paid_until
from pilotlight.errors import BadInput
from pilotlight.facts.money.bill import CostLine, MeterDay, MeteredNode, MeterPart
from pilotlight.flow.billing import meter_nodes
from pilotlight.state_schema.billing_records import METERED
from pilotlight.tools.report.tables.proof_table import Proved
from pilotlight.units import Usd, shorten_figure

if TYPE_CHECKING:
    from pilotlight.adapters.bills.focus import FocusBills
    from pilotlight.ports.state import State
    from pilotlight.wiring import App

DAY = timedelta(days=1)
ZERO = Decimal(0)


def prove_month(wired: "App", clusters: Sequence[str], first: date, last: date) -> Proved | None:
    """The proof of the whole days that are both metered and billed; None where there are none."""
    bills, state = _files(wired), wired.state
    metered = {name: meter_nodes.days(state, name, first - DAY, last) for name in clusters}
    days = [day for found in metered.values() for day in found]
    # On the first day of the meter it may have begun at any hour.
    start = day_start(max(first, min((day.day for day in days), default=last) + DAY))
    counted = day_start(max((day.until for day in days), default=start).date())
    if counted <= start:
        return None
    bill = bills.read_nodes(start, counted)
    whole = [start.date() + n * DAY for n in range(((bill.until or start) - start).days)]
    if not whole:
        return None
    meters = [one for name, found in metered.items() for one in meter_nodes_of(state, name, found, whole)]
    return Proved(whole[0], whole[-1], _proof(meters, bill, start, day_start(whole[-1] + DAY)))


def _proof(meters: Sequence[NodeMeter], bill: NodeBill, start: datetime, end: datetime) -> InvoiceProof:
    """Of nodes that were metered, or that a tag ties to the policy's pools."""
    known = {life.instance for one in meters for life in one.lives} | {one.node for one in meters}
    return prove_invoice(meters, [one for one in bill.charges if one.instance in known or one.pool], start, end)


def _files(wired: "App") -> "FocusBills":
    from pilotlight.adapters.bills.focus import FocusBills
    from pilotlight.decide.money.bills.bill_scope import Rules
    from pilotlight.settings import objects

    kind, _, where = wired.settings.bills.partition(":")
    if kind != "focus" or not where:
        raise BadInput("--proof reads a FOCUS export by node: set PILOTLIGHT_BILLS to focus:URI of its files")
    store = partial(objects, wired.settings.environ)
    if len(wired.clusters) > 1:  # A pool's tag says whose a node is where there is one cluster.
        return FocusBills(where, Rules(), store)
    names = {pool.cluster_pool or name: name for name, pool in wired.policy.pools.items()}
    return FocusBills(where, Rules(pools={name: name for name in names.values()} | names), store)


def meter_nodes_of(state: "State", cluster: str, days: Iterable[MeterDay], whole: Sequence[date]) -> list[NodeMeter]:
    """The nodes of whole days, with their lives. Days whose nodes are not kept any more tell dollars alone."""
    counted = METERED.get(state, cluster)
    zones = counted.value.zones if counted else ()
    found: dict[str, _Node] = defaultdict(_Node)
    for day in days:
        if day.day not in whole:
            continue
        nodes = meter_nodes.nodes(state, cluster, day.day)
        for instance, node in _whole_day(day.day, nodes, zones).items():
            found[node.name].take(instance, node)
        for line in () if nodes else day.lines:
            found[line.node].take_line(line)
    return [node.meter(name) for name, node in found.items()]


def _whole_day(day: date, nodes: Mapping[str, MeteredNode], zones: Iterable[str]) -> Mapping[str, MeteredNode]:
    end = day_start(day + DAY)
    return upto(MeterPart(day=day, seen=end, nodes=dict(nodes)), end, cuts(day, zones)).nodes


@dataclass
class _Node:
    """What is known of a node so far; its hours only where its price is known."""

    pool: str = ""
    usd: Usd = ZERO
    micros: int = 0
    lives: dict[tuple[str, datetime], NodeLife] = field(default_factory=dict)

    def take(self, instance: str, node: MeteredNode) -> None:
        """A day of it."""
        for line in lines([node])[0]:
            self.take_line(line)
        self.pool = self.pool or node.pool
        if node.usd_per_hour is not None:
            self.micros += sum(one.micros for one in node.stretches)
        paid = paid_until(node) if node.gone_at else None
        self.lives[instance, node.since] = NodeLife(instance, node.since, node.gone_at, paid, node.minimum_s)

    def take_line(self, line: CostLine) -> None:
        """A line of it."""
        self.pool, self.usd = line.pool, self.usd + line.usd

    def meter(self, name: str) -> NodeMeter:
        """The whole."""
        usd, hours = shorten_figure(self.usd, 9), Decimal(self.micros) / MICROS_PER_HOUR
        lives = [life for _, life in sorted(self.lives.items())]
        for n, (life, after) in enumerate(pairwise(lives)):
            if life.ended is None and life.instance == after.instance:  # Stopped and started again within a day.
                lives[n] = life._replace(ended=after.since)
        return NodeMeter(name, self.pool, usd, hours, tuple(lives))
