"""The meter in the state, over the world: what it counts is what the cloud charged, under crashes and in parallel."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from hashlib import sha512
from typing import Any

import msgspec
import pytest
from failing_store import Failing
from stage import START, Stage
from test_record_families import Recorder

from pilotlight.decide.money.metering import day_start
from pilotlight.errors import Unavailable
from pilotlight.facts.money.bill import CostLine, MeterDay, MeteredNode, MeterPart, Stretch
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.flow.billing import meter_nodes
from pilotlight.ports.clouds import OPEN, Gate
from pilotlight.ports.state import LARGEST
from pilotlight.state_schema.billing_records import METER, METERED, METERING, CountFrom
from pilotlight.world.faults import Faults
from pilotlight.world.world_pools import WorldPools

CENT = Decimal("0.01")


def lines(on: Stage) -> list[CostLine]:
    """Every line of the meter."""
    now = on.world.clock.now().date()
    return [line for day in meter_nodes.days(on.deps.state, "c", START.date(), now) for line in day.lines]


def usd(on: Stage, **of: Any) -> Decimal:
    """Dollars of the lines that have such fields, to the cent."""
    found = [line.usd for line in lines(on) if all(getattr(line, k) == v for k, v in of.items())]
    return sum(found, Decimal(0)).quantize(CENT)


def a_day(on: Stage, hours: int = 30) -> None:
    """Two teams at work over a midnight, with a look of the meter every five minutes."""
    for n in range(6):
        on.submit(f"red-{n}", gpus=1 + n % 2 * 7, run_s=5000, team="red")
        on.submit(f"blue-{n}", run_s=3000 + 700 * n, team="blue")
        for _ in range(hours * 2):
            on.minutes(5)
            meter_nodes.count(on.deps)
    on.minutes(120)
    meter_nodes.count(on.deps)


class Named(WorldPools):
    """A cloud whose group lists an instance that it has not made, as Compute Engine does."""

    def describe(self) -> tuple[PoolState, ...]:
        """Every pool, with one that is a name alone."""
        name = Booting(instance="name", requested_at=self._world.clock.now(), unmade=True)
        return tuple(msgspec.structs.replace(pool, booting=(*pool.booting, name)) for pool in super().describe())


def test_an_instance_that_is_a_name_alone_costs_nothing() -> None:
    """A machine that is never made is not metered, the one beside it is."""
    on = Stage()
    on.deps = replace(on.deps, pools=Named(on.world))
    on.submit("a", run_s=600)
    for _ in range(6):
        on.minutes(5)
        meter_nodes.count(on.deps)
    assert usd(on) == on.world.cost().quantize(CENT) > 0


class StandsStill(WorldPools):
    """Workers stand still for ten minutes before they give back, while the cloud takes the instance and looks go on."""

    on: Stage

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Late, of what is there no more."""
        self.take_away(pool, instance)
        for _ in range(10):
            self.on.wait(60)
            meter_nodes.count(self.on.deps)
        super().release(pool, instance, gate=gate)


def test_a_node_that_went_before_its_late_release_is_paid_for_until_it_went() -> None:
    """The look that missed it is believed, though the release says ten minutes more."""
    on = Stage()
    pools = StandsStill(on.world)
    pools.on, on.deps = on, replace(on.deps, pools=pools)
    on.submit("a", run_s=600)
    for _ in range(40):
        on.minutes(1)
        meter_nodes.count(on.deps)
    assert on.world.cost() <= sum(line.usd for line in lines(on)) <= on.world.cost() + Decimal(1) / 60


def test_the_meter_is_what_the_cloud_charged() -> None:
    """Over a day and a midnight every node's cost is somebody's, idle or shared, to the cent."""
    on = Stage()
    a_day(on)
    assert not on.world.nodes
    assert usd(on) == on.world.cost().quantize(CENT)
    assert usd(on, team="red") + usd(on, team="blue") + usd(on, kind="idle") + usd(on, kind="shared") == pytest.approx(
        usd(on), abs=CENT * 2
    )
    assert min(usd(on, team="red"), usd(on, team="blue"), usd(on, kind="idle"), usd(on, kind="shared")) > 0


def test_the_same_look_twice_counts_once() -> None:
    """A tick that is delivered again adds nothing."""
    on = Stage()
    on.event(on.submit("a", run_s=600))
    on.wait(900)
    meter_nodes.count(on.deps)
    before = lines(on)
    meter_nodes.count(on.deps)
    assert lines(on) == before


def test_a_day_that_was_just_counted_is_not_read_again() -> None:
    """The lines that a look gives stand for its day; they are those that the records tell."""
    on = Stage()
    on.event(on.submit("a", run_s=600))
    on.wait(900)
    today = meter_nodes.count(on.deps)
    (read,) = meter_nodes.days(on.deps.state, "c", today.day, today.day)
    assert read.lines == today.lines
    of_look = msgspec.structs.replace(today, lines=())
    (given,) = meter_nodes.days(on.deps.state, "c", today.day, today.day, counted=of_look)
    assert given == of_look


def test_a_look_cut_short_anywhere_counts_nothing_twice() -> None:
    """Whichever write of a look over midnight fails, the next look makes the sum whole."""
    for at in range(1, 12):
        on = Stage()
        state = Failing(on.world.clock)
        on.deps = replace(on.deps, state=state)
        for n in range(4):
            on.event(on.submit(f"p{n}", gpus=8, run_s=20 * 3600))
        on.wait(11 * 3600)
        meter_nodes.count(on.deps)
        on.wait(2 * 3600)
        state.at = at
        try:
            meter_nodes.count(on.deps)
        except Unavailable:
            meter_nodes.count(on.deps)
        assert usd(on) == on.world.cost().quantize(CENT)


def test_looks_in_parallel_count_once() -> None:
    """Eight workers that look at once leave the sum of one."""
    on = Stage()
    for n in range(8):
        on.event(on.submit(f"p{n}", gpus=8, run_s=20 * 3600))
    on.wait(3600)
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(meter_nodes.count, on.deps) for _ in range(24)]:
            done.result()
    assert usd(on) == on.world.cost().quantize(CENT)


def test_a_node_that_nobody_saw_lit_is_counted() -> None:
    """Bought, used and released between two looks: its life is in the state."""
    on = Stage()
    meter_nodes.count(on.deps)
    on.event(on.submit("a", run_s=60))
    on.minutes(30)
    assert not on.world.nodes
    meter_nodes.count(on.deps)
    assert usd(on) == usd(on, kind="shared") == on.world.cost().quantize(CENT)


def test_a_gang_that_was_rolled_back_has_cost_its_minimum() -> None:
    """A node that was given back within the second it was bought is paid for a minute: nobody's, but not nothing."""
    on = Stage(faults=Faults(quota_nodes=1))
    on.event(on.submit_gang("g", 2)[0])
    assert not on.world.nodes
    on.wait(120)
    meter_nodes.count(on.deps)
    assert usd(on) == on.world.cost().quantize(CENT) > 0


def test_the_meter_and_the_holds_agree() -> None:
    """What a budget settled when its nodes stopped is what the meter counted."""
    on = Stage(budgets=(Budget(name="all", usd=Decimal(10_000)),))
    on.submit("a", run_s=4000)
    for _ in range(30):
        on.minutes(5)
        meter_nodes.count(on.deps)
    assert usd(on) == on.world.cost().quantize(CENT)


def test_a_price_that_comes_days_late_is_taken_for_all_the_time() -> None:
    """A pool without a price is named every day; once it has one, its closed days have their dollars too."""
    on = Stage()
    known = on.deps
    on.event(on.submit("a", gpus=8, run_s=80 * 3600))
    on.deps = replace(known, offerings=())
    for _ in range(3):
        assert meter_nodes.count(on.deps).unpriced == (() if on.world.now_s == 0 else ("n1",))
        on.wait(20 * 3600)
    assert usd(on) == 0
    on.deps = known
    meter_nodes.count(on.deps)
    assert usd(on) == on.world.cost().quantize(CENT)


def test_a_meter_that_stood_still_catches_up() -> None:
    """Three days without a look are counted at the next, day by day."""
    on = Stage()
    on.event(on.submit("a", gpus=8, run_s=80 * 3600))
    meter_nodes.count(on.deps)
    on.wait(75 * 3600)
    meter_nodes.count(on.deps)
    found = meter_nodes.days(on.deps.state, "c", START.date(), START.date() + timedelta(days=9))
    assert [sum(line.gpu_hours for line in day.lines) for day in found] == [96, 192, 192, 120]
    assert usd(on) == on.world.cost().quantize(CENT)


def token_of(part: int, n: int) -> str:
    """A project's name that does not squeeze."""
    return sha512(f"{part}-{n}".encode()).hexdigest()


def test_a_day_of_more_projects_than_a_record_holds_is_counted_with_them() -> None:
    """A day that six thousand projects worked on is closed in several records, and keeps every project."""
    on = Stage()
    day, begin = START.date(), day_start(START.date())
    METERED.put(on.deps.state, "c", CountFrom(day=day))
    hour = 3_600_000_000
    for part in range(meter_nodes.ROOTS):
        nodes = {
            f"i-{part}-{n}": MeteredNode(
                name=f"node-{part}-{n}", pool="one", usd_per_hour=Decimal(1), gpus=1, since=begin,
                until=begin + timedelta(hours=1), gone_at=begin + timedelta(hours=1), minimum_s=0, increment_s=1,
                instance_type="one", capacity_type="on-demand", gpu_model="T4", ready=True, parts=1, holders=(),
                stretches=(Stretch("used", f"team-{n % 5}", token_of(part, n), "batch", begin, hour),),
            )
            for n in range(375)
        }  # fmt: skip
        METERING.put(on.deps.state, f"c/{day}/{part:02d}", MeterPart(day=day, seen=START, nodes=nodes))
    on.wait(24 * 3600)
    meter_nodes.count(on.deps)
    assert usd(on) == 6000
    assert usd(on, team="team-3") == 1200
    assert len({line.project for line in lines(on)}) == 6000
    closed = on.deps.state.scan("meter/").items
    assert len(closed) > 1
    assert max(len(stored.value) for _, stored in closed) <= LARGEST
    meter_nodes.count(on.deps)
    assert on.deps.state.scan("meter/").items == closed


def test_a_closed_day_whose_record_is_missing_is_summed_from_its_nodes() -> None:
    """A further record that a crash or a person took away costs nothing but time."""
    on = Stage()
    lost = MeterDay(day=START.date(), until=START, parts=1, stamp="gone")
    on.event(on.submit("a", run_s=600))
    on.wait(900)
    meter_nodes.count(on.deps)
    before = usd(on)
    METER.table.put(on.deps.state, f"c/{START.date()}", lost)
    assert usd(on) == before > 0


def test_a_node_of_more_projects_than_fit_is_kept_by_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part whose node served thousands of projects stays below the limit, with every dollar."""
    on = Stage()
    on.event(on.submit("a", gpus=8, run_s=600))
    meter_nodes.count(on.deps)
    ((name, version, part),) = METERING.scan(on.deps.state)
    ((instance, node),) = part.nodes.items()
    begin = day_start(START.date())
    many = tuple(Stretch("used", "red", f"project-{n:04d}", "batch", begin, 3_600_000) for n in range(4000))
    full = msgspec.structs.replace(part, nodes={instance: msgspec.structs.replace(node, stretches=many)})
    METERING.put(on.deps.state, name, full, if_version=version)
    before = usd(on, team="red")
    on.minutes(30)
    small = len(METERING.format.write(full)) // 2  # In place of the limit of the stores.
    monkeypatch.setattr(meter_nodes, "LARGEST", small)
    meter_nodes.count(on.deps)
    assert max(len(stored.value) for _, stored in on.deps.state.scan("metering/").items) <= small
    assert usd(on, team="red") == usd(on, team="red", project="") == before > 0


def test_what_goes_on_as_it_was_is_not_written() -> None:
    """A look that brings nothing new writes one small record, and the time is counted all the same."""
    on = Stage()
    state = Recorder(on.world.clock)
    on.deps = replace(on.deps, state=state)
    on.event(on.submit("a", gpus=8, run_s=20 * 3600))
    on.minutes(10)
    meter_nodes.count(on.deps)
    state.puts.clear()
    before = usd(on)
    on.wait(3600)
    meter_nodes.count(on.deps)
    assert set(state.puts) == {"metered/c"}
    assert usd(on) > before
