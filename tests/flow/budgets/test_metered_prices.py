"""Edited prices on the meter: time costs the price in force as it passes, with budgets the very one it is held at."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from failing_store import Failing
from stage import START, Stage

from pilotlight.adapters.state.counted import CountedState
from pilotlight.decide.offers.live_prices import with_told
from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import Unavailable
from pilotlight.facts.money.bill import CostLine
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.offers.catalog import LivePrices, Price
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.billing import meter_nodes, node_costs
from pilotlight.state_schema.billing_records import CAP, COST, HELD_PRICE, HOLD
from pilotlight.units import HOUR

CENT = Decimal("0.01")
STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=48 * HOUR, may_move=("hard-cap",))
HARD = (Budget(name="all", usd=Decimal(200), period="day"),)

Step = tuple[datetime, Decimal]
"""From when on an hour costs what."""

EDITS = {
    "up at four": {240: "3"},
    "down at four": {240: "0.25"},
    "twice a day": {100: "3", 250: "0.5"},
    "there and back within a stretch": {100: "3", 110: "1"},
    "at a day's end": {720: "3"},
    "each side of a day's end": {715: "0.5", 725: "4"},
}


def stage(*budgets: Budget) -> Stage:
    """One node of a dollar an hour at work from noon, under these budgets."""
    on = Stage(budgets=budgets, classes={"batch": STOP})
    on.event(on.submit("a", run_s=40 * HOUR, team="red"))
    return on


def priced(on: Stage, usd: str) -> None:
    """The price of the pool is edited."""
    found = (msgspec.structs.replace(o, usd_per_hour=Decimal(usd)) if o.pool == "one" else o for o in on.deps.offerings)
    on.deps = replace(on.deps, offerings=tuple(found))


class Watched:
    """Plays minutes of a stage with a look of both, and keeps the prices that the one node is held at by time."""

    def __init__(self, on: Stage, workers: int = 1) -> None:
        self.on, self.workers = on, workers
        self.held: list[Step] = []
        self.until = START
        self.see()

    def see(self) -> None:
        """A price that is new in the hold is that of the time after what was held before."""
        for entry in HOLD.scan(self.on.deps.state, "c/"):
            price = entry.value.terms.usd_per_hour
            if not self.held or self.held[-1][1] != price:
                self.held.append((max(self.until, self.on.world.clock.now()) if self.held else START, price))
            self.until = entry.value.until

    def minutes(self, count: int) -> None:
        """So many minutes, with a look of each in each."""
        for _ in range(count):
            self.on.minutes(1)
            self.see()
            with ThreadPoolExecutor(self.workers) as pool:
                for done in [pool.submit(meter_nodes.count, self.on.deps) for _ in range(self.workers)]:
                    done.result()

    def edited(self, edits: dict[int, str], until: int = 900) -> list[Step]:
        """Edit at those minutes, end the work at last; the prices by the look that first sees each."""
        seen, at = [(START, Decimal(1))], 0
        for minute, usd in edits.items():
            self.minutes(minute - at)
            priced(self.on, usd)
            seen.append((self.on.world.clock.now() + timedelta(minutes=1), Decimal(usd)))
            at = minute
        self.minutes(until - at)
        self.on.world.finish("uid-a")
        self.minutes(15)
        assert not self.on.world.nodes
        return seen


def lifetimes(on: Stage) -> Iterator[tuple[datetime, datetime]]:
    """From when to when each node was lit, by the world's own log."""
    ends = {e["node"]: e["t"] for e in on.events("terminate")}
    for e in on.events("launch"):
        yield START + timedelta(seconds=e["t"]), START + timedelta(seconds=ends[e["node"]])


def cost(on: Stage, prices: Sequence[Step]) -> Decimal:
    """What all nodes cost at prices by time."""
    total = Decimal(0)
    ends = [at for at, _ in prices[1:]] + [datetime.max.replace(tzinfo=START.tzinfo)]
    for begin, end in lifetimes(on):
        for (since, usd), until in zip(prices, ends, strict=True):
            total += usd * Decimal(max(0.0, (min(until, end) - max(since, begin)).total_seconds())) / 3600
    return total.quantize(CENT)


def lines(on: Stage) -> list[CostLine]:
    """Every line of the meter."""
    now = on.world.clock.now().date()
    return [line for day in meter_nodes.days(on.deps.state, "c", START.date(), now) for line in day.lines]


def metered(on: Stage, **of: str) -> Decimal:
    """Dollars of the meter, of lines with such fields."""
    found = (line.usd for line in lines(on) if all(getattr(line, k) == v for k, v in of.items()))
    return sum(found, Decimal(0)).quantize(CENT)


def settled(on: Stage) -> Decimal:
    """What the hard budget counted over all days."""
    return sum((e.value.settled for e in CAP.scan(on.deps.state, "c/")), Decimal(0)).quantize(CENT)


def filed(on: Stage) -> Decimal:
    """What nodes came to, as the chain has it."""
    on.wait(2 * HOUR)
    meter_nodes.count(on.deps)
    node_costs.file(on.deps, on.deps.state.now())
    return sum((one.value.usd for one in COST.scan(on.deps.state, "c/")), Decimal(0)).quantize(CENT)


def adds_up(on: Stage, total: Decimal) -> None:
    """Teams, idle and shared time are what nodes cost, and so is what is filed."""
    assert metered(on) == total
    parts = metered(on, team="red") + metered(on, kind="idle") + metered(on, kind="shared")
    assert abs(parts - total) <= 2 * CENT
    assert metered(on, team="red") > 0
    assert abs(filed(on) - total) <= CENT


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_without_a_budget_a_price_counts_from_the_look_that_sees_it(edits: dict[int, str]) -> None:
    """Time before that look keeps its price, whatever the day."""
    on = stage()
    prices = Watched(on).edited(edits)
    adds_up(on, cost(on, prices))


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_under_a_budget_the_meter_has_the_prices_of_the_hold(edits: dict[int, str]) -> None:
    """Metered is what the hard budget settled, and both are hours by what each was held at."""
    on = stage(*HARD)
    watched = Watched(on)
    watched.edited(edits)
    adds_up(on, cost(on, watched.held))
    assert settled(on) == metered(on)


@pytest.mark.parametrize("budgets", [(), HARD], ids=["no budget", "hard"])
def test_two_workers_meter_one_price(budgets: tuple[Budget, ...]) -> None:
    """Two meters at once, at each look, count every price's time once."""
    on = stage(*budgets)
    watched = Watched(on, workers=2)
    prices = watched.edited({200: "3", 320: "0.5"}, until=420)
    adds_up(on, cost(on, watched.held if budgets else prices))


@pytest.mark.parametrize("usd", ["3", "0.25"])
@pytest.mark.parametrize("budgets", [(), HARD], ids=["no budget", "hard"])
def test_an_hour_without_looks_around_an_edit(budgets: tuple[Budget, ...], usd: str) -> None:
    """The first look after it is the first that sees the price; what a budget settled is metered all the same."""
    on = stage(*budgets)
    watched = Watched(on)
    watched.minutes(200)
    on.wait(HOUR / 2)
    priced(on, usd)
    on.wait(HOUR / 2)
    seen = on.world.clock.now() + timedelta(minutes=1)
    watched.minutes(120)
    on.world.finish("uid-a")
    watched.minutes(15)
    adds_up(on, cost(on, watched.held if budgets else [(START, Decimal(1)), (seen, Decimal(usd))]))
    assert not budgets or settled(on) == metered(on)


def test_a_learnt_price_counts_from_its_look() -> None:
    """A cloud told another price since the catalogue was written: it is as if that were edited."""
    on = stage(*HARD)
    watched = Watched(on)
    watched.minutes(200)
    said = Price(usd_per_hour=Decimal("2.5"), source="the cloud", date="2026-11-20")
    told = LivePrices(at=on.world.clock.now(), prices={"one": {"on-demand": said}})
    learnt = offerings(on.deps.policy, with_told(on.catalog, told, ""))[0]
    on.deps = replace(on.deps, offerings=learnt)
    watched.minutes(200)
    on.world.finish("uid-a")
    watched.minutes(15)
    assert [price for _, price in watched.held] == [1, Decimal("2.5")]
    adds_up(on, cost(on, watched.held))
    assert settled(on) == metered(on)


def test_a_node_that_no_budget_counts_has_the_new_price_at_once() -> None:
    """Beside a budget of another team: its price is that of the look that first sees the new one, not of its hold."""
    on = stage(Budget(name="blue", usd=Decimal(10), period="day", scope=BudgetScope(team="blue"), hard=False))
    prices = Watched(on).edited({240: "3"}, until=500)
    assert abs(metered(on) - cost(on, prices)) <= CENT


def test_a_price_that_changed_before_the_meters_first_look() -> None:
    """A node is held at the price of its purchase, also where the meter sees it only after an edit."""
    on = stage(*HARD)
    priced(on, "0.25")
    watched = Watched(on)
    watched.minutes(30)
    assert metered(on) == (Decimal(30) / 60).quantize(CENT)
    on.world.finish("uid-a")
    watched.minutes(15)
    adds_up(on, cost(on, watched.held))
    assert settled(on) == metered(on)


def test_nothing_is_told_where_no_price_changed() -> None:
    """The meter's looks read no record of a node's price."""
    on = stage(*HARD)
    Watched(on).edited({})
    assert not list(HELD_PRICE.table.scan(on.deps.state, "c/"))


def test_a_price_that_flaps_every_minute_is_bounded() -> None:
    """A node's record has at most so many prices a day, and its money adds up."""
    on = stage()
    watched = Watched(on)
    for n in range(120):
        priced(on, str(1 + n % 2))
        watched.minutes(1)
    (node,) = meter_nodes.nodes(on.deps.state, "c", START.date()).values()
    assert len(node.earlier) <= 24
    assert 2 <= metered(on) <= 4


@pytest.mark.parametrize("minutes", range(2, 8))
def test_a_node_that_ends_about_an_edit_is_metered_at_its_hold(minutes: int) -> None:
    """A hold that is settled and gone before the meter looks has told it of its price all the same."""
    on = stage(*HARD)
    watched = Watched(on)
    watched.minutes(200)
    on.world.finish("uid-a")
    watched.minutes(minutes)
    priced(on, "0.25")
    watched.minutes(15)
    assert not on.world.nodes
    assert settled(on) == metered(on) == cost(on, watched.held)


def test_a_node_that_vanishes_while_only_the_meter_looks_is_metered_at_its_hold() -> None:
    """Nobody kept holds after the edit: what the hold is settled at is told when it ends."""
    on = stage(*HARD)
    Watched(on).minutes(61)
    priced(on, "0.25")
    for _ in range(25):
        on.wait(60)
        meter_nodes.count(on.deps)
    on.world.terminate("n1", "lost", evict=True)
    on.minutes(1)
    meter_nodes.count(on.deps)
    assert settled(on) == metered(on) == (Decimal(87) / 60).quantize(CENT)


def test_a_renewal_at_a_new_price_is_told_though_the_node_vanishes_then() -> None:
    """The look that renews is the last one that sees the node."""
    on = stage(*HARD)
    watched = Watched(on)
    watched.minutes(30)
    priced(on, "20")
    while len(watched.held) == 1:
        watched.minutes(1)
    on.wait((watched.held[1][0] - on.world.clock.now()).total_seconds() + 600)
    on.world.terminate("n1", "lost", evict=True)
    on.minutes(1)
    meter_nodes.count(on.deps)
    gone = on.world.clock.now()
    since = watched.held[1][0]
    wanted = Decimal((since - START).total_seconds() + 20 * (gone - since).total_seconds()) / 3600
    assert settled(on) == metered(on) == wanted.quantize(CENT)


def lucky(watched: Watched, minutes: int) -> None:
    """So many minutes, of which any may fail."""
    for _ in range(minutes):
        with suppress(Unavailable):
            watched.minutes(1)


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("while_", ["edited", "renewed", "ended"])
def test_a_worker_that_dies_about_an_edit_leaves_one_price(while_: str, at: int) -> None:
    """Whichever write fails after the edit, at the renewal or at the end: metered is what was settled."""
    on = Stage(budgets=HARD, classes={"batch": STOP})
    state = Failing(on.world.clock)
    on.deps = replace(on.deps, state=state)
    on.event(on.submit("a", run_s=40 * HOUR, team="red"))
    watched = Watched(on)
    watched.minutes(30)
    priced(on, "0.25")
    state.at = at if while_ == "edited" else 0
    lucky(watched, 5)
    while watched.until - on.world.clock.now() > timedelta(minutes=35):
        lucky(watched, 1)
    state.at = at if while_ == "renewed" else 0
    lucky(watched, 120)
    on.world.finish("uid-a")
    lucky(watched, 3)
    state.at = at if while_ == "ended" else 0
    lucky(watched, 20)
    assert not on.world.nodes
    assert [price for _, price in watched.held] == [1, Decimal("0.25")]
    assert settled(on) == metered(on)
    assert abs(metered(on) - cost(on, watched.held)) <= CENT


def test_a_look_of_the_meter_costs_the_same_for_any_number_of_nodes() -> None:
    """What it reads of prices is one scan a look, whose records are there only where a price changed."""
    asked = []
    for nodes in (1, 9):
        on = Stage(budgets=(Budget(name="all", usd=Decimal(5000), period="day"),), classes={"batch": STOP})
        for n in range(nodes):
            on.event(on.submit(f"p{n}", run_s=40 * HOUR))
        on.minutes(30)
        meter_nodes.count(on.deps)
        counted = CountedState(on.deps.state)
        on.wait(60)
        meter_nodes.count(replace(on.deps, state=counted))
        asked.append(counted.operations())
    assert asked[0] == asked[1]


def test_a_budget_that_is_taken_out_leaves_the_pools_price() -> None:
    """From the look that finds no budget on a node costs what its pool's nodes do; the time before keeps its price."""
    on = stage(*HARD)
    watched = Watched(on)
    watched.minutes(100)
    priced(on, "3")
    watched.minutes(2)
    on.deps = replace(on.deps, policy=msgspec.structs.replace(on.deps.policy, budgets=()))
    seen = on.world.clock.now() + timedelta(minutes=1)
    watched.minutes(100)
    on.world.finish("uid-a")
    watched.minutes(15)
    adds_up(on, cost(on, [(START, Decimal(1)), (seen, Decimal(3))]))
