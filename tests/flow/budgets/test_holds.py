"""Budget holds through the flows: reserved before a purchase, moved on while a node is lit, settled when it stops."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.money.budget_limits import meters, open_hold, terms
from pilotlight.errors import Busy, PilotlightError, Unavailable
from pilotlight.facts.labels import POOL
from pilotlight.facts.money.budgets import Account, Hold
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Requirement
from pilotlight.flow.budgets import budget_accounts as accounts_in_state
from pilotlight.flow.budgets import budget_holds as holds
from pilotlight.flow.budgets import renew_holds
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import look
from pilotlight.ports.state import Page, State, Stored
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.state_schema.lease_records import LEASE_S
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

ACCOUNT = CAP.format
BATCH = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)
OTHER = ((Requirement(key=POOL, operator="In", values=("other",)),),)
"""A pod's wish for the pool of that name."""

EACH = Decimal(180 + 300 + 7200) / 3600
"""Dollars held for one node at $1: its boot, one idle timeout and the longest run of class batch."""


def stage(*budgets: Budget, **rules: Any) -> Stage:
    """A stage whose pods of class batch may run two hours."""
    return Stage(budgets=budgets, classes={"batch": BATCH}, **rules)


def day(usd: str, **fields: Any) -> Budget:
    """A budget in dollars a day."""
    return Budget(name=fields.pop("name", "all"), usd=Decimal(usd), period="day", **fields)


def accounts(on: Stage) -> dict[str, Account]:
    """Every account by its key, less the cluster's name."""
    return {k.removeprefix("cap/c/"): ACCOUNT.read(k, s.value) for k, s in on.deps.state.scan("cap/").items}


def total(on: Stage) -> Account:
    """All accounts of a stage with one budget in one."""
    every = accounts(on).values()
    held: dict[str, Decimal] = {}
    for account in every:
        held.update(account.held)
    return Account(settled=sum((a.settled for a in every), Decimal(0)), held=held)


def left_over(on: Stage) -> list[str]:
    """Holds that nobody settled."""
    return [entry.value.id for entry in HOLD.scan(on.deps.state)]


def stop(deps: Deps, hold: Hold, ended_at: datetime) -> None:
    """The node of a hold has stopped."""
    found = HOLD.get(deps.state, f"{deps.name}/{hold.id}")
    if found is not None:
        holds.end(deps, found, ended_at)


def quiet(on: Stage, minutes: int = 60) -> None:
    """Tick until every node is gone, and a lease's time more."""
    on.minutes(minutes)
    assert not on.world.nodes


def test_a_node_is_held_for_before_it_is_bought() -> None:
    """A purchase holds its boot, one idle timeout and the longest run."""
    on = stage(day("400"))
    on.event(on.submit("a"))
    assert total(on).held == {left_over(on)[0]: EACH}
    assert on.nodes("one") == 1


def test_real_cost_is_settled_and_the_rest_returns() -> None:
    """When a node stops, what it really cost is settled to the cent, and nothing stays held."""
    on = stage(day("400"))
    on.event(on.submit("a", run_s=1000))
    quiet(on)
    assert total(on) == Account(settled=on.world.cost())
    assert left_over(on) == []


def test_a_pod_beyond_the_budget_is_refused_with_the_figures_and_helped_when_money_frees() -> None:
    """What does not fit is refused with the figures, people are told, and it gets its node once another has stopped."""
    on = stage(day("3"), pools={"one": PoolPolicy(instance_type="one"), "other": PoolPolicy(instance_type="one")})
    first = on.submit("a", run_s=600)
    on.wait(1)
    for pod in [first, on.submit("b", run_s=600, terms=OTHER)]:
        on.event(pod)
    assert (on.nodes("one"), on.nodes("other")) == (1, 0)
    why = "budget all: $4.27 of $3.00 a day would be held (a run may take 2 h: classes.batch.max_runtime)"
    (alert,) = [a for a in on.alerts if a.kind == "refused"]
    assert (alert.what, alert.why) == ("ml/b refused", why)
    quiet(on)
    assert [job.id for job in on.world.finished] == ["uid-a", "uid-b"]
    assert total(on) == Account(settled=on.world.cost())


def test_priority_decides_who_gets_the_last_dollars() -> None:
    """Of two pods that wait, the one of higher priority gets the money that is left."""
    on = stage(day("3"))
    on.submit("low")
    high = on.submit("high", priority=10)
    on.tick()
    on.wait(400)
    assert [j.id for j in on.world.running.values()] == [high.uid]


SCOPED = {
    "its team is at its cap": (BudgetScope(team="research"), 0),
    "another team is": (BudgetScope(team="ads"), 1),
    "its pool is at its cap": (BudgetScope(pool="one"), 0),
    "its class is at its cap": (BudgetScope(workload_class="batch"), 0),
}


@pytest.mark.parametrize(("scope", "bought"), SCOPED.values(), ids=SCOPED.keys())
def test_scopes_refuse_their_own(scope: BudgetScope, bought: int) -> None:
    """A budget refuses what it counts and nothing else."""
    on = stage(day("1", scope=scope), day("100", name="own", scope=BudgetScope(team="research")))
    on.event(on.submit("a", team="research"))
    assert on.nodes("one") == bought


OF_SIX = EACH + Decimal(5 * 20) / 3600
"""Of six that are wanted together each is held for the calls of the five others too."""

LIMITS: dict[str, tuple[Budget, int]] = {
    "dollars an hour": (Budget(name="b", usd=Decimal(3), period="hour"), 3),
    "GPU-hours a week": (Budget(name="b", gpu_hours=2 * OF_SIX, period="week"), 2),
    "dollars a month": (Budget(name="b", usd=4 * OF_SIX), 4),
    "dollars a month, not hard": (Budget(name="b", usd=EACH, hard=False), 1),
}


@pytest.mark.parametrize(("budget", "bought"), LIMITS.values(), ids=LIMITS.keys())
def test_every_measure_binds(budget: Budget, bought: int) -> None:
    """As many nodes are bought as the limit holds, and not one more."""
    on = stage(budget)
    for n in range(6):
        on.submit(f"p{n}", run_s=900)
    on.minutes(10)
    assert on.nodes("one") == bought
    quiet(on, 120)
    assert left_over(on) == []
    assert total(on).held == {}


def test_a_soft_budget_holds_the_median_run() -> None:
    """Once some runs of a class were seen, a budget that is not hard holds their median, and no longer an hour."""
    on = stage(Budget(name="soft", usd=Decimal(50), hard=False))
    for n in range(6):
        on.event(on.submit(f"p{n}", run_s=600))
    assert round(max(total(on).held.values()), 4) == round(Decimal(180 + 300 + 3600) / 3600, 4)
    quiet(on, 40)
    on.event(on.submit("next", run_s=600))
    assert round(max(total(on).held.values()), 4) == round(Decimal(180 + 300 + 600) / 3600, 4)


def test_no_budgets_cost_nothing() -> None:
    """Without budgets no account and no hold is ever read or written."""
    on = Stage()
    spy = Failing(on.deps.state)
    on.deps = replace(on.deps, state=spy)
    on.event(on.submit("a", run_s=600))
    on.minutes(30)
    assert on.world.terminations == 1
    assert not [key for key in spy.keys if key.startswith(("cap/", "hold/"))]


def test_a_hold_moves_on_with_its_node() -> None:
    """A lit node's hold always covers one more longest run from now and one tick."""
    on = stage(day("400"))
    on.event(on.submit("a", run_s=3 * HOUR))
    for _ in range(170):
        on.minutes(1)
        covered_s = float(total(on).total) * HOUR + 0.001
        assert covered_s >= on.world.now_s + 2 * HOUR + 60


def test_a_node_that_cannot_be_held_for_takes_nothing_new() -> None:
    """Where a hold cannot move on its node is cordoned and people are told; it takes pods again when money frees."""
    on = stage(Budget(name="all", usd=2 * EACH + Decimal("0.05")))
    on.event(on.submit("long", run_s=1.5 * HOUR))
    on.event(on.submit("short", run_s=600))
    on.minutes(12)
    assert [n.cordoned for n in on.world.nodes.values()] == [True, True]
    (alert,) = [a for a in on.alerts if a.kind == "finding-budget-hold"]
    assert alert.what == "budget all, usd has no room for all that runs"
    assert alert.why.startswith("budget all: $4.37 of $4.32 a month would be held")
    assert alert.why.endswith("; nothing new binds to n1, n2 until there is room")
    on.minutes(12)
    assert [(n.id, n.cordoned) for n in on.world.nodes.values()] == [("n1", False)]
    quiet(on, 120)
    assert total(on) == Account(settled=on.world.cost())


def test_empty_frozen_nodes_leave_their_money_to_one_that_may_serve() -> None:
    """Two nodes boot for longer than they were held for, and the budget can hold one: it serves, the other goes."""
    on = stage(Budget(name="all", usd=2 * EACH), faults=Faults(boot_s=600, gpu_lag_s=120))
    on.event(on.submit("a", run_s=1.5 * HOUR))
    on.event(on.submit("b", run_s=1.5 * HOUR))
    on.minutes(20)
    assert [(n.cordoned, list(n.jobs)) for n in on.world.nodes.values()] == [(False, ["uid-a"])]
    quiet(on, 300)
    assert len(on.world.finished) == 2
    assert round(total(on).settled, 6) == round(on.world.cost(), 6)


def test_an_empty_frozen_node_goes_before_its_idling_passes_the_budget() -> None:
    """What was held for it is nearly used up and nothing may bind to it: it does not wait out its idle timeout."""
    rules = ClassPolicy(gpu_models="any", idle_timeout=1200, max_runtime=1800)
    on = Stage(budgets=(day("0.90"),), classes={"batch": rules})
    on.event(on.submit("a", run_s=300))
    on.minutes(21)
    on.submit("late", run_s=1500)
    on.minutes(60)
    assert len(on.world.finished) == 2
    assert not on.world.nodes
    assert on.world.cost() <= Decimal("0.90")
    assert total(on) == Account(settled=on.world.cost())


@pytest.mark.parametrize("call", ["drain", "release"])
@pytest.mark.parametrize("error", [Unavailable("gone"), Busy("busy")], ids=["gone", "busy"])
def test_a_frozen_node_that_could_not_go_takes_nothing_new(call: str, error: PilotlightError) -> None:
    """A release that fails half-way, or is settled later, does not thaw what a budget froze."""
    rules = ClassPolicy(gpu_models="any", idle_timeout=120, max_runtime=1800)
    on = Stage(budgets=(Budget(name="all", usd=Decimal("0.64")),), classes={"batch": rules})
    on.event(on.submit("a", run_s=1500))
    on.minutes(28)
    assert [n.cordoned for n in on.world.nodes.values()] == [True]
    on.fail(call, error)
    on.submit("late", run_s=1800)
    for _ in range(8):
        with suppress(PilotlightError):
            on.minutes(1)
    assert not on.failures_left
    assert [job.id for job in on.world.finished] == ["uid-a"]
    assert not on.world.nodes
    assert on.world.cost() <= Decimal("0.64")


def test_a_node_that_boots_into_the_next_period_has_to_fit_there() -> None:
    """A minute before midnight the old day has room for two and the new one for one: one is bought, then the other."""
    on = stage(day("3"))
    on.wait(12 * HOUR - 60)
    pods = [on.submit(name, run_s=0.5 * HOUR) for name in ("a", "b")]
    for pod in pods:
        on.event(pod)
    assert on.nodes("one") == 1
    on.minutes(2)
    assert on.nodes("one") == 1
    quiet(on, 240)
    assert len(on.world.finished) == 2
    assert on.world.cost() <= 3


def test_running_nodes_are_held_first_in_a_new_period() -> None:
    """At a period's start a running node is held before anything is bought, and each period is charged its part."""
    on = stage(day("3", timezone="Etc/GMT+1"))
    on.wait(12.5 * HOUR)
    on.event(on.submit("old", run_s=1.5 * HOUR))
    on.wait(0.6 * HOUR)
    on.event(on.submit("new", run_s=600))
    assert on.nodes("one") == 1
    quiet(on, 240)
    first, second = accounts(on).values()
    assert (first.held, second.held) == ({}, {})
    assert (first.settled, first.settled + second.settled) == (Decimal("0.5"), on.world.cost())


def test_what_would_run_over_has_to_fit_in_both_periods() -> None:
    """A node that may run on past midnight is held for in both days: of two the next day has room for one."""
    on = stage(day("2.5"))
    on.wait(11.9 * HOUR)
    for n in range(2):
        on.event(on.submit(f"p{n}", run_s=1.5 * HOUR))
    assert on.nodes("one") == 1
    today, then = accounts(on).values()
    assert today.total + then.total == EACH
    on.minutes(30 * 60)
    assert len(on.world.finished) == 2
    assert round(sum(a.settled for a in accounts(on).values()), 6) == round(on.world.cost(), 6)


def test_nodes_from_before_the_budget_are_counted() -> None:
    """A node that was lit before there was a budget is held for from the first look on."""
    on = Stage(classes={"batch": BATCH})
    on.event(on.submit("a", run_s=HOUR))
    on.minutes(10)
    on.deps = replace(on.deps, policy=type(on.deps.policy)(**_fields(on.deps.policy), budgets=(day("3"),)))
    on.event(on.submit("b", team="x"))
    assert on.nodes("one") == 1
    assert set(total(on).held) == {"seen.n1"}


def test_an_empty_node_that_nobody_holds_for_is_held_for_as_what_its_pool_was_lit_for() -> None:
    """A node that came late, or was there before, does not take a week's serving out of a day's budget."""
    on = Stage(classes={"batch": BATCH})
    on.event(on.submit("a", run_s=60))
    on.minutes(6)
    assert not on.world.running
    assert on.nodes("one") == 1
    on.deps = replace(on.deps, policy=type(on.deps.policy)(**_fields(on.deps.policy), budgets=(day("300"),)))
    on.tick()
    (hold,) = [entry.value for entry in HOLD.scan(on.deps.state)]
    assert (hold.id, hold.terms.workload_class) == ("seen.n1", "batch")


def _fields(policy: Any) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in policy.__struct_fields__ if name != "budgets"}


def test_a_longer_pod_raises_the_hold_of_the_node_it_bound_to() -> None:
    """A longer pod on a node raises its hold; where there is no room, people are told how much may go beyond."""
    on = Stage(budgets=(day("3"),), classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300)})
    on.event(on.submit("brief", max_run_s=600.0, run_s=600))
    on.minutes(5)
    on.submit("long", max_run_s=4 * HOUR, run_s=HOUR)
    on.minutes(20)
    assert max(total(on).held.values()) == 3
    (alert,) = [a for a in on.alerts if a.kind == "finding-budget-hold"]
    assert alert.why.endswith("nothing new binds to n1 until there is room; what runs already may go $1.23 beyond")


def test_what_the_cloud_refuses_is_free_again_at_once() -> None:
    """A purchase that the cloud refuses holds nothing afterwards."""
    on = stage(day("400"), faults=Faults(quota_nodes=0))
    on.event(on.submit("a"))
    assert (total(on).total, left_over(on)) == (Decimal(0), [])


BACKENDS: dict[str, Callable[[Stage, Path], State]] = {
    "memory": lambda on, _: MemoryState(on.world.clock),
    "sqlite": lambda on, path: SqliteState(path / "state.db", on.world.clock),
}


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS.keys())
def test_parallel_reserves_never_pass_a_cap(backend: Callable[[Stage, Path], State], tmp_path: Path) -> None:
    """However many reserve at once, what is held stays under every hard cap, and what is refused holds nothing."""
    on = stage(day("20"), Budget(name="now", usd=Decimal(7), period="hour"))
    deps = replace(on.deps, state=backend(on, tmp_path))
    node = terms(deps.offerings[0], deps.policy, workload_class="batch", team="")
    node = type(node)(**{**{f: getattr(node, f) for f in node.__struct_fields__}, "usd_per_hour": Decimal(1)})
    now = deps.clock.now()

    def reserve(n: int) -> bool:
        refused = holds.reserve(deps, f"d{n}", 0, [node] * (n % 3 + 1), now)
        assert all(b.total <= b.meter.limit for b in holds.balances(deps, now).balances)
        return not refused

    with ThreadPoolExecutor(8) as pool:
        granted = list(pool.map(reserve, range(40)))
    nodes = sum(n % 3 + 1 for n, ok in enumerate(granted) if ok)
    money = {b.meter.measure: round(b.total, 6) for b in holds.balances(deps, now).balances}
    assert money == {"usd": round(nodes * EACH, 6), "usd_per_hour": nodes}
    assert 1 <= nodes <= 7
    assert len(list(HOLD.scan(deps.state))) == nodes


class Failing:
    """A store that goes away after so many writes, for ever or until it is mended; it remembers the keys asked for."""

    def __init__(self, inner: State, writes: int = 1 << 30) -> None:
        self.inner = inner
        self.left = writes
        self.keys: list[str] = []

    def now(self) -> datetime:
        """The store's time."""
        return self.inner.now()

    def get(self, key: str) -> Stored | None:
        """Read."""
        self.keys.append(key)
        return self.inner.get(key)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Write, while there is something left."""
        self._spend(key)
        return self.inner.put(key, value, if_version=if_version, ttl_s=ttl_s)

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete, while there is something left."""
        self._spend(key)
        self.inner.delete(key, if_version=if_version)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Read many."""
        self.keys.append(prefix)
        return self.inner.scan(prefix, after=after, limit=limit)

    def _spend(self, key: str) -> None:
        self.keys.append(key)
        if self.left <= 0:
            raise Unavailable("the store went away")
        self.left -= 1


def _written(on: Stage, act: Callable[[], object]) -> int:
    """How many writes an action takes."""
    spy = Failing(on.deps.state)
    on.deps = replace(on.deps, state=spy)
    act()
    on.deps = replace(on.deps, state=spy.inner)
    return (1 << 30) - spy.left


def _dies_after(on: Stage, writes: int, act: Callable[[], object]) -> None:
    whole = on.deps
    on.deps = replace(whole, state=Failing(whole.state, writes))
    with suppress(Unavailable):
        act()
    on.deps = whole


def _bought() -> Stage:
    return stage(day("8"), Budget(name="now", usd=Decimal(2), period="hour"))


def _about_to_stop() -> Stage:
    on = _bought()
    on.event(on.submit("a", run_s=600))
    on.minutes(17)
    assert len(on.world.nodes) == 1
    return on


def test_a_crash_between_any_two_writes_of_a_purchase_leaks_nothing() -> None:
    """Wherever the worker dies while buying, one lease later the pod has one node, and in the end all is settled."""
    probe = _bought()
    writes = _written(probe, lambda: probe.event(probe.submit("a", run_s=600)))
    assert writes > 8
    for n in range(writes):
        on = _bought()
        pod = on.submit("a", run_s=600)
        _dies_after(on, n, lambda on=on, pod=pod: on.event(pod))  # type: ignore[misc]
        on.wait(LEASE_S + 1)
        on.minutes(2)
        assert on.world.launches == 1, n
        quiet(on, 60)
        day_account, rate = accounts(on).values()
        assert (day_account, rate) == (Account(settled=on.world.cost()), Account()), n
        assert left_over(on) == [], n


def test_a_crash_between_any_two_writes_of_a_release_charges_once() -> None:
    """Wherever the worker dies while a node goes out, its cost is settled once and what it held is free again."""
    probe = _about_to_stop()
    writes = _written(probe, lambda: probe.minutes(2))
    assert probe.world.terminations == 1
    for n in range(writes):
        on = _about_to_stop()
        _dies_after(on, n, lambda on=on: on.minutes(2))  # type: ignore[misc]
        on.wait(LEASE_S + 1)
        quiet(on, 10)
        day_account, rate = accounts(on).values()
        over_s = 5 * 60
        assert on.world.cost() <= day_account.settled <= on.world.cost() + Decimal(over_s) / 3600, n
        assert (day_account.held, rate, left_over(on)) == ({}, Account(), []), n


def test_a_worker_that_lost_its_lease_changes_no_cost() -> None:
    """Between the cost's writing and its settling another holds for a longer run: what was lived is what is charged."""
    on = stage(day("100"))
    now = on.deps.clock.now()
    own = terms(on.deps.offerings[0], on.deps.policy, workload_class="batch", team="")
    holds.reserve(on.deps, "d", 0, [own], now)
    ended = now + timedelta(hours=1)
    stopped = msgspec.structs.replace(open_hold("d.0.0", "d", own, now), ended_at=ended)
    [meter] = (m for m in meters(on.deps.policy.budgets, now) if m.end is not None)
    accounts_in_state.change(on.deps, meter.key, lambda _: Account(held={"d.0.0": Decimal(50)}))
    stop(on.deps, stopped, ended)
    assert accounts_in_state.read(on.deps, meter)[0].value == Account(settled=own.usd_per_hour)


def test_settling_from_any_half_done_step_charges_the_same() -> None:
    """Wherever the store goes away while a hold is settled, doing it again ends in the same accounts."""
    on = stage(day("100", timezone="Etc/GMT+1"), Budget(name="now", usd=Decimal(5), period="hour"))
    now = on.deps.clock.now()
    own = terms(on.deps.offerings[0], on.deps.policy, workload_class="batch", team="")
    ended = now + timedelta(hours=20, seconds=7)
    expected: dict[str, Account] | None = None
    for n in range(30):
        on = stage(*on.deps.policy.budgets)
        holds.reserve(on.deps, "d", 0, [own], now)
        hold = open_hold("d.0.0", "d", own, now)
        dying = replace(on.deps, state=Failing(on.deps.state, n))
        with suppress(Unavailable):
            stop(dying, hold, ended)
        stored = HOLD.get(on.deps.state, "c/d.0.0")
        if stored is not None:
            stop(on.deps, stored.value, ended + timedelta(hours=1))
        found = accounts(on)
        assert left_over(on) == []
        assert not any(account.held for account in found.values())
        if stored is None:
            expected = expected or found
            assert found == expected
    assert expected is not None
    assert {meter.measure for meter in meters(on.deps.policy.budgets, now)} == {"usd", "usd_per_hour"}


def test_a_lease_that_was_lost_settles_nothing() -> None:
    """A worker whose lease is gone stops before it touches a hold: whoever has it now charges the node, once."""
    on = stage(day("100"))
    on.submit("a", run_s=600)
    on.tick()
    before = accounts(on)

    def lost() -> None:
        raise Busy("the lease was lost")

    with pytest.raises(Busy):
        renew_holds.keep(on.deps, look(on.deps), lost)
    assert accounts(on) == before
