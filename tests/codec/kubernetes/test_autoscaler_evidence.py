"""What cluster-autoscaler leaves in a cluster, as evidence that it is alive."""

from datetime import UTC, datetime

import msgspec
import pytest

from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import (
    UPDATED,
    LeaseOf,
    StatusMap,
    scaler_of_lease,
    scaler_of_status,
)

AT = datetime(2026, 11, 22, 7, 59, 50, tzinfo=UTC)
YAML = """time: 2026-11-22 07:59:50.123456 +0000 UTC
autoscalerStatus: Running
nodeGroups:
- name: eks-gpu-1
  health: {}
"""
WORDS = """Cluster-autoscaler status at 2026-11-22 07:59:50.1 +0000 UTC:
NodeGroups:
  Name:        eks-gpu-1
  Health:      Healthy
  Name:        eks-cpu-2
"""


@pytest.mark.parametrize(
    ("status", "groups"), [(YAML, ("eks-gpu-1",)), (WORDS, ("eks-cpu-2", "eks-gpu-1"))], ids=["YAML", "older words"]
)
def test_a_status_has_its_time_and_its_groups(status: str, groups: tuple[str, ...]) -> None:
    """Both of its formats."""
    found = scaler_of_status(StatusMap(data={"status": status}))
    assert found is not None
    assert (found.seen_at, found.groups) == (AT, groups)


def test_its_annotation_is_the_last_loop() -> None:
    """It is written even where the status' own time is not."""
    body = {"metadata": {"annotations": {UPDATED: "2026-11-22 07:59:50.9 +0000 UTC"}}, "data": {"status": "old"}}
    found = scaler_of_status(msgspec.json.decode(msgspec.json.encode(body), type=StatusMap))
    assert found is not None
    assert found.seen_at == AT


def test_a_lease_that_is_held_is_evidence() -> None:
    """One that nobody holds, and a status without a time, are none."""
    body = {"spec": {"holderIdentity": "ca-1", "renewTime": "2026-11-22T07:59:50.000000Z"}}
    found = scaler_of_lease(msgspec.json.decode(msgspec.json.encode(body), type=LeaseOf))
    assert found is not None
    assert (found.seen_at, found.groups) == (AT, ())
    assert scaler_of_lease(LeaseOf()) is None
    assert scaler_of_status(StatusMap(data={"status": "Initializing on 99"})) is None
