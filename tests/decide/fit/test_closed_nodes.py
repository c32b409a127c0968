"""Pods that a closed node would take were it open."""

import pytest
from small_fleet import node

from pilotlight.decide.fit.closed_nodes import would_bind
from pilotlight.facts.capacity import Taint
from pilotlight.facts.labels import DRAINING
from pilotlight.facts.workload import GpuRequest, shape

CORDON = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("keys", "gpus", "binds"),
    [
        ((), 1, True),
        ((DRAINING,), 1, True),
        ((CORDON,), 1, True),
        ((DRAINING, CORDON), 1, True),
        ((DRAINING, "theirs"), 1, False),
        ((DRAINING,), 9, False),
    ],
)
def test_the_taints_of_a_closed_node_keep_no_pod_from_what_it_would_take(
    keys: tuple[str, ...], gpus: int, binds: bool
) -> None:
    """Ours and the cordon's are left out; others, and the free room, decide as ever."""
    taints = tuple(Taint(key=key, value="", effect="NoSchedule") for key in keys)
    closed = node("n", schedulable=False, taints=taints)
    assert would_bind(shape(gpu=GpuRequest(count=gpus), gpu_models=("any",)), closed) is binds
