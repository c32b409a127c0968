"""The rights of infra/kubernetes/rbac are those that the code uses: no call is refused, and no grant is idle."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from api_server import Access, ApiServer, api_server
from manifests import HERE, Json, allows, grants, objects, role
from world_as_kubernetes import scheduler_lease

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.codec.kubernetes.nodes.autoscaler_evidence import AUTOSCALER_LEASE, AUTOSCALER_STATUS
from pilotlight.errors import Busy, Forbidden
from pilotlight.facts.policy import PoolPolicy
from pilotlight.settings import Settings
from pilotlight.tools.checkup import rights
from pilotlight.tools.checkup.rights import Right
from pilotlight.tools.checkup.survey import survey
from pilotlight.tools.install.prove_limits import limit_of, pod_limit_of
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock

MEMBER = {"pilotlight.dev/gang": "g", "pilotlight.dev/gang-size": "1", "pilotlight.dev/annotate": "true"}
NOW = datetime(2026, 11, 21, 1, tzinfo=UTC)
CLAIMED = PoolPolicy(cluster_pool="gpu", instance_type="g5.xlarge")
NODE_POOL: Json = {
    "kind": "NodePool",
    "apiVersion": "karpenter.sh/v1",
    "metadata": {"name": "gpu"},
    "spec": {
        "limits": {"nvidia.com/gpu": "0"},
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}
                ],
            }
        },
    },
}
IMPERSONATE = ("impersonate", "", "serviceaccounts")
"""What a check-up tries with another credential than our own, to prove what limits ours; no role of ours has it."""
OURS = {"key": "pilotlight.dev/draining", "effect": "NoSchedule"}

QUEUED = {
    "kind": "Workload",
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "metadata": {"name": "queued", "namespace": "ml"},
    "spec": {"podSets": []},
    "status": {
        "conditions": [{"type": "QuotaReserved", "status": "True"}],
        "admissionChecks": [{"name": "pilotlight", "state": "Pending"}],
    },
}


class Guarded:
    """The stand-in with RBAC: only what ``roles`` grant is allowed, and what was used is kept."""

    def __init__(self, api: ApiServer, folder: Path, *roles: str) -> None:
        self.used: set[tuple[str, str, str]] = set()
        self._roles: list[Json] = [role(name) for name in roles]
        api.allow = self._allow
        api.add_samples()
        groups = ("volcano", "coscheduling", "kai", "own-groups", "leader-worker-set")
        for name in (*groups, "kueue", "kueue-flavors", "karpenter", "karpenter-claims", "keda"):
            api.store.serve(name)
        api.add(QUEUED, NODE_POOL)
        api.add(*objects(HERE / "admission" / "nodes.yaml"), *objects(HERE / "admission" / "tolerations.yaml"))
        self.policy = App(Settings()).policy
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(api.kubeconfig())
        self.source = of_file(kubeconfig)
        self.api = Api(self.source, pause=lambda seconds: None)
        clock = VirtualClock(NOW)
        self.cluster = KubernetesCluster(self.api, self.policy, clock, pause=lambda seconds: None)

    def _allow(self, access: Access) -> bool:
        resource = f"{access.resource}/{access.subresource}" if access.subresource else access.resource
        # The two ConfigMaps and the policies are granted by their names, which the stand-in does not pass on.
        names = {"configmaps": AUTOSCALER_STATUS, "leases": AUTOSCALER_LEASE}
        name = names.get(access.resource, "")
        name = rights.LIMIT if access.resource.startswith("validatingadmission") else name
        self.used.add((access.verb, access.group, resource))
        return allows(self._roles, access.verb, access.group, resource, name)

    def look(self) -> None:
        """All reads: a look with a gang and a volume in it, what is on a node, and a check-up."""
        self.cluster.observe()
        self.cluster.scheduler_beat()
        self.cluster.pulls(self.cluster.bound_pods("gpu-t4-1"))
        seen = survey(self.source, self.api, self.policy, (), datetime.now(UTC))
        assert seen.hidden == {}
        limit_of(self.source, self.api, ())
        pod_limit_of(self.source, self.api)

    def look_at_karpenter(self) -> KarpenterPools:
        """All reads of a pool that is bought for by claims, and of one that is a gate; the first is given back."""
        self.cluster.read_gates(["gpu"])
        pools = KarpenterPools(self.api, {"a": CLAIMED})
        pools.describe()
        return pools


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """The stand-in, with a pod of a gang that waits for a volume and a device."""
    with api_server() as server:
        server.add(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {
                    "name": "member-0",
                    "namespace": "ml",
                    "annotations": {**MEMBER, "pod-group-name": "g"},
                    "labels": {"leaderworkerset.sigs.k8s.io/name": "lws"},
                },
                "spec": {
                    "schedulingGroup": {"podGroupName": "g"},
                    "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
                    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpus"}],
                    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
                },
                "status": {"phase": "Pending"},
            }
        )
        tells = {"metadata": {"name": "disk"}, "spec": {"storageCapacity": True}}
        server.add({"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", **tells})
        yield server


def _granted(*roles: str) -> set[tuple[str, str, str]]:
    return {grant[:3] for grant in grants(role(name) for name in roles)}


def test_observe_is_what_a_look_and_a_check_up_read(api: ApiServer, tmp_path: Path) -> None:
    """With observe alone every read goes through, and there is no grant that none of them used."""
    guarded = Guarded(api, tmp_path, "observe")
    guarded.look()
    guarded.look_at_karpenter()
    with pytest.raises(Forbidden):
        guarded.cluster.tell("ml", "member-0", "R", "m")  # It reads the pod first.
    tried = {("create", "events.k8s.io", "events"), ("patch", "", "nodes"), ("patch", "", "pods"), IMPERSONATE}
    assert guarded.used - tried == _granted("observe")


@pytest.mark.parametrize("write", ["cordon", "uncordon", "tell", "evict"])
def test_observe_writes_nothing(api: ApiServer, tmp_path: Path, write: str) -> None:
    """Each write is refused with what to grant."""
    guarded = Guarded(api, tmp_path, "observe")
    if write == "uncordon":
        marked = {"spec": {"taints": [OURS], "unschedulable": True}}
        api.store.patch(api.store.resource("nodes"), ("", "gpu-t4-1"), marked)
    words = {"cordon": ("gpu-t4-1",), "uncordon": ("gpu-t4-1",), "evict": _bound(api)}
    with pytest.raises(Forbidden, match="grant it with pilotlight connect"):
        getattr(guarded.cluster, write)(*words.get(write, ("ml", "member-0", "R", "m")))


def test_act_is_what_the_writes_need(api: ApiServer, tmp_path: Path) -> None:
    """Cordon, drain, homes, evict and tell go through with observe and act, and use every grant of act."""
    guarded = Guarded(api, tmp_path, "observe", "act")
    guarded.look()
    guarded.cluster.cordon("gpu-a100-idle")
    guarded.cluster.cordon("gpu-t4-1")
    with pytest.raises(Busy):
        guarded.cluster.drain("gpu-t4-1")
    guarded.cluster.uncordon("gpu-t4-1")
    guarded.cluster.tell("ml", "member-0", "Bought", "a node is on its way")
    guarded.cluster.name_home("gpu-t4-1", "h-0")
    guarded.cluster.tolerate("ml", "member-0", api.store.get("pods", "member-0", "ml")["metadata"]["uid"], "h-0")
    guarded.cluster.evict(*_bound(api))
    assert guarded.used - _granted("observe") - {IMPERSONATE} == _granted("act")


def test_limits_and_claims_of_karpenter_need_their_own_roles(api: ApiServer, tmp_path: Path) -> None:
    """By observe and one of them a limit is set, or a machine is bought and given back, and every grant of it is used;
    by observe alone each is refused."""

    def limits(guarded: Guarded) -> None:
        (gate,) = guarded.cluster.read_gates(["gpu"])
        guarded.cluster.limit_gate(gate, 8)

    def claims(guarded: Guarded) -> None:
        pools = guarded.look_at_karpenter()
        pools.grow("a", 1, token="step")
        (machine,) = api.store.list(api.store.resource("nodeclaims"), "", "", "")
        pools.release("a", machine["metadata"]["name"])
        assert api.store.list(api.store.resource("nodeclaims"), "", "", "") == []

    for name, do in (("karpenter-claims", claims), ("karpenter", limits)):
        with pytest.raises(Forbidden):
            do(Guarded(api, tmp_path, "observe"))
        guarded = Guarded(api, tmp_path, "observe", name)
        do(guarded)
        assert guarded.used - _granted("observe") == _granted(name)


def _bound(api: ApiServer) -> tuple[str, str, str]:
    """Namespace, name and uid of a pod that is on a node."""
    pods = api.store.list(api.store.resource("pods"), "", "", "")
    meta = next(pod["metadata"] for pod in pods if pod["spec"].get("nodeName"))
    return meta["namespace"], meta["name"], meta["uid"]


def test_an_owner_who_asked_gets_an_annotation_too(api: ApiServer, tmp_path: Path) -> None:
    """With act its Event is on the pod as well; with observe alone nothing is written."""
    told = ("ml", "member-0", "Bought", "a node is on its way")
    Guarded(api, tmp_path, "observe", "act").cluster.tell(*told)
    assert "pilotlight.dev/status" in api.store.get("pods", "member-0", "ml")["metadata"]["annotations"]


def test_a_lease_of_the_scheduler_that_cannot_be_seen_says_nothing(api: ApiServer, tmp_path: Path) -> None:
    """It is not there, or may not be read: no look fails of it."""
    cluster, renewed = Guarded(api, tmp_path, "observe").cluster, datetime(2026, 11, 21, 0, 59, 58, tzinfo=UTC)
    assert cluster.scheduler_beat() is None
    api.add(scheduler_lease(renewed))
    assert cluster.scheduler_beat() == renewed
    api.allow = lambda asked: False
    assert cluster.scheduler_beat() is None


LOOKS = (*rights.LOOK, *rights.GANGS, *rights.EVIDENCE, *rights.HEARTBEAT, *rights.PULLS, *rights.SURVEY)
OBSERVE = (*LOOKS, *rights.MACHINES)


@pytest.mark.parametrize(
    ("name", "rights"),
    [
        pytest.param("observe", OBSERVE, id="observe"),
        pytest.param("act", (*rights.TELL, *rights.TAKE), id="act"),
        pytest.param("karpenter", rights.GATES[2:], id="karpenter"),
        pytest.param("karpenter-claims", rights.CLAIMS[2:], id="karpenter-claims"),
    ],
)
def test_the_doctor_asks_for_what_the_roles_grant(name: str, rights: tuple[Right, ...]) -> None:
    """The table of rights in the code and the manifests are the same, names of objects included."""
    granted = {(v, g, r, names) for v, g, r, all_names in grants([role(name)]) for names in (all_names or ("",))}
    assert granted == {(right.verb, right.group, right.resource, right.name) for right in rights}
