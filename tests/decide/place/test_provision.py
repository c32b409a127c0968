"""What is bought: free room first, then room on its way, then the cheapest; gangs whole or not at all; within caps."""

from datetime import timedelta
from decimal import Decimal

import pytest
from small_fleet import (
    A100,
    FLEET,
    NOW,
    T4,
    V100X4,
    bought,
    gang,
    in_flight,
    node,
    offering,
    plan,
    pod,
    pods,
    policy,
    verdict,
)

from pilotlight.facts.capacity import BoundPod, Node, Resources, Taint
from pilotlight.facts.labels import POOL
from pilotlight.facts.memory import Backoff, FitMismatch, Memory, Quarantine
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, Requirement


def test_a_ready_node_with_room_comes_first() -> None:
    """A pod that fits a ready node is not bought for."""
    wanted = pod("p")
    made = plan([wanted], [node("n")])
    assert not made.buys
    assert verdict(made, wanted)[0] == "fits"
    assert made.pods[0].where == "n"


NO_ROOM = {
    "it is full": node("n", used=1),
    "it is cordoned": node("n", schedulable=False),
    "its memory is used up": node("n", free=Resources(memory=0)),
    "it carries a taint of its own": node("n", taints=(Taint(key="mine", effect="NoSchedule"),)),
    "its labels are not those asked for": node("n", labels={}),
}


@pytest.mark.parametrize("lit", NO_ROOM.values(), ids=NO_ROOM.keys())
def test_a_ready_node_without_room_does_not_count(lit: Node) -> None:
    """A node helps nobody when it is full, cordoned, tainted, of other labels or short of something else than GPUs."""
    here = (Requirement(key=POOL, operator="In", values=("t4",)),)
    assert bought(plan([pod("p", memory=1, terms=(here,))], [lit], offerings=[T4])) == {"t4": 1}


ON_ITS_WAY = {
    "an instance that the cluster does not have yet": ((), {"t4": 1}),
    "a node that registered and is not ready": (
        (node("n", ready=False, devices=(), created_at=NOW - timedelta(minutes=4)),),
        {},
    ),
}


@pytest.mark.parametrize(("nodes", "booting"), ON_ITS_WAY.values(), ids=ON_ITS_WAY.keys())
def test_capacity_that_boots_comes_before_a_purchase(nodes: tuple[Node, ...], booting: dict[str, int]) -> None:
    """Room on its way holds a pod, whoever it was asked for; a second pod is bought for."""
    first, second = pods(2)
    made = plan([first], nodes, booting=booting)
    assert not made.buys
    assert verdict(made, first)[0] == "booting"
    assert bought(plan([first, second], nodes, booting=booting)) == {"t4": 1}


def test_a_node_that_never_gets_ready_is_no_capacity() -> None:
    """A node that is not ready by its deadline is no room any more, and what replaces it is another offering."""
    stuck = node("n", ready=False, devices=(), created_at=NOW - timedelta(minutes=31))
    assert "t4" not in bought(plan([pod("p")], [stuck])) != {}


@pytest.mark.parametrize("minutes", [0, 1, 3, 15, 30], ids=lambda m: f"after {m} min")
def test_a_demand_in_flight_is_not_bought_again(minutes: int) -> None:
    """However long the boot takes, a pod that capacity was asked for waits for that capacity."""
    wanted = pod("p")
    memory = Memory(in_flight=(in_flight(T4, [wanted], asked=NOW - timedelta(minutes=minutes)),))
    made = plan([wanted], booting={"t4": 1}, memory=memory)
    assert not made.buys
    assert verdict(made, wanted)[0] == "booting"
    assert "asked for by decision d1" in verdict(made, wanted)[1]


def test_room_in_flight_is_given_once() -> None:
    """A pod that came later does not take the room that was asked for another."""
    first, late = pods(2)
    memory = Memory(in_flight=(in_flight(T4, [first]),))
    made = plan([late, first], booting={"t4": 1}, memory=memory)
    assert bought(made) == {"t4": 1}
    assert made.buys[0].demands == (late.uid,)


def test_a_decision_that_lit_two_pools_keeps_room_in_both() -> None:
    """Pods of one shape that one decision split over two pools wait each for its own."""
    first, second, late = pods(3)
    memory = Memory(in_flight=(in_flight(T4, [first]), in_flight(V100X4, [second])))
    made = plan([first, second], booting={"t4": 1, "v100x4": 1}, memory=memory)
    assert {g.uids: g.where for g in made.pods} == {(first.uid,): T4.name, (second.uid,): V100X4.name}
    late4 = pod("late", 4)
    assert bought(plan([first, second, late4], booting={"t4": 1, "v100x4": 1}, memory=memory)) == {"v100x4": 1}
    assert verdict(plan([first, second, late], booting={"t4": 1, "v100x4": 1}, memory=memory), late)[0] == "booting"


def test_a_node_that_came_and_does_not_help_is_not_bought_twice() -> None:
    """While a pod's own node is ready and unused it waits for the scheduler; where the node helps, it fits."""
    wanted = pod("p")
    memory = Memory(came=(in_flight(T4, [wanted]),))
    useless = node("n", taints=(Taint(key="surprise", effect="NoSchedule"),))
    made = plan([wanted], [useless], memory=memory)
    assert not made.buys
    assert verdict(made, wanted)[0] == "waiting"
    assert "bought by decision d1" in verdict(made, wanted)[1]
    assert verdict(plan([wanted], [node("n")], memory=memory), wanted)[0] == "fits"


def test_a_sweep_is_packed() -> None:
    """Twelve one-GPU pods take twelve GPUs, not twelve eight-GPU nodes (article S1's sweep)."""
    made = plan(pods(12), offerings=[A100])
    assert bought(made) == {"a100": 2}
    assert bought(plan(pods(12))) == {"t4": 12}
    assert len(made.buys[0].demands) == 12


def test_shares_of_a_gpu_are_packed() -> None:
    """Four quarters of a GPU share one device; a fifth needs another."""
    assert bought(plan(pods(4, milli=250))) == {"t4": 1}
    assert bought(plan(pods(5, milli=250))) == {"t4": 2}


def test_slices_are_counted_as_slices() -> None:
    """Seven MIG slices of a pool that offers seven a node are one node, not seven."""
    mig = offering("mig", "A100", 0, "4", slices={"nvidia.com/mig-1g.5gb": 7})
    wanted = pods(8, gpu=GpuRequest(count=1, resource="nvidia.com/mig-1g.5gb"))
    assert bought(plan(wanted[:7], offerings=[mig])) == {"mig": 1}
    assert bought(plan(wanted, offerings=[mig])) == {"mig": 2}


def test_pods_of_two_shapes_share_a_new_node() -> None:
    """What a purchase leaves over goes to the next pods before another node is bought."""
    made = plan([*pods(1, 6), pod("small", 2)], offerings=[A100])
    assert bought(made) == {"a100": 1}
    assert set(made.buys[0].demands) == {"uid-p0", "uid-small"}


GANGS = {
    "all eight can be held": (8, 8, Caps(), {"a100": 8}, "bought"),
    "seven of eight exist": (8, 7, Caps(), {}, "waiting"),
    "seven of eight nodes are allowed": (8, 8, Caps(nodes=7), {}, "refused"),
    "GPUs for seven of eight": (8, 8, Caps(gpus=63), {}, "refused"),
    "dollars for seven of eight": (8, 8, Caps(usd_per_hour=Decimal(255)), {}, "refused"),
    "just enough of everything": (8, 8, Caps(nodes=8, gpus=64, usd_per_hour=Decimal(256)), {"a100": 8}, "bought"),
}


@pytest.mark.parametrize(("size", "here", "caps", "nodes", "word"), GANGS.values(), ids=GANGS.keys())
def test_a_gang_is_whole_or_not_at_all(size: int, here: int, caps: Caps, nodes: dict[str, int], word: str) -> None:
    """A gang of 8 x 8 GPUs gets eight nodes in one purchase, or none."""
    made = plan(gang("g", size, here), rules=policy(caps=caps))
    assert bought(made) == nodes
    assert {g.verdict for g in made.pods} == {word}


def test_a_gang_uses_what_is_lit() -> None:
    """Two idle nodes of eight make it six to buy; room taken back from a refused gang serves the next pod."""
    lit = [node(f"n{n}", A100) for n in range(2)]
    assert bought(plan(gang("g", 8), lit)) == {"a100": 6}
    small = pod("small", 8)
    made = plan([*gang("g", 8), small], lit, rules=policy(caps=Caps(nodes=7)))
    assert not made.buys
    assert verdict(made, small)[0] == "fits"


def test_members_whose_nodes_boot_count() -> None:
    """A gang that was given two places on a node on its way and one new node keeps all three from a second gang."""
    first, second = gang("g", 3, gpus=4), gang("h", 3, gpus=4)
    rules = policy(pools={"a100": PoolPolicy(instance_type="A100x8", max=1)})
    memory = Memory(in_flight=(in_flight(V100X4, first[2:]),))
    made = plan([*first, *second], booting={"a100": 1, "v100x4": 1}, rules=rules, memory=memory)
    assert {verdict(made, p)[0] for p in first} == {"booting"}
    assert bought(made) == {"v100x4": 3}


def test_members_that_run_count() -> None:
    """A gang whose other pods run already only needs the rest."""
    running = BoundPod(uid="r", namespace="ml", name="g-9", gpu=GpuRequest(count=8), gang="g")
    busy = node("n", A100, devices=(0,) * 8, pods=(running,), idle_since=None)
    assert bought(plan(gang("g", 2, here=1), [busy])) == {"a100": 1}


CAPS = {
    "nodes": (Caps(nodes=3), PoolPolicy(instance_type="T4x1", max=20), 3, "3 of 3 nodes lit"),
    "GPUs": (Caps(gpus=2), PoolPolicy(instance_type="T4x1", max=20), 2, "3 of 2 GPUs would be lit"),
    "dollars": (Caps(usd_per_hour=Decimal("1.99")), PoolPolicy(instance_type="T4x1", max=20), 1, "$2.00 of $1.99"),
    "the pool's most nodes": (Caps(), PoolPolicy(instance_type="T4x1", max=4), 4, "pool t4 is at 4 of its 4 nodes"),
}


@pytest.mark.parametrize(("caps", "pool", "nodes", "figures"), CAPS.values(), ids=CAPS.keys())
def test_caps_refuse_with_figures(caps: Caps, pool: PoolPolicy, nodes: int, figures: str) -> None:
    """Ten pods get as many nodes as each cap leaves; the rest are refused with the figures."""
    made = plan(pods(10), offerings=[T4], rules=policy([T4], pools={"t4": pool}, caps=caps))
    assert bought(made) == {"t4": nodes}
    assert [figures in g.why for g in made.pods if g.verdict == "refused"] == [True]
    assert sum(len(g.pods) for g in made.pods if g.verdict == "refused") == 10 - nodes


def test_a_refusal_names_what_would_fit_and_what_holds_each() -> None:
    """Nothing is bought under a cap: every offering that fits is there, with its price and the cap that holds it."""
    made = plan([pod("p")], rules=policy(caps=Caps(usd_per_hour=Decimal("0.5"))))
    (group,) = made.pods
    held = {r.offering: r for r in group.rejected}
    assert set(held) == {o.name for o in FLEET}
    assert {r.code for r in held.values()} == {"cap"}
    assert all(r.usd_per_useful_hour for r in held.values())
    assert "$32.00 of $0.50 an hour would be spent" in held[A100.name].why


def test_the_part_of_a_group_that_is_refused_names_what_would_fit() -> None:
    """One of two pods gets the last node that a cap leaves; the other is told what holds every offering."""
    made = plan(pods(2), rules=policy(caps=Caps(nodes=1), max_stranded_gpus=3))
    refused = next(g for g in made.pods if g.verdict == "refused")
    assert {r.offering: r.code for r in refused.rejected} == {
        T4.name: "cap",
        V100X4.name: "cap",
        A100.name: "stranded",
    }


def test_what_rests_is_named_with_its_price() -> None:
    """An offering that a back-off keeps from being had now is told with what it would cost."""
    resting = Backoff(offering=T4.name, until=NOW + timedelta(minutes=5), why="the cloud's quota is used up")
    made = plan([pod("p")], offerings=[T4], memory=Memory(backoffs=(resting,)))
    (held,) = made.pods[0].rejected
    assert (held.code, held.usd_per_useful_hour is not None) == ("backoff", True)
    assert "quota is used up" in held.why


def test_a_gang_that_is_refused_names_each_offering_once() -> None:
    """A gang over a cap says of each offering that fits what holds it, whatever was tried for it."""
    made = plan(gang("g", 3), rules=policy(caps=Caps(gpus=8)))
    assert [[(r.offering, r.code) for r in g.rejected if r.code == "cap"] for g in made.pods] == [[(A100.name, "cap")]]
    assert all(len({r.offering for r in g.rejected}) == len(g.rejected) for g in made.pods)


def test_caps_count_what_is_lit_and_what_boots() -> None:
    """One node lit, one booting, a cap of four: two more, whatever pools they are of."""
    made = plan(pods(10), [node("n", A100, used=8)], booting={"v100x4": 1}, rules=policy(caps=Caps(nodes=4)))
    room_booting = 4
    assert sum(bought(made).values()) == 2
    assert sum(len(g.pods) for g in made.pods if g.verdict == "booting") == room_booting


def test_a_cap_on_the_best_leaves_the_next_best() -> None:
    """When the cheapest pool is full the next cheapest is bought, and the plan says what stood in the way."""
    made = plan(pods(2), rules=policy(pools={"t4": PoolPolicy(instance_type="T4x1", max=1)}))
    assert bought(made) == {"t4": 1, "v100x4": 1}
    last = next(g for g in made.pods if g.where == V100X4.name)
    assert any("pool t4 is at 1 of its 1 node" in r.why for r in last.rejected)


def test_priority_goes_first() -> None:
    """The last node a cap allows goes to the pod of higher priority, though it came later."""
    low, high = pod("low"), pod("high", priority=10)
    made = plan([low, high], rules=policy(caps=Caps(nodes=1)), offerings=[T4])
    assert verdict(made, high)[0] == "bought"
    assert verdict(made, low)[0] == "refused"


def test_a_quarantined_pool_is_not_lit_again_for_the_shape() -> None:
    """Where a Ready node did not help a shape, that shape gets another pool; other shapes still get this one."""
    wanted, other = pod("p"), pod("q", cpu_milli=100)
    until = NOW + timedelta(hours=6)
    memory = Memory(quarantines=(Quarantine(shape=wanted.shape.key, pool="t4", until=until, why="did not help"),))
    assert bought(plan([wanted], memory=memory)) == {"v100x4": 1}
    assert bought(plan([other], memory=memory)) == {"t4": 1}
    made = plan([wanted], offerings=[T4], memory=memory)
    assert not made.buys
    assert verdict(made, wanted)[0] == "waiting"
    assert made.look_again_at == until
    assert bought(plan([wanted], offerings=[T4], memory=memory, now=until)) == {"t4": 1}


def test_a_node_that_the_scheduler_does_not_use_is_no_room_for_that_shape() -> None:
    """The pool is not bought of for it either; the pool's other ready nodes are still room, which cost nothing more."""
    wanted = pod("p")
    until = NOW + timedelta(hours=1)
    memory = Memory(
        misfits=(FitMismatch(shape=wanted.shape.key, node="n", pool="t4", until=until, why="does not fit there"),),
        quarantines=(Quarantine(shape=wanted.shape.key, pool="t4", until=until, why="no help"),),
    )
    assert bought(plan([wanted], [node("n")], memory=memory)) == {"v100x4": 1}
    assert bought(plan([wanted], [node("n"), node("o")], memory=memory)) == {}


def test_an_offering_that_rests_is_passed_over() -> None:
    """Out of stock in one zone: the other zone of the pool is bought, at once."""
    a, b = offering("t4", "T4", 1, "1", zone="a"), offering("t4", "T4", 1, "1", zone="b")
    memory = Memory(backoffs=(Backoff(offering=a.name, until=NOW + timedelta(minutes=1), why="no capacity"),))
    (buy,) = plan([pod("p")], offerings=[a, b], memory=memory).buys
    assert buy.zone == "b"


def test_every_rejected_option_is_there() -> None:
    """A purchase names every other offering, why not, and its dollars where they could be worked out."""
    (group,) = plan([pod("p")]).pods
    assert {r.offering for r in group.rejected} == {o.name for o in FLEET} - {T4.name}
    assert all("per useful hour" in r.why and r.usd_per_useful_hour for r in group.rejected)


def test_dollars_before_and_after() -> None:
    """$/h after is $/h before, plus purchases, less releases."""
    made = plan(pods(1, 8), [node("n", T4, idle_s=7200)], booting={"v100x4": 1})
    assert made.usd_per_hour_before == 13
    assert made.usd_per_hour_after == 13 + 32 - 1


EBS = "attachable-volumes-csi-ebs"


@pytest.mark.parametrize(("limit", "verdict"), [({EBS: 2}, "bought"), ({EBS: 1}, "finding"), ({}, "bought")])
def test_a_new_node_takes_as_many_volumes_as_those_of_its_pool(limit: dict[str, int], verdict: str) -> None:
    """A pod with more volumes than a node of the pool takes is no reason to buy one; no known limit is none."""
    wanted = pod("p", other=((EBS, 2),))
    made = plan([wanted], [node("n", T4, used=1, attachable=limit)], offerings=[T4])
    assert [g.verdict for g in made.pods] == [verdict]


def test_what_waits_is_worth_what_its_class_says() -> None:
    """Demand counts each job by its class's scale, and a gang as one job; what an earlier look counted not."""
    rules = policy([T4], classes={"batch": ClassPolicy(gpu_models="any", wait_scale=Decimal(3))})
    plain = plan(pods(2), offerings=[T4], rules=rules)
    assert [(each.nodes, each.jobs) for each in plain.demands] == [(2, 6.0)]
    whole = plan(gang("g", 4, gpus=1), offerings=[T4], rules=rules)
    assert [(each.nodes, each.jobs) for each in whole.demands] == [(4, 3.0)]
    told = plan(pods(2), offerings=[T4], rules=rules, memory=Memory(counted_to=NOW))
    assert told.demands == ()
