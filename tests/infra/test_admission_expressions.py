"""What the admission policies' expressions say of one update. A real control plane is asked in test_rights_live."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import celpy
import pytest
from manifests import HERE, Json, objects

OURS = {"key": "pilotlight.dev/draining", "effect": "NoSchedule"}
NODE = {
    "metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "t4"}, "annotations": {"a": "b"}},
    "spec": {"providerID": "world://n", "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
}
TEAM = {"key": "team", "effect": "NoSchedule"}
OPT_IN = "pilotlight.dev/annotate"
POD = {
    "metadata": {"name": "p", "annotations": {"pilotlight.dev/annotate": "true", "owner": "me"}},
    "spec": {"containers": [{"name": "c"}]},
}

Change = Callable[[Json], object]


def refused(policy: str, before: Json, change: Change, pools: tuple[str, ...] = ("t4", "a100")) -> list[str]:
    """The messages of the validations that refuse a change."""
    after = copy.deepcopy(before)
    change(after)
    found = next(o for o in objects(HERE / "admission" / f"{policy}.yaml") if o["kind"] == "ValidatingAdmissionPolicy")
    known = {"object": after, "oldObject": before, "params": {"data": {"pools": "", "list": list(pools)}}}
    given: dict[str, Any] = {name: celpy.json_to_cel(value) for name, value in known.items()}
    variables = celpy.celtypes.MapType({})
    for variable in found["spec"]["variables"]:
        variables[celpy.celtypes.StringType(variable["name"])] = _value(
            variable["expression"], {**given, "variables": variables}
        )
    validations = found["spec"]["validations"]
    return [v["message"] for v in validations if not _value(v["expression"], {**given, "variables": variables})]


def _value(expression: str, given: Mapping[str, Any]) -> Any:
    # The one function that Kubernetes adds to the language and this evaluator lacks.
    plain = expression.replace("params.data.pools.split(',')", "params.data.list")
    environment = celpy.Environment()
    return environment.program(environment.compile(plain)).evaluate(dict(given))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(lambda n: n["spec"].update(unschedulable=True), "", id="the cordon"),
        pytest.param(lambda n: n["spec"]["taints"].append(OURS), "", id="our taint"),
        pytest.param(lambda n: n["spec"]["taints"].append({**OURS, "effect": "NoExecute"}), "effect", id="NoExecute"),
        pytest.param(lambda n: n["spec"]["taints"].append(TEAM), "no taint", id="another"),
        pytest.param(lambda n: n["spec"].update(taints=[OURS]), "no taint", id="the pool's taint gone"),
        pytest.param(lambda n: n["spec"].update(providerID="world://m"), "of a node's spec", id="its instance"),
        pytest.param(lambda n: n["spec"].update(podCIDRs=["10.0.0.0/24"]), "of a node's spec", id="its addresses"),
        pytest.param(lambda n: n["metadata"]["labels"].update(gpu="free"), "labels", id="a label"),
        pytest.param(lambda n: n["metadata"].update(labels={}), "labels", id="no label left"),
        pytest.param(lambda n: n["metadata"]["annotations"].clear(), "annotations", id="an annotation"),
        pytest.param(lambda n: n["metadata"].update(finalizers=["x"]), "finalizers", id="a finalizer"),
    ],
)
def test_of_a_node_only_the_cordon_and_our_taint(change: Change, says: str) -> None:
    """Everything else about a node of a listed pool is refused, each by its own message."""
    found = refused("nodes", NODE, change)
    assert bool(found) == bool(says)
    assert all(says in message.lower() for message in found)


def test_a_node_of_a_pool_that_is_not_listed() -> None:
    """The cordon of a node of another pool, or of none, is refused."""
    cordon: Change = lambda node: node["spec"].update(unschedulable=True)  # noqa: E731
    assert refused("nodes", NODE, cordon, pools=("a100",)) == [
        "This node is in no pool that the ConfigMap pilotlight/pilotlight-pools lists."
    ]
    assert refused("nodes", {"metadata": {}, "spec": {}}, cordon)


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        pytest.param(lambda p: p["metadata"]["annotations"].update({"pilotlight.dev/status": "x"}), True, id="our own"),
        pytest.param(lambda p: p["metadata"]["annotations"].update({"other": "x"}), False, id="another"),
        pytest.param(lambda p: p["metadata"]["annotations"].update({"owner": "x"}), False, id="another, changed"),
        pytest.param(lambda p: p["metadata"]["annotations"].pop("owner"), False, id="another, gone"),
        pytest.param(lambda p: p["metadata"]["annotations"].pop(OPT_IN), False, id="the opt-in gone"),
        pytest.param(lambda p: p["metadata"].update(labels={"a": "b"}), False, id="a label"),
        pytest.param(lambda p: p["spec"].update(nodeName="n"), False, id="the spec"),
    ],
)
def test_of_a_pod_only_our_annotations(change: Change, allowed: bool) -> None:
    """On a pod that opted in, annotations that begin with pilotlight.dev/ and nothing else."""
    assert (refused("pods", POD, change) == []) is allowed


def test_a_pod_that_did_not_opt_in() -> None:
    """Without the owner's annotation nothing is written on a pod."""
    bare = {"metadata": {"name": "p"}, "spec": {}}
    assert refused("pods", bare, lambda p: p["metadata"].update(annotations={"pilotlight.dev/status": "x"}))
