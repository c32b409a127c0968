"""The static rule of placement as a MutatingAdmissionPolicy: node affinity that keeps small work off dear nodes.

A pod that asks for GPUs and names none by a selector gets, in every term of its required node affinity, the types on
which its share of a node is cheapest: that of which a node for it alone costs least, and those of its model that cost
as much a GPU. Only in namespaces that opted in; a policy that fails changes nothing. Needs Kubernetes 1.36.

The rule is a list of types inside the policy itself, as there is no parameter that could be missing: render it again
when pools or prices change. JSONPatch, because terms are an atomic list that no apply configuration may touch.
"""

from collections.abc import Sequence
from typing import Any

from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import AFFINITY_OPT_IN, GPU_MODELS, INSTANCE_TYPE, NAMES_A_GPU
from pilotlight.facts.workload import NVIDIA

NAME = "pilotlight-placement"
MOST_TERMS = 10
"""A pod with more terms than this is left as it is, and so is one with a term that has no expressions."""

Object = dict[str, Any]

_TERMS = "nodeSelectorTerms"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_AFFINITY = "object.spec.affinity.nodeAffinity." + _REQUIRED
_ITEM = f"Object.spec.affinity.nodeAffinity.{_REQUIRED}.{_TERMS}"


def affinity_policy(offerings: Sequence[Offering]) -> list[Object]:
    """The policy and its binding, for the types that these offerings sell."""
    meta = {"name": NAME, "labels": {"app.kubernetes.io/name": "pilotlight"}}
    api = {"apiVersion": "admissionregistration.k8s.io/v1"}
    opted = {"namespaceSelector": {"matchLabels": {AFFINITY_OPT_IN: "affinity"}}}
    policy = {**api, "kind": "MutatingAdmissionPolicy", "metadata": meta, "spec": _spec(offerings)}
    binding = {"policyName": NAME, "matchResources": opted}
    return [policy, {**api, "kind": "MutatingAdmissionPolicyBinding", "metadata": meta, "spec": binding}]


def _spec(offerings: Sequence[Offering]) -> Object:
    return {
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
            ]
        },
        "matchConditions": [
            {"name": "names-no-gpu", "expression": _NAMES_NONE},
            {"name": "terms-to-narrow", "expression": _NARROWABLE},
        ],
        "variables": [
            {"name": "types", "expression": _types(offerings)},
            {"name": "gpus", "expression": _GPUS},
            {"name": "models", "expression": _MODELS},
            {"name": "able", "expression": _ABLE},
            {
                "name": "wanted",
                "expression": "variables.able.filter(t, t.model == variables.able[0].model"
                " && t.rate == variables.able[0].rate).map(t, t.type)",
            },
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _PATCH}}],
    }


def _types(offerings: Sequence[Offering]) -> str:
    """The types as CEL, those first of which a node costs least. All values are strings: CEL's maps are of one type."""
    best: dict[str, Offering] = {}
    for one in sorted(offerings, key=lambda o: (o.usd_per_hour, o.usd_per_hour / max(1, o.gpus), o.instance_type)):
        if one.gpus and one.resource == NVIDIA:
            best.setdefault(one.instance_type, one)
    rows = (
        f"{{'type': '{_plain(o.instance_type)}', 'gpus': '{len(o.devices)}', 'model': '{_plain(o.gpu_model)}',"
        f" 'rate': '{(o.usd_per_hour / o.gpus).normalize():f}'}}"
        for o in best.values()
    )
    return f"[{', '.join(rows)}]"


def _plain(name: str) -> str:
    """A name as it may stand in a CEL string; one with other characters never ends its string."""
    return "".join(
        c if c.isascii() and (c.isalnum() or c in "._-/ ") else f"\\u{ord(c):04x}" for c in name if ord(c) < 65536
    )


_HAS_TERMS = (
    "has(object.spec.affinity) && has(object.spec.affinity.nodeAffinity)"
    f" && has(object.spec.affinity.nodeAffinity.{_REQUIRED})"
)
_KEYS = "[" + ", ".join(f"'{key}'" for key in sorted(NAMES_A_GPU)) + "]"
_NAMES_NONE = (
    f"!(has(object.spec.nodeSelector) && object.spec.nodeSelector.exists(k, k in {_KEYS})) && !({_HAS_TERMS}"
    f" && {_AFFINITY}.{_TERMS}.exists(t, has(t.matchExpressions) && t.matchExpressions.exists(e, e.key in {_KEYS})))"
)
# An added list of expressions makes the API server of 1.36 panic: only a term that has one is added to.
_NARROWABLE = (
    f"!({_HAS_TERMS}) || (size({_AFFINITY}.{_TERMS}) <= {MOST_TERMS}"
    f" && {_AFFINITY}.{_TERMS}.all(t, has(t.matchExpressions)))"
)
_GPUS = (
    "object.spec.containers.map(c, has(c.resources) && has(c.resources.limits)"
    f" && '{NVIDIA}' in c.resources.limits ? int(string(c.resources.limits['{NVIDIA}'])) : 0).sum()"
)
_MODELS = (
    f"has(object.metadata.annotations) && '{GPU_MODELS}' in object.metadata.annotations"
    f" ? object.metadata.annotations['{GPU_MODELS}'].split(',').map(m, m.trim()).filter(m, m != '') : []"
)
_ABLE = (
    "variables.gpus < 1 ? [] : variables.types.filter(t, int(t.gpus) >= variables.gpus && (size(variables.models) == 0"
    " || 'any' in variables.models || t.model in variables.models))"
)
_ONE = f"{_ITEM}.matchExpressions{{key: '{INSTANCE_TYPE}', operator: 'In', values: variables.wanted}}"
_PATH = f"/spec/affinity/nodeAffinity/{_REQUIRED}"
_TERM = f"{_ITEM}{{matchExpressions: [{_ONE}]}}"
_NUMBERS = "[" + ", ".join(map(str, range(MOST_TERMS))) + "]"
_INTO_TERMS = (
    f"{_NUMBERS}.filter(i, i < size({_AFFINITY}.{_TERMS})).map(i, JSONPatch{{op: 'add',"
    f" path: '{_PATH}/{_TERMS}/' + string(i) + '/matchExpressions/-', value: {_ONE}}})"
)
_REQUIREMENT = f"Object.spec.affinity.nodeAffinity.{_REQUIRED}{{{_TERMS}: [{_TERM}]}}"
_NEW = (
    "has(object.spec.affinity) ? (has(object.spec.affinity.nodeAffinity)"
    f" ? [JSONPatch{{op: 'add', path: '{_PATH}', value: {_REQUIREMENT}}}]"
    " : [JSONPatch{op: 'add', path: '/spec/affinity/nodeAffinity',"
    f" value: Object.spec.affinity.nodeAffinity{{{_REQUIRED}: {_REQUIREMENT}}}}}])"
    " : [JSONPatch{op: 'add', path: '/spec/affinity', value: Object.spec.affinity{"
    f"nodeAffinity: Object.spec.affinity.nodeAffinity{{{_REQUIRED}: {_REQUIREMENT}}}}}}}]"
)
_PATCH = f"size(variables.able) == 0 ? [] : ({_HAS_TERMS} ? {_INTO_TERMS} : ({_NEW}))"
