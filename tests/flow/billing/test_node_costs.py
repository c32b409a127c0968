"""What a node really cost stands in the audit chain, behind the decision that bought it, once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from failing_store import Failing
from stage import START, Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.decisions import Link
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.bill import Bill, BilledDay, Life, MeteredNode, MeterPart, NodeCost
from pilotlight.flow.billing import meter_nodes, node_costs
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.observe.instance_lifetimes import note_ended
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import COST, COST_FROM, METERING
from pilotlight.state_schema.decision_records import LINKS_AT_HEAD
from pilotlight.tools.lint.audit_proof import AuditLine, lines, links, strangers, verify

TICK = Tick(cluster="c", what="billing")
CENT = Decimal("0.01")
HOUR = 60


def lived(on: Stage, jobs: int = 1, hours: int = 4) -> None:
    """Jobs of one GPU each come a minute apart, run, and their nodes go; the meter looks every ten minutes."""
    for n in range(jobs):
        on.event(on.submit(f"job-{n}", run_s=1800.0 + 60 * n))
        on.minutes(1)
    for _ in range(6 * hours):
        on.minutes(10)
        meter_nodes.count(on.deps)


def costs(on: Stage) -> list[NodeCost]:
    """What is filed."""
    return [entry.value for entry in COST.scan(on.deps.state, "c/")]


def cost_links(state: State) -> list[Link]:
    """The chain's links that say what a node came to."""
    return [link for link in links(state, "c") if link.kind == "cost"]


def purchases(on: Stage) -> dict[str, int]:
    """How many nodes each decision bought."""
    made = (
        (record.id, step) for record in ledger.filed_records(on.deps.state, "c") for _, step in record.calls_with_steps
    )
    return {id: step.count for id, step in made if step.call == "grow"}


def test_the_real_cost_of_a_purchase_follows_in_the_chain() -> None:
    """Once a node is over, a link names the decision that bought it and the dollars that the meter counted."""
    on = Stage()
    lived(on)
    billing(on.deps, TICK)
    ((decision, _),) = purchases(on).items()
    (cost,) = costs(on)
    assert (cost.decision, cost.pool, cost.instance_type) == (decision, "one", "one")
    assert cost.usd.quantize(CENT) == on.world.cost().quantize(CENT) > 0
    proof = verify(lines(on.deps.state, "c"))
    assert (proof.tampered, proof.costs) == (None, 1)
    (line,) = (line for line in lines(on.deps.state, "c") if b'"kind":"cost"' in line)
    assert msgspec.json.decode(msgspec.json.decode(line, type=AuditLine).record)["decision"] == decision


def test_every_purchase_has_the_cost_of_its_own_nodes() -> None:
    """Each of several purchases of a pool is named by as many costs as it bought nodes; together they are the bill."""
    on = Stage()
    lived(on, jobs=5)
    billing(on.deps, TICK)
    found = costs(on)
    assert {id: sum(cost.decision == id for cost in found) for id in purchases(on)} == purchases(on)
    assert sum((cost.usd for cost in found), Decimal(0)).quantize(CENT) == on.world.cost().quantize(CENT)


def test_a_node_that_nobody_here_bought_names_no_decision() -> None:
    """Its cost is filed too, and says so."""
    on = Stage()
    on.deps.pools.grow("one", 1)
    on.wait(600)
    meter_nodes.count(on.deps)
    on.minutes(3 * HOUR)
    billing(on.deps, TICK)
    on.wait(7200)
    billing(on.deps, TICK)
    assert [cost.decision for cost in costs(on)] == [""]


def test_what_is_filed_is_not_filed_again() -> None:
    """Neither by a tick that comes twice, nor by one on the next day, nor while the node may still come back."""
    on = Stage()
    on.event(on.submit("a", run_s=600))
    on.minutes(20)
    assert not on.world.nodes
    billing(on.deps, TICK)
    assert costs(on) == []
    on.wait(3700)
    for _ in range(2):
        billing(on.deps, TICK)
    for _ in range(3):
        on.wait(20 * 3600)
        billing(on.deps, TICK)
    assert len(costs(on)) == len(cost_links(on.deps.state)) == 1


@pytest.mark.parametrize("at", range(1, 6))
def test_a_tick_that_dies_anywhere_is_made_up_for(at: int) -> None:
    """Whichever write fails, the next tick files what is left: one link and one record a node."""
    on = Stage()
    state = Failing(on.world.clock)
    on.deps = replace(on.deps, state=state)
    lived(on, jobs=2)
    state.at = at
    try:
        node_costs.file(on.deps, on.deps.state.now())
    except Unavailable:
        node_costs.file(on.deps, on.deps.state.now())
    assert state.at < 1
    assert (len(costs(on)), len(cost_links(state))) == (2, 2)
    assert verify(lines(state, "c")).tampered is None


def test_ticks_at_once_file_one_link_a_node() -> None:
    """Two workers that file more nodes than the head's record has links leave each of them once."""
    on = Stage()
    day = START.date()
    nodes = {f"i-{n:03d}": over(n) for n in range(3 * LINKS_AT_HEAD)}
    METERING.put(on.deps.state, f"c/{day}/00", MeterPart(day=day, seen=START, nodes=nodes))
    on.wait(7200)
    now = on.deps.state.now()
    with ThreadPoolExecutor(2) as workers:
        list(workers.map(lambda _: node_costs.file(on.deps, now), range(2)))
    assert len(costs(on)) == len({link.id for link in cost_links(on.deps.state)}) == len(nodes)
    proof = verify(lines(on.deps.state, "c"))
    assert (proof.tampered, proof.costs) == (None, len(nodes))


def over(n: int, day: int = 0) -> MeteredNode:
    """A node that lived for an hour at $2."""
    since = START - timedelta(hours=2) + timedelta(seconds=n, days=day)
    end = since + timedelta(hours=1)
    return MeteredNode(
        name=f"n-{n}",
        pool="one",
        instance_type="one",
        capacity_type="on-demand",
        gpus=1,
        usd_per_hour=Decimal(2),
        since=since,
        until=end,
        gone_at=end,
    )


def test_a_tick_files_so_many_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one tick leaves is filed by later ones, also after midnight."""
    monkeypatch.setattr(node_costs, "AT_ONCE", 2)
    on = Stage()
    day = START.date()
    METERING.put(
        on.deps.state, f"c/{day}/00", MeterPart(day=day, seen=START, nodes={f"i-{n}": over(n) for n in range(5)})
    )
    on.wait(23 * 3600)
    filed = []
    for _ in range(3):
        node_costs.file(on.deps, on.deps.state.now())
        filed.append(len(costs(on)))
    on.wait(24 * 3600)
    assert node_costs.file(on.deps, on.deps.state.now()) == ()
    mark = COST_FROM.get(on.deps.state, "c")
    assert mark is not None
    assert (filed, mark.value.day) == ([2, 4, 5], on.deps.state.now().date())


def test_a_machine_that_was_stopped_and_started_again_has_two_costs() -> None:
    """Of its first life the meter may know no more than that it was over; each life is filed once."""
    on = Stage()
    first, day = over(0), START.date()
    assert first.gone_at is not None
    note_ended(on.deps, Life(instance="i-1", node="n-0", pool="one", since=first.since, ended_at=first.gone_at))
    again = msgspec.structs.replace(first, since=START - timedelta(minutes=30), until=START, gone_at=None)
    METERING.put(on.deps.state, f"c/{day}/00", MeterPart(day=day, seen=START, nodes={"i-1": again}))
    on.wait(2 * 3600)
    for gone_at in (None, None, START):
        node = msgspec.structs.replace(again, gone_at=gone_at)
        METERING.put(on.deps.state, f"c/{day}/00", MeterPart(day=day, seen=START, nodes={"i-1": node}))
        node_costs.file(on.deps, on.deps.state.now())
    assert [(cost.since, cost.usd) for cost in costs(on)] == [
        (first.since, Decimal(2)),
        (again.since, Decimal(1)),
    ]


def tamperings(state: State) -> Iterator[tuple[str, State]]:
    """Ways to change what a node came to."""
    ((name, _, cost),) = COST.scan(state, "c/")
    key = COST.key(name)
    stored = state.get(key)
    assert stored is not None
    state.put(key, stored.value.replace(b'"pool":"one"', b'"pool":"two"'))
    yield "edited", state
    state.delete(key)
    yield "cut", state
    state.put(key, stored.value)
    COST.put(state, f"{name}/billed-1", msgspec.structs.replace(cost, billed_usd=Decimal(1)))
    yield "added", state


def test_a_cost_that_is_changed_shows() -> None:
    """An edited one, one that is gone and one that is in no link are each found."""
    on = Stage()
    lived(on)
    billing(on.deps, TICK)
    for how, state in tamperings(on.deps.state):
        wrong = verify(lines(state, "c")).tampered
        if how == "added":
            assert wrong is None
            assert strangers(state, "c")[0].endswith("/billed-1")
        else:
            assert wrong is not None
            assert (wrong.how, wrong.id) == (how, cost_links(state)[0].id)


def bill(on: Stage, usd: str, *, days: int = 1, resource: str = "") -> Bill:
    """A bill that names the node's instance, up to so many days after its own."""
    (cost, *_) = costs(on)
    row = BilledDay(day=START.date(), usd=Decimal(usd), pool="one", resource=resource or cost.instance)
    return Bill(source="civo", days=(row,), horizon=START.replace(hour=0) + timedelta(days=days))


def test_what_a_bill_says_of_a_node_follows_too() -> None:
    """Once it has all of the node's days, once, and once more where it is corrected; one of another resource says
    nothing."""
    on = Stage()
    lived(on)
    billing(on.deps, TICK)
    now = on.deps.state.now()
    said = [
        node_costs.file_billed(on.deps, read, now)
        for read in (
            bill(on, "1.1", days=0),
            bill(on, "1.1", resource="another"),
            bill(on, "1.1"),
            bill(on, "1.1"),
            bill(on, "1.2"),
        )
    ]
    assert said == [0, 0, 1, 0, 1]
    metered, *billed = costs(on)
    assert [(one.billed_usd, one.source, one.decision) for one in billed] == [
        (Decimal("1.1"), "civo", metered.decision),
        (Decimal("1.2"), "civo", metered.decision),
    ]
    proof = verify(lines(on.deps.state, "c"))
    assert (proof.tampered, proof.costs) == (None, 3)
