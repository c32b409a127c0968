"""What `pilotlight manifests` prints: strictly valid, in step with the policy, and taken by a real API server."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml
from manifests import VERSIONS, Json, strictly
from real_api import applied, real_api, taken
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.errors import BadInput, PilotlightError
from pilotlight.tools.cli.main import build

POLICY = """\
version: 1
pools:
  t4: {instance_type: g4dn.xlarge, max: 6, cloud: eks, zones: [us-east-1a], labels: &l {gpu: on-demand}, taints: &t
    [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}
  a100: {instance_type: p4d.24xlarge, max: 1, cloud: eks, labels: *l, taints: *t, renew: {max_age: 14d}}
budgets:
  - {name: research, scope: {team: research}, usd: 4, period: hour}
  - {name: apps, scope: {team: apps}, gpu_hours: 400}
"""
COMMANDS = {
    "rules": (),
    "quota": ("--namespace", "research=ml"),
    "queues": (),
    "queues --for volcano": (),
    "nodepools": ("--node-class", "gpu"),
    "prepull": ("--image", "ghcr.io/acme/trainer:1", "--image", "ghcr.io/acme/server:2"),
    "hpa": ("serving/chat", "--most", "4"),
    "keda": ("serving/chat", "--query", "sum(queue_length)"),
}
CUSTOM = ("kueue.x-k8s.io", "karpenter.sh", "keda.sh", "scheduling.volcano.sh")
ANY: msgspec.json.Decoder[Json] = msgspec.json.Decoder(dict)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """Two pools, and two teams with budgets."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def made(policy: Path, command: str, *words: str) -> list[Json]:
    """What a command prints as YAML, which is what it prints as JSON."""
    line = ["manifests", *command.split(), *(words or COMMANDS[command]), "--policy", str(policy)]
    texts = []
    for more in ([], ["--json"]):
        done = CliRunner().invoke(build(["manifests"]), [*line, *more], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        texts.append(done.stdout)
    objects: list[Json] = list(yaml.safe_load_all(texts[0]))
    assert objects == json.loads(texts[1])
    return objects


@pytest.mark.parametrize("command", COMMANDS)
def test_kubernetes_knows_every_field(policy: Path, command: str) -> None:
    """Strictly, in the oldest version that has admission policies and the newest; custom resources are for a server."""
    for each in made(policy, command):
        if not each["apiVersion"].startswith(CUSTOM):
            for version in (VERSIONS[0], VERSIONS[-1]):
                strictly(each, version)


def test_a_quota_refuses_nothing_that_a_budget_allows(policy: Path) -> None:
    """GPUs at once: an hour of the budget at the least price, and never more than all pools have."""
    hard = {
        o["metadata"]["namespace"]: o["spec"]["hard"] for o in made(policy, "quota") if o["kind"] == "ResourceQuota"
    }
    assert hard == {"ml": {"requests.nvidia.com/gpu": "7"}, "apps": {"requests.nvidia.com/gpu": "14"}}


def test_shares_of_all_teams_are_all_gpus(policy: Path) -> None:
    """In every flavor the queues' nominal quotas add up to what its pool may have, without one left over."""
    quotas: dict[str, int] = {}
    for queue in (o for o in made(policy, "queues") if o["kind"] == "ClusterQueue"):
        for flavor in queue["spec"]["resourceGroups"][0]["flavors"]:
            gpus = next(r["nominalQuota"] for r in flavor["resources"] if r["name"] == "nvidia.com/gpu")
            quotas[flavor["name"]] = quotas.get(flavor["name"], 0) + int(gpus)
    assert quotas == {"t4": 6, "a100": 8}


def test_karpenter_may_buy_what_the_policy_may(policy: Path) -> None:
    """The same types, zones, taints and most GPUs."""
    t4, a100 = made(policy, "nodepools")
    wanted = {each["key"]: each["values"] for each in t4["spec"]["template"]["spec"]["requirements"]}
    assert wanted["topology.kubernetes.io/zone"] == ["us-east-1a"]
    assert [pool["spec"]["limits"] for pool in (t4, a100)] == [{"nvidia.com/gpu": "6"}, {"nvidia.com/gpu": "8"}]
    assert a100["spec"]["template"]["spec"]["expireAfter"] == "336h"


def test_replicas_are_never_more_than_gpus(policy: Path) -> None:
    """Left out they are as many; more is refused with both figures, before a replica waits for ever."""
    assert made(policy, "keda")[0]["spec"]["maxReplicaCount"] == 14
    with pytest.raises(BadInput, match="15 replicas are more than the 14 GPUs"):
        made(policy, "hpa", "serving/chat", "--most", "15")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("hpa", "chat"), "NAMESPACE/DEPLOYMENT"),
        (("quota", "--namespace", "ml"), "TEAM=NAMESPACE"),
    ],
)
def test_what_is_written_wrong_is_told(policy: Path, words: tuple[str, ...], why: str) -> None:
    """With how it is written."""
    with pytest.raises(BadInput, match=why):
        made(policy, words[0], *words[1:])


@pytest.fixture
def api(shelf: Path) -> Iterator[tuple[Api, str]]:
    """The control plane that KUBECONFIG names, with the CRDs of the shelf, and a namespace of the run's own."""
    here, name = real_api(), f"pilotlight-test-{uuid.uuid4().hex[:8]}"
    for group in ("kueue", "karpenter", "keda", "volcano"):
        for path in sorted((shelf / "contracts" / "crds" / group).glob("*.yaml")):
            applied(here, next(each for each in yaml.safe_load_all(path.read_text()) if each))
    here.ask("POST", "/api/v1/namespaces", NOTHING, {"kind": "Namespace", "metadata": {"name": name}})
    try:
        yield here, name
    finally:
        here.ask("DELETE", f"/api/v1/namespaces/{name}", NOTHING)


@pytest.mark.cluster
@pytest.mark.parametrize("command", COMMANDS)
def test_a_real_api_server_takes_every_object(policy: Path, api: tuple[Api, str], command: str) -> None:
    """Applied with strict validation as a dry run: schemas, CEL and defaults of the server, and nothing is left."""
    here, space = api
    for each in made(policy, command):
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = space
        taken(here, each)


@pytest.mark.cluster
def test_the_rules_deny_where_a_namespace_says_so(policy: Path, api: tuple[Api, str]) -> None:
    """A GPU pod that breaks a rule is refused with it; one that keeps all is taken, and so is one without GPUs.

    Requests that are not the limits never come so far: the API server itself refuses them for GPUs.
    """
    here, space = api
    rules = made(policy, "rules")
    mine = {"pilotlight.dev/gpu-rules-of": space}
    paths = []
    for each in rules:
        each["metadata"]["name"] = f"{space}-{each['metadata']['name']}"
        if each["kind"].endswith("Binding"):
            each["spec"]["policyName"] = f"{space}-{each['spec']['policyName']}"
            labels = each["spec"]["matchResources"]["namespaceSelector"]["matchLabels"]
            labels |= mine
    here.ask(
        "PATCH",
        f"/api/v1/namespaces/{space}",
        NOTHING,
        {"metadata": {"labels": {"pilotlight.dev/gpu-rules": "deny", **mine}}},
        MERGE_PATCH,
    )
    try:
        for each in rules:
            kind = (
                "validatingadmissionpolicies"
                if not each["kind"].endswith("Binding")
                else "validatingadmissionpolicybindings"
            )
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}"
            here.ask("POST", path, NOTHING, each)
            paths.append(f"{path}/{each['metadata']['name']}")
        ends = time.monotonic() + 30
        while not _refused(here, space, tolerations=[]) and time.monotonic() < ends:
            time.sleep(0.3)
        assert "needs a toleration" in _refused(here, space, tolerations=[])
        assert "needs a node selector" in _refused(here, space, nodeSelector={})
        assert "says its class of work" in _refused(here, space, labels={"team": "ml"})
        assert _refused(here, space) == ""
        assert _refused(here, space, gpus=None, labels={}) == ""
    finally:
        for path in paths:
            here.ask("DELETE", path, NOTHING)


def _refused(api: Api, space: str, *, gpus: str | None = "2", labels: Json | None = None, **spec: object) -> str:
    """What the API server says of such a pod, by a dry run; empty where it takes it."""
    resources = {"requests": {"nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    whole = {
        "nodeSelector": {"gpu": "on-demand"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "containers": [{"name": "c", "image": "busybox", "resources": resources}],
        "restartPolicy": "Never",
    }
    own = {"team": "research", "workload-type": "batch"} if labels is None else labels
    template = {"metadata": {"labels": own}, "spec": {**whole, **spec}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    try:
        api.ask("POST", f"/apis/batch/v1/namespaces/{space}/jobs?dryRun=All", NOTHING, body)
    except PilotlightError as no:
        return str(no)
    return ""


def test_no_rule_asks_for_a_team(policy: Path) -> None:
    """A pod's label does not decide who pays, so no rule asks for one; the class is asked for."""
    [rules, *_] = made(policy, "rules")
    messages = [each["message"] for each in rules["spec"]["validations"]]
    assert [m for m in messages if "team" in m] == []
    assert len([m for m in messages if "class of work" in m]) == 1
