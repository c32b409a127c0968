"""A hard cap's end and the brakes: limits of ten minutes hold no empty node back, a person's word does.

Money is counted here from the world's log: launches and terminations times the price.
"""

from decimal import Decimal

import pytest
from cap_stage import STOP, capped, days, pod
from msgspec.structs import replace as with_
from stage import Stage

from pilotlight.facts.money.money_policy import Caps, Limits
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import brake_records
from pilotlight.units import HOUR
from pilotlight.world.residents import Resident

NODES = 10
CAP = Decimal(40)
POOL = {"one": PoolPolicy(instance_type="one", max=NODES)}


def ten_idle(limits: Limits, **blockers: Resident) -> Stage:
    """Ten nodes whose work ends after ten minutes, under a cap that is worth four hours of all of them.

    Idling is cheap by the policy: only the end of the cap puts them out.
    """
    on = capped(CAP, with_(STOP, idle_timeout=5 * HOUR), pools=POOL, caps=Caps(ten_minutes=limits))
    for n in range(NODES - 1):
        pod(on, f"p{n}", 600)
    on.event(pod(on, "last", 600))
    on.minutes(20)
    for node, one in blockers.items():
        on.world.residents.put(node, one)
    return on


@pytest.mark.parametrize("most", [0, 1])
@pytest.mark.parametrize("blocked", [False, True], ids=["empty", "others on two of them"])
def test_a_limit_of_ten_minutes_holds_back_no_empty_node_at_the_end_of_a_hard_cap(most: int, blocked: bool) -> None:
    """Ten empty nodes and at most one (or none) to be removed in ten minutes: all go before the cap is passed."""
    others = {"n2": Resident("cache", "local storage"), "n3": Resident("db", "PDB", guarded=True)} if blocked else {}
    on = ten_idle(Limits(nodes_removed=most), **others)
    assert len(on.world.nodes) == NODES
    on.minutes(6 * 60)
    assert Decimal(30) < max(days(on)) <= CAP
    assert not on.world.nodes


def test_a_persons_pause_holds_at_the_end_of_a_hard_cap_and_people_are_told_what_it_costs() -> None:
    """Whoever paused the pool while it idled is told again at the cap's end: no node goes, and what each day costs."""
    on = capped(rules=with_(STOP, idle_timeout=600))
    on.event(on.submit("a", run_s=600))
    on.minutes(5)
    brake_records.pause(on.deps.state, "c", "one", "maintenance", on.deps.now(), "ada")
    on.minutes(60)
    early = [a for a in on.alerts if a.kind == "capacity-stopped"]
    assert ["$24.00" in a.why for a in early] == [False]
    on.minutes(7 * 60)
    assert len(on.world.nodes) == 1
    late = [a for a in on.alerts if a.kind == "capacity-stopped" and a not in early]
    assert any("its hard budget is used up, and each day that it stays costs $24.00" in a.why for a in late)


def test_a_limit_of_ten_minutes_still_holds_what_only_idles() -> None:
    """Two nodes idle past their time while the hard budget has room: one goes, the other ten minutes later."""
    on = capped(Decimal(100), caps=Caps(ten_minutes=Limits(nodes_removed=1)))
    pod(on, "a", 600)
    on.event(pod(on, "b", 600))
    on.minutes(60)
    first, second = (r["t"] for r in on.events("terminate"))
    assert second - first >= 600
