"""When holds are looked at again, and what a decision settles by itself."""

from datetime import timedelta
from decimal import Decimal

from msgspec.structs import replace
from stage import Stage

from pilotlight.decide.money.budget_limits import OWN_DEADLINE, latest, meters, open_hold
from pilotlight.decide.money.holds import TICK, put_out
from pilotlight.facts.decisions import CallStep, NodeVerdict, Plan, Record
from pilotlight.facts.money.budgets import Hold, Priced, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.workload import Reserving
from pilotlight.flow.budgets import budget_holds, renew_holds, workload_holds
from pilotlight.flow.observe.snapshot import look
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR

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
    seen = replace(seen, view=replace(seen.view, reserving=(Reserving(turn="t", namespace="ml"),)))
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
    HOLD.put(on.deps.state, "c/h.0", replace(open_hold("h.0", "h", TERMS, now), instance="i-7"))
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
