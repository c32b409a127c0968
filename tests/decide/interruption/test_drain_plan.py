"""The rescue planner: what is done when, in which order, and whether a mere risk is worth a move."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, NOW, T4, V100X4, node

from pilotlight.decide.interruption.drain_plan import (
    assumed_saved,
    begin_of,
    deadline_of,
    drain_moves,
    groups,
    unsaved_work,
    worth_moving,
)
from pilotlight.decide.interruption.notices import owner_of
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.drain_times import MARGIN_S
from pilotlight.facts.interruption.interruption import LEAD_S, Interruption, Move
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest

PRICE = Decimal(12)


def bound(name: str, gpus: int = 1, ran_s: float = 3600, **fields: Any) -> BoundPod:
    """A pod that has run for so long."""
    given = {"namespace": "ml", "gpu": GpuRequest(count=gpus), "started_at": NOW - timedelta(seconds=ran_s)}
    return BoundPod(uid=name, name=name, **{**given, **fields})


def four(*pods: BoundPod, name: str = "n", **fields: Any) -> Node:
    """A node of four GPUs at twelve dollars an hour with these pods."""
    return node(name, V100X4, pods=pods, devices=(0,) * 4, **fields)


def notice(notice_s: float = 120, **fields: Any) -> Interruption:
    """An order that has just come."""
    deadline = NOW + timedelta(seconds=notice_s)
    return Interruption(
        cluster="c", instance="i-n", kind="spot-interruption", received_at=NOW, begin=NOW, deadline=deadline,
        **fields,
    )  # fmt: skip


def steps(found: Interruption, on: Node, *others: Node, boot_s: float = 150, now: datetime = NOW) -> list[Move]:
    """The plan."""
    return list(drain_moves(found, on, (on, *others), PRICE, boot_s, now))


def at(moves: list[Move], what: str) -> dict[str, float]:
    """When each step of a kind comes due, in seconds from the notice."""
    return {m.subject: (m.at - NOW).total_seconds() for m in moves if m.do == what}


def test_saving_comes_first_and_the_release_last() -> None:
    """Cordoned, asked to save, replaced, evicted, given back: in that order, all from one look."""
    moves = steps(notice(), four(bound("a", checkpoint_takes_s=30)))
    assert [m.do for m in moves] == ["cordon", "checkpoint", "replace", "evict", "release"]
    assert [(m.at - NOW).total_seconds() for m in moves] == [0, 0, 0, 30, 120 - MARGIN_S]


@pytest.mark.parametrize(
    ("pod", "notice_s", "checkpoint", "evict"),
    [
        pytest.param({"checkpoint_takes_s": 30}, 120, 0, 30, id="saves, and leaves once that is safe"),
        pytest.param({"checkpoint_takes_s": 109}, 120, 0, 109, id="saves in the last moment"),
        pytest.param({"checkpoint_takes_s": 111}, 120, None, 80, id="has no time to save"),
        pytest.param({}, 120, None, 80, id="cannot save: stays until its grace begins"),
        pytest.param({"grace_s": 5}, 120, None, 105, id="a short grace stays longer"),
        pytest.param({"grace_s": 300}, 120, None, 0, id="a grace longer than the notice leaves at once"),
        pytest.param({"blocks": "PodDisruptionBudget x"}, 120, None, 60, id="behind a budget it is tried earlier"),
        pytest.param({"workload_class": "serving"}, 300, None, 150, id="serving leaves when its replacement is ready"),
        pytest.param({"workload_class": "serving"}, 120, None, 80, id="or when its grace begins"),
        pytest.param({"checkpoint_takes_s": 30}, 1200, 120, 150, id="with a long notice it works on until then"),
        pytest.param({"checkpoint_takes_s": 109, "blocks": "x"}, 120, 0, 109, id="a budget cuts no checkpoint short"),
    ],
)
def test_when_a_pod_leaves(pod: dict[str, Any], notice_s: float, checkpoint: float | None, evict: float) -> None:
    """By whether it can save, what it serves, its grace, its budget and the time there is."""
    moves = steps(notice(notice_s), four(bound("a", **pod)))
    assert at(moves, "checkpoint") == ({"a": checkpoint} if checkpoint is not None else {})
    assert at(moves, "evict") == {"a": evict}


def test_whoever_loses_most_comes_first() -> None:
    """Four GPUs for an hour before one for two, and that before one that saved a minute ago."""
    dear, long = bound("dear", 2), bound("long", 1, 5400)
    safe = bound("safe", 1, checkpoint_s=600, checkpointed_at=NOW - timedelta(seconds=60))
    on = four(safe, long, dear)
    assert [g.pods[0].name for g in groups(on, (on,), PRICE, NOW)] == ["dear", "long", "safe"]
    assert [m.subject for m in steps(notice(), on) if m.do == "evict"] == ["dear", "long", "safe"]
    assert unsaved_work(dear, on, PRICE, NOW).usd == Decimal(6)
    assert unsaved_work(safe, on, PRICE, NOW).usd == Decimal("0.05")


def test_a_gang_moves_as_its_slowest_member() -> None:
    """Members on other nodes are asked and leave too, all at the moment at which the last of them is safe."""
    here, there = (bound(n, gang="g", checkpoint_takes_s=t) for n, t in (("a", 10), ("b", 40)))
    stranger = bound("c", checkpoint_takes_s=5)
    moves = steps(notice(), four(here), four(there, stranger, name="m"))
    assert at(moves, "evict") == {"a": 40, "b": 40}
    assert at(moves, "checkpoint") == {"a": 0, "b": 0}


def test_a_gang_with_one_that_cannot_save_does_not_pretend_to() -> None:
    """A gang's checkpoint is that of all: none is asked for where one member cannot give it."""
    moves = steps(notice(), four(bound("a", gang="g", checkpoint_takes_s=10), bound("b", gang="g")))
    assert at(moves, "checkpoint") == {}


def test_what_was_done_is_not_done_again() -> None:
    """A second look finds only what is left."""
    pod = bound("a", checkpoint_takes_s=30)
    done = notice(replaced=True, cordoned=True, asked={"a": NOW}, evicted={"a": NOW})
    assert [m.do for m in steps(done, four(pod, schedulable=False))] == ["release"]
    assert at(steps(done, four(schedulable=False)), "release") == {"n": 0}


def test_a_pod_with_an_odd_uid_is_asked_and_evicted_once() -> None:
    """Records keep a short key of a uid that no API server gives, and know the pod again by it."""
    pod = bound("x" * 100_000, checkpoint_takes_s=30)
    assert (bound("a").key, len(pod.key)) == ("a", 64)
    assert bound("x" * 100_000 + "y").key != pod.key
    done = notice(replaced=True, cordoned=True, asked={pod.key: NOW}, evicted={pod.key: NOW})
    assert [m.do for m in steps(done, four(pod, schedulable=False))] == ["release"]


def test_a_pod_that_tells_of_its_checkpoint_leaves_at_once() -> None:
    """It took a third of what it said: nobody waits for the rest."""
    asked = notice(replaced=True, asked={"a": NOW})
    saved = bound("a", checkpoint_takes_s=30, checkpointed_at=NOW + timedelta(seconds=10))
    assert at(steps(asked, four(saved), now=NOW + timedelta(seconds=12)), "evict") == {"a": 10}


def test_an_idle_node_is_given_back_at_once() -> None:
    """Nothing to replace, nobody to wait for."""
    assert [m.do for m in steps(notice(), four())] == ["cordon", "release"]


def test_a_checkpoint_that_was_asked_for_counts_once_its_time_is_over() -> None:
    """Before that it is not assumed."""
    pod, asked = bound("a", checkpoint_takes_s=30), {"a": NOW}
    assert assumed_saved(pod, asked, NOW + timedelta(seconds=29)) is None
    assert assumed_saved(pod, asked, NOW + timedelta(seconds=30)) == NOW


@given(
    takes=st.lists(st.floats(0, 200), min_size=1, max_size=4),
    grace=st.floats(0, 400),
    notice_s=st.floats(15, 3000),
    boot_s=st.floats(0, 4000),
    serving=st.booleans(),
    budget=st.booleans(),
)
def test_every_rescue_ends_in_time_and_in_order(
    takes: list[float], grace: float, notice_s: float, boot_s: float, serving: bool, budget: bool
) -> None:
    """Nothing after the margin, nobody leaves before a replacement is due, and no checkpoint is cut short.

    Whoever could save when the notice came is asked in time, with its grace after that where there is time for both:
    however long its replacement boots.
    """
    fields: dict[str, Any] = {
        "grace_s": grace,
        "blocks": "x" if budget else "",
        "workload_class": "serving" if serving else "batch",
    }
    pods = [bound(f"p{n}", checkpoint_takes_s=t, **fields) for n, t in enumerate(takes)]
    moves = steps(notice(notice_s), four(*pods), boot_s=boot_s)
    end = NOW + timedelta(seconds=notice_s - MARGIN_S)
    assert all(NOW <= m.at <= end and (m.by is None or m.by <= end) for m in moves)
    (asked,) = (m.at for m in moves if m.do == "replace")
    assert all(m.at >= asked for m in moves if m.do == "evict")
    saves: Mapping[str, float] = at(moves, "checkpoint")
    leaves = at(moves, "evict")
    assert set(leaves) == {p.uid for p in pods}
    for pod in pods:
        takes_s = pod.checkpoint_takes_s
        assert (pod.uid in saves) == (0 < takes_s <= notice_s - MARGIN_S)
        if pod.uid in saves:
            assert leaves[pod.uid] >= saves[pod.uid] + takes_s - 1e-3
            assert takes_s + grace > notice_s - MARGIN_S or leaves[pod.uid] + grace <= notice_s - MARGIN_S + 1e-3


@pytest.mark.parametrize(
    ("kind", "said", "left"),
    [
        ("spot-interruption", None, 120.0),
        ("spot-interruption", 60.0, 60.0),
        ("lifecycle", None, 120.0),
        ("rebalance", 60.0, None),
        ("preempted", None, None),
        ("state-change", None, None),
    ],
)
def test_when_an_instance_goes(kind: Any, said: float | None, left: float | None) -> None:
    """As the cloud says; EC2's two minutes where it does not; never for a probability or after the fact."""
    deadline = NOW + timedelta(seconds=said) if said else None
    told = InterruptionNotice(cluster="c", instance="i", kind=kind, cloud="aws", deadline=deadline, at=NOW)
    expected = NOW + timedelta(seconds=left) if left else None
    assert deadline_of(told, NOW + timedelta(seconds=9)) == expected


def test_far_maintenance_waits_for_its_lead() -> None:
    """Days ahead nothing is begun; within the lead at once."""
    far, near = NOW + timedelta(days=3), NOW + timedelta(seconds=LEAD_S / 2)
    assert begin_of(far, NOW) == far - timedelta(seconds=LEAD_S)
    assert begin_of(near, NOW) == NOW


@pytest.mark.parametrize(
    ("pod", "moves"),
    [
        pytest.param({"ran_s": 3 * 3600, "checkpoint_takes_s": 30}, True, id="hours unsaved, and it can save"),
        pytest.param({"ran_s": 120, "checkpoint_takes_s": 30}, False, id="minutes unsaved"),
        pytest.param({"ran_s": 3 * 3600}, False, id="cannot save: moving loses it for sure"),
        pytest.param({"ran_s": 9000, "checkpointed_at": NOW, "checkpoint_takes_s": 30}, False, id="saved just now"),
    ],
)
def test_a_risk_is_acted_on_where_it_is_dearer_than_a_move(pod: dict[str, Any], moves: bool) -> None:
    """By expected dollars: a share of what would be lost, against what a move costs for sure."""
    on = four(bound("a", 4, **pod))
    worth, figures = worth_moving(on, (on,), PRICE, 150, NOW)
    assert (worth, "staying risks $" in figures) == (moves, True)
    assert worth_moving(four(), (), PRICE, 150, NOW) == (False, "nothing runs on it")


def test_a_pool_outside_the_policy_is_anothers() -> None:
    """Nothing is known of it, so nothing is done."""
    rules = Policy(version=1, pools={"t4": PoolPolicy(instance_type="x")})
    assert owner_of(rules, "t4", node("n", T4)).ours
    assert not owner_of(rules, "a100", node("n", A100)).ours
    assert not owner_of(rules, "", None).ours
    assert msgspec.structs.replace(rules.pools["t4"], handled_by="cloud").handled_by == "cloud"
