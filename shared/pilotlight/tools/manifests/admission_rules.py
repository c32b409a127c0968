"""The articles' admission rules as ValidatingAdmissionPolicies: they warn or deny where a namespace opted in.

Of pods, and of what makes them, that ask for GPUs: requests equal limits, a toleration of a pool's taint, a node
selector or affinity that leads to a pool, and a label of their class. None of their team: the policy and the namespace
say whose they are. A rule that fails changes nothing. The first is the API server's own for GPUs by their resource
name; it stands here for parts of GPUs too.
"""

from collections.abc import Sequence

from pilotlight.facts.labels import NAMES_A_GPU, WORKLOAD_CLASS
from pilotlight.tools.manifests.pools_on_sale import LABELS, Object, Sold

NAME = "pilotlight-gpu-rules"
OPT_IN = "pilotlight.dev/gpu-rules"
"""On a namespace, "warn" or "deny"."""

_API = "admissionregistration.k8s.io/v1"
_POD = (
    "object.kind == 'Pod' ? object : (object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template"
    " : object.spec.template)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_GPU = "(q.startsWith('nvidia.com/') || q.startsWith('amd.com/gpu'))"
_ASKS = (
    "variables.pod.spec.containers.exists(c, has(c.resources) && has(c.resources.limits)"
    f" && c.resources.limits.exists(q, {_GPU})) || variables.pod.spec.containers.exists(c, has(c.resources)"
    f" && has(c.resources.requests) && c.resources.requests.exists(q, {_GPU}))"
)
_EQUAL = (
    "variables.pod.spec.containers.all(c, !has(c.resources) || !has(c.resources.requests)"
    f" || c.resources.requests.all(q, !{_GPU} || (has(c.resources.limits) && q in c.resources.limits"
    " && string(c.resources.limits[q]) == string(c.resources.requests[q]))))"
)


def gpu_rules(pools: Sequence[Sold]) -> list[Object]:
    """The policy, and its two bindings: for namespaces that want warnings, and those that want refusals."""
    policy = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME, "labels": LABELS},
        "spec": {
            "failurePolicy": "Ignore",
            "matchConstraints": {"resourceRules": _WHERE},
            "variables": [{"name": "pod", "expression": _POD}, {"name": "asks", "expression": _ASKS}],
            "validations": list(_validations(pools)),
        },
    }
    return [policy, _binding("warn", ["Warn", "Audit"]), _binding("deny", ["Deny"])]


_WHERE = [
    {"apiGroups": [group], "apiVersions": ["v1"], "resources": resources, "operations": ["CREATE", "UPDATE"]}
    for group, resources in (("", ["pods"]), ("apps", ["deployments", "statefulsets"]), ("batch", ["jobs", "cronjobs"]))
]


def _binding(mode: str, actions: list[str]) -> Object:
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{NAME}-{mode}", "labels": LABELS},
        "spec": {
            "policyName": NAME,
            "validationActions": actions,
            "matchResources": {"namespaceSelector": {"matchLabels": {OPT_IN: mode}}},
        },
    }


def _validations(pools: Sequence[Sold]) -> list[Object]:
    found = [_rule(_EQUAL, "GPU requests must equal limits: GPUs are not overcommitted; write the limit alone")]
    if all(each.pool.taints for each in pools):
        keys = sorted({t.key for each in pools for t in each.pool.taints})
        tolerates = (
            "has(variables.pod.spec.tolerations) && variables.pod.spec.tolerations.exists(t,"
            f" !has(t.key) || t.key in {_list(keys)})"
        )
        found.append(_rule(tolerates, f"a GPU pod needs a toleration of a pool's taint: {', '.join(keys)}"))
    if all(each.pool.labels for each in pools):
        keys = sorted({key for each in pools for key in each.pool.labels} | NAMES_A_GPU)
        own = sorted({f"{key}={value}" for each in pools for key, value in each.pool.labels.items()})
        affinity = f"variables.pod.spec.affinity.nodeAffinity.{_REQUIRED}"
        selects = (
            f"(has(variables.pod.spec.nodeSelector) && variables.pod.spec.nodeSelector.exists(k, k in {_list(keys)}))"
            " || (has(variables.pod.spec.affinity) && has(variables.pod.spec.affinity.nodeAffinity)"
            f" && has({affinity}) && {affinity}.nodeSelectorTerms.all(n, has(n.matchExpressions)"
            f" && n.matchExpressions.exists(e, e.key in {_list(keys)})))"
        )
        found.append(_rule(selects, f"a GPU pod needs a node selector or affinity to a pool, as {', '.join(own)}"))
    has = " || ".join(f"'{name}' in variables.pod.metadata.labels" for name in WORKLOAD_CLASS)
    labelled = f"has(variables.pod.metadata) && has(variables.pod.metadata.labels) && ({has})"
    found.append(_rule(labelled, f"a GPU pod needs a label that says its class of work: {' or '.join(WORKLOAD_CLASS)}"))
    return found


def _rule(expression: str, message: str) -> Object:
    return {"expression": f"!variables.asks || ({expression})", "message": message}


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{''.join(c for c in name if c.isalnum() or c in '._-/')}'" for name in names) + "]"
