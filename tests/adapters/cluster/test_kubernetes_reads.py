"""What one look at a cluster asks for and keeps: few requests, no pod lost between two lists, only what is served."""

from collections.abc import Iterator
from typing import Any

import pytest
from api_server import ApiServer, api_server
from api_store import Json

from pilotlight.adapters.cluster.kubernetes import reads, transport
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.doorway.blame import Suspects
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.world.world_clock import VirtualClock

NOW = "2026-11-20T12:00:00Z"
POLICY = Policy(version=1, pools={"t4": PoolPolicy(instance_type="g4dn.xlarge", cluster_pool="9f3a-pool-id")})


def pod(name: str, node: str = "", gpus: int = 1, **meta: object) -> Json:
    """A pod, waiting or on a node."""
    conditions = [] if node else [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", "creationTimestamp": NOW, **meta},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": limits}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending", "conditions": conditions},
    }


def node(name: str, gpus: int = 2, **labels: str) -> Json:
    """A ready node."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": NOW, "labels": labels},
        "spec": {"providerID": f"civo://{name}-id"},
        "status": {
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}],
        },
    }


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An empty cluster."""
    with api_server() as made:
        yield made


@pytest.fixture
def cluster(server: ApiServer, clock: VirtualClock) -> KubernetesCluster:
    """The adapter over it."""
    return KubernetesCluster(Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()})), POLICY, clock)


def lists(server: ApiServer) -> list[str]:
    """The pod lists asked for, by their field selector."""
    return [asked.query.get("fieldSelector", "") for asked in server.requests if asked.path == "/api/v1/pods"]


def names(view: ClusterView) -> tuple[list[str], dict[str, list[str]]]:
    """Who waits, and who is where."""
    return [p.name for p in view.pending], {n.name: sorted(p.name for p in n.pods) for n in view.nodes}


def test_the_recorded_cluster_is_seen_as_in_its_files(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Nine pods wait, one GPU node works, one idles: as the file adapter reads the same objects."""
    server.add_samples()
    waiting, nodes = names(cluster.observe())
    assert len(waiting) == 9
    assert nodes == {"gpu-a100-idle": [], "gpu-t4-1": ["llm-api-59bd599549-bt52z"]}


def test_a_big_cluster_with_few_gpu_nodes_is_not_read_whole(server: ApiServer, cluster: KubernetesCluster) -> None:
    """While no GPU pod waits the pods of nodes without GPUs stay unread, and who waits is chosen by the server."""
    server.add(node("gpu-1"), node("cpu-1", gpus=0), pod("a", gpus=0), pod("b", "gpu-1"))
    server.add(*(pod(f"web-{n}", "cpu-1", gpus=0) for n in range(50)))
    assert names(cluster.observe()) == ([], {"gpu-1": ["b"]})
    assert lists(server) == ["spec.nodeName=", "spec.nodeName=gpu-1"]


def test_while_a_gpu_pod_waits_all_that_may_keep_it_away_is_read(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A pod on a node without GPUs may keep it out of its zone: it is found, and counts."""
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    keeper = pod("keeper", "cpu-1", gpus=0)
    keeper["spec"]["affinity"] = away
    zoned = node("cpu-1", gpus=0)
    zoned["metadata"].setdefault("labels", {})["topology.kubernetes.io/zone"] = "a"
    server.add(node("gpu-1"), zoned, pod("a"), keeper, pod("web", "cpu-1", gpus=0))
    (counts,) = cluster.observe().around.values()
    assert counts == {"a": 1}
    assert lists(server) == ["spec.nodeName=", "spec.nodeName!="]


def test_pods_of_any_size_end_no_look(
    server: ApiServer, cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty pods with annotations as long as Kubernetes lets them be, more than one answer may hold: all are seen, by
    smaller pages; the server is not asked again for what it cannot answer."""
    monkeypatch.setattr(transport, "LARGEST_BODY", 2_000_000)
    long: dict[str, Any] = {"annotations": {"a-tenant/wrote": "x" * 250_000}}
    server.add(node("gpu-1"), *(pod(f"p{n:02}", **long) for n in range(60)))
    assert names(cluster.observe())[0] == [f"p{n:02}" for n in range(60)]
    asked = [int(one.query["limit"]) for one in server.requests if one.path == "/api/v1/pods"]
    assert asked[:4] == [1000, 125, 15, 1]
    assert set(asked[4:]) == {5}, "as many as fill three quarters of what an answer may hold"


@pytest.mark.parametrize(("waiting", "gpus"), [(1140, 1000), (0, 5)])
def test_a_look_at_ten_thousand_pods_takes_twelve_calls(
    server: ApiServer, cluster: KubernetesCluster, gpus: int, waiting: int
) -> None:
    """Each pod comes once, in pages as full as answers may be, whoever waits and however many nodes have GPUs."""
    long: dict[str, Any] = {"annotations": {"managed": "x" * 7_300}}
    server.add(*(node(f"n{n}", gpus=8 if n < gpus else 0) for n in range(1_000)))
    server.add(*(pod(f"p{n}", "" if n < waiting else f"n{n % 1_000}", **long) for n in range(10_000)))
    cluster.observe()
    server.requests.clear()
    view = cluster.observe()
    assert len(view.pending) == waiting
    assert sum(len(one.pods) for one in view.nodes) == (10_000 - waiting) * gpus // 1_000
    assert len(server.requests) <= 12, server.lines()


def test_an_object_beyond_any_answer_is_told(
    server: ApiServer, cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One object alone that no answer may hold ends the look by a clear error, after a few calls."""
    monkeypatch.setattr(transport, "LARGEST_BODY", 200_000)
    server.add(node("gpu-1"), pod("p", annotations={"a-tenant/wrote": "x" * 250_000}))
    with pytest.raises(Unavailable, match="answers with over"):
        cluster.observe()
    assert [one.query["limit"] for one in server.requests if one.path == "/api/v1/pods"] == ["1000", "125", "15", "1"]


@pytest.mark.parametrize(("place", "odd"), [("waits", "odd"), ("gang_key", "odd"), ("is_gpu_node", "gpu-odd")])
def test_an_object_that_raises_while_it_is_read_costs_only_itself(
    server: ApiServer, cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch, place: str, odd: str
) -> None:
    """It is to blame, and the next look sees what else waits and is lit, reading nothing more of it than its name."""
    strange = node("gpu-odd")
    strange["metadata"]["annotations"] = {"x": "1"}
    server.add(node("gpu-1"), strange, pod("a"), pod("b", "gpu-1"), pod("odd", annotations={"x": "1"}))
    real = getattr(reads, place)

    def raises(item: Any, *more: Any) -> Any:
        if item.metadata.name == odd and item.metadata.annotations:
            raise RuntimeError("of one object")
        return real(item, *more)

    monkeypatch.setattr(reads, place, raises)
    suspects = Suspects()
    with pytest.raises(RuntimeError) as caught:
        cluster.observe()
    assert suspects.blame(caught.value)
    waiting, nodes = names(cluster.observe_without(tuple(suspects.apart.values())))
    assert "a" in waiting
    assert nodes["gpu-1"] == ["b"]


def test_many_gpu_nodes_are_one_list(server: ApiServer, cluster: KubernetesCluster) -> None:
    """From nine GPU nodes on it is one list of what is bound."""
    server.add(*(node(f"gpu-{n}") for n in range(9)), *(pod(f"p{n}", f"gpu-{n}") for n in range(9)))
    assert names(cluster.observe())[1] == {f"gpu-{n}": [f"p{n}"] for n in range(9)}
    assert lists(server) == ["spec.nodeName=", "spec.nodeName!="]


def test_a_gangs_members_are_found_wherever_they_run(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A launcher on a node without GPUs counts: of five declared pods four hold GPUs."""
    gang: dict[str, Any] = {"annotations": {"pilotlight.dev/gang": "train", "pilotlight.dev/gang-size": "5"}}
    server.add(node("cpu-1", gpus=0), pod("launcher", "cpu-1", gpus=0, **gang), pod("other", "cpu-1", gpus=0))
    server.add(*(pod(f"worker-{n}", **gang) for n in range(4)))
    view = cluster.observe()
    assert {p.shape.gang.size for p in view.pending if p.shape.gang} == {4}


def test_pod_groups_are_read_only_where_they_are_served(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Without Volcano's CRD a gang is as large as its pods; with it, as its PodGroup says."""
    member: dict[str, Any] = {"annotations": {"scheduling.k8s.io/group-name": "mpi"}}
    server.add(pod("w-0", **member), pod("w-1", **member))
    (alone,) = {p.shape.gang.size for p in cluster.observe().pending if p.shape.gang}
    server.store.serve("volcano")
    group = {"metadata": {"name": "mpi", "namespace": "ml"}, "spec": {"minMember": 16}}
    server.add({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", **group})
    (grouped,) = {p.shape.gang.size for p in cluster.observe().pending if p.shape.gang}
    assert (alone, grouped) == (2, 16)


def test_a_quiet_cluster_costs_two_requests(server: ApiServer, cluster: KubernetesCluster) -> None:
    """No GPU node and nothing that waits: nothing else is asked, once it is known that there is no Kueue."""
    cluster.observe()
    server.requests.clear()
    cluster.observe()
    assert server.lines() == ["GET /api/v1/pods", "GET /api/v1/nodes"]


def workload(version: str, *, reserved: bool) -> Json:
    """Work of two pods of 8 GPUs that Kueue has queued: with its quota and a check to come, or without quota."""
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    pod_set = {"name": "main", "count": 2, "template": {"spec": {"containers": [{"name": "c", "resources": limits}]}}}
    assigned = {"podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "a100"}, "count": 2}]}
    condition = {"type": "QuotaReserved", "status": "True" if reserved else "False", "reason": "QuotaReserved"}
    return {
        "apiVersion": f"kueue.x-k8s.io/{version}",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "ml", "uid": "w", "creationTimestamp": NOW},
        "spec": {"active": True, "podSets": [pod_set], "queueName": "research"},
        "status": {
            "conditions": [condition],
            **(
                {"admission": assigned, "admissionChecks": [{"name": "pilotlight", "state": "Pending"}]}
                if reserved
                else {}
            ),
        },
    }


@pytest.mark.parametrize(("served", "version"), [("kueue", "v1beta2"), ("kueue-v1beta1", "v1beta1")])
def test_queued_work_with_its_quota_is_demand(
    server: ApiServer, cluster: KubernetesCluster, served: str, version: str
) -> None:
    """A suspended job has no pods: its Workload is read, in the version that is served, and the flavor's nodes."""
    server.store.serve(served)
    server.store.serve("kueue-flavors")
    flavor = {"metadata": {"name": "a100"}, "spec": {"nodeLabels": {"accelerator": "a100"}}}
    server.add({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", **flavor})
    server.add(workload(version, reserved=True))
    pending = cluster.observe().pending
    assert [(p.namespace, p.shape.gpu.count, p.shape.gang and p.shape.gang.size) for p in pending] == [("ml", 8, 2)] * 2
    selected = {requirement.key for p in pending for term in p.shape.terms for requirement in term}
    assert selected == ({"accelerator"} if version == "v1beta2" else set())


def test_queued_work_that_waits_for_quota_is_none(server: ApiServer, cluster: KubernetesCluster) -> None:
    """No node would help it."""
    server.store.serve("kueue")
    server.add(workload("v1beta2", reserved=False))
    assert cluster.observe().pending == ()


def test_queued_work_is_read_after_the_pods(server: ApiServer, cluster: KubernetesCluster) -> None:
    """What is admitted while we look is in the next look, never twice in this one."""
    server.store.serve("kueue")
    server.add(workload("v1beta2", reserved=True))

    def admit() -> None:
        server.add(workload("v1beta2", reserved=False), pod("train-0", gpus=8), pod("train-1", gpus=8))

    server.before("GET .*workloads", admit)
    assert cluster.observe().pending == ()
    assert len(cluster.observe().pending) == 2


def test_a_pod_bound_between_two_lists_is_seen_where_it_is(server: ApiServer, cluster: KubernetesCluster) -> None:
    """It was in the list of those that wait, and is in the list of its node: it counts once, and there."""
    server.add(node("gpu-1"), pod("a"))
    server.before("GET /api/v1/nodes", lambda: server.store.bind("ml", "a", "gpu-1"))
    assert names(cluster.observe()) == ([], {"gpu-1": ["a"]})


def test_storage_is_read_where_a_pod_has_any(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A claim that does not exist is a finding; without claims nobody asks for storage."""
    claiming = pod("a")
    claiming["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    server.add(claiming)
    assert [f.code for f in cluster.observe().findings] == ["pvc-missing"]
    assert "GET /api/v1/persistentvolumeclaims" in server.lines()


@pytest.mark.parametrize("mode", ["ReadWriteOncePod", "ReadWriteOnce"])
def test_a_claim_in_use_elsewhere_is_seen(server: ApiServer, cluster: KubernetesCluster, mode: str) -> None:
    """Who has a claim of one pod is asked for in its namespace alone, and only where a GPU pod waits for it."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    waiting, holder = pod("a"), pod("b", "cpu-1")
    for each in (waiting, holder):
        each["spec"]["volumes"] = volumes
    spec = {"accessModes": [mode], "volumeName": "pv"}
    claim = {"metadata": {"name": "data", "namespace": "ml"}, "spec": spec, "status": {"phase": "Bound"}}
    server.add(waiting, holder, {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **claim})
    found = [f.code for f in cluster.observe().findings]
    alone = mode == "ReadWriteOncePod"
    assert found == (["pvc-in-use"] if alone else [])
    assert len(server.lines("GET /api/v1/namespaces/ml/pods")) == (1 if alone else 0)


@pytest.mark.parametrize(
    "labels",
    [
        {"kubernetes.civo.com/civo-node-pool": "9f3a-pool-id"},
        {"cloud.google.com/gke-nodepool": "9f3a-pool-id"},
        {"eks.amazonaws.com/nodegroup": "9f3a-pool-id"},
        {"karpenter.sh/nodepool": "9f3a-pool-id"},
        {"pilotlight.dev/pool": "t4"},
    ],
    ids=lambda labels: next(iter(labels)),
)
def test_a_nodes_pool_is_the_policys(server: ApiServer, cluster: KubernetesCluster, labels: dict[str, Any]) -> None:
    """Each cloud's label names its own pool, which ``cluster_pool`` maps; the instance is the cloud's id."""
    server.add(node("n1", **labels))
    (seen,) = cluster.observe().nodes
    assert (seen.pool, seen.instance, seen.instance_type) == ("t4", "n1-id", "g4dn.xlarge")


def test_without_a_right_nothing_is_guessed(server: ApiServer, cluster: KubernetesCluster) -> None:
    """A list that is forbidden is no empty list."""
    server.add(node("gpu-1"), pod("a", "gpu-1"))
    server.allow = lambda access: access.resource != "poddisruptionbudgets"
    with pytest.raises(Forbidden, match="poddisruptionbudgets"):
        cluster.observe()


def test_an_owner_is_told_once(server: ApiServer, cluster: KubernetesCluster) -> None:
    """An Event on the pod by its uid, as `kubectl describe pod` looks for it; the same change makes no second, whatever
    its figures are by then."""
    server.add(pod("a"))
    for figures in ("3 of 3", "4 of 4"):
        cluster.tell("ml", "a", "NoGpuNode", f"{figures} nodes are lit", "cap")
    cluster.tell("ml", "a", "NoGpuNode", "no pool has an A100", "model")
    cluster.tell("ml", "gone", "NoGpuNode", "nobody reads this")
    events = server.store.list(server.store.resource("events"), "ml", "regarding.uid=uid-a", "")
    assert sorted((e["reason"], e["note"], e["reportingController"]) for e in events) == [
        ("NoGpuNode", "3 of 3 nodes are lit", "pilotlight"),
        ("NoGpuNode", "no pool has an A100", "pilotlight"),
    ]
    assert server.lines("PATCH") == []


def test_a_node_has_its_own_events(server: ApiServer, cluster: KubernetesCluster) -> None:
    """They lie in ``default``, where `kubectl describe node` looks; a node that is gone is no error."""
    server.add(node("n1"))
    cluster.tell("", "n1", "Kept", "a pod is still on it")
    cluster.tell("", "n9", "Kept", "nobody reads this")
    [event] = server.store.list(server.store.resource("events"), "default", "", "")
    there = event["regarding"]
    assert (event["type"], there["kind"], there["name"]) == ("Warning", "Node", "n1")
    assert there["uid"] == server.store.get("nodes", "n1")["metadata"]["uid"]


@pytest.mark.parametrize(("reason", "kind"), [("NoGpuNode", "Warning"), ("CheckpointNow", "Normal")])
def test_what_stops_a_pod_is_a_warning(server: ApiServer, cluster: KubernetesCluster, reason: str, kind: str) -> None:
    """That no node is bought is a Warning, as `kubectl get events` filters them; what is asked of a pod is not."""
    server.add(pod("a"))
    cluster.tell("ml", "a", reason, "words")
    (event,) = server.store.list(server.store.resource("events"), "ml", "", "")
    assert (event["apiVersion"], event["type"]) == ("events.k8s.io/v1", kind)


def test_an_annotation_only_where_the_pod_asks_for_it(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Opted in, its owner reads it on the pod; without the right to write it the Event is all, and no error."""
    server.add(pod("a", annotations={"pilotlight.dev/annotate": "true"}))
    cluster.tell("ml", "a", "NoGpuNode", "no pool has an A100")
    kept = server.store.get("pods", "a", "ml")["metadata"]["annotations"]
    assert kept["pilotlight.dev/status"] == "NoGpuNode: no pool has an A100"
    server.allow = lambda access: access.verb != "patch"
    cluster.tell("ml", "a", "NoGpuNode", "other words")
    assert len(server.lines("POST .*/events")) == 2


@pytest.mark.parametrize(
    ("uid", "there"),
    [
        pytest.param("uid-a", False, id="the pod that was meant goes"),
        pytest.param("uid-of-before", True, id="another of its name stays"),
    ],
)
def test_an_eviction_means_one_pod(server: ApiServer, cluster: KubernetesCluster, uid: str, there: bool) -> None:
    """By name and uid, and repeating it is harmless."""
    server.add(pod("a", "gpu-1"))
    for _ in range(2):
        cluster.evict("ml", "a", uid)
    assert server.store.has(server.store.resource("pods"), ("ml", "a")) is there


def test_an_autoscaler_at_work_is_seen(server: ApiServer, cluster: KubernetesCluster) -> None:
    """By the status that it writes and the Lease that it holds, where something waits that may be bought for."""
    meta = {"namespace": "kube-system"}
    status = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-autoscaler-status", **meta}}
    status["data"] = {"status": "time: 2026-11-22 07:59:50.1 +0000 UTC\nnodeGroups:\n- name: eks-gpu-1\n"}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "cluster-autoscaler", **meta},
    }
    lease["spec"] = {"holderIdentity": "ca-1", "renewTime": "2026-11-22T07:59:55.000000Z"}
    server.add(status, lease)
    assert cluster.observe().scalers == ()
    server.add(pod("a"))
    assert [(s.groups, s.seen_at.second) for s in cluster.observe().scalers] == [(("eks-gpu-1",), 50), ((), 55)]


def test_devices_by_claim_are_read_where_they_matter(server: ApiServer, cluster: KubernetesCluster) -> None:
    """What drivers publish and pods claim is listed for a pod that claims a device, and not without one."""
    cluster.observe()
    assert server.lines("resource.k8s.io") == []
    claim = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    meta = {"name": "gpu", "namespace": "ml"}
    server.add({"kind": "ResourceClaimTemplate", "apiVersion": "resource.k8s.io/v1", "metadata": meta, "spec": claim})
    server.add({"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}, "spec": {}})
    wants = {"containers": [{"name": "c"}], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpu"}]}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {**meta, "name": "p"}, "spec": wants}
    server.add({**pod, "status": {"phase": "Pending"}})
    (waiting,) = cluster.observe().pending
    assert waiting.shape.claimed is not None
    assert len(server.lines("resource.k8s.io")) == 4
    slice_ = {"driver": "gpu.nvidia.com", "nodeName": "bare", "pool": {"name": "bare"}, "devices": [{"name": "gpu-0"}]}
    server.add(
        {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "bare"}, "spec": slice_}
    )
    server.add(node("bare", 0))
    server.add({**pod, "metadata": {**meta, "name": "r", "uid": "r"}, "spec": {**wants, "nodeName": "bare"}})
    assert names(cluster.observe())[1] == {"bare": ["r"]}, "a node of no pool, known by its slice alone"


def test_room_for_volumes_is_read_where_a_driver_tells_it(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Without a driver that tells its room nobody asks for it; an account that may not read it knows of none."""
    claiming = pod("a")
    claiming["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    storage, late = "storage.k8s.io/v1", {"provisioner": "disk", "volumeBindingMode": "WaitForFirstConsumer"}
    spec = {"storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    for one in (
        claiming,
        {"kind": "StorageClass", "apiVersion": storage, "metadata": {"name": "late"}, **late},
        {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "metadata": {"name": "data", "namespace": "ml"},
            "spec": spec,
        },
    ):
        server.add(one)
    assert [p.name for p in cluster.observe().pending] == ["a"]
    assert server.lines("csistoragecapacities") == []
    told = {"metadata": {"name": "disk"}, "spec": {"storageCapacity": True}}
    server.add({"kind": "CSIDriver", "apiVersion": storage, **told})
    assert [f.code for f in cluster.observe().findings] == ["pvc-no-capacity"]
    room = {"metadata": {"name": "r", "namespace": "ml"}, "storageClassName": "late", "nodeTopology": {}}
    server.add({"kind": "CSIStorageCapacity", "apiVersion": storage, **room, "capacity": "1Gi"})
    assert [p.name for p in cluster.observe().pending] == ["a"]
