"""billing_tick over the world: the meter, bills, budgets and their ladder, each told once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from failing_store import Failing
from stage import START, Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.offers.live_prices import told_offerings
from pilotlight.errors import Unavailable
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.messages import BillExported, BudgetNotice, Tick
from pilotlight.facts.money.bill import Bill, BillDay, BilledDay, CostLine, HourCost, HourSums, MeterDay
from pilotlight.facts.money.bill_files import BillFile, BillListing
from pilotlight.facts.money.money_policy import Budget, BudgetScope, LadderStep
from pilotlight.facts.policy import ClassPolicy, PaidPolicy, PoolPolicy
from pilotlight.facts.workload import Finding
from pilotlight.flow.answer import Answer
from pilotlight.flow.billing import billed_days, meter_nodes
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing, budget_standings
from pilotlight.flow.budgets import budget_holds
from pilotlight.state_schema.billing_records import BILL, COST, HOLD, METER, METERING, PRICES
from pilotlight.state_schema.billing_records import HOUR as HOUR_COST
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.tools.cli.records import state_families
from pilotlight.tools.cli.records.report_command import anomalies_between, paid_idle_of_month
from pilotlight.units import HOUR
from pilotlight.world.world_cluster import WorldCluster

TICK = Tick(cluster="c", what="billing")
DAY = timedelta(days=1)


LOW = (
    LadderStep(at=Decimal("0.05"), do="notify"),
    LadderStep(at=Decimal("0.08"), do="spot-only"),
    LadderStep(at=Decimal("0.1"), do="no-new-buys"),
)
"""A ladder far below what holds refuse."""


def day(usd: str, **fields: Any) -> Budget:
    """A budget in dollars a day whose ladder acts."""
    return Budget(
        **{"name": "b", "usd": Decimal(usd), "period": "day", "hard": False, "ladder_dry_run": False, **fields}
    )


def tick(on: Stage) -> Answer:
    """One billing tick, and one of bills."""
    answer = billing(on.deps, TICK)
    billing_import(on.deps, Tick(cluster="c", what="bills"))
    return answer


def hours(on: Stage, count: int) -> None:
    """So many hours with a tick of everything every ten minutes."""
    for _ in range(count * 6):
        on.minutes(10)
        tick(on)


def told(on: Stage, kind: str = "budget") -> list[tuple[str, str, bool]]:
    """Alerts of a kind, by what they say, their severity, and whether they resolve."""
    return [(a.what, a.severity, a.resolved) for a in on.alerts if a.kind.startswith(kind)]


class Slow(WorldCluster):
    """A cluster whose first answer comes late: another tick sees a node meanwhile, and then it is gone."""

    meanwhile: Callable[[], None] | None = None

    def observe(self) -> ClusterView:
        """The cluster as it is at last."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().observe()


def test_a_look_that_took_long_ends_no_node_before_another_saw_it_alive() -> None:
    """It began before the other, and found out after it that the node is gone: the other's time counts."""
    on = Stage()
    on.event(on.submit("a", run_s=6 * HOUR))
    on.wait(600)
    tick(on)

    def meanwhile() -> None:
        on.wait(900)
        tick(on)
        on.wait(60)
        on.world.terminate("n1", "lost", evict=True)

    slow = Slow(on.world)
    slow.meanwhile = meanwhile
    billing(replace(on.deps, cluster=slow), TICK)
    [part] = [e.value for e in METERING.scan(on.deps.state, "c/") if "n1" in e.value.nodes]
    gone_at = part.nodes["n1"].gone_at
    assert gone_at is not None
    assert (gone_at - START).total_seconds() >= 1500


def test_each_step_is_told_once_on_the_way_up_and_acts() -> None:
    """First people are told, then only spot is bought, then nothing; what runs is left alone."""
    pools = {"one": PoolPolicy(instance_type="one", max=20)}
    on = Stage(pools=pools, budgets=(day("40", ladder=LOW),))
    on.event(on.submit("a", run_s=6 * HOUR))
    hours(on, 5)
    assert told(on) == [
        ("budget b: 5 % of $40.00 a day is spent", "info", False),
        ("budget b: 8 % of $40.00 a day is spent", "warning", False),
        ("budget b: 10 % of $40.00 a day is spent", "critical", False),
    ]
    late = on.submit("late")
    on.event(late)
    assert on.nodes("one") == 1
    (refused,) = [a for a in on.alerts if a.kind == "refused"]
    assert refused.why == "budget b: $5.00 of $40.00 a day is spent: nothing more is bought from 10 % on"
    (alert,) = [a for a in on.alerts if a.kind == "budget-spot-only"]
    assert alert.usd == "3.33"
    assert alert.why.startswith("budget b: $3.33 of $40.00 a day is spent; the day will end with about ")


def test_a_tick_that_stands_still_after_its_count_takes_no_step_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tick climbs meanwhile: the old figures move no budget down, and tell of nothing that is less."""
    on = Stage(budgets=(day("40", ladder=LOW),))
    on.event(on.submit("a", run_s=6 * HOUR))
    hours(on, 1)
    counted, stalled = billed_days.budget_days, [True]

    def stands_still(*asked: Any, **more: Any) -> Any:
        known = counted(*asked, **more)
        if stalled and stalled.pop():
            hours(on, 4)
        return known

    monkeypatch.setattr(billed_days, "budget_days", stands_still)
    tick(on)
    assert [resolved for _, _, resolved in told(on)] == [False, False, False]
    assert budget_holds.read_ladder(on.deps.state, "c")[0].rungs["b"].at == Decimal("0.1")


def test_a_new_period_takes_the_steps_back_and_buys_again() -> None:
    """After midnight the pod that was refused gets its node, and people hear that it is over."""
    budget = day("4", hard=True, ladder=(LadderStep(at=Decimal("0.2"), do="no-new-buys"),))
    on = Stage(budgets=(budget,), classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=7200)})
    on.event(on.submit("a", run_s=HOUR))
    hours(on, 2)
    on.event(on.submit("late", run_s=HOUR))
    assert on.nodes("one") == 0
    hours(on, 12)
    assert [(severity, resolved) for _, severity, resolved in told(on)][:2] == [("critical", False), ("info", True)]
    assert [job.id for job in on.world.finished] == ["uid-a", "uid-late"]


def test_a_dry_run_says_would_and_changes_nothing() -> None:
    """The alert is there; the pod gets its node."""
    on = Stage(budgets=(day("40", ladder=LOW, ladder_dry_run=True),))
    on.event(on.submit("a", run_s=6 * HOUR))
    hours(on, 5)
    assert on.alerts[-1].next == (
        "would: nothing more is bought from 10 % on (ladder_dry_run); serving and what runs are left alone"
    )
    on.event(on.submit("late"))
    assert on.nodes("one") == 2


def test_serving_is_bought_under_every_step() -> None:
    """A serving pod gets its node although its team has spent all."""
    on = Stage(budgets=(day("40", ladder=LOW, scope=BudgetScope(team="red")),))
    on.event(on.submit("a", run_s=6 * HOUR, team="red"))
    hours(on, 5)
    on.event(on.submit("web", team="red", workload_class="serving", gpu_models=("T4",)))
    on.event(on.submit("more", team="red"))
    assert on.nodes("one") == 2


def test_a_purchase_decided_before_a_step_is_refused_by_the_holds() -> None:
    """The hold is where a race between a plan and a step ends."""
    from pilotlight.decide.money.budget_limits import terms
    from pilotlight.flow.budgets import budget_holds as holds

    on = Stage(budgets=(day("40", ladder=LOW),))
    on.event(on.submit("a", run_s=6 * HOUR))
    hours(on, 5)
    own = terms(on.deps.offerings[0], on.deps.policy, workload_class="batch", team="")
    assert "nothing more is bought" in holds.reserve(on.deps, "d", 0, [own], on.world.clock.now())
    assert not list(HOLD.scan(on.deps.state, "c/d"))


def test_ticks_twice_and_crashed_tell_once() -> None:
    """A tick that dies after the ladder moved and before its alert was sent: the next one sends it, and only once."""
    on = Stage(budgets=(day("4"),))
    on.event(on.submit("a", run_s=6 * HOUR))
    hours(on, 1)
    on.wait(2 * HOUR)
    sending = on.outbox.publish

    def lost(messages: Any) -> None:
        raise Unavailable("the topic is gone")

    on.outbox.publish = lost  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        tick(on)
    on.outbox.publish = sending  # type: ignore[method-assign]
    for _ in range(3):
        tick(on)
    assert told(on) == [("budget b: 50 % of $4.00 a day is spent", "info", False)]


def until_done(on: Stage) -> None:
    """A tick that comes again where the store fails it."""
    try:
        tick(on)
    except Unavailable:
        tick(on)


def played(fail_at: int) -> tuple[set[str], Decimal]:
    """Two days with a bill and a ladder, one write of the store failing: alerts by fingerprint, and the month's total.

    A tick that fails comes again, as a scheduler's does.
    """
    on = Stage(budgets=(Budget(name="m", usd=Decimal(100), ladder=LOW),))
    state = Failing(on.world.clock)
    on.deps = replace(on.deps, state=state, bills=Exports((0, "30"), (1, "9"), reaches=2))
    on.event(on.submit("a", run_s=60 * HOUR))
    state.at = fail_at
    for _ in range(5):
        on.wait(10 * HOUR)
        until_done(on)
    for _ in range(2):  # A read that was cut short is tried again in ten minutes, and drift is told after it.
        on.wait(660)
        until_done(on)
    sent = [(m.id, m.key) for m in on.outbox.sent if m.topic == "alerts" and m.key.startswith(("budget/", "bill"))]
    assert len(set(sent)) == len({key for _, key in sent})
    return {key for _, key in sent}, round(budget_standings(on.deps, on.world.clock.now())[0].total, 2)


def test_a_tick_cut_short_at_any_write_tells_and_counts_the_same() -> None:
    """Whichever write a worker dies at, people hear the same, each under one id, and no dollar is lost or doubled."""
    whole = played(0)
    assert len(whole[0]) == 2
    for fail_at in range(1, 40):
        assert played(fail_at) == whole


class Exports:
    """A bill as its export has it by now."""

    def __init__(
        self, *rows: tuple[int, str], reaches: int, findings: tuple[Finding, ...] = (), source: str = "focus"
    ) -> None:
        days = tuple(BilledDay(day=(START + n * DAY).date(), usd=Decimal(usd), pool="one") for n, usd in rows)
        horizon = day_start((START + reaches * DAY).date())
        self.bill = Bill(source=source, days=days, horizon=horizon, findings=findings)

    def read(self, start: datetime, end: datetime) -> Bill:
        """The whole export."""
        return self.bill


def exported(on: Stage, exports: Exports) -> None:
    """An export arrives, twice."""
    on.deps = replace(on.deps, bills=exports)
    for _ in range(2):
        billing_import(on.deps, BillExported(cluster="c", uri="focus.csv"))
        billing(on.deps, TICK)


def month(on: Stage) -> tuple[Decimal, Decimal]:
    """What the month's budget says is billed and metered."""
    (found,) = budget_standings(on.deps, on.world.clock.now())
    return round(found.billed, 2), round(found.metered, 2)


def dollars(billed: int | str, metered: int) -> tuple[Decimal, Decimal]:
    """The same, as it is expected."""
    return Decimal(billed), Decimal(metered)


def test_exports_corrections_and_partial_files_count_once() -> None:
    """A day is what the last export that covers it says; from its horizon on the meter counts."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),))
    on.event(on.submit("a", run_s=60 * HOUR))
    hours(on, 36)
    assert month(on) == dollars(0, 36)
    exported(on, Exports((0, "12.50"), (1, "3"), reaches=1))
    assert month(on) == dollars("12.50", 24)
    hours(on, 12)
    exported(on, Exports((0, "12"), (1, "25"), reaches=2))
    assert month(on) == dollars(37, 12)
    exported(on, Exports((0, "11"), reaches=1))
    assert month(on) == dollars(36, 12)


def test_a_bill_replaces_the_meter_by_the_nodes_that_it_names() -> None:
    """A node's own line, by its instance, sets its metered dollars aside; a bucket in its pool comes on top."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000), scope=BudgetScope(pool="one")),))
    on.event(on.submit("a", run_s=60 * HOUR))
    hours(on, 13)
    (instance,) = meter_nodes.nodes(on.deps.state, "c", START.date())
    exports = Exports((0, "0.50"), reaches=1)
    exported(on, exports)
    assert month(on) == dollars(0, 13)  # Far below the meter, and of no node.
    own, disk = (
        BilledDay(day=START.date(), usd=Decimal(usd), pool="one", resource=name)
        for usd, name in (("11.25", instance), ("0.50", "vol-1"))
    )
    exports.bill = msgspec.structs.replace(exports.bill, days=(own, disk))
    exported(on, exports)
    assert month(on) == dollars("11.75", 1)


def test_days_before_an_export_begins_are_metered() -> None:
    """An export that was set up in mid-month says nothing of the days before its first row: they did not cost $0."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),))
    on.event(on.submit("a", run_s=60 * HOUR))
    hours(on, 36)
    exported(on, Exports((1, "23"), reaches=2))
    assert month(on) == dollars(23, 12)
    exported(on, Exports(reaches=2))
    assert month(on) == dollars(23, 12)


def test_a_bill_read_from_another_source_replaces_the_days_it_covers() -> None:
    """Who sets up another bill has one bill: no day is charged by both."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),))
    on.event(on.submit("a", run_s=60 * HOUR))
    hours(on, 36)
    exported(on, Exports((0, "12"), (1, "24"), reaches=2, source="civo-LON1"))
    exported(on, Exports((0, "11"), (1, "23"), reaches=2))
    assert month(on) == dollars(34, 0)


def test_a_bill_that_is_odd_or_apart_from_the_meter_is_told_once() -> None:
    """Lines that could not be counted, and dollars the meter cannot explain, are alerts; not again tomorrow."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),))
    on.event(on.submit("a", run_s=60 * HOUR))
    hours(on, 37)
    odd = Finding(subject="row 7", code="nan", message="BilledCost is NaN")
    exported(on, Exports((0, "50"), (1, "50"), reaches=2, findings=(odd,)))
    assert told(on, "bill") == [
        ("1 line of the bill focus could not be counted", "warning", False),
        ("bill and meter are apart on 1 day of pools", "warning", False),
    ]
    (apart,) = [a for a in on.alerts if a.kind == "bill-drift"]
    assert "2026-11-21 pool one: billed $50.00, metered $24.00: $26.00 more" in apart.why


def test_a_pool_that_is_billed_at_another_price_is_told_once_and_moves_no_budget() -> None:
    """Eight days at $10 are billed at $11.50; two more are metered and count as what they were metered at."""
    on = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),))
    today = on.world.clock.now().date()
    for back in range(1, 12):
        at = today - back * DAY
        line = CostLine(kind="used", pool="one", node="n", instance_type="T4", capacity_type="spot", usd=Decimal(10))
        METER.write(on.deps.state, f"c/{at}", MeterDay(day=at, until=day_start(at), lines=(line,)))
        if back > 2:
            row = BilledDay(day=at, usd=Decimal("11.50"), pool="one")
            BILL.write(on.deps.state, f"c/{at}/focus", BillDay(day=at, source="focus", rows=(row,)))
    tick(on)
    tick(on)
    assert told(on, "bill-correction") == [("pool one is billed at 1.15 of what is metered", "warning", False)]
    assert month(on) == (Decimal("103.50"), Decimal(20))


def test_an_hour_that_costs_far_more_than_usual_is_told_once_with_its_cause() -> None:
    """Nothing runs for eight days at noon, and then a pod is given a node of $32: pool, team and decision are named."""
    on = Stage()
    now = on.world.clock.now()
    for back in range(1, 9):
        quiet = HourCost(at=now - back * DAY + timedelta(hours=1), hours=Decimal(1), rates=HourSums())
        HOUR_COST.put(on.deps.state, f"c/12/{(now - back * DAY).date()}", quiet)
        HOUR_COST.put(on.deps.state, f"c/13/{(now - back * DAY).date()}", quiet)
    tick(on)
    on.event(on.submit("a", 8, run_s=6 * HOUR, team="red"))
    hours(on, 3)
    ((what, severity, resolved),) = told(on, "spend-anomaly")
    assert (severity, resolved) == ("warning", False)
    assert what.endswith("$0.00 is usual")
    (alert,) = [a for a in on.alerts if a.kind == "spend-anomaly"]
    (decision,) = [entry.value.id for entry in DECISION.scan(on.deps.state, "c/") if entry.value.steps]
    assert alert.how == f"pilotlight why {decision}"
    assert alert.why.startswith("8 days at that hour: median $0.00, median distance $0.00; pool eight $")
    assert "(usually $0.00), red $" in alert.why
    kept = list(anomalies_between(on.deps.state, "c", now.date(), now.date()))
    assert [(one.pool, one.team, one.decision) for one in kept] == [("eight", "red", decision)] * len(kept) != []


def test_a_bill_that_cannot_be_read_stops_neither_meter_nor_ladder() -> None:
    """It is told of, and tried again later, not every minute."""

    class Gone:
        calls = 0

        def read(self, start: datetime, end: datetime) -> Bill:
            self.calls += 1
            raise Unavailable("the bucket does not answer")

    on, gone = Stage(budgets=(day("4"),)), Gone()
    on.deps = replace(on.deps, bills=gone)
    on.event(on.submit("a", run_s=6 * HOUR))
    for _ in range(15):
        on.minutes(10)
        tick(on)
    assert told(on)[0][0] == "budget b: 50 % of $4.00 a day is spent"
    assert told(on, "bill-unread") == [("the bill could not be read", "warning", False)]
    assert gone.calls <= 15


class Outlived(Exception):
    """The function's time is over."""


def test_a_read_that_outlives_its_function_stops_neither_ladder_nor_alerts() -> None:
    """It comes last, and its mark comes before it: of 600 ticks each counts what nodes cost, and one in ten reads."""

    class Long:
        calls = 0

        def read(self, start: datetime, end: datetime) -> Bill:
            self.calls += 1
            raise Outlived

    on, long = Stage(budgets=(day("4"),)), Long()
    on.deps = replace(on.deps, bills=long)
    on.event(on.submit("a", run_s=6 * HOUR))
    for _ in range(600):
        on.minutes(1)
        with suppress(Outlived):
            tick(on)
        now = on.world.clock.now()
        (today,) = meter_nodes.days(on.deps.state, "c", now.date(), now.date())
        assert today.until == now
    assert [what for what, _, _ in told(on)][:2] == [
        "budget b: 50 % of $4.00 a day is spent",
        "budget b: 80 % of $4.00 a day is spent",
    ]
    assert [entry.value.node for entry in COST.scan(on.deps.state, "c/")] != []
    assert 59 <= long.calls <= 60


def test_a_bill_is_read_again_only_where_something_of_it_changed() -> None:
    """Fifty events of other objects are fifty looks and no read."""

    class Listed(Exports):
        word, reads = "a", 0

        def files(self) -> BillListing:
            return BillListing(word=self.word, versions=[[("a.csv",)]])

        def read_file(self, listing: BillListing, group: Sequence[str], *_: Any) -> BillFile:
            self.reads += 1
            return BillFile(word=listing.word, name=group[0], digests=frozenset("a"))

        def join(self, listing: BillListing, files: Sequence[BillFile], end: datetime) -> Bill:
            return self.bill

    on, bills = Stage(budgets=(Budget(name="m", usd=Decimal(1000)),)), Listed((0, "12.50"), reaches=1)
    on.deps = replace(on.deps, bills=bills)
    for _ in range(50):
        billing_import(on.deps, BillExported(cluster="c", uri="s3://bills/logs/1"))
    tick(on)
    assert bills.reads == 1
    bills.word = "b"
    billing_import(on.deps, BillExported(cluster="c", uri="s3://bills/focus.csv"))
    assert bills.reads == 2


def notice(**fields: Any) -> BudgetNotice:
    """Google's budget, as it tells several times a day."""
    usual = {
        "cluster": "c",
        "since": datetime(2026, 11, 1, tzinfo=UTC),
        "budget": "b-1",
        "cost": "82.10",
        "limit": "100",
        "currency": "USD",
        "threshold": 0.8,
    }
    return BudgetNotice(**{**usual, **fields})


def test_a_clouds_budget_is_told_once_a_threshold_and_caps_nothing() -> None:
    """The same threshold again is silent; the next one, a forecast, and the next month are news."""
    on = Stage(budgets=(day("100"),))
    for cost in ("82.10", "83", "84"):
        billing(on.deps, notice(cost=cost))
    billing(on.deps, notice(threshold=1.0, forecast=True))
    billing(on.deps, notice(threshold=None))
    billing(on.deps, notice(since=datetime(2026, 12, 1, tzinfo=UTC)))
    assert [a.what for a in on.alerts] == [
        "the cloud's budget b-1 has passed 80 %",
        "the cloud's budget b-1 is forecast to pass 100 %",
        "the cloud's budget b-1 has passed 80 %",
    ]
    assert budget_holds.steps_in_force(on.deps.state, "c") == ()


def test_a_node_of_unknown_price_is_an_alert() -> None:
    """It is named, and never $0."""
    on = Stage()
    on.event(on.submit("a", run_s=6 * HOUR))
    on.deps = replace(on.deps, offerings=())
    for _ in range(3):
        on.wait(600)
        tick(on)
    (alert,) = [a for a in on.alerts if a.kind == "unpriced"]
    assert alert.what.startswith("1 node has no known price: ")


def test_a_dry_run_counts_and_tells_nothing() -> None:
    """It says where the budgets stand."""
    on = Stage(budgets=(day("4"),))
    on.event(on.submit("a", run_s=6 * HOUR))
    before = dict(on.deps.state.scan("").items)
    answer = billing(on.deps, TICK, dry_run=True)
    assert answer.why == "budget b: $0.00 of $4.00 a day is spent"
    assert dict(on.deps.state.scan("").items) == before


def test_every_record_is_in_a_room_that_reads_it() -> None:
    """What the meter, the bill and the ladder leave behind is known to `pilotlight state`."""
    on = Stage(budgets=(day("4"),))
    assert isinstance(on.deps.state, MemoryState)
    on.event(on.submit("a", run_s=2 * HOUR))
    hours(on, 14)
    exported(on, Exports((0, "50"), reaches=1))
    billing(on.deps, notice())
    found = {}
    for key, stored in on.deps.state.scan("").items:
        found[key.partition("/")[0]] = state_families.read(key, stored.value)
    assert found.keys() >= {"metering", "meter", "metered", "life", "bill", "bill-read", "ladder", "noticed"}
    assert billed_days.days(on.deps.state, "c", START.date(), START.date())[0].usd == 50


def test_what_is_paid_for_and_runs_nowhere_is_counted_at_each_tick() -> None:
    """A commitment of three nodes: one that is lit is used, and the others' hours count; without one none are."""
    own = PoolPolicy(instance_type="one", capacity_type="reserved", max=20, paid=PaidPolicy(nodes=3))
    on = Stage(pools={"own": own})
    billing(on.deps, TICK)
    on.wait(3600)
    on.event(on.submit("a", run_s=7200))
    billing(on.deps, TICK)
    on.wait(3600)
    billing(on.deps, TICK)
    found = paid_idle_of_month(on.deps.state, "c", START.date())
    assert found is not None
    assert (found.pools["own"].gpu_hours, found.pools["own"].usd) == (Decimal(5), Decimal(5))
    without = Stage()
    billing(without.deps, TICK)
    assert paid_idle_of_month(without.deps.state, "c", START.date()) is None


def test_a_bill_says_what_a_commitment_pays_for_a_pool_from_then_on() -> None:
    """A node of three ran for an hour at $0.60 of a plan: unused ones count at that, in the plan and in the month."""
    own = PoolPolicy(instance_type="one", capacity_type="reserved", max=20, paid=PaidPolicy(nodes=3))
    on = Stage(pools={"own": own})
    on.event(on.submit("a", run_s=3600))
    while on.world.clock.now() < START + 2 * DAY:
        on.minutes(30)
        billing(on.deps, TICK)
    metered = sum(line.gpu_hours for line in meter_nodes.days(on.deps.state, "c", START.date(), START.date())[0].lines)
    zero, paid = Decimal(0), metered * Decimal("0.6")
    row = BilledDay(day=START.date(), usd=zero, effective_usd=paid, commitment="used", pool="own")
    exports = Exports(reaches=1)
    exports.bill = msgspec.structs.replace(exports.bill, days=(row,))
    exported(on, exports)
    kept = PRICES.get(on.deps.state, "c")
    assert kept is not None
    assert kept.value.committed == {"own": Decimal("0.6")}
    on.deps = replace(on.deps, offerings=told_offerings(on.deps.policy, on.catalog, kept.value, "")[0])
    on.minutes(1)
    billing(on.deps, TICK)
    before = paid_idle_of_month(on.deps.state, "c", START.date())
    on.minutes(60)
    billing(on.deps, TICK)
    after = paid_idle_of_month(on.deps.state, "c", START.date())
    assert before is not None
    assert after is not None
    more = after.pools["own"].usd - before.pools["own"].usd
    assert (after.pools["own"].effective, before.pools["own"].effective) == (Decimal("1.8"), zero)
    assert more == Decimal("1.8")
