"""Shapes of ``bench/scheduler/agreement.py`` on the control plane that KUBECONFIG names: plan and scheduler agree."""

import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "bench" / "scheduler"))

import agreement
from agreement_shapes import every

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

CHOSEN = (
    "pod affinity: beside a pod on a CPU node, by zone",
    "pod anti-affinity: a pod on a CPU node keeps it away, by zone",
    "topology spread: by zone and host",
    "host ports: one port, three pods",
    "DaemonSets: a small node is too small beside them",
    "volumes: no provisioner, a free volume in zone-b",
    "devices by claim: a product",
    "devices by claim: memory",
    "devices by claim: a MIG profile",
    "devices by claim: two requests of one claim",
    "devices by claim: nvidia.com/gpu by its class",
)


@pytest.mark.parametrize("name", CHOSEN)
def test_the_scheduler_binds_where_the_plan_says(name: str) -> None:
    """Nodes made as they were bought are all used, and no pod is told of a place that it does not get."""
    (number,) = [n for n, shape in enumerate(every()) if f"{shape.family}: {shape.name}" == name]
    result = agreement.tried(number, os.environ["KUBECONFIG"].split(os.pathsep)[0])
    assert result is not None
    assert (result.costs, result.bound) == ((), result.pods)
