"""The readiness checklist of article 001 for GPUs on a cluster, over what a survey read and what the policy says.

Each item is seen by a part of a name of what runs, or read from the policy, or told as unseen with how to try it. None
is a fault: Pilotlight does its work without most of them, and people choose.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from pilotlight.facts.limits.checks import Check
from pilotlight.facts.money.money_policy import ApproveOver
from pilotlight.facts.policy import Policy
from pilotlight.tools.checkup.survey_facts import SeenSet, Survey

Area = Literal[
    "infrastructure", "scheduling", "autoscaling", "monitoring", "security", "storage", "pipelines", "cost", "testing"
]


class Seen(NamedTuple):
    """Something that runs in the cluster, known by parts of its name or image."""

    area: Area
    code: str
    what: str
    parts: tuple[str, ...]
    fix: str


class Says(NamedTuple):
    """Something that the policy says, or the nodes show."""

    area: Area
    code: str
    what: str
    holds: Callable[[Policy, Survey], bool]
    fix: str


class Try(NamedTuple):
    """Something that no API tells."""

    area: Area
    code: str
    what: str
    fix: str


def _labelled(key: str) -> Callable[[Policy, Survey], bool]:
    return lambda _, seen: any(key in node.labels for node in seen.nodes if node.has_gpu)


def _all_to_zero(policy: Policy, _: Survey) -> bool:
    return all(pool.min == 0 for pool in policy.pools.values())


ITEMS: tuple[Seen | Says | Try, ...] = (
    Seen("infrastructure", "plugin", "a device plugin or GPU operator", ("device-plugin", "gpu-operator"),
         "install NVIDIA's GPU operator"),
    Seen("infrastructure", "driver", "drivers are installed by a DaemonSet", ("nvidia-driver", "driver-installer"),
         "use images with the driver in them, or the operator's driver DaemonSet"),
    Seen("infrastructure", "discovery", "GPU feature discovery", ("gpu-feature-discovery", "node-feature-discovery"),
         "install it: pods can then ask for a model by nvidia.com/gpu.product"),
    Seen("infrastructure", "mig", "a MIG manager, where GPUs are cut", ("mig-manager",),
         "install it where A100 or H100 are shared; else nothing is to be done"),
    Seen("infrastructure", "network", "RDMA or EFA for gangs of many nodes", ("rdma", "efa-device", "network-operator"),
         "install your cloud's device plugin where gangs span nodes; else nothing is to be done"),
    Says("infrastructure", "labels", "GPU nodes carry labels of their model", _labelled("nvidia.com/gpu.product"),
         "install GPU feature discovery, or label the pools at their cloud"),
    Says("infrastructure", "zones", "pools in more than one zone",
         lambda p, _: len({z for pool in p.pools.values() for z in pool.zones}) > 1,
         "list more zones of a pool: what one has not, another may"),
    Says("infrastructure", "models", "more than one instance type",
         lambda p, _: len({pool.instance_type for pool in p.pools.values()}) > 1,
         "add a pool of another type: a type that is sold out stops nobody then"),
    Says("scheduling", "taints", "every GPU pool is tainted", lambda p, _: all(x.taints for x in p.pools.values()),
         "taint the pools (nvidia.com/gpu=present:NoSchedule): pods without GPUs keep them lit else"),
    Says("scheduling", "selectors", "every GPU pool is labelled", lambda p, _: all(x.labels for x in p.pools.values()),
         "label the pools at their cloud and in the policy"),
    Seen("scheduling", "queue", "a queue before the scheduler", ("kueue", "volcano"),
         "install Kueue; pilotlight manifests queues prints its objects"),
    Seen("scheduling", "gangs", "gangs start together", ("kueue", "volcano", "coscheduling", "kai-scheduler"),
         "install Kueue or Volcano, or give pods the annotations pilotlight.dev/gang and gang-size"),
    Try("scheduling", "priorities", "priority classes rank GPU work",
        "kubectl get priorityclass; else pilotlight show infra/kubernetes/priority-classes.yaml | kubectl apply -f -"),
    Try("scheduling", "rules", "admission rules for GPU pods", "pilotlight manifests rules | kubectl apply -f -"),
    Says("scheduling", "placement", "small work is kept off dear nodes", lambda p, _: bool(p.homed),
         "give dear pools the taint pilotlight.dev/home=new:NoSchedule, or apply pilotlight manifests placement"),
    Says("autoscaling", "zero", "every pool may go to zero", _all_to_zero,
         "set min: 0, unless a node is kept warm on purpose"),
    Says("autoscaling", "caps", "a cap on GPUs or dollars at once",
         lambda p, _: any(v is not None for v in (p.caps.nodes, p.caps.gpus, p.caps.usd_per_hour)),
         "write caps: {gpus: 16} or usd_per_hour"),
    Says("autoscaling", "limits", "a limit on change within ten minutes",
         lambda p, _: p.caps.ten_minutes.nodes_added is not None or p.caps.ten_minutes.usd_per_hour_added is not None,
         "write caps: {ten_minutes: {nodes_added: 10}}"),
    Says("autoscaling", "approval", "large purchases wait for a person",
         lambda p, _: p.caps.approve_over != ApproveOver(), "write caps: {approve_over: {usd_per_hour: 100}}"),
    Says("autoscaling", "schedules", "working hours have warm nodes, or nights none",
         lambda p, _: any(rule.when.time for rule in p.rules),
         "write a rule for working hours where waiting in them costs people's time"),
    Says("autoscaling", "wait", "waiting has a price", lambda p, _: p.value_of_wait > 0,
         "set value_of_wait: buying again and keeping are weighed by it"),
    Seen("autoscaling", "replicas", "replicas follow load", ("keda", "prometheus-adapter"),
         "install KEDA; pilotlight manifests keda or hpa prints the rest"),
    Seen("autoscaling", "prepull", "images are there before pods", ("prepull", "pre-pull", "spegel", "image-streaming"),
         "pilotlight manifests prepull --image IMAGE"),
    Seen("monitoring", "dcgm", "DCGM's exporter", ("dcgm-exporter", "dcgm"), "install dcgm-exporter"),
    Seen("monitoring", "prometheus", "a Prometheus", ("prometheus", "victoria-metrics", "mimir", "gmp-"),
         "install one; for its rules: pilotlight show infra/prometheus/prometheusrule.yaml"),
    Seen("monitoring", "state", "kube-state-metrics", ("kube-state-metrics",),
         "install it: pilotlight trace --prometheus needs it"),
    Seen("monitoring", "alerts", "an Alertmanager", ("alertmanager",), "install it, or use the policy's own channels"),
    Seen("monitoring", "dashboards", "Grafana", ("grafana",),
         "install it; for a dashboard: pilotlight show infra/grafana/pilotlight-gpus.json"),
    Says("monitoring", "channels", "alerts reach people",
         lambda p, _: any(c.kind != "console" for c in p.alerts.channels.values()),
         "add a channel to alerts.channels and try it: pilotlight alerts test"),
    Says("monitoring", "events", "Events on pods and nodes", lambda p, _: p.events != "none", "set events: all"),
    Seen("monitoring", "problems", "sick nodes are found", ("node-problem-detector", "node-monitoring-agent"),
         "install the node problem detector, or your cloud's agent"),
    Seen("security", "secrets", "secrets come from a store", ("external-secrets", "secrets-store", "vault", "sealed"),
         "install External Secrets, or your cloud's driver"),
    Seen("security", "policies", "a policy engine", ("gatekeeper", "kyverno"),
         "admission policies of Kubernetes do for GPUs: pilotlight manifests rules"),
    Try("security", "pods", "Pod Security Admission on GPU namespaces",
        "kubectl label ns NAME pod-security.kubernetes.io/enforce=baseline"),
    Try("security", "network", "NetworkPolicies on GPU namespaces", "kubectl get networkpolicy -A"),
    Says("security", "rights", "our account can do no more than it needs",
         lambda _, seen: not any(ok and right.resource == "secrets" for right, ok in seen.allowed.items()),
         "pilotlight connect makes an account of its own"),
    Seen("storage", "csi", "a CSI driver for volumes", ("csi",), "install your cloud's CSI driver"),
    Seen("storage", "shared", "shared storage for data and checkpoints",
         ("efs", "filestore", "fsx", "nfs", "lustre", "gcsfuse", "s3-csi", "juicefs", "ceph", "weka"),
         "mount object storage or a shared file system: spot work must find its checkpoints again"),
    Try("storage", "checkpoints", "work writes checkpoints that outlive its node",
        "read pilotlight show docs/guides/spot.md, and try it: pilotlight drill"),
    Seen("pipelines", "operators", "operators for training jobs",
         ("training-operator", "trainer", "mpi-operator", "jobset", "kuberay", "pytorch"),
         "install the one your jobs are written for"),
    Seen("pipelines", "serving", "a server of models", ("kserve", "seldon", "triton", "vllm", "ray"),
         "install one where models are served from here"),
    Seen("pipelines", "workflows", "workflows", ("argo", "tekton", "kubeflow-pipelines", "airflow"),
         "install one where steps follow each other"),
    Says("cost", "budgets", "a budget for every team", lambda p, _: any(b.scope != "all" for b in p.budgets),
         "write budgets: [{name: research, scope: {team: research}, usd: 400, period: day}]"),
    Says("cost", "hard", "a hard cap on spending", lambda p, _: any(b.hard for b in p.budgets),
         "write one budget with scope: all and hard: true"),
    Says("cost", "spot", "interruptible work may use spot",
         lambda p, _: any("spot" in p.of_class(name).capacity_types for name in ("training", "batch")),
         "allow spot in classes.batch.capacity_types, and add spot pools"),
    Seen("cost", "allocation", "costs are shared out", ("opencost", "kubecost", "pilotlight"),
         "run billing_tick: pilotlight report --month tells each team's part"),
    Try("cost", "quota", "quotas by team", "pilotlight manifests quota | kubectl apply -f -"),
    Try("testing", "interruption", "an interruption was tried", "pilotlight drill"),
    Try("testing", "manifests", "manifests and queries were linted", "pilotlight lint DIR"),
    Try("testing", "replay", "the policy was replayed on your own past",
        "pilotlight trace --prometheus URL, then pilotlight replay"),
)  # fmt: skip


def readiness(survey: Survey, policy: Policy) -> Iterator[Check]:
    """A line an item, in the checklist's order: there, not there, or how to try it."""
    sets = (*survey.daemonsets, *survey.deployments)
    hidden = any("daemonsets" in name or "deployments" in name for name in survey.hidden)
    for item in ITEMS:
        subject = f"{item.area}: {item.what}"
        code = f"ready-{item.area}-{item.code}"
        if isinstance(item, Try):
            yield Check(code=code, subject=subject, verdict="unknown", what="no API tells", fix=item.fix)
            continue
        if isinstance(item, Says):
            there, seen = item.holds(policy, survey), "yes"
        else:
            found = next((each for each in sets if _is(each, item.parts)), None)
            there, seen = found is not None, found.full_name if found is not None else ""
            if not there and hidden:
                yield Check(code=code, subject=subject, verdict="unknown", what="not to be seen", fix=item.fix)
                continue
        if there:
            yield Check(code=code, subject=subject, verdict="ok", what=seen)
        else:
            yield Check(code=code, subject=subject, verdict="warning", what="not there", fix=item.fix)


def _is(each: SeenSet, parts: tuple[str, ...]) -> bool:
    words = " ".join((each.name, *each.images)).lower()
    return any(part in words for part in parts)
