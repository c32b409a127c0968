"""Claims on a real API server with Karpenter's CRDs: its schema and CEL rules take what is posted and asked."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from karpenter_claims import CLASS, GPU

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.adapters.pools.karpenter import GROUP, KarpenterPools
from pilotlight.errors import BadRequest, Busy
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.tools.install.karpenter.claims_handback import give_claims, may_be_given, take_claims
from pilotlight.tools.install.karpenter.nodepool_handback import take_again

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
WITHIN: dict[str, Any] = {
    "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
    "startupTaints": [{"key": "boots", "effect": "NoExecute"}],
    "requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["a", "b"], "minValues": 2},
        {"key": "karpenter.k8s.aws/instance-local-nvme", "operator": "Gt", "values": ["100"]},
        {"key": "example.com/rack", "operator": "Exists"},
    ],
}


@pytest.fixture
def here() -> Iterator[tuple[Api, str]]:
    """The API server, where it knows claims, and a closed NodePool of the run's own."""
    api, name = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))), f"live-{uuid4().hex[:6]}"
    spec = {"limits": {GPU: "0"}, "template": {"spec": {"nodeClassRef": CLASS, **WITHIN}}}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
    try:
        api.ask("POST", f"{GROUP}/nodepools", NOTHING, pool)
    except Missing:
        pytest.skip("the CRDs of karpenter.sh/v1 are not served here")
    yield api, name
    api.ask("DELETE", f"{GROUP}/nodepools/{name}", NOTHING)


def ports(api: Api, name: str, **rules: Any) -> KarpenterPools:
    """The port to that NodePool."""
    pool = PoolPolicy(instance_type="p4d.24xlarge", cluster_pool=name, **rules)
    return KarpenterPools(api, {name: pool})


def state(pools: KarpenterPools) -> PoolState:
    """The only pool."""
    (only,) = pools.describe()
    return only


@pytest.mark.parametrize("kind", ["on-demand", "spot", "reserved"])
def test_claims_are_made_once_found_again_and_deleted(here: tuple[Api, str], kind: Any) -> None:
    """With a zone and without; by the same step once; each is called off by its name."""
    pools = ports(*here, capacity_type=kind)
    pools.grow(here[1], 1, "us-east-1a", token="step-1")
    pools.grow(here[1], 2, token="step-1")
    assert state(pools).desired == 2
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": names(here)[0]}, "spec": {}}
    assert here[0].change("POST", f"{GROUP}/nodeclaims", {**body, "spec": SPEC}, lambda: None) is False
    for name in names(here):
        pools.release(here[1], name)
    assert state(pools).desired == 0


SPEC = {"nodeClassRef": CLASS, "requirements": []}


def names(here: tuple[Api, str]) -> list[str]:
    """Names of the pool's claims."""
    found: list[str] = []

    class Names:
        def decode(self, body: bytes, /) -> None:
            import json

            items = json.loads(body)["items"]
            found.extend(one["metadata"]["name"] for one in items if one["spec"]["expireAfter"] == "Never")

    here[0].get(f"{GROUP}/nodeclaims", Names(), labelSelector=f"pilotlight.dev/pool={here[1]}")
    return found


def test_a_claim_that_was_launched_since_the_look_is_not_called_off(here: tuple[Api, str]) -> None:
    """The API server itself holds the version that was read."""
    api, pool = here
    pools = ports(*here)
    pools.grow(pool, 1)
    (name,) = names(here)

    def launched() -> None:
        api.ask(
            "PATCH",
            f"{GROUP}/nodeclaims/{name}/status",
            NOTHING,
            {"status": {"providerID": "aws:///a/i-1"}},
            MERGE_PATCH,
        )

    with pytest.raises(Busy, match="look again"):
        pools.release(pool, name, gate=launched)
    assert [one.instance for one in state(pools).booting] == ["i-1"]
    pools.release(pool, "i-1")
    assert state(pools).desired == 0


def test_events_of_a_shortage_are_found_by_the_servers_own_selector(here: tuple[Api, str]) -> None:
    """Kind and reason of the object that an Event is about are fields that it selects by."""
    api, pool = here
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{pool}-0123abcd.1", "namespace": "default"},
        "involvedObject": {"kind": "NodeClaim", "name": f"{pool}-0123abcd", "apiVersion": "karpenter.sh/v1"},
        "type": "Warning",
        "reason": "InsufficientCapacityError",
        "message": "none left",
        "lastTimestamp": "2026-11-28T00:00:00Z",
    }
    api.ask("POST", "/api/v1/namespaces/default/events", NOTHING, event)
    told = state(ports(*here)).refusal
    assert told is not None
    assert (told.reason, told.message) == ("no-capacity", "none left")
    api.ask("DELETE", f"/api/v1/namespaces/default/events/{pool}-0123abcd.1", NOTHING)


def test_claims_are_handed_back_and_taken_again(here: tuple[Api, str]) -> None:
    """The API server takes mark and labels; a claim that is its NodePool's is not released, and is ours again after."""
    api, name = here
    pools = ports(*here)
    pools.grow(name, 1, token="step-1")
    (claim,) = names(here)
    list(give_claims(api, [name], datetime.now(UTC), dry_run=False))
    rules = state(pools).rules
    assert rules is not None
    assert rules.handed_back
    with pytest.raises(BadRequest, match="was handed back"):
        pools.grow(name, 2, token="step-2")
    with pytest.raises(BadRequest, match="which ends it by itself"):
        pools.release(name, claim)
    assert may_be_given(api, ()) == []
    assert [line.was for line in take_claims(api, [name], dry_run=False)] == [name]
    list(take_again(api, [name], dry_run=False))
    pools.release(name, claim)
    assert state(pools).desired == 0
