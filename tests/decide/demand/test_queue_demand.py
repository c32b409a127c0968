"""Workers that queues ask for, and nodes for those that are not there yet."""

from datetime import timedelta
from math import ceil, inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, FLEET, NOW, T4, node, plan, pod, policy

from pilotlight.decide.demand.queue_demand import KEPT, growth_per_s, nodes_ahead, remember_reading, workers, workers_in
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.demand.worker_queues import NodesAhead, QueueHistory, QueueReading, QueueRules
from pilotlight.facts.workload import GpuRequest


def rules(**fields: Any) -> QueueRules:
    """A queue of which one worker takes twenty messages; five workers at most."""
    return QueueRules(**{"source": "sqs:q", "per_worker": 20, "max": 5, "workers": "ml/worker", "pool": "t4", **fields})


def history(*lengths: float, every_s: float = 60.0, ago_s: float = 0.0) -> QueueHistory:
    """Readings a minute apart, the last now."""
    found = QueueHistory()
    for n, length in enumerate(reversed(lengths)):
        at = NOW - timedelta(seconds=ago_s + n * every_s)
        found = QueueHistory(readings=(QueueReading(at=at, length=length), *found.readings))
    return found


ASKED = {
    "nothing waits: none": (0, {}, 0),
    "one message: one worker, not a twentieth": (1, {}, 1),
    "a whole share": (20, {}, 1),
    "one more than a share": (21, {}, 2),
    "more than the most": (1000, {}, 5),
    "fewer than the least": (0, {"min": 2}, 2),
    "in time takes more than its share": (40, {"service": 6, "drain": 60}, 4),
    "in time takes fewer than its share": (40, {"service": 1, "drain": 600}, 2),
    "ten messages a worker": (101, {"per_worker": 10, "max": 50}, 11),
}


@pytest.mark.parametrize(("length", "more", "count"), ASKED.values(), ids=ASKED)
def test_a_queue_asks_for_so_many(length: float, more: dict[str, Any], count: int) -> None:
    """ceil(length / share), or as many as are done in time where those are more, within min and max."""
    assert workers(rules(**more), length).count == count


@given(length=st.floats(0, 1e9), more=st.floats(0, 1e6))
def test_a_longer_queue_never_asks_for_fewer(length: float, more: float) -> None:
    """Nor for more than its most or fewer than its least."""
    asked = rules(min=1, max=7, service=3, drain=60)
    first, second = workers(asked, length).count, workers(asked, length + more).count
    assert 1 <= first <= second <= 7


def test_the_sum_is_told() -> None:
    """What was divided by what, and what held it."""
    assert workers(rules(), 130).why == "ceil(130 / 20) = 7, held at max 5"


def test_a_queue_that_grows_is_taken_as_it_will_be() -> None:
    """Ten messages a minute more: in a minute ten more wait; in an hour half as many again as now, not six hundred."""
    asked = [workers_in(rules(per_worker=5, max=50), history(20, 30, 40), NOW, ahead_s) for ahead_s in (60, 3600)]
    assert [one and one.count for one in asked] == [10, 12]


def test_workers_that_were_needed_lately_stay_asked_for() -> None:
    """For as long as the policy says, and no longer; a queue is not empty because it is empty now."""
    asked = [workers_in(rules(keep=keep), history(100, 0, 0), NOW, 60) for keep in (180, 100)]
    assert [one and one.count for one in asked] == [5, 0]


def test_one_that_shrinks_is_taken_as_it_is() -> None:
    """Nobody foretells that it is empty soon."""
    asked = workers_in(rules(keep=0), history(60, 40), NOW, 240)
    assert asked is not None
    assert asked.count == 2


def test_an_old_reading_says_nothing() -> None:
    """A source that fell silent asks for nobody, and sends nobody away."""
    assert workers_in(rules(), history(100, ago_s=600), NOW, 0) is None
    assert workers_in(rules(), QueueHistory(), NOW, 0) is None


BAD = [nan, inf, -inf, -1.0]


@given(st.lists(st.one_of(st.floats(0, 1e6), st.sampled_from(BAD)), max_size=40), st.booleans())
def test_missing_negative_and_doubled_readings_make_no_figure_up(lengths: list[float], doubled: bool) -> None:
    """What is kept was read, in order, once, and is bounded; growth is finite and never negative."""
    found = QueueHistory()
    for n, length in enumerate(lengths):
        reading = QueueReading(at=NOW + timedelta(seconds=n // (2 if doubled else 1)), length=length)
        found = remember_reading(found, reading)
    kept = [one.length for one in found.readings]
    assert all(length in lengths for length in kept)
    assert len(kept) <= KEPT
    assert not any(length in BAD or length != length for length in kept)
    assert len({one.at for one in found.readings}) == len(kept)
    assert 0 <= growth_per_s(found) < inf


def ahead(*readings: float, view: ClusterView | None = None, **more: Any) -> dict[str, NodesAhead]:
    """Nodes without work that the queue's pool should have."""
    return nodes_ahead({"speech": rules(**more)}, {"speech": history(*readings)}, view or ClusterView(), FLEET, NOW)


def test_nodes_are_asked_for_a_boot_and_a_load_earlier() -> None:
    """A message in ten seconds more: by the time a node works, 60 s + 180 s + 120 s of them have come."""
    found = ahead(94, 100, max=50, load=120)
    assert found["t4"].nodes == ceil((100 + 36) / 20)


def test_workers_that_wait_or_run_have_their_nodes() -> None:
    """Those of another deployment do not count."""
    running = BoundPod(uid="u1", namespace="ml", name="worker-7c9d8f6b5-abcde", gpu=GpuRequest(count=1))
    other = BoundPod(uid="u2", namespace="ml", name="worker-gpu-7c9d8f6b5-abcde", gpu=GpuRequest(count=1))
    view = ClusterView(
        pending=(pod("worker-7c9d8f6b5-fghij"),),
        nodes=(node("a", used=1, pods=(running,)), node("b", used=1, pods=(other,))),
    )
    found = ahead(100, 100, view=view)
    assert found["t4"].nodes == 5 - 2
    assert "2 are there" in found["t4"].why


def test_workers_share_a_node_as_far_as_it_has_devices() -> None:
    """Five workers of two GPUs: four on a node of eight, one on a second."""
    assert ahead(100, 100, pool="a100", gpus=2)["a100"].nodes == 2


def test_a_pool_whose_nodes_hold_no_worker_is_not_lit() -> None:
    """Two GPUs on a node of one: no node would do."""
    assert ahead(100, 100, gpus=2) == {}


def test_the_plan_buys_them_and_says_for_whom() -> None:
    """As warm nodes are: within the pool's most, and kept while they are asked for."""
    asked = {"t4": NodesAhead(nodes=3, why="queue speech: ceil(60 / 20) = 3 workers, 0 are there")}
    [buy] = plan(nodes=[node("idle", idle_s=9999)], ahead=asked).buys
    assert (buy.pool, buy.count) == ("t4", 2)
    assert buy.why == "for workers that are coming: queue speech: ceil(60 / 20) = 3 workers, 0 are there"
    kept = plan(nodes=[node("idle", idle_s=9999)], ahead=asked)
    assert not [verdict for verdict in kept.nodes if verdict.verdict == "release"]
    assert [v.node for v in plan(nodes=[node("idle", idle_s=9999)]).nodes if v.verdict == "release"] == ["idle"]


def test_no_more_are_bought_than_the_pool_may_have() -> None:
    """Whatever a queue asks for."""
    small = policy((T4, A100))
    asked = {"t4": NodesAhead(nodes=100, why="queue speech")}
    [buy] = plan(rules=small, offerings=(T4, A100), ahead=asked).buys
    assert buy.count == 20
