"""Room under caps, quotas and budgets, and the order in which pods are placed, as tables have them."""

from datetime import timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from small_fleet import NOW, offering
from state_tables import differing, line, states

from pilotlight.decide.fit.fit import of_offering
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.place.provision import covers
from pilotlight.decide.place.purchase import Group, Headroom, Purchase, in_units, nodes_bought
from pilotlight.decide.place.requested_nodes import asked_for
from pilotlight.facts.money.budgets import Balance, Money, Terms
from pilotlight.facts.money.money_policy import Budget, Caps
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape

HERE = Path(__file__).parent
ROOMS: dict[str, Any] = {
    "gpus": (4, 1, 0),
    "price": ("12", "0.5", "0"),
    "zone": ("", "z1"),
    "lit": (1, 0, 3, 4),
    "max": (4, 1, 20, None),
    "cap nodes": (None, 3, 4, 5, 1),
    "cap gpus": (None, 4, 16, 17, 19, 20),
    "cap usd": (None, "12", "48", "59", "60", "1.5"),
    "owed": (0, 1, 3),
    "quota": (None, 8, 16, 17, 24),
    "used": (8, 0, 16, 20),
    "paid": (None, 0, 1, 3),
    "paid zone": ("", "z1", "z2"),
    "budget": (None, "100", "30", "12.5"),
    "held": ("0", "10", "99"),
    "stop": (0, 600),
    "others": (0, 3),
    "bought": (1, 2, 5),
    "class": ("batch", None, "serving"),
}


def _headroom(state: dict[str, Any]) -> Headroom:
    usd = state["cap usd"]
    caps = Caps(nodes=state["cap nodes"], gpus=state["cap gpus"], usd_per_hour=None if usd is None else Decimal(usd))
    pools = {} if state["max"] is None else {"v": PoolPolicy(instance_type="v", max=state["max"])}
    policy, purse = Policy(version=1, pools=pools, caps=caps), None
    if state["budget"] is not None:
        own = Budget(name="b", usd=Decimal(state["budget"]), period="day")
        balances = [Balance(meter=meter, total=Decimal(state["held"])) for meter in meters([own], NOW)]
        purse = Purse(Money(balances=tuple(balances)), NOW, policy)
    room = Headroom(policy, purse)
    if state["quota"] is not None:
        room.quotas = {"v": Quota(name="q", limit=state["quota"], used=state["used"], takes=4)}
    if state["owed"]:
        room.owed["v"] = state["owed"]
    if state["paid"] is not None:
        room.paid = {("v", state["paid zone"]): state["paid"], ("w", ""): 1}
    return room


def test_room_under_caps_is_that_of_the_table() -> None:
    """How many more nodes may be bought, by what is tightest; and after some were, here and in a copy."""
    found = []
    for state in states(400, ROOMS):
        of = offering("v", "V100", state["gpus"], state["price"], zone=state["zone"])
        room = _headroom(state)
        room.add(of, state["lit"])
        own = None if state["class"] is None else shape(gpu=GpuRequest(count=1), workload_class=state["class"])
        terms = room.terms(of, own, state["bought"], state["stop"], state["others"])
        first, copy = room.room(of, terms), room.copy()
        room.add(of, state["bought"], terms)
        held = "-" if terms is None else f"{terms.run_s:g} {terms.stop_s:g} {terms.calls_s:g} {terms.workload_class}"
        sums = f"{room.nodes} {room.gpus} ${room.usd_per_hour} {dict(room.by_pool)} {room.paid} {dict(room.owed)}"
        after = f"{room.room(of, terms)[0]} {copy.room(of, terms)[0]} {dict(room.taken)}"
        found.append(line(ROOMS, state, f"{first}; terms {held}; {sums}; {after}"))
    assert differing(HERE / "rooms.txt", found) == []


def test_whose_node_a_pod_may_share() -> None:
    """One held for as long at least, of the same team and class; any where nothing is held."""
    own: dict[str, Any] = {
        "pool": "v",
        "usd_per_hour": Decimal(1),
        "gpus": 1,
        "boot_s": 1,
        "idle_s": 1,
        "run_source": "",
        "typical_s": 1,
    }

    held = Terms(run_s=60, stop_s=30, team="red", workload_class="batch", **own)
    policy = Policy(version=1)

    def group(run_s: int, grace_s: int, team: str, name: str) -> Group:
        made = shape(gpu=GpuRequest(count=1), team=team, workload_class=name, max_run_s=run_s)
        waits = PodDemand(uid="u", namespace="ml", name="p", shape=made, created_at=NOW, grace_s=grace_s)
        return Group(made, [waits])

    asked = product((59, 60, 61), (29, 30, 31), ("red", "blue"), ("batch", "serving"))
    allowed = [each for each in asked if covers(held, group(*each), policy)]
    stops = [grace for grace in (29, 30, 31) if group(60, grace, "red", "batch").stop_s <= 30]
    assert allowed == [(run, grace, "red", "batch") for run in (59, 60) for grace in stops]


ORDERS: dict[str, Any] = {
    "pods": (6, 1, 12),
    "gangs": (0, 1, 2),
    "priorities": ((0,), (0, 5)),
    "graces": ((30,), (30, 900)),
}


def _pod(draw: Random, state: dict[str, Any], n: int) -> PodDemand:
    gang = Gang(key=f"g{draw.randrange(state['gangs'])}", size=3) if state["gangs"] and draw.random() < 0.5 else None
    made = shape(
        gpu=GpuRequest(count=draw.choice((1, 1, 4)), milli=1000),
        memory=draw.choice((0, 5)),
        cpu_milli=draw.choice((0, 7)),
        priority=draw.choice(state["priorities"]),
        gang=gang,
    )
    at = NOW - timedelta(seconds=draw.choice((0, 0, 30)))
    return PodDemand(
        uid=f"u{n}", namespace="ml", name=f"p{n}", shape=made, created_at=at, grace_s=draw.choice(state["graces"])
    )


def test_pods_are_planned_in_the_order_of_the_table() -> None:
    """Units by priority, gangs first, the largest first, the oldest first; and who was asked for which node."""
    found = []
    for number, state in enumerate(states(160, ORDERS)):
        draw = Random(number)
        pods = [_pod(draw, state, n) for n in range(state["pods"])]
        units = [(key, [[pod.uid for pod in group.pods] for group in groups]) for key, groups in in_units(pods)]
        spot = {pool: offering(pool, "T4", 4, "1") for pool in ("a", "b")}
        booting = [of_offering(spot[draw.choice("ab")], "booting", f"b{n}") for n in range(draw.randint(0, 5))]
        entries = [
            InFlight(
                decision=f"d{n}",
                offering="o",
                pool=draw.choice("ab"),
                count=draw.randint(1, 2),
                requested_at=NOW - timedelta(seconds=draw.choice((0, 9))),
                ready_by=NOW,
                demands=tuple(pod.uid for pod in pods if draw.random() < 0.3),
            )
            for n in range(draw.randint(0, 3))
        ]
        asked, order = asked_for(pods, entries, booting)
        told = [
            f"{one.entry.decision} {[p.uid for p in one.group.pods]} {[b.where for b in one.bins]}" for one in asked
        ]
        found.append(line(ORDERS, state, f"{units}; asked {told}; {[b.where for b in order]}"))
    assert differing(HERE / "orders.txt", found) == []


def test_a_purchase_is_for_all_who_were_charged_to_it() -> None:
    """Its demands, shapes and gangs, once each where they are sets; its count is that of its nodes."""
    of = offering("v", "V100", 4, "12", zone="z1")
    purchase = Purchase(of)
    plain, ganged = shape(gpu=GpuRequest(count=1)), shape(gpu=GpuRequest(count=2), gang=Gang(key="g", size=2))
    pods = [PodDemand(uid=f"u{n}", namespace="ml", name="p", shape=plain, created_at=NOW) for n in range(3)]
    for own in (plain, ganged, plain):
        purchase.charge(own, pods[:1])
    purchase.bins += [of_offering(of, "new", of.name) for _ in range(2)]
    made = purchase.buy({})
    assert (made.count, made.demands, made.gangs, made.zone) == (2, ("u0", "u0", "u0"), ("g",), "z1")
    assert made.shapes == tuple(sorted({plain.key, ganged.key}))
    assert (made.why, made.usd_per_hour, made.boot_s) == ("3 waiting pods without room", of.usd_per_hour, of.boot_s)
    assert nodes_bought([made, made]) == {"v": 4}
    assert Group(plain, []).stop_s == 0
    assert Group(plain, pods).stop_s > 0
