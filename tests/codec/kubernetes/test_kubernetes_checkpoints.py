"""What pods on nodes tell of how they stop: their grace, their checkpoints, and what they would need elsewhere."""

from datetime import UTC, datetime

import pytest
from kubernetes_objects import node, pod, view

from pilotlight.facts.capacity import BoundPod

SAVED = "2026-11-21T00:10:00Z"
STARTED = "2026-11-21T00:01:00Z"


def _bound(annotations: dict[str, str], pool: str = "spotty", **spec: object) -> BoundPod:
    """A pod that runs on a node of a pool."""
    running = {"phase": "Running", "startTime": STARTED}
    made = pod("a", meta={"annotations": annotations}, status=running, nodeName="n1", **spec)
    (found,) = view([made], [node("n1", labels={"pilotlight.dev/pool": pool})]).nodes
    return found.gpu_pods[0]


def test_a_pod_tells_its_checkpoints_and_its_grace() -> None:
    """Interval, what one takes when asked for, when the last was safe; grace and start are Kubernetes' own."""
    found = _bound(
        {
            "pilotlight.dev/checkpoint-seconds": "600",
            "pilotlight.dev/checkpoint-takes-seconds": "45",
            "pilotlight.dev/checkpointed-at": SAVED,
        },
        terminationGracePeriodSeconds=90,
    )
    assert (found.checkpoint_s, found.checkpoint_takes_s, found.grace_s) == (600, 45, 90)
    assert found.checkpointed_at == datetime(2026, 11, 21, 0, 10, tzinfo=UTC)
    assert found.started_at == datetime(2026, 11, 21, 0, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"pilotlight.dev/checkpointed-at": "yesterday"},
        {"pilotlight.dev/checkpointed-at": "2026-11-21T00:10:00"},
        {"pilotlight.dev/checkpoint-seconds": "often", "pilotlight.dev/checkpoint-takes-seconds": "9E"},
        {"pilotlight.dev/checkpoint-seconds": "1e18", "pilotlight.dev/checkpoint-takes-seconds": "-1"},
    ],
    ids=["nothing", "no time", "a time without a zone", "a wrong number", "numbers beyond all bounds"],
)
def test_what_a_running_pod_tells_wrongly_counts_as_not_told(annotations: dict[str, str]) -> None:
    """In doubt it has no checkpoint; its node is still read."""
    found = _bound(annotations)
    assert (found.checkpoint_s, found.checkpoint_takes_s, found.checkpointed_at, found.grace_s) == (0, 0, None, 30)


def test_only_a_pod_on_spot_is_read_for_elsewhere() -> None:
    """What it would need on another node is read where nodes are taken, and nowhere else."""
    on_spot = _bound({"pilotlight.dev/checkpoint-seconds": "600"})
    assert on_spot.shape is not None
    assert (on_spot.shape.gpu, on_spot.shape.checkpoint_s) == (on_spot.gpu, 600)
    assert _bound({}, pool="pool-7f3a").shape is None
