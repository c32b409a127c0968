"""GKE's queue on a real API server with the CRD of requests: its schema and CEL rules take what is posted and asked."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest
import yaml
from real_api import applied, real_api, taken

from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.pools.gke.node_pools import NodePool
from pilotlight.adapters.pools.gke.queue import NAMESPACE, REQUESTS, TEMPLATES, Queue, read_queue
from pilotlight.codec.kubernetes.provisioning_requests import provisioning_request
from pilotlight.errors import BadRequest, Busy
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.ports.clouds import OPEN

pytestmark = pytest.mark.cluster
PLACE = f"/api/v1/namespaces/{NAMESPACE}"
ANY = msgspec.json.Decoder(dict[str, Any])
TOLD = {
    "config": {"accelerators": [{"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": "8"}]},
    "queuedProvisioning": {"enabled": True},
}


@pytest.fixture
def here(shelf: Path) -> Iterator[tuple[Api, NodePool]]:
    """The API server, where it knows requests, and a node pool of the run's own."""
    api, name = real_api(), f"live-{uuid4().hex[:6]}"
    crd = shelf / "contracts" / "crds" / "autoscaler" / "autoscaling.x-k8s.io_provisioningrequests.yaml"
    applied(api, next(yaml.safe_load_all(crd.read_text())))
    ours = _is_missing(api)
    applied(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    asked = provisioning_request(f"{name}-try", name, f"{name}-8-gpus", 1)
    taken(api, {**asked, "metadata": {**asked["metadata"], "namespace": NAMESPACE}})
    yield api, msgspec.convert({"name": name, **TOLD}, NodePool)
    for path in (REQUESTS, TEMPLATES):
        api.ask("DELETE", f"{path}?labelSelector=pilotlight.dev%2Fpool%3D{name}", NOTHING)
    if ours:
        api.ask("DELETE", PLACE, NOTHING)
        ends = time.monotonic() + 60
        while not _is_missing(api) and time.monotonic() < ends:
            time.sleep(0.3)


def _is_missing(api: Api) -> bool:
    """True where the namespace of requests is not there: other suites find it as they left it."""
    try:
        api.get(PLACE, ANY)
    except Missing:
        return True
    return False


def queue(here: tuple[Api, NodePool]) -> Queue:
    """The queue as it is now."""
    return read_queue(*here)


def state(here: tuple[Api, NodePool]) -> PoolState:
    """The pool with what its queue holds."""
    return queue(here).join_to(PoolState(name="one", desired=0))


def test_a_request_is_made_once_found_again_and_deleted(here: tuple[Api, NodePool]) -> None:
    """By the same step once; it is called off by the name of any of its nodes."""
    for _ in range(2):
        queue(here).ask(0, 2, "step-1", OPEN)
    (waits, other) = state(here).queued
    queue(here).call_off(other.instance, OPEN)
    assert (state(here).desired, queue(here).has(waits.instance)) == (0, False)


def test_what_a_request_asks_for_is_changed_by_nobody(here: tuple[Api, NodePool]) -> None:
    """The CRD's own rule: more nodes are a request of their own, as each step is."""
    name = queue(here).ask(0, 1, "step-1", OPEN).name
    more = {"spec": {"podSets": [{"count": 2, "podTemplateRef": {"name": f"{here[1].name}-8-gpus"}}]}}
    with pytest.raises(BadRequest, match="immutable"):
        here[0].ask("PATCH", f"{REQUESTS}/{name}", NOTHING, more, MERGE_PATCH)


def test_a_request_that_got_its_nodes_since_the_look_stays(here: tuple[Api, NodePool]) -> None:
    """The API server holds the version that was read; then its nodes are its group's."""
    name = queue(here).ask(0, 1, "step-1", OPEN).name
    seen = queue(here)
    said = {"type": "Provisioned", "status": "True", "reason": "Provisioned", "message": "", "lastTransitionTime": NOW}
    here[0].ask("PATCH", f"{REQUESTS}/{name}/status", NOTHING, {"status": {"conditions": [said]}}, MERGE_PATCH)
    with pytest.raises(Busy, match="has changed"):
        seen.call_off(f"{name}.0", OPEN)
    queue(here).call_off(f"{name}.0", OPEN)
    assert here[0].get(f"{REQUESTS}/{name}", ANY)["metadata"]["name"] == name
    assert state(here).desired == 0


NOW = "2026-11-30T19:00:00Z"
