"""Claims that a real Karpenter behind KUBECONFIG deletes by itself: each is heard as a refusal, and rests."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from karpenter import GPU
from karpenter_at_work import NODE_CLASSES, LiveGate, is_at_work, within
from msgspec.structs import replace as changed
from stage import Stage

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.facts.labels import POOL
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import ledger

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]


@pytest.fixture
def site() -> Iterator[LiveGate]:
    """A closed NodePool that we buy by, and a pod for its machines."""
    api = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))
    if not is_at_work(api):
        pytest.skip("no Karpenter of the kwok provider is at work here")
    with LiveGate(api, "100") as made:
        pools = {"gpu": PoolPolicy(cluster_pool=made.name, instance_type="eight", max=2, labels={POOL: made.name})}
        policy, clock = changed(made.deps.policy, pools=pools), SystemClock()
        made.deps = replace(
            made.deps,
            policy=policy,
            offerings=Stage(pools=pools).deps.offerings,
            cluster=KubernetesCluster(api, policy, clock),
            pools=KarpenterPools(api, pools),
        )
        made.pool(limit="0")
        box = {"name": "c", "image": "none", "resources": {"limits": {GPU: "8"}}}
        spec = {"nodeSelector": {POOL: made.name}, "containers": [box], "restartPolicy": "Never"}
        made._make("/api/v1/namespaces/default/pods", {"kind": "Pod", "metadata": {}, "spec": spec})
        yield made


def memory(site: LiveGate) -> Memory:
    """What decisions remember."""
    return ledger.recall(site.deps.state, site.deps.name).memory


def test_a_node_pool_without_its_class_is_not_bought_by(site: LiveGate) -> None:
    """Karpenter says so in a condition of the NodePool: the offering rests in its words, and no claim is made."""
    site.api.ask("DELETE", f"{NODE_CLASSES}/{site.name}", NOTHING)
    assert within(20, lambda: any(c["type"] == "NodeClassReady" and c["status"] == "False" for c in conditions(site)))
    assert within(20, lambda: bool(site.tick().did))
    (rest,) = memory(site).backoffs
    assert (rest.tries, "NodeClassReady is False" in rest.why) == (1, True)
    assert site.deps.pools.describe()[0].asked == ()


def test_a_claim_whose_class_goes_meanwhile_is_deleted_and_its_offering_rests(site: LiveGate) -> None:
    """Within seconds, with an Event, which says why; nothing more is asked for."""
    pools = site.deps.pools

    def gone() -> None:
        site.api.ask("DELETE", f"{NODE_CLASSES}/{site.name}", NOTHING)

    pools.grow("gpu", 1, gate=gone)
    assert within(20, lambda: not pools.describe()[0].asked and bool(pools.describe()[0].ended))
    assert site.ticks(20, lambda: bool(memory(site).backoffs), every=1)
    (rest,) = memory(site).backoffs
    assert "resolving node class" in rest.why


def conditions(site: LiveGate) -> list[dict[str, str]]:
    """What Karpenter says of the NodePool."""
    found: list[dict[str, str]] = site.nodepool().get("status", {}).get("conditions", [])
    return found
