"""Preemption by consent while workers die: a pod is evicted at most once, and the urgent one runs."""

from contextlib import suppress

import pytest
from full_pool import Dead, Full


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 25))
def test_wherever_a_worker_dies_a_pod_is_evicted_at_most_once(at: int, after: bool) -> None:
    """At any write of the store, before or after its effect; the urgent one runs all the same, and all of it ends."""
    stage = Full()
    stage.urgent()
    stage.state.at, stage.state.after = at, after
    for _ in range(40):
        stage.wait(60)
        with suppress(Dead):
            stage.tick()
    assert stage.cut == ["uid-long"]
    assert [job.demands[0].name for job in stage.world.finished] == ["short"]
    assert stage.running == ["long-r1"]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("call", ["tell", "evict"])
def test_a_worker_that_dies_at_a_call_to_the_cluster_evicts_at_most_once(call: str, after: bool) -> None:
    """Before or after its effect: what it did not write is done by the next look, and never to a second pod."""
    stage = Full()
    stage.urgent()
    stage.cluster.dies, stage.cluster.after = call, after
    for _ in range(40):
        stage.wait(60)
        with suppress(Dead):
            stage.tick()
    assert stage.cluster.dies == ""
    assert stage.cut == ["uid-long"]
    assert stage.running == ["long-r1"]
