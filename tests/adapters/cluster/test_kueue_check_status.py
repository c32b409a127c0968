"""Kueue's admission check: who is let in, who comes again, whom we leave alone; and the check on queues."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from api_server import ApiServer, api_server
from api_store import Json
from kueue_at_work import is_at_work
from real_api import real_api
from test_kubernetes_reads import node, workload

from pilotlight.adapters.cluster.kubernetes import kueue_check_status
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import APPLY_PATCH, NOTHING, Api, Missing
from pilotlight.decide.demand.queue_admission import answers
from pilotlight.errors import BadInput, Conflict
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.facts.place.pod_verdicts import Code, PodGroup, Verdict
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import CheckAnswer, Queued, QueuedSet
from pilotlight.tools.install import queue_checks
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
POLICY = Policy(version=1, pools={"a100": PoolPolicy(instance_type="p4d.24xlarge")})
TYPE = "node.kubernetes.io/instance-type"
ANY: msgspec.json.Decoder[Json] = msgspec.json.Decoder(dict)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Two nodes, and a Workload of two pods with its quota that waits for our check."""
    with api_server() as made:
        made.store.serve("kueue")
        made.store.serve("kueue-flavors")
        made.add(*(node(name, gpus=8, **{TYPE: "p4d.24xlarge"}) for name in ("n1", "n2")))
        made.add(workload("v1beta2", reserved=True))
        yield made


@pytest.fixture
def cluster(server: ApiServer, clock: VirtualClock) -> KubernetesCluster:
    """The adapter over it."""
    return KubernetesCluster(Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()})), POLICY, clock)


def plan(view: ClusterView, *verdicts: tuple[Verdict, str, Code]) -> Plan:
    """What became of the pods that wait, one after the other."""
    groups = [
        PodGroup(verdict=verdict, pods=(f"ml/{pod.name}",), uids=(pod.uid,), where=where, why="figures", code=code)
        for pod, (verdict, where, code) in zip(view.pending, verdicts, strict=True)
    ]
    return Plan(pods=tuple(groups))


def test_work_is_let_in_when_all_its_nodes_are_ready(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Ready by server-side apply on the status alone, with its pods pinned to the type of those nodes."""
    view = cluster.observe()
    [answer] = answers(view, plan(view, ("fits", "n1", ""), ("fits", "n2", "")))
    cluster.answer_check(answer)
    [check] = server.store.get("workloads", "job-train", "ml")["status"]["admissionChecks"]
    assert (check["name"], check["state"], check["message"]) == ("pilotlight", "Ready", "ready: n1, n2")
    assert check["podSetUpdates"] == [{"name": "main", "nodeSelector": {TYPE: "p4d.24xlarge"}}]
    assert cluster.observe().queued == ()


@pytest.mark.parametrize(
    "second",
    [("booting", "a100", ""), ("bought", "a100", ""), ("waiting", "", "backoff"), ("refused", "", "gang")],
    ids=["a node boots", "one is bought", "none is to be had now", "refused, and not for money"],
)
def test_work_waits_for_the_last_of_its_nodes(cluster: KubernetesCluster, second: tuple[Verdict, str, Code]) -> None:
    """Nothing is answered while anything but money is in the way."""
    view = cluster.observe()
    assert list(answers(view, plan(view, ("fits", "n1", ""), second))) == []


@pytest.mark.parametrize("code", ["budget", "step", "cap"])
def test_without_money_it_comes_again(server: ApiServer, cluster: KubernetesCluster, code: Code) -> None:
    """Retry with the figures and without a time, so that its quota is free at once; never Rejected."""
    view = cluster.observe()
    [answer] = answers(view, plan(view, ("refused", "", code), ("refused", "", code)))
    cluster.answer_check(answer)
    [check] = server.store.get("workloads", "job-train", "ml")["status"]["admissionChecks"]
    assert (check["state"], check["message"], check.get("requeueAfterSeconds")) == ("Retry", "figures", None)


def test_work_that_was_evicted_meanwhile_is_left_alone(server: ApiServer, cluster: KubernetesCluster) -> None:
    """It is written over the version that was read; and evicted work is not looked at again."""
    view = cluster.observe()
    [answer] = answers(view, plan(view, ("fits", "n1", ""), ("fits", "n2", "")))
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted"}
    found = server.store.get("workloads", "job-train", "ml")
    conditions = [*found["status"]["conditions"], evicted]
    server.store.patch(server.store.resource("workloads"), ("ml", "job-train"), {"status": {"conditions": conditions}})
    with pytest.raises(Conflict):
        cluster.answer_check(answer)
    assert cluster.observe().queued == ()


def test_another_controllers_check_is_not_ours(server: ApiServer, cluster: KubernetesCluster) -> None:
    """Work that waits for a check of another name is no demand of ours."""
    other = {"status": {"admissionChecks": [{"name": "provisioning", "state": "Pending"}]}}
    server.store.patch(server.store.resource("workloads"), ("ml", "job-train"), other)
    view = cluster.observe()
    assert (view.pending, view.queued) == ((), ())


def test_work_that_waits_for_quota_is_said_so(server: ApiServer, cluster: KubernetesCluster) -> None:
    """One finding a queue: nodes would not help it."""
    server.add(workload("v1beta2", reserved=False))
    view = cluster.observe()
    assert [(f.subject, f.message) for f in view.findings if f.code == "waits-for-quota"] == [
        ("queue ml/research", "1 Workload waits for quota of research, not for nodes: raise it, or wait its turn")
    ]


@pytest.fixture
def live(shelf: Path) -> Iterator[tuple[Api, str]]:
    """The control plane that KUBECONFIG names, with Kueue's CRDs, and names of the run's own."""
    api, name = real_api(), f"pilotlight-test-{uuid.uuid4().hex[:8]}"
    if is_at_work(api):
        pytest.skip("a Kueue is at work here: test_kueue_real tries it, and this script would play against it")
    for path in sorted((shelf / "contracts/crds/kueue").glob("*.yaml")):
        crd = next(each for each in yaml.safe_load_all(path.read_text()) if each)
        where = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
        api.ask("PATCH", f"{where}?fieldManager=pilotlight-test&force=true", NOTHING, crd, APPLY_PATCH)
    api.ask("POST", "/api/v1/namespaces", NOTHING, {"kind": "Namespace", "metadata": {"name": name}})
    made = [f"/api/v1/namespaces/{name}"]
    try:
        yield api, name
    finally:
        for gone in (f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}", *made):
            try:
                api.ask("DELETE", gone, NOTHING)
            except Missing:
                continue


@pytest.mark.cluster
def test_a_real_api_server_takes_answers_and_the_check(live: tuple[Api, str]) -> None:
    """Kueue's CRDs on a real API server; this script plays its controller: quota reserved, then our check pending."""
    api, name = live
    base = "/apis/kueue.x-k8s.io/v1beta2"
    flavor = [{"name": "a", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]
    group = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavor}]
    queue = {"namespaceSelector": {}, "resourceGroups": group}
    _eventually(api, f"{base}/clusterqueues", _of("ClusterQueue", {"name": name}, queue))
    assert list(queue_checks.take(api, [name], NOW, dry_run=False)) == [queue_checks.Queue(name, True, True)]
    strategy = api.get(f"{base}/clusterqueues/{name}", ANY)["spec"]["admissionChecksStrategy"]
    assert [rule["name"] for rule in strategy["admissionChecks"]] == ["pilotlight"]
    check = api.get(f"{base}/admissionchecks/pilotlight", ANY)
    assert (check["spec"]["controllerName"], check["status"]["conditions"][0]["status"]) == (
        queue_checks.CONTROLLER,
        "True",
    )
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]
    meta = {"name": "w", "namespace": name}
    path = f"{base}/namespaces/{name}/workloads"
    _eventually(api, path, _of("Workload", meta, {"podSets": sets, "queueName": "q"}))
    pending = [{"name": "pilotlight", "state": "Pending", "message": "", "lastTransitionTime": "2026-11-20T12:00:00Z"}]
    played = {**_of("Workload", meta, {}), "status": {"admissionChecks": pending}}
    played.pop("spec")
    api.ask("PATCH", f"{path}/w/status?fieldManager=kueue&force=true", NOTHING, played, APPLY_PATCH)
    for state in ("Retry", "Ready"):
        version = api.get(f"{path}/w", ANY)["metadata"]["resourceVersion"]
        of = Queued(
            namespace=name, name="w", version=version, check="pilotlight", sets=(QueuedSet(name="main", uids=()),)
        )
        pins = {"main": {TYPE: "p4d.24xlarge"}} if state == "Ready" else {}
        said = CheckAnswer(of=of, state=state, message=f"it is {state}", selectors=pins)
        kueue_check_status.answer(api, base, said, NOW)
        [found] = api.get(f"{path}/w", ANY)["status"]["admissionChecks"]
        assert (found["state"], found.get("requeueAfterSeconds")) == (state, None)
    with pytest.raises(Conflict):
        kueue_check_status.answer(api, base, said, NOW)
    assert queue_checks.Queue(name, False, True) in list(queue_checks.hand_back(api, dry_run=False))
    assert "admissionChecksStrategy" not in api.get(f"{base}/clusterqueues/{name}", ANY)["spec"]
    with pytest.raises(BadInput, match="no ClusterQueue nobody"):
        list(queue_checks.take(api, ["nobody"], NOW, dry_run=False))


def _of(kind: str, meta: Json, spec: Json) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, "spec": spec}


def _eventually(api: Api, path: str, body: Json) -> None:
    """A CRD that has just come is served within seconds."""
    import time

    ends = time.monotonic() + 20
    while True:
        try:
            api.ask("POST", path, NOTHING, body)
            return
        except Missing:
            if time.monotonic() > ends:
                raise
            time.sleep(0.3)
