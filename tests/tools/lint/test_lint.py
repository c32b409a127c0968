"""``pilotlight lint``: each fault of the articles is found in a file that has it, with its fix, and not beside it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pilotlight.tools.cli.main import build
from pilotlight.tools.lint.documents import lint
from pilotlight.tools.lint.fault import Site

SITE = Site(gpus_of={"p4d.24xlarge": 8, "g4dn.xlarge": 1}, most_gpus=3)
KEDA = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s}\nspec:\n  scaleTargetRef: {name: d}\n"
DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"
    "spec: {template: {metadata: {labels: {gpu: on-demand}}, spec: "
    "{SELECT containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}}}\n"
)
POOL = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: NAME}\nspec:\n  limits: {nvidia.com/gpu: 8}\n"
TAINTED = "  template: {spec: {taints: [{key: KEY, effect: NoSchedule}]}}\n"


def rules(text: str, file: str = "a.yaml") -> set[str]:
    """The rules that a text breaks."""
    return {each.rule for each in lint({file: text}, SITE)}


def deployment(select: str = "") -> str:
    """A Deployment of one-GPU pods, with what its pods ask of their node."""
    return DEPLOYMENT.replace("SELECT ", f"{select}, " if select else "")


@pytest.mark.parametrize(
    ("wrong", "right", "rule"),
    [
        pytest.param(KEDA.replace("keda.sh", "autoscaling.keda.sh"), KEDA, "keda-api", id="E14: KEDA's group"),
        pytest.param(
            KEDA
            + "  maxReplicaCount: 2\n  triggers: [{type: cron, metadata: {timezone: UTC, desiredReplicas: '4'}}]\n",
            KEDA
            + "  maxReplicaCount: 4\n  triggers: [{type: cron, metadata: {timezone: UTC, desiredReplicas: '4'}}]\n",
            "keda-cron",
            id="E14: a cron that wants more than the most",
        ),
        pytest.param(
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '{10: [od.*],"
            " 50: [spot.*], 1: [.*]}'}\n",
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '{50: [od.*],"
            " 10: [spot.*], 1: [.*]}'}\n",
            "ca-priorities",
            id="E16: the highest priority is spot's",
        ),
        pytest.param(
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '{1: [}'}\n",
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '1: [.*]'}\n",
            "ca-priorities",
            id="priorities that cannot be read",
        ),
        pytest.param(
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '5: od.*'}\n",
            "kind: ConfigMap\nmetadata: {name: cluster-autoscaler-priority-expander}\ndata: {priorities: '5: .*'}\n",
            "ca-catch-all",
            id="priorities that leave a group unnamed",
        ),
        pytest.param(
            POOL + "  weight: 100\n" + TAINTED.replace("KEY", "inference") + "---\n" + POOL,
            POOL + "  weight: 100\n---\n" + POOL,
            "karpenter-weight",
            id="E17: a weight that ranks nothing",
        ),
        pytest.param(POOL.replace("/v1\n", "/v1beta1\n"), POOL, "karpenter-api", id="E18: Karpenter's version"),
        pytest.param(
            POOL + "  disruption: {consolidationPolicy: WhenUnderutilized}\n",
            POOL + "  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized}\n",
            "karpenter-consolidation",
            id="E18: the old name of consolidation",
        ),
        pytest.param(
            POOL + "  disruption: {expireAfter: 720h}\n",
            POOL + "  template: {spec: {expireAfter: 720h}}\n",
            "karpenter-expiry",
            id="E18: the age of nodes",
        ),
        pytest.param(
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nspec: {cohort: a}\n",
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nspec: {cohortName: a}\n",
            "kueue-cohort",
            id="E18: Kueue's cohort",
        ),
        pytest.param(
            deployment("nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}"),
            deployment("nodeSelector: {node.kubernetes.io/instance-type: g4dn.xlarge}"),
            "stranded-gpus",
            id="E19: one GPU of eight",
        ),
        pytest.param(
            deployment().replace("labels:", "Labels:"), deployment(), "key-case", id="E27: a key with a capital letter"
        ),
        pytest.param(
            deployment("nodeSelector: {gpu: on-demand}"),
            deployment("nodeSelector: {gpu: on-demand}") + "---\npools: {t4: {labels: {gpu: on-demand}}}\n",
            "node-label",
            id="E27: the pod's label asked of the node",
        ),
        pytest.param(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmanagedNodeGroups:\n"
            "- {name: g, instanceType: g4dn.xlarge, minSize: 1}\n",
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmanagedNodeGroups:\n"
            "- {name: g, instanceType: g4dn.xlarge, minSize: 0}\n",
            "pool-minimum",
            id="E36: a GPU pool of at least one",
        ),
        pytest.param(
            deployment() + "---\n" + KEDA + "  maxReplicaCount: 5\n",
            deployment() + "---\n" + KEDA + "  maxReplicaCount: 3\n",
            "replicas",
            id="E37: five replicas of three GPUs",
        ),
        pytest.param(
            KEDA
            + "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {name: d}}\n",
            KEDA
            + "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {name: e}}\n",
            "two-scalers",
            id="E37: KEDA's own HPA and another",
        ),
        pytest.param(
            deployment().replace("limits:", "requests: {nvidia.com/gpu: 2}, limits:"),
            deployment().replace("limits:", "requests: {nvidia.com/gpu: 1}, limits:"),
            "gpu-limits",
            id="requests that are not the limit",
        ),
    ],
)
def test_a_fault_is_found_and_its_fix_is_clean(wrong: str, right: str, rule: str) -> None:
    """The rule tells of the article's form, and not of the corrected one."""
    assert rule in rules(wrong)
    assert rule not in rules(right)


@pytest.mark.parametrize(
    ("wrong", "right", "rule"),
    [
        pytest.param(
            "DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_FREE > 0.95",
            "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.95",
            "memory-share",
            id="E20: used over free",
        ),
        pytest.param(
            'rate(DCGM_FI_DEV_FB_USED{gpu="0"}[5m]) > 0',
            "deriv(DCGM_FI_DEV_FB_USED[5m]) + rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m])",
            "rate-of-gauge",
            id="E20: the rate of a gauge",
        ),
        pytest.param("avg(dcgm_gpu_utilization)", "avg(DCGM_FI_DEV_GPU_UTIL)", "metric-name", id="E20: the old names"),
        pytest.param(
            'count(kube_pod_container_resource_limits{resource="nvidia_com_gpu"} > 0)',
            'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu"})',
            "count-of-gpus",
            id="E21: containers for GPUs",
        ),
        pytest.param(
            "sum(kube_pod_container_resource_limits{nvidia_com_gpu!=''})",
            'sum(kube_pod_container_resource_limits{resource="nvidia_com_gpu"})',
            "gpu-label",
            id="E21: a value taken for a label",
        ),
        pytest.param(
            "max(kueue_admission_wait_time_seconds) > 3600",
            "histogram_quantile(0.9, rate(kueue_admission_wait_time_seconds_bucket[5m]))",
            "histogram",
            id="E21: a histogram's bare name",
        ),
        pytest.param(
            'count(kube_node_labels{label_karpenter_sh_capacity_type="spot"}) / count(kube_node_labels)',
            'count(kube_node_labels{label_karpenter_sh_capacity_type="spot",label_gpu="true"}) / 2',
            "spot-share",
            id="E21: a share of spot over all nodes",
        ),
    ],
)
def test_a_query_is_read_wherever_it_stands(wrong: str, right: str, rule: str) -> None:
    """In a rule, a dashboard, a ConfigMap's file and a file of its own."""
    for file, text in _places(wrong):
        assert rule in rules(text, file), file
    for file, text in _places(right):
        assert rule not in rules(text, file), file


def _places(query: str) -> list[tuple[str, str]]:
    groups = {"groups": [{"rules": [{"alert": "A", "expr": query}]}]}
    return [
        ("q.promql", query),
        ("rule.yaml", json.dumps({"kind": "PrometheusRule", "spec": groups})),
        ("board.json", json.dumps({"panels": [{"targets": [{"expr": query}]}]})),
        ("map.yaml", json.dumps({"kind": "ConfigMap", "data": {"gpu.yaml": json.dumps(groups)}})),
    ]


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        pytest.param(
            "gcloud container node-pools create p --cluster c --accelerator type=t4 --region=us-central1-c", "zone"
        ),
        pytest.param("gcloud container node-pools create p \\\n  --accelerator type=t4 --min-nodes=1", "pool-minimum"),
        pytest.param("civo kubernetes node-pool create c --size g4g.gpu --count=1  # start with 0", "civo-count"),
        pytest.param(
            "gcloud container clusters create one\ngcloud container node-pools create p --cluster two", "cluster-name"
        ),
    ],
    ids=["E37: a zone as region", "E36: at least one", "E27: civo's option", "E37: another cluster"],
)
def test_commands_of_clouds_are_read(command: str, rule: str) -> None:
    """Over lines that go on; a comment is no word of it."""
    assert rule in rules(command, "make.sh")


def test_what_is_no_yaml_is_told_and_the_rest_read() -> None:
    """A template is named with what to do; the file after it is read all the same."""
    found = lint(
        {"a.yaml": "{{- if .Values.gpu }}\nkind: {{ x }}", "b.yaml": KEDA.replace("keda.sh", "k.keda.sh")}, SITE
    )
    assert [(each.rule, each.where.split(":")[0]) for each in found] == [("unread", "a.yaml"), ("keda-api", "b.yaml")]
    assert "helm template" in found[0].fix


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["kind", "apiVersion", "spec", "metadata", "labels", "template", "containers", "expr", "items"])
    | st.text(), inner)))  # fmt: skip
def test_no_document_breaks_it(document: object) -> None:
    """Whatever stands in a file, lint answers."""
    for kind in ("ScaledObject", "NodePool", "Deployment", "ConfigMap", "ClusterConfig"):
        value = {**document, "kind": kind, "apiVersion": "karpenter.sh/v1"} if isinstance(document, dict) else document
        lint({"a.json": json.dumps(value)}, SITE)


def test_the_exit_code_says_whether_something_was_found(tmp_path: Path) -> None:
    """0 for a clean folder, 1 with a fault in it, as text and as JSON; 2 where there is none."""
    (tmp_path / "keda.yaml").write_text(KEDA)
    assert _run(str(tmp_path)).exit_code == 0
    (tmp_path / "q.promql").write_text("avg(dcgm_gpu_utilization)")
    told = _run(str(tmp_path))
    assert (told.exit_code, "fix: write DCGM_FI_DEV_GPU_UTIL" in told.output) == (1, True)
    [found] = json.loads(_run(str(tmp_path), "--json").output)["found"]
    assert (found["rule"], found["where"], found["level"]) == ("metric-name", "q.promql", "fault")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Exception, match="holds no file"):
        _run(str(tmp_path / "empty"))


def _run(*words: str):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(build(["lint"]), ["lint", *words], catch_exceptions=False)
