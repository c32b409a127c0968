"""kueue_admission through the front door, over the real adapter on a stand-in API server; this script plays Kueue."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, api_server

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.doorway import Function, Response
from pilotlight.facts.messages import Outgoing
from pilotlight.flow.records import ledger
from pilotlight.settings import Settings
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_pools import WorldPools

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples"
EVENT = (SAMPLES / "kubernetes" / "kueue_quota_reserved.json").read_bytes()
CHANGE = json.loads((SAMPLES / "knative" / "apiserver_resource_workload.json").read_bytes())


class Site:
    """A cluster with the Workload of the samples, and a world that sells the example policy's nodes."""

    def __init__(self, server: ApiServer) -> None:
        for name in ("kueue", "kueue-flavors"):
            server.store.serve(name)
        server.add(_tolerating(CHANGE["data"]))
        self.server, plain = server, App(Settings())
        clock = VirtualClock(plain.catalog.as_of)
        pools = [WorldPool(name=n, instance_type=p.instance_type) for n, p in plain.policy.pools.items()]
        self.world = World(plain.catalog, pools, clock=clock)
        self.outbox, self.state = MemoryOutbox(), MemoryState(clock)
        api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        self.app = App(
            Settings(),
            cluster=KubernetesCluster(api, plain.policy, clock),
            pools=WorldPools(self.world),
            clock=clock,
            state=self.state,
            outbox=self.outbox,
        )

    def post(self, function: Function, body: bytes, *, dryrun: bool = False) -> Response:
        """What a source sends."""
        return self.app.receive(function, body, {"content-type": "application/json"}, dryrun=dryrun)

    @property
    def letters(self) -> list[Outgoing]:
        """What was refused."""
        return [m for m in self.outbox.sent if m.topic == "dead-letter"]

    @property
    def flows(self) -> list[str]:
        """Whose decisions were filed."""
        return [record.flow for record in ledger.filed_records(self.state, "local")]


def _tolerating(workload: dict[str, Any]) -> dict[str, Any]:
    """The example policy's pools are tainted."""
    made: dict[str, Any] = json.loads(json.dumps(workload))
    made["spec"]["podSets"][0]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    return made


@pytest.fixture
def site() -> Iterator[Site]:
    """The cluster at the moment when Kueue has reserved the quota."""
    with api_server() as server:
        yield Site(server)


@pytest.mark.parametrize("body", [EVENT, json.dumps(CHANGE).encode()], ids=["Kueue's Event", "the Workload itself"])
def test_work_that_has_its_quota_is_bought_for_once(site: Site, body: bytes) -> None:
    """The look is its own function's, which says so; the same event again asks for nothing more."""
    assert site.post("kueue_admission", body, dryrun=True).body["plan"]["buys"]
    assert site.flows == []
    first, again = (site.post("kueue_admission", body) for _ in range(2))
    assert (first.body["outcome"], again.body["outcome"], len(site.world.nodes)) == ("done", "known", 1)
    assert site.flows == ["admission"]


def test_a_source_of_all_events_may_send_them_to_pod_pending(site: Site) -> None:
    """There it is let pass, with where it belongs, and is no dead letter; a pod's event at this door is one."""
    answer = site.post("pod_pending", EVENT)
    assert (answer.status, "kueue_admission" in answer.body["ignored"], site.flows) == (200, True, [])
    assert site.letters == []
    refused = site.post("kueue_admission", (SAMPLES / "kubernetes" / "failed_scheduling.json").read_bytes())
    assert ("send it to pod_pending" in refused.body["rejected"], len(site.letters)) == (True, 1)


@pytest.mark.parametrize(
    ("status", "version"),
    [
        ({"conditions": [], "admissionChecks": []}, "kueue.x-k8s.io/v1beta2"),
        ({"admissionChecks": [{"name": "other", "state": "Pending"}]}, "kueue.x-k8s.io/v1beta2"),
        ({"admissionChecks": [{"name": "pilotlight", "state": "Ready"}]}, "kueue.x-k8s.io/v1beta1"),
        ({}, "scheduling.k8s.io/v1alpha1"),
    ],
    ids=["no quota yet", "another's check", "answered", "Kubernetes' own Workload"],
)
def test_a_workload_that_does_not_wait_for_us_asks_for_nothing(
    site: Site, status: dict[str, Any], version: str
) -> None:
    """Each change of each Workload comes here: only what waits for our answer is a look."""
    data = {**CHANGE["data"], "apiVersion": version, "status": {**CHANGE["data"]["status"], **status}}
    answer = site.post("kueue_admission", json.dumps({**CHANGE, "data": data}).encode())
    assert ("ignored" in answer.body, site.flows) == (True, [])
