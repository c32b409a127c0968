"""The manifests of infra/kubernetes: valid, consistent with the code, and no right too many."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import msgspec
import pytest
import yaml
from jsonschema import Draft202012Validator
from manifests import FILES, HERE, VERSIONS, Json, grants, objects, role, strictly

from pilotlight.adapters.cluster.kubernetes.closing_lease import LEASE
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import Delivery, decode
from pilotlight.codec.kubernetes.nodes.gpu_models import POOL_LABELS
from pilotlight.facts.labels import CLOSED_BY, DRAINING, EVICTS, HOME
from pilotlight.flow.cycle.planning import dry_run
from pilotlight.ports.seams import Seams
from pilotlight.settings import Settings
from pilotlight.tools.cli.cluster_files import File, FileCluster, FilePools
from pilotlight.tools.install import takeover_records
from pilotlight.tools.install.connect_account import is_ours
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock

CRDS = {
    "ApiServerSource": "knative/apiserversource.yaml",
    "ScaledObject": "keda/keda.sh_scaledobjects.yaml",
}
OURS = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "PriorityClass"}


def _name(path: Path) -> str:
    return str(path.relative_to(HERE))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", FILES, ids=_name)
def test_built_in_objects_are_valid(path: Path, version: str) -> None:
    """Every object of a built-in kind has only fields that its API version knows, in each Kubernetes that is served."""
    for each in objects(path):
        try:
            strictly(each, version)
        except kubernetes_validate.SchemaNotFoundError:
            assert "." in each["apiVersion"].split("/")[0], f"{each['kind']} is no custom resource"


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_custom_resources_are_valid(path: Path, request: pytest.FixtureRequest) -> None:
    """Every custom resource whose definition is at hand has only fields that it knows."""
    custom = [each for each in objects(path) if each["kind"] in CRDS]
    if not custom:
        assert not [each for each in objects(path) if each["kind"].endswith("Source")]
        return
    shelf = request.getfixturevalue("shelf")
    for each in custom:
        definition = yaml.safe_load((shelf / "contracts" / "crds" / CRDS[each["kind"]]).read_text())
        version = each["apiVersion"].rpartition("/")[2]
        served = next(v for v in definition["spec"]["versions"] if v["name"] == version and v["served"])
        schema = _closed(served["schema"]["openAPIV3Schema"]["properties"]["spec"])
        assert [error.message for error in Draft202012Validator(schema).iter_errors(each["spec"])] == []


def _closed(schema: Any) -> Any:
    """The schema, refusing fields that the API server would prune."""
    if isinstance(schema, Mapping):
        closed = {key: _closed(value) for key, value in schema.items()}
        free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource")
        if isinstance(schema.get("properties"), Mapping) and not free and "type" in schema:
            closed.setdefault("additionalProperties", False)
        return closed
    return [_closed(each) for each in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    """Every manifest begins with a comment for whoever applies it."""
    assert re.match(r"# \S.{20,}", path.read_text("utf-8"))


@pytest.mark.parametrize("name", ["observe", "act"])
def test_a_role_is_bound_to_our_account_alone(name: str) -> None:
    """The file of a role binds it to pilotlight/pilotlight and to nobody else."""
    [found, binding] = objects(HERE / "rbac" / f"{name}.yaml")
    assert (found["metadata"]["name"], binding["roleRef"]["name"]) == (f"pilotlight-{name}",) * 2
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "pilotlight", "namespace": "pilotlight"}]


def test_no_right_is_granted_twice_or_by_a_star() -> None:
    """Roles are additive: each right stands in one of them, and spelt out."""
    rights = list(grants(role(name) for name in ("observe", "act")))
    assert len(set(rights)) == len(rights)
    assert "*" not in {part for right in rights for part in right[:3]}


def test_the_base_neither_reads_secrets_nor_touches_pods() -> None:
    """No role reads a Secret; observe only reads; pods are evicted, and patched as the admission policy lets us."""
    observe, act = (set(grants([role(name)])) for name in ("observe", "act"))
    assert {verb for verb, *_ in observe} == {"get", "list"}
    assert {(verb, what) for verb, _, what, _ in act} == {
        ("patch", "nodes"), ("patch", "pods"), ("create", "pods/eviction"), ("create", "events"),
    }  # fmt: skip
    assert not [right for right in observe | act if "secrets" in right[2]]


def test_the_admission_policy_speaks_of_our_taint_and_pools() -> None:
    """Taints and annotation are those the code uses; labels that name a pool those the codec reads, in its order."""
    text = (HERE / "admission" / "nodes.yaml").read_text("utf-8")
    assert set(re.findall(r"pilotlight\.dev/[\w-]+", text)) == {DRAINING, HOME, CLOSED_BY, POOL_LABELS[0]}
    policy = next(o for o in objects(HERE / "admission" / "nodes.yaml") if o["kind"] == "ValidatingAdmissionPolicy")
    keys = next(v["expression"] for v in policy["spec"]["variables"] if v["name"] == "poolKeys")
    assert tuple(re.findall(r"'([^']+)'", keys)) == POOL_LABELS


@pytest.mark.parametrize("name", ["nodes", "tolerations"])
def test_an_admission_policy_binds_our_account_alone(name: str) -> None:
    """Whoever else writes is not looked at, and a fault in the policy refuses our writes, not theirs."""
    found = objects(HERE / "admission" / f"{name}.yaml")
    policy, binding = found[-2:]
    [only] = policy["spec"]["matchConditions"]
    assert only["expression"] == "request.userInfo.username == 'system:serviceaccount:pilotlight:pilotlight'"
    assert (policy["spec"]["failurePolicy"], binding["spec"]["validationActions"]) == ("Fail", ["Deny", "Audit"])
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert not {"paramKind", "paramRef"} & {*policy["spec"], *binding["spec"]}, "a missing parameter refuses everybody"
    declared = {v["name"] for v in policy["spec"]["variables"]}
    used = set(re.findall(r"variables\.(\w+)", str(policy["spec"])))
    assert used <= declared


def test_evictions_are_asked_of_our_account_alone() -> None:
    """Three policies: those with parameters are asked for Evictions with our label alone, so that no other waits for
    them; nodes of other pools are told by the labels that the codec reads.
    """
    found = objects(HERE / "admission" / "evictions.yaml")
    policies, bindings = found[::2], found[1::2]
    assert [each["spec"]["policyName"] for each in bindings] == [each["metadata"]["name"] for each in policies]
    for policy, binding in zip(policies, bindings, strict=True):
        [only] = policy["spec"]["matchConditions"]
        assert only["expression"] == "request.userInfo.username == 'system:serviceaccount:pilotlight:pilotlight'"
        asked = policy["spec"]["matchConstraints"]
        assert [rule["resources"] for rule in asked["resourceRules"]] == [["pods/eviction"]]
        labelled = asked.get("objectSelector") == {"matchLabels": {EVICTS: "true"}}
        assert labelled == ("paramKind" in policy["spec"]) == ("paramRef" in binding["spec"])
    terms = bindings[-1]["spec"]["paramRef"]["selector"]["matchExpressions"]
    assert tuple(term["key"] for term in terms) == POOL_LABELS
    assert {term["operator"] for term in terms} == {"NotIn"}


@pytest.mark.parametrize(
    "name",
    [
        *("namespace", "rbac/observe", "rbac/read", "rbac/act"),
        *("admission/nodes", "admission/tolerations", "admission/evictions", "admission/homes"),
    ],
)
def test_what_connect_changes_and_removes_is_known_by_its_label(name: str) -> None:
    """Every object of ours carries the label by which it is told from somebody else's of the same name."""
    assert all(map(is_ours, objects(HERE / f"{name}.yaml")))


def test_the_watchman_is_what_the_code_reads() -> None:
    """Lease, taint and command are those of the code, and each account has the rights it uses and no other."""
    found = {(o["kind"], o["metadata"]["name"]): o for o in objects(HERE / "placement" / "watchman.yaml")}
    assert all(map(is_ours, found.values()))
    assert LEASE.endswith("/namespaces/pilotlight/leases/pilotlight-placement")
    assert set(grants([found["Role", "pilotlight-placement"]])) == {
        (verb, "coordination.k8s.io", "leases", ("pilotlight-placement",)) for verb in ("get", "patch")
    }
    assert set(grants([found["ClusterRole", "pilotlight-watchman"]])) == {
        (verb, "", "nodes", ()) for verb in ("get", "list", "patch")
    }
    policy = found["ValidatingAdmissionPolicy", "pilotlight-watchman"]["spec"]
    [whose] = policy["matchConditions"]
    assert whose["expression"].endswith("'system:serviceaccount:pilotlight:pilotlight-watchman'")
    assert (policy["failurePolicy"], set(re.findall(r"pilotlight\.dev/\w+", str(policy)))) == (
        "Fail",
        {HOME},
    )
    pod = found["CronJob", "pilotlight-watchman"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "pilotlight-watchman"
    assert pod["containers"][0]["command"] == ["pilotlight", "lift", "--silent", "300"]


def test_who_hands_back_may_do_that_and_nothing_else() -> None:
    """Its command is the CLI's, it reads the Lease and the record of takeovers, and no node, pod or Secret."""
    found = {(o["kind"], o["metadata"]["name"]): o for o in objects(HERE / "handback" / "watchman.yaml")}
    assert all(map(is_ours, found.values()))
    assert set(grants([found["Role", "pilotlight-handback"]])) == {
        ("get", "coordination.k8s.io", "leases", ("pilotlight-placement",)),
        ("get", "", "configmaps", (takeover_records.NAME,)),
        ("patch", "", "configmaps", (takeover_records.NAME,)),
        ("create", "", "events", ()),
    }
    assert {kind for kind, _ in found} & {"ClusterRole", "ClusterRoleBinding"} == set()
    pod = found["CronJob", "pilotlight-handback"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "pilotlight-handback"
    assert pod["containers"][0]["command"] == ["pilotlight", "handback", "--if-silent", "10m"]


def test_priorities_are_in_order() -> None:
    """Production before training before development before experiments, and those evict nobody."""
    classes = objects(HERE / "priority-classes.yaml")
    assert [(c["value"], c["preemptionPolicy"]) for c in classes] == [
        (1_000_000, "PreemptLowerPriority"), (100_000, "PreemptLowerPriority"),
        (10_000, "PreemptLowerPriority"), (1_000, "Never"),
    ]  # fmt: skip


SAMPLES = {"gpu-test": (1, 1), "pytorchjob": (8, 8), "nccl-test": (2, 8), "sweep": (12, 1), "speech-workers": (3, 1)}
"""Pods of each sample (those of speech-workers at its most), and GPUs of each."""


def _templates(each: Json) -> list[tuple[int, Json]]:
    match each["kind"]:
        case "Job":
            return [(each["spec"].get("parallelism", 1), each["spec"]["template"])]
        case "PyTorchJob":
            return [(r["replicas"], r["template"]) for r in each["spec"]["pytorchReplicaSpecs"].values()]
        case "Deployment":
            return [(SAMPLES["speech-workers"][0], each["spec"]["template"])]
    return []


def _pods(sample: str) -> bytes:
    """The pods that a sample's controllers would make, waiting."""
    items: list[Any] = []
    for each in objects(HERE / "samples" / f"{sample}.yaml"):
        for count, template in _templates(each):
            for _ in range(count):
                name = f"{sample}-{len(items)}"
                team = (
                    template["metadata"].get("labels", {}).get("team", "ml")
                )  # Its own namespace: no claim is refused.
                meta = {"name": name, "namespace": team, "uid": name, "creationTimestamp": "2026-11-20T09:00:00Z"}
                reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                spec = {k: v for k, v in template["spec"].items() if k != "volumes"}
                status = {"phase": "Pending", "conditions": [reason]}
                items.append({"metadata": template["metadata"] | meta, "spec": spec, "status": status})
    return msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "items": items})


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_demand_that_is_met(sample: str) -> None:
    """Each pod of a sample asks for the GPUs it says, and the example policy buys nodes for all of them."""
    app = App(Settings())
    clock = VirtualClock(app.catalog.as_of)
    nodes = File(b'{"kind": "NodeList", "apiVersion": "v1", "items": []}', "nodes")
    cluster = FileCluster(File(_pods(sample), sample), nodes, [], app.policy)
    count, gpus = SAMPLES[sample]
    view = cluster.observe()
    assert (len(view.pending), {d.shape.gpu.count for d in view.pending}, view.findings) == (count, {gpus}, ())
    seams: Seams = {
        "cluster": cluster,
        "pools": FilePools(cluster),
        "state": MemoryState(clock),
        "outbox": MemoryOutbox(),
        "clock": clock,
    }
    plan = dry_run(App(Settings(), **seams).deps, releases=True).plan
    assert plan is not None
    assert {(len(group.pods), group.verdict) for group in plan.pods} == {(count, "bought")}


def test_every_sample_is_tried() -> None:
    """No sample is without its row in the table."""
    assert {path.stem for path in (HERE / "samples").glob("*.yaml")} == set(SAMPLES)


def test_replicas_stay_within_the_pool() -> None:
    """The most replicas of the queue's workers are no more than one-GPU nodes of a small pool: three."""
    scaled = next(o for o in objects(HERE / "samples" / "speech-workers.yaml") if o["kind"] == "ScaledObject")
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (0, 3)


@pytest.mark.parametrize("kind", ["resource", "reference"])
def test_a_source_sends_what_the_codec_reads(kind: str) -> None:
    """The mode of each Knative source is one whose sample decodes to a hint."""
    source = objects(HERE / "event-sources" / f"apiserversource-{kind}.yaml")[0]
    assert source["spec"]["mode"].lower() == kind
    folder = HERE.parents[1] / "events" / "samples" / "knative"
    sample = next(folder.glob(f"apiserver_{kind}_*structured.json"), folder / f"apiserver_{kind}_pod.json")
    [delivery] = decode(sample.read_bytes(), {"content-type": "application/cloudevents+json"}, cluster="local")
    assert isinstance(delivery, Delivery)
    assert type(delivery.message).__name__ == "PodPending"


@pytest.mark.parametrize("path", sorted((HERE / "event-sources").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_source_sends_to_the_home_under_the_homes_name(path: Path) -> None:
    """As they stand, sources post to the Service of the home, and name the cluster that the home serves."""
    home = {each["metadata"]["name"]: each for each in objects(HERE / "home" / "config.yaml")}
    name = home["pilotlight-settings"]["data"]["PILOTLIGHT_CLUSTER"]
    text = path.read_text()
    at = "http://pilotlight.pilotlight.svc.cluster.local"
    function = "kueue_admission" if path.stem.endswith("workloads") else "pod_pending"
    shown = {
        f"{at}/in/knative/TOKEN/{function}": "ApiServerSource",
        f"{at}/{function}": "Authorization: Bearer TOKEN",
    }
    assert any(url in text and how in text for url, how in shown.items())
    assert f"cluster: {name}" in text or f"clusterName: {name}" in text


def test_no_manifest_holds_a_secret() -> None:
    """No Secret is in the repository, not even an example of one."""
    kinds = {each["kind"] for path in FILES for each in objects(path)}
    assert "Secret" not in kinds
    assert kinds >= OURS
