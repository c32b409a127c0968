"""Stopped nodes: which idle ones are stopped, which stopped ones go, and the sum that says so."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import NOW, T4, policy

from pilotlight.decide.nodes.spares.standby import (
    Worth,
    as_measured,
    measure_start,
    standby,
    standby_worth,
    stands_by,
    start_times,
)
from pilotlight.decide.work import Look, Work
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import Policy, PoolPolicy, SparePolicy
from pilotlight.units import clock_seconds

T4_STOPS = replace(T4, wake_s=60.0, standby_usd_per_hour=Decimal("0.01"))
"""Boots in 180 s for $1/h; at $11/h of waiting a start saves $0.40, which is 40 hours of its disk."""
WAIT = Decimal(11)


def rules(**pool: object) -> Policy:
    """A policy at $11/h of waiting."""
    pools = {"t4": PoolPolicy(instance_type=T4.instance_type, **pool)}  # type: ignore[arg-type]
    return replace(policy(), pools=pools, value_of_wait=WAIT)


def state(desired: int = 1, stopped: int = 0, **fields: object) -> PoolState:
    """A pool whose nodes can be stopped."""
    names = tuple(f"s{n}" for n in range(stopped))
    return PoolState(name="t4", **({"desired": desired, "stops": True, "stopped": names} | fields))  # type: ignore[arg-type]


def idle(name: str = "n1", **fields: object) -> NodeVerdict:
    """A node that would be given back."""
    whole = {"pool": "t4", "instance": name, "verdict": "release", "why": "idle", "usd_per_hour": Decimal(1)}
    return NodeVerdict(node=name, **(whole | fields))  # type: ignore[arg-type]


def last(*hours_ago: float) -> Memory:
    """A memory in which the first, the second ... node at once was last started so long ago."""
    return Memory(started={"t4": tuple(clock_seconds(NOW) - 3600 * h for h in hours_ago)})


def judged(
    verdicts: list[NodeVerdict], pool: PoolState, memory: Memory, rules_: Policy | None = None, explain: bool = False
) -> list[tuple[str, str, bool]]:
    """Each verdict, as (node, verdict, stop)."""
    made, _ = standby(verdicts, [pool], {"t4": T4_STOPS}, rules_ or rules(), memory, NOW, explain)
    return [(v.node, v.verdict, v.stop) for v in made]


@pytest.mark.parametrize(
    ("verdict", "pool", "memory", "stops"),
    [
        pytest.param(idle(), state(), last(1), True, id="started an hour ago"),
        pytest.param(idle(), state(), last(39), True, id="started so long ago that its disk still costs less"),
        pytest.param(idle(), state(), last(41), False, id="started so long ago that its disk costs more"),
        pytest.param(idle(), state(), Memory(), False, id="never seen to be started"),
        pytest.param(idle(), state(stops=False), last(1), False, id="a cloud that cannot stop it"),
        pytest.param(idle(failed=True), state(), last(1), False, id="a node that failed"),
        pytest.param(idle(forced=True), state(), last(1), False, id="a node that goes by force"),
        pytest.param(idle(registered=False), state(), last(1), False, id="an instance that never joined"),
        pytest.param(idle(verdict="keep"), state(), last(1), False, id="a node that stays lit"),
        pytest.param(idle(), state(2, 1), last(1, 2, 3), True, id="as the third, which was started lately"),
        pytest.param(idle(), state(2, 2), last(1, 2, 41), False, id="beside as many as pay"),
    ],
)
def test_an_idle_node_is_stopped_while_a_start_pays_for_its_disk(
    verdict: NodeVerdict, pool: PoolState, memory: Memory, stops: bool
) -> None:
    """The n-th node at once by its last start: (boot - start) x (wait + price) against the disk since then."""
    assert judged([verdict], pool, memory)[0][2] is stops


def test_spot_nodes_are_never_stopped() -> None:
    """Only on-demand nodes stand by."""
    spot = replace(T4_STOPS, capacity_type="spot")
    assert standby_worth(spot, state(), rules(), last(1)) is None


def test_a_stopped_node_goes_when_its_disk_costs_more() -> None:
    """The last of three was started too long ago: it is given back, though it is no node of the cluster."""
    made, due = standby([], [state(0, 3)], {"t4": T4_STOPS}, rules(), last(1, 2, 41), NOW)
    assert [(v.node, v.verdict, v.registered) for v in made] == [("s2", "release", False)]
    assert "41.0 h ago" in made[0].why
    assert due == NOW + timedelta(hours=38)


@pytest.mark.parametrize(("number", "left"), [(0, []), (1, ["s0"]), (3, ["s0", "s1"])])
def test_a_number_in_the_policy_is_kept(number: int, left: list[str]) -> None:
    """``standby: N`` keeps N, whatever they were started for."""
    made = judged([], state(0, 2), Memory(), rules(spares=SparePolicy(stopped=number)), explain=True)
    assert [name for name, verdict, _ in made if verdict == "keep"] == left


def test_the_sum_is_told() -> None:
    """Why a node stands by names the rate, the seconds, the dollars and the disk."""
    made, _ = standby([idle()], [state()], {"t4": T4_STOPS}, rules(), last(2), NOW)
    assert made[0].why == (
        "idle; stopped, not given back: node 1 at once was last started 2.0 h ago (0.50 an hour) x 2 min "
        "x ($11.00/h of waiting + $1.00/h) > $0.01/h for its disk"
    )


def test_a_pool_with_a_node_standing_by_relights_as_fast_as_it_starts() -> None:
    """What idles is judged by the start, not by the boot."""
    for pool, boot_s in ((state(standby=1), 60), (state(), 180)):
        look = Look(ClusterView(), [pool], [T4_STOPS], Policy(version=1, pools={}), Memory(), NOW)
        assert Work(look).relit["t4"].boot_s == boot_s


@given(st.lists(st.tuples(st.floats(0, 1e5), st.integers(1, 6), st.integers(1, 3)), max_size=20))
def test_disks_cost_at_most_what_one_start_saves(starts: list[tuple[float, int, int]]) -> None:
    """Whatever was started when: from its last start on, a node that is not started again costs one start's saving."""
    known: tuple[float, ...] = ()
    now_s = 0.0
    for later, size, count in starts:
        now_s += later
        known = start_times(known, size, min(count, size), now_s)
    sums = Worth(T4_STOPS, 60.0, Decimal("0.01"), WAIT, known)
    for n in range(1, len(known) + 1):
        disk = (sums.until_s(n) - max(known[n - 1 :])) / 3600 * 0.01
        assert disk <= float(sums.saved_usd) * (1 + 1e-6)


def test_what_starts_really_took_counts_in_place_of_the_catalogues_word() -> None:
    """The median of the latest starts, of nodes with the purchase's own pods on them; other pools keep their figure."""
    memory = Memory()
    for seconds in (300, 70, 90):
        entry = InFlight(
            decision="d", offering="o", pool="t4", count=1, requested_at=NOW, ready_by=NOW, demands=("u",), woken=True
        )  # fmt: skip
        came = NOW + timedelta(seconds=seconds)
        pods = (BoundPod(uid="u", namespace="ml", name="a"),)
        node = Node(
            name="n", pool="t4", instance_type="t", capacity_type="on-demand", created_at=NOW, ready=True,
            ready_since=came, pods=pods,
        )  # fmt: skip
        memory = measure_start(memory, entry, [node, replace(node, name="m", pods=())])
    assert memory.wakes == {"t4": (300.0, 70.0, 90.0)}
    other = replace(T4_STOPS, pool="other")
    assert [one.wake_s for one in as_measured([T4_STOPS, other], memory)] == [90.0, 60.0]


@pytest.mark.parametrize(
    ("offering", "standby", "stands"),
    [
        pytest.param(T4_STOPS, "auto", True, id="both figures known"),
        pytest.param(T4_STOPS, 0, False, id="the policy wants none"),
        pytest.param(T4, "auto", False, id="no figures known"),
        pytest.param(replace(T4_STOPS, capacity_type="spot"), 2, False, id="spot nodes are not stopped"),
    ],
)
def test_a_place_to_stand_by_is_made_where_nodes_ever_may(offering: Offering, standby: object, stands: bool) -> None:
    """What taking a pool over asks before it makes one."""
    assert stands_by(offering, PoolPolicy(instance_type="t", spares=SparePolicy(stopped=standby))) is stands  # type: ignore[arg-type]
