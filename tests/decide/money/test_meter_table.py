"""Random days of the meter as a table has them: whose each part of a node's time was, at which price, and how far."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from small_fleet import NOW, node, offering
from state_tables import differing, minutes

from pilotlight.decide.money.holds import Lit
from pilotlight.decide.money.metering import (
    MeterLook,
    count_day,
    cuts,
    day_start,
    metered_node,
    news,
    stopped_node,
    unallocated_node,
    upto,
    without_projects,
)
from pilotlight.decide.money.node_hours import change_price, lines, price_at
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.money.bill import Life, MeteredNode, MeterPart
from pilotlight.facts.money.budgets import HeldPrice, Priced
from pilotlight.facts.workload import SHARED, GpuRequest

HERE = Path(__file__).parent
MIDNIGHT = NOW.replace(hour=0)
SOLD = (
    offering("t4", "T4", 2, "2"),
    offering("hourly", "T4", 2, "6", minimum_s=3600, increment_s=1800),
    offering("mig", "A100", 1, "4", instance_type="M"),
)
DEVICES: tuple[dict[str, Any], ...] = (
    {"resource": "nvidia.com/gpu"},
    {"resource": SHARED},
    {"resource": "nvidia.com/mig-1g.10gb"},
    {"resource": "nvidia.com/mig-2g.20gb"},
)


def _pod(draw: Random, name: str, at: datetime) -> BoundPod:
    of = draw.choice(DEVICES[:1] * 4 + DEVICES)
    gpu = GpuRequest(count=draw.choice((1, 1, 2)), milli=draw.choice((1000, 1000, 500)), **of)
    return BoundPod(
        uid=name,
        namespace=draw.choice(("ml", "web")),
        name=name,
        gpu=gpu,
        workload_class=draw.choice(("batch", "training")),
        team=draw.choice(("red", "blue")),
        started_at=draw.choice((None, at - timedelta(minutes=draw.choice((0, 5, 15, 30))))),
    )


class _Story:
    """A fleet that changes from look to look, and the meter that counts it."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.at = MIDNIGHT + timedelta(hours=self.draw.choice((1, 12, 22, 23)))
        self.zones = self.draw.choice(((), ("Asia/Kolkata",), ("America/New_York", "UTC")))
        self.budgets = self.draw.random() < 0.4
        self.parts: dict[date, MeterPart] = {}
        self.nodes: dict[str, Node] = {}
        self.first, self.last = self.at.date(), None if self.draw.random() < 0.3 else self.at
        self.fleet = {one.pool: one for one in SOLD}

    def _change(self) -> list[Life]:
        """What becomes of the fleet between two looks; the lives that ended."""
        draw, at, over = self.draw, self.at, list[Life]()
        for name, on in list(self.nodes.items()):
            does = draw.random()
            if does < 0.15:
                del self.nodes[name]
                if draw.random() < 0.7:
                    ended = at - timedelta(minutes=draw.choice((0, 5, 15)))
                    over.append(
                        Life(instance=f"i-{name}", node=name, pool=on.pool, since=on.created_at, ended_at=ended)
                    )
            elif does < 0.55:
                pods = tuple(_pod(draw, f"{name}-{n}", at) for n in range(draw.choice((0, 1, 1, 2))))
                idle = None if pods else draw.choice((None, at - timedelta(minutes=10)))
                ready = draw.random() < 0.85
                self.nodes[name] = msgspec.structs.replace(
                    on,
                    pods=pods,
                    idle_since=idle,
                    ready=ready,
                    ready_since=draw.choice((None, at - timedelta(minutes=12))),
                )
        if len(self.nodes) < 3 and draw.random() < 0.7:
            of, name = draw.choice(SOLD), draw.choice("abc")
            slices = draw.choice(({}, {}, {"nvidia.com/mig-1g.10gb": 3, "nvidia.com/mig-3g.40gb": 1}))
            born = at - timedelta(minutes=draw.choice((0, 1, 10, 25)))
            self.nodes.setdefault(
                name, node(name, of, created_at=born, ready=draw.random() < 0.5, pods=(), slices=slices)
            )
        if draw.random() < 0.25:
            pool = draw.choice(list(self.fleet))
            price = Decimal(draw.choice((1, 3, 8)))
            self.fleet[pool] = msgspec.structs.replace(self.fleet[pool], usd_per_hour=price)
        return over

    def _sold(self, on: Node) -> Offering | None:
        return None if self.draw.random() < 0.08 else self.fleet[on.pool]

    def look(self) -> Iterator[str]:
        """One look, the day's parts counted to it; each part's lines."""
        over = self._change()
        draw = self.draw
        lit: dict[str, MeteredNode] = {}
        for on in self.nodes.values():
            one = Lit(on.instance, on.pool, on.created_at, on if draw.random() < 0.9 else None)
            lit[on.instance] = metered_node(one, self._sold(on))
        apart = frozenset(draw.sample("abc", 1)) if draw.random() < 0.1 else frozenset[str]()
        held = {
            name: HeldPrice(
                usd_per_hour=Decimal(5),
                earlier=(Priced(until=self.at - timedelta(minutes=20), usd_per_hour=Decimal(7)),),
            )
            for name in lit
            if self.budgets and draw.random() < 0.4
        }
        look = MeterLook(
            self.at,
            lit,
            {one.instance: stopped_node(one, self.fleet[one.pool]) for one in over},
            self.fleet,
            self.last,
            apart,
            {n.instance: n for n in self.nodes.values()},
            held,
            self.budgets,
        )
        before: dict[str, MeteredNode] = {}
        day = self.first
        while day <= self.at.date():
            was = self.parts.get(day, MeterPart(day=day, seen=day_start(day)))
            now = count_day(was, before, look, cuts(day, self.zones))
            self.parts[day], before = now, now.nodes
            yield f"  {day:%d} seen {minutes(now.seen, MIDNIGHT)} news {news(was, now)} apart {''.join(apart)}"
            day += timedelta(days=1)
        self.first, self.last = self.at.date(), self.at
        self.at += timedelta(minutes=self.draw.choice((10, 20, 30, 60, 200)))

    def told(self) -> Iterator[str]:
        """Every line of every day, and the state that each node is left in."""
        for day, part in self.parts.items():
            for name, on in sorted(part.nodes.items()):
                old = ",".join(f"{minutes(one.until, MIDNIGHT)} ${one.usd_per_hour}" for one in on.earlier)
                yield (
                    f"  {day:%d} {name} {on.pool} {on.instance_type}/{on.gpu_model}/{on.gpus} "
                    f"${on.usd_per_hour} [{old}] "
                    f"{minutes(on.since, MIDNIGHT)}..{minutes(on.until, MIDNIGHT)} "
                    f"gone {minutes(on.gone_at, MIDNIGHT)} "
                    f"{'ready' if on.ready else 'not ready'} "
                    f"{[(h.team, h.project, h.parts) for h in on.holders]} of {on.parts} "
                    f"{sorted(on.owners.items())} {on.held}"
                )
            yield from _lines(list(part.nodes.values()))
            whole = upto(part, self.at, cuts(day, self.zones), frozenset("a"))
            ends = [minutes(node.until, MIDNIGHT) for node in whole.nodes.values()]
            yield f"  up to {minutes(whole.seen, MIDNIGHT)}: {ends}"


def _lines(nodes: Sequence[MeteredNode]) -> Iterator[str]:
    costs, unpriced = lines(nodes)
    for one in costs:
        yield (
            f"    {one.node} {one.kind} {one.team}/{one.project}/{one.workload_class} "
            f"{minutes(one.begin, MIDNIGHT)} {one.gpu_hours:.4f} ${one.usd:.4f}"
        )
    summed = [len(without_projects(node).stretches) for node in nodes]
    yield f"    unpriced {unpriced}, without projects {summed}"


@pytest.mark.parametrize("part", range(3))
def test_days_of_the_meter_are_those_of_the_table(part: int) -> None:
    """Twenty fleets that are looked at six times: nodes come, are held, idle, change their price, go and come again."""
    found: list[str] = []
    for seed in range(20 * part, 20 * part + 20):
        story = _Story(seed)
        found.append(f"{seed}: {story.zones} budgets {story.budgets}")
        for _ in range(6):
            found += story.look()
        found += story.told()
    assert differing(HERE / f"meter_days_{part}.txt", found) == []


def test_the_price_of_a_node_changes_as_in_the_table() -> None:
    """From a moment on, over what was to come after it; and once a day's prices are full, not before the next day."""
    found = []
    one = metered_node(Lit("i", "t4", MIDNIGHT, None), SOLD[0])
    for times in ((), (10,), (10, 20), tuple(range(23)), tuple(range(24))):
        old = tuple(Priced(until=MIDNIGHT + timedelta(minutes=at), usd_per_hour=Decimal(at)) for at in times)
        known = msgspec.structs.replace(one, earlier=old)
        for last, price, since in ((2, 2, 15), (2, 3, 15), (3, 2, 10), (2, 20, 15), (20, 20, 15), (2, 3, 30)):
            now = change_price(known, Decimal(last), Decimal(price), MIDNIGHT + timedelta(minutes=since))
            prices = [price_at(now, MIDNIGHT + timedelta(minutes=at)) for at in (0, 10, 15, 25, 40)]
            found.append(
                f"{times} {last} to {price} at {since} -> {len(now.earlier)} {[str(p) for p in prices]} {now.held}"
            )
    apart = unallocated_node(Lit("i", "t4", MIDNIGHT, node("x")), "shown", SOLD[1])
    found.append(f"apart -> {apart.name} {apart.usd_per_hour} {apart.ready} {apart.holders}")
    assert differing(HERE / "meter_prices.txt", found) == []
