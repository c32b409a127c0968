"""When holds are looked at again, and what a decision settles by itself."""

from collections import Counter
from dataclasses import replace as with_fields
from datetime import timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.budget_limits import OWN_DEADLINE, latest, meters, open_hold
from pilotlight.decide.money.holds import TICK, put_out
from pilotlight.facts.decisions import CallStep, NodeVerdict, Plan, Record
from pilotlight.facts.money.budgets import Account, Hold, Priced, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import Reserving
from pilotlight.flow.budgets import budget_holds, renew_holds, workload_holds
from pilotlight.flow.budgets.budget_room import BudgetRoom
from pilotlight.flow.observe.snapshot import look
from pilotlight.ports.state import Clock
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.state_schema.table import PLACES
from pilotlight.units import HOUR, Seconds

BUDGET = Budget(name="all", usd=Decimal(50), period="day")
TERMS = Terms(
    pool="one", usd_per_hour=Decimal(1), gpus=1, boot_s=180, idle_s=300, run_s=HOUR, run_source="", typical_s=600
)


def test_a_workload_that_names_its_longest_run_is_looked_at_when_that_ends() -> None:
    """Nothing else is due: what is held for it is free again at that moment, and not at the next event of a pod."""
    on = Stage(budgets=(BUDGET,))
    now = on.deps.now()
    assert workload_holds.hold(on.deps, "t", (replace(TERMS, run_source=OWN_DEADLINE),), now) == ""
    seen = look(on.deps)
    seen = replace(
        seen, view=replace(seen.view, reserving=(Reserving(turn="t", namespace="ml", name="w", version="1"),))
    )
    ends = now + timedelta(seconds=180 + HOUR)
    assert renew_holds.keep(on.deps, seen).money.look_again_at == ends
    assert len(list(HOLD.scan(on.deps.state, "c/"))) == 1
    renew_holds.keep(on.deps, replace(seen, now=ends))
    renew_holds.keep(on.deps, replace(seen, now=ends))
    assert list(HOLD.scan(on.deps.state, "c/")) == []


def test_a_decision_settles_the_node_that_it_gave_back_by_its_instance() -> None:
    """The cloud's name of a node is not the cluster's: what it cost is settled with the release, not looks later."""
    on = Stage(budgets=(BUDGET,))
    now = on.deps.now()
    HOLD.put(on.deps.state, "c/h.0", replace(open_hold("h.0", "h", TERMS, now), instance="i-7"), over=None)
    gone = NodeVerdict(node="n7", pool="one", instance="i-7", verdict="release", why="idle", usd_per_hour=None)
    step = CallStep(n=0, call="release", pool="one", target="n7", instance="i-7", state="done")
    plan = Plan(nodes=(gone,))
    budget_holds.settle_decision(
        on.deps,
        Record(id="d", cluster="c", flow="tick", trigger="t", at=now, status="open", plan=plan, steps=(step,)),
    )
    assert list(HOLD.scan(on.deps.state, "c/")) == []


def test_an_empty_node_is_held_for_until_the_look_after_its_idle_timeout() -> None:
    """It is put out by a look, and looks are a minute apart: that minute is held for too."""
    hold: Hold = open_hold("h.0", "h", TERMS, (now := Stage().deps.now()))
    assert put_out(hold, now).until == now + TICK + timedelta(seconds=TERMS.idle_s)


def test_room_lasts_less_long_where_a_price_rose() -> None:
    """One hour at a dollar, then two dollars an hour: five dollars last three hours."""
    now = Stage().deps.now()
    dear = replace(TERMS, usd_per_hour=Decimal(2))
    rose = Priced(until=now + timedelta(hours=1), usd_per_hour=Decimal(1))
    hold = replace(open_hold("h.0", "h", dear, now), earlier=(rose,))
    (meter,) = meters((BUDGET,), now)
    assert latest(meter, hold, Decimal(5)) == now + timedelta(hours=3)


class Writes(MemoryState):
    """A store that counts the writes of each family."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.counts: Counter[str] = Counter()

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Count, and put."""
        self.counts[key.partition("/")[0]] += 1
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)


@pytest.mark.parametrize("nodes", [8, 80])
def test_a_look_writes_an_account_once_however_many_holds_move_on(nodes: int) -> None:
    """Each of its holds is held for as far as it needs, and together they are one write of each limit's account."""
    limits = Budget(name="all", usd=Decimal(10**6), period="day"), Budget(name="now", usd=Decimal(500), period="hour")
    on = Stage(budgets=limits, pools={"one": PoolPolicy(instance_type="one", max=nodes)})
    state = Writes(on.world.clock)
    on.deps = with_fields(on.deps, state=state)
    for n in range(nodes):
        on.submit(f"a{n}", run_s=5 * HOUR)
    on.minutes(8)
    holds = [entry.value for entry in HOLD.scan(state, "c/")]
    assert len(holds) == nodes
    later = replace(look(on.deps), now=max(hold.binds_until for hold in holds))
    state.counts.clear()
    assert renew_holds.keep(on.deps, later).money.lit == nodes
    moved = [entry.value for entry in HOLD.scan(state, "c/")]
    assert all(new.binds_until > old.binds_until for new, old in zip(moved, holds, strict=True))
    assert state.counts["cap"] == 1
    assert state.counts["hold"] <= PLACES


def test_what_a_strange_node_held_for_a_whole_run_is_free_once_its_pod_may_be_stopped() -> None:
    """A node that nobody bought holds what may bind to it; with a pod that a hard cap may stop on it, a stretch alone.
    Others get the rest."""
    stops = ClassPolicy(gpu_models="any", idle_timeout=300, may_move=("hard-cap",), hold=HOUR)
    on = Stage(budgets=(replace(BUDGET, usd=Decimal(20), hard=True),), classes={"batch": stops})
    on.world.launch("one")
    on.tick()
    assert sum(account.total for account in accounts(on)) > 20
    on.wait(200)
    on.submit("a", run_s=2 * HOUR)
    on.wait(1)
    on.tick()
    (hold,) = [entry.value for entry in HOLD.scan(on.deps.state)]
    assert hold.terms.stretch_s == HOUR
    assert hold.until - on.deps.now() < timedelta(hours=1, minutes=5)
    held = sum(account.total for account in accounts(on))
    assert held == Decimal((hold.until - hold.since).total_seconds()) / 3600


@pytest.mark.parametrize(("hours", "granted"), [(Decimal("1.5"), True), (Decimal("2.5"), False)])
def test_a_hold_that_was_overdue_lends_its_node_no_dollars(hours: Decimal, granted: bool) -> None:
    """Nobody looked for four hours, and then its node came: what it may have cost meanwhile is no room for its run."""
    on = Stage(budgets=(replace(BUDGET, usd=Decimal(2), hard=True),))
    at = on.deps.now() + timedelta(hours=4)
    (meter,) = meters(on.deps.policy.budgets, at)
    waits = replace(open_hold("h.0", "h", TERMS, on.deps.now()), accounts=(meter.key,))
    HOLD.put(on.deps.state, "c/h.0", waits, over=None)
    CAP.put(on.deps.state, f"c/{meter.key}", Account(held={"h.0": Decimal(4)}))
    came = replace(waits, since=at, instance="n", matched_at=at)
    room = BudgetRoom(on.deps, [meter], at)
    short = room.claim(meter, came, replace(came, until=at + timedelta(hours=float(hours))), "n")
    assert (short is None) is granted
    assert room.write()
    assert sum(account.total for account in accounts(on)) == (hours if granted else 0)


def accounts(on: Stage) -> list[Account]:
    """Every account of a stage."""
    return [entry.value for entry in CAP.scan(on.deps.state)]
