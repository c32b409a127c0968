"""The Helm chart: the manifests of infra/kubernetes with values, and nothing that they do not say."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import CHART, ROOT, Json, calls, needs_helm, objects_of, rendered
from manifests import HERE, VERSIONS, grants, objects, strictly

import chart
from pilotlight.codec.policy_file import read_policy
from pilotlight.settings import Settings
from pilotlight.tools.checkup.account_limits import cloud_pool_names
from pilotlight.tools.install.admission_policy import names_of
from pilotlight.tools.install.left_manifests import PLACES

pytestmark = needs_helm

IMAGE = {"repository": "registry.example.com/pilotlight"}
HOME = {each["metadata"]["name"]: each["data"] for each in objects(HERE / "home" / "config.yaml")}
FILES = HOME["pilotlight-policy"]
ON: Json = {"enabled": True}

ADVISES: Json = {"image": IMAGE}
BORN = "taints: [{key: pilotlight.dev/home, value: new, effect: NoSchedule}]"
HOMED = FILES["policy.yaml"].replace("taints: [", BORN.removesuffix("]") + ", ")
ACTS: Json = {
    "image": IMAGE,
    "mode": "act",
    "policy": HOMED,
    "files": {"prices.yaml": FILES["prices.yaml"]},
    "kueue": ON,
    "monitoring": {"serviceMonitor": ON, "rules": ON, "dashboards": ON},
}
WITH_ALL: Json = {
    **ACTS,
    "image": {"repository": "r/p", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Never", "pullSecrets": ["pull"]},
    "cluster": "prod",
    "pools": "asg:eu-west-1/prod",
    "telemetry": "http://prometheus.monitoring.svc:9090/prom",
    "reclaim": ON,
    "karpenter": {**ON, "claims": True},
    "gke": {"queue": True},
    "settings": {"PILOTLIGHT_BILLS": "focus:s3://bills/*", "PILOTLIGHT_WAIT_S": 30},
    "secret": {"existing": "mine", "more": ["channels"]},
    "storage": {"className": "fast", "state": "2Gi", "outbox": "512Mi"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/p"}},
    "handback": {"ifSilent": "15m", "serviceAccount": {"annotations": {"a.example/who": "handback"}}},
    "pod": {
        "annotations": {"a.example/b": "true"},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "networkPolicy": {"enabled": True, "namespaces": ["monitoring"]},
}  # fmt: skip
LEAVING = "pilotlight-uninstall"
SETS = {"advises": ADVISES, "acts": ACTS, "with every value": WITH_ALL}


@cache
def made(name: str) -> tuple[Json, ...]:
    """The objects of a set of values."""
    answers = rendered(*SETS.values())
    return tuple(objects_of(dict(zip(SETS, answers, strict=True))[name]))


def found(name: str, kind: str, called: str = "pilotlight") -> Json:
    """One object of a set of values."""
    return next(each for each in made(name) if (each["kind"], each["metadata"]["name"]) == (kind, called))


def pods(name: str) -> list[Json]:
    """The pods of the Deployment, of the CronJobs and of the Job."""
    jobs = [each["spec"]["jobTemplate"]["spec"] for each in made(name) if each["kind"] == "CronJob"]
    jobs += [each["spec"] for each in made(name) if each["kind"] == "Job"]
    return [each["template"]["spec"] for each in [found(name, "Deployment")["spec"], *jobs]]


def test_templates_are_written_from_the_manifests() -> None:
    """`python scripts/chart.py` would change nothing."""
    for path, text in chart.files().items():
        assert path.read_text() == text, path


def _plain(each: Json) -> Json:
    """An object without what only a chart gives one: its labels, what keeps it, and the sum of its settings."""
    plain = copy.deepcopy(each)
    plain["metadata"]["labels"] = {"app.kubernetes.io/name": plain["metadata"]["labels"]["app.kubernetes.io/name"]}
    annotations = plain["metadata"].get("annotations", {})
    annotations.pop("helm.sh/resource-policy", None)
    if not annotations:
        plain["metadata"].pop("annotations", None)
    if plain["kind"] == "Deployment":
        plain["spec"]["template"]["metadata"].pop("annotations", None)
    if plain["kind"] == "ValidatingAdmissionPolicy":
        for variable in plain["spec"].get("variables", ()):
            variable["expression"] = "" if variable["name"] == "pools" else variable["expression"]
    for term in plain.get("spec", {}).get("paramRef", {}).get("selector", {}).get("matchExpressions", ()):
        term["values"] = []
    return plain


def test_what_it_installs_is_what_the_manifests_say() -> None:
    """With the home's policy the chart's objects are those of infra/kubernetes, field by field; none is left out."""
    admission = ("admission/nodes", "admission/tolerations", "admission/evictions", "admission/homes")
    files = ("rbac/observe", "rbac/act", "rbac/kueue", *admission, "placement/watchman")
    paths = [HERE / f"{name}.yaml" for name in files] + sorted((HERE / "home").glob("*.yaml"))
    mine = [each for path in paths for each in objects(path)] + objects(HERE / "namespace.yaml")[1:]
    expected = {(each["kind"], each["metadata"]["name"]): _plain(each) for each in mine}
    expected["ConfigMap", "pilotlight-policy"]["data"]["policy.yaml"] = ACTS["policy"]
    expected["ConfigMap", "pilotlight-settings"]["data"]["PILOTLIGHT_MODE"] = "act"
    ours = {(each["kind"], each["metadata"]["name"]): each for each in made("acts")}
    assert {key: _plain(ours[key]) for key in expected} == expected
    more = {("Secret", "pilotlight"), ("ServiceMonitor", "pilotlight"), ("PrometheusRule", "pilotlight")}
    leaving = {(kind, LEAVING) for kind in ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job")}
    assert set(ours) - set(expected) == {*more, *leaving, ("ConfigMap", "pilotlight-dashboards")}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    """Each has only fields that its version of Kubernetes knows, by each set of values."""
    distinct = {json.dumps(each): each for name in SETS for each in made(name)}
    for each in distinct.values():
        if not each["apiVersion"].startswith("monitoring.coreos.com/"):
            strictly(each, version)


@pytest.mark.parametrize("name", SETS)
def test_pods_are_restricted(name: str) -> None:
    """By each set of values, no pod asks for more than the pod security standard `restricted` allows."""
    for pod in pods(name):
        assert not {"hostNetwork", "hostPID", "hostIPC"} & {*pod}
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        kinds = {kind for volume in pod.get("volumes", ()) for kind in volume if kind != "name"}
        assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_lint_finds_nothing() -> None:
    """Helm's linter, strictly, for the oldest and newest Kubernetes that are served."""
    asked = [
        ("lint", {"path": str(CHART), "strict": True, "kube_version": f"v{v}.0"}) for v in (VERSIONS[0], VERSIONS[-1])
    ]
    for answer in calls(*asked):
        worse = [message for message in answer["value"]["messages"] if message["severity"] > 1]
        assert (answer["value"]["errors"], worse) == ([], [])


@pytest.mark.parametrize(
    ("values", "namespace", "said"),
    [
        pytest.param({}, "pilotlight", "name the image", id="no image is named"),
        pytest.param(ADVISES, "default", "--namespace pilotlight", id="another namespace"),
        pytest.param({**ADVISES, "moed": "act"}, "pilotlight", "'moed' not allowed", id="a value that is none"),
        pytest.param({**ADVISES, "mode": "buy"}, "pilotlight", "must be one of", id="a mode that is none"),
        pytest.param({**ADVISES, "mode": "act"}, "pilotlight", "needs your policy", id="it shall act without a policy"),
        pytest.param({**ADVISES, "policy": "a: ["}, "pilotlight", "policy: not YAML", id="a policy that is no YAML"),
        pytest.param(
            {**ACTS, "policy": "version: 1\npools: {a: {cluster_pool: \"x'] + ['y\"}}"}, "pilotlight",
            "is no name of a pool", id="a pool whose name would end its string",
        ),
        pytest.param(
            {**ADVISES, "settings": {"PILOTLIGHT_MODE": "act"}}, "pilotlight", "PILOTLIGHT_MODE",
            id="a mode beside the mode, which would come without rights",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_in_words(values: Json, namespace: str, said: str) -> None:
    """Nothing is installed, and Helm's error says what to write."""
    [answer] = rendered(values, namespace=namespace)
    assert said in answer.get("error", "")


GIVES_BACK = "pools: {a: {instance_type: g4dn.xlarge, on_silence: hand-back}, b: {instance_type: p3.2xlarge}}\n"


@pytest.mark.parametrize(
    "pools", [GIVES_BACK, GIVES_BACK.replace("b: {", f"b: {{{BORN}, ")], ids=["alone", "beside homes"]
)
def test_the_watchman_that_hands_back_comes_with_a_pool_that_goes_back(pools: str) -> None:
    """All that its manifest says, with one Lease whoever else needs it; its role at the cloud is a value."""
    role = {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/pilotlight-handback"}
    values = {**ADVISES, "handback": {"ifSilent": "30m", "serviceAccount": {"annotations": role}}}
    with_it, without = rendered(*({**values, "policy": f"version: 1\n{p}"} for p in (pools, "")))
    ours = [(each["kind"], each["metadata"]["name"], each) for each in objects_of(with_it)]
    for said in objects(HERE / "handback" / "watchman.yaml"):
        (mine,) = [each for kind, name, each in ours if (kind, name) == (said["kind"], said["metadata"]["name"])]
        text = json.dumps(_plain(mine)).replace('"30m"', '"10m"')
        assert json.loads(text) == _plain(said)
    assert ("CronJob", "pilotlight-handback") not in {
        (each["kind"], each["metadata"]["name"]) for each in objects_of(without)
    }


def test_rights_follow_the_mode() -> None:
    """Advice brings no right to change anything; a mode that acts, or one pool's, brings it with what limits it."""
    names = ("nodes", "tolerations", "homes", "evictions", "evictions-pods", "evictions-nodes")
    limits = (("ValidatingAdmissionPolicy", f"pilotlight-{name}") for name in names)
    acting = ("ClusterRole", "pilotlight-act"), *limits
    has = {(each["kind"], each["metadata"]["name"]) for each in made("advises")}
    assert not {*acting, ("CronJob", "pilotlight-watchman"), ("ClusterRole", "pilotlight-kueue")} & has
    one = "version: 1\npools: {a: {instance_type: g4dn.xlarge, mode: act}, b: {instance_type: p3.2xlarge}}\n"
    [answer] = rendered({**ADVISES, "policy": one})
    assert {*acting} <= {(each["kind"], each["metadata"]["name"]) for each in objects_of(answer)}


def test_evictions_are_granted_in_named_namespaces_alone() -> None:
    """With a list no role grants them everywhere, and each namespace has a Role of its own, bound to our account."""
    [answer] = rendered({**ACTS, "evictIn": ["ml", "batch"]})
    made_here = objects_of(answer)
    (acts,) = [one for one in made_here if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "pilotlight-act")]
    assert "pods/eviction" not in str(acts["rules"])
    ours = [one for one in made_here if one["metadata"]["name"] == "pilotlight-evictions" and "Role" in one["kind"]]
    assert sorted((one["kind"], one["metadata"]["namespace"]) for one in ours) == [
        (kind, name) for kind in ("Role", "RoleBinding") for name in ("batch", "ml")
    ]
    assert set(grants([one for one in ours if one["kind"] == "Role"])) == {("create", "", "pods/eviction", ())}


def test_nodes_are_opened_as_the_release_goes() -> None:
    """Before and after its objects go, by an account that is there for so long; advice marks no node, and has none."""
    assert LEAVING not in {each["metadata"]["name"] for each in made("advises")}
    ours = {each["kind"]: each for each in made("acts") if each["metadata"]["name"] == LEAVING}
    for each in ours.values():
        notes = each["metadata"]["annotations"]
        assert notes["helm.sh/hook"] == "pre-delete,post-delete"
        assert notes["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
        assert notes["helm.sh/hook-weight"] == ("0" if each["kind"] == "Job" else "-1")
    listed = {("list", place.group.rpartition("/")[0], place.plural, ()) for place in PLACES}
    assert set(grants([ours["ClusterRole"]])) == {
        *((verb, "", "nodes", ()) for verb in ("get", "list", "patch")),
        *listed,
    }
    assert ours["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": LEAVING, "namespace": "pilotlight"}
    ]
    pod = ours["Job"]["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], pod["restartPolicy"]) == (LEAVING, "Never")
    assert pod["containers"][0]["command"] == ["pilotlight", "uninstall", "--only-taints"]


def test_the_limit_lists_the_policys_pools() -> None:
    """The admission policies name the pools as `connect --act` does."""
    policy = found("acts", "ValidatingAdmissionPolicy", "pilotlight-nodes")
    [pools] = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "pools"]
    named = cloud_pool_names(read_policy(ACTS["policy"].encode(), "policy.yaml"))
    assert names_of(pools) == named
    outside = found("acts", "ValidatingAdmissionPolicyBinding", "pilotlight-evictions-nodes")["spec"]["paramRef"]
    assert {tuple(term["values"]) for term in outside["selector"]["matchExpressions"]} == {named}


def test_its_settings_and_tokens_are_read() -> None:
    """The variables of ConfigMap and Secret together are settings: who may post what, and that nothing is changed."""
    secret = found("advises", "Secret")["stringData"]
    given = Settings.from_environ({**found("advises", "ConfigMap", "pilotlight-settings")["data"], **secret})
    assert (given.mode, given.pools, given.api, given.cluster_name) == ("advise", "advisor", "in-cluster", "ml")
    assert {name: (*each.roles, each.by) for name, each in given.callers.items()} == {
        "heartbeat": ("send", "header"), "events": ("send", "header"), "knative": ("send", "path"),
        "prometheus": ("read", "header"),
    }  # fmt: skip
    assert given.callers["heartbeat"].token == secret["PILOTLIGHT_TOKEN"]
    assert given.callers["prometheus"].token == secret["PILOTLIGHT_METRICS_TOKEN"]


def test_every_value_arrives() -> None:
    """What is named in values stands in the objects."""
    home, job = pods("with every value")[:2]
    image = f"r/p@sha256:{'0' * 64}"
    assert {pod["containers"][0]["image"] for pod in pods("with every value")} == {image}
    for pod in (home, job):
        assert (pod["nodeSelector"], pod["imagePullSecrets"]) == ({"pool": "system"}, [{"name": "pull"}])
        assert pod["tolerations"] == [{"key": "system", "operator": "Exists"}]
    named = [each["secretRef"]["name"] for each in home["containers"][0]["envFrom"] if "secretRef" in each]
    assert (named, home["affinity"]) == (["mine", "channels"], {"nodeAffinity": {}})
    settings = found("with every value", "ConfigMap", "pilotlight-settings")["data"]
    assert (settings["PILOTLIGHT_CLUSTER"], settings["PILOTLIGHT_POOLS"]) == ("prod", "asg:eu-west-1/prod")
    assert (settings["PILOTLIGHT_BILLS"], settings["PILOTLIGHT_WAIT_S"]) == ("focus:s3://bills/*", "30")
    assert settings["PILOTLIGHT_TELEMETRY"] == "http://prometheus.monitoring.svc:9090/prom"
    assert found("with every value", "ClusterRole", "pilotlight-reclaim")["rules"]
    claim = found("with every value", "PersistentVolumeClaim", "pilotlight-state")["spec"]
    assert (claim["storageClassName"], claim["resources"]["requests"]["storage"]) == ("fast", "2Gi")
    account = found("with every value", "ServiceAccount")["metadata"]["annotations"]
    assert account == {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/p"}
    let_in = found("with every value", "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}} in let_in
    assert "Secret" not in {each["kind"] for each in made("with every value")}


@pytest.mark.parametrize(
    ("url", "port", "namespace"),
    [
        pytest.param("http://prometheus.monitoring.svc:9090/prom", 9090, "monitoring", id="a Service's port"),
        pytest.param("http://prometheus.metrics", 80, "metrics", id="the usual port"),
        pytest.param("http://prometheus:9090", 9090, "pilotlight", id="one of its own namespace"),
        pytest.param(
            "https://monitoring.googleapis.com/v1/projects/p/location/global/prometheus", 443, "", id="Google"
        ),
    ],
)
def test_the_network_lets_it_to_its_prometheus(url: str, port: int, namespace: str) -> None:
    """By the port of its address, and in a cluster to its namespace, for a Service's pods may listen on another."""
    [answer] = rendered({**ADVISES, "telemetry": url})
    [policy] = [each for each in objects_of(answer) if each["kind"] == "NetworkPolicy"]
    egress = policy["spec"]["egress"]
    assert any({"protocol": "TCP", "port": port} in rule.get("ports", ()) for rule in egress if "to" not in rule)
    let = [
        one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for rule in egress
        for one in rule.get("to", ())
        if "ports" not in rule
    ]
    assert let == ([namespace] if namespace else [])


def test_what_watches_it_is_what_lies_in_the_repository() -> None:
    """Rules and dashboards are those of infra/prometheus and infra/grafana; a monitor reads by a token of its own."""
    rules = yaml.safe_load((ROOT / "infra" / "prometheus" / "rules.yaml").read_text())
    assert found("acts", "PrometheusRule")["spec"] == rules
    boards = found("acts", "ConfigMap", "pilotlight-dashboards")
    here = {path.name: json.loads(path.read_text()) for path in (ROOT / "infra" / "grafana").glob("*.json")}
    assert {name: json.loads(text) for name, text in boards["data"].items()} == here
    assert boards["metadata"]["labels"]["grafana_dashboard"] == "1"
    [endpoint] = found("acts", "ServiceMonitor")["spec"]["endpoints"]
    ports = found("acts", "Service")["spec"]["ports"]
    assert (endpoint["path"], endpoint["port"]) == ("/metrics", ports[0]["name"])
    assert endpoint["authorization"]["credentials"] == {"name": "pilotlight", "key": "PILOTLIGHT_METRICS_TOKEN"}


def test_a_changed_policy_is_a_new_pod() -> None:
    """The Deployment's pods carry the sum of what they are told."""
    sums = [
        next(each for each in objects_of(answer) if each["kind"] == "Deployment")["spec"]["template"]["metadata"]
        for answer in rendered(ADVISES, {**ADVISES, "policy": FILES["policy.yaml"]})
    ]
    assert sums[0]["annotations"] != sums[1]["annotations"]


def test_the_notes_say_what_comes_next() -> None:
    """The commands to look at it; how to write a policy where there is none; how to stop it where it acts."""
    advises, acts = (each["value"]["pilotlight/templates/NOTES.txt"] for each in rendered(ADVISES, ACTS))
    assert "pilotlight init" in advises
    assert "pilotlight pause" not in advises
    assert "pilotlight pause" in acts
    assert "pilotlight init" not in acts


def test_its_version_is_the_packages() -> None:
    """The chart installs the image of the version that it comes with."""
    chart: Any = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = next(line for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.startswith("version"))
    assert f'version = "{chart["appVersion"]}"' == version
    assert Path(CHART / "values.schema.json").exists()
