"""What the admission policies' expressions say of one update. A real control plane is asked in test_rights_live."""

import copy
from collections.abc import Callable

import pytest
from cel import refusals, value_of
from hypothesis import example, given
from hypothesis import strategies as st
from manifests import HERE, Json, objects

from pilotlight.tools.install.admission_policy import cel_list, limit_to, names_of

OURS = {"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}
NODE = {
    "metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "t4"}, "annotations": {"a": "b"}},
    "spec": {"providerID": "world://n", "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
}
PLACED = {**OURS, "key": "pilotlight.dev/placement"}
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
    manifest = objects(HERE / "admission" / f"{policy}.yaml")
    limit_to(manifest, pools)
    return refusals(next(o for o in manifest if o["kind"] == "ValidatingAdmissionPolicy"), before, after)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(lambda n: n["spec"]["taints"].append(OURS), "", id="our taint"),
        pytest.param(lambda n: n["spec"]["taints"].append(PLACED), "", id="our placement taint"),
        pytest.param(lambda n: n["spec"].update(unschedulable=True), "cordons no node", id="a cordon"),
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
def test_of_a_node_only_our_taint(change: Change, says: str) -> None:
    """Everything else about a node of a listed pool is refused, each by its own message."""
    found = refused("nodes", NODE, change)
    assert bool(found) == bool(says)
    assert all(says in message.lower() for message in found)


@pytest.mark.parametrize("taint", [OURS, {**OURS, "value": ""}, TEAM], ids=["ours", "ours without a value", "a team's"])
def test_no_cordon_is_lifted(taint: Json) -> None:
    """Whatever taint stands beside it, and whether that comes off or not, a cordon is somebody's and stays."""
    closed = {"metadata": NODE["metadata"], "spec": {"unschedulable": True, "taints": [taint]}}
    kept = [each for each in [taint] if each == TEAM]
    assert refused("nodes", closed, lambda node: node.update(spec={"taints": kept})) == [
        "Pilotlight cordons no node, and lifts no cordon."
    ]


def test_a_node_of_a_pool_that_is_not_listed() -> None:
    """Our taint on a node of another pool, or of none, is refused."""
    assert refused("nodes", NODE, _mark, pools=("a100",)) == [
        "This node is in no pool that the admission policy pilotlight-nodes lists."
    ]
    assert refused("nodes", {"metadata": {}, "spec": {}}, _mark)


def test_our_taint_comes_off_anywhere() -> None:
    """A node of a pool that is listed no more is not kept closed; nothing else changes there."""
    marked = {"metadata": NODE["metadata"], "spec": {"taints": [OURS]}}
    assert not refused("nodes", marked, lambda node: node["spec"].pop("taints"), pools=())
    assert not refused("nodes", marked, lambda node: node["spec"]["taints"].clear(), pools=())
    assert refused("nodes", marked, lambda node: node.update(spec={}, metadata={}), pools=())


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, OURS]), True, id="our placement taint off"),
        pytest.param(lambda n: n["spec"].update(taints=[PLACED, OURS]), False, id="another taint off"),
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, PLACED]), False, id="our mark of a release off"),
        pytest.param(lambda n: n["spec"]["taints"].append({**TEAM, "key": "x"}), False, id="a taint on"),
        pytest.param(lambda n: n["metadata"]["labels"].update(gpu="free"), False, id="a label"),
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, OURS], unschedulable=True), False, id="a cordon"),
    ],
)
def test_the_watchman_lifts_placement_and_nothing_else(change: Change, allowed: bool) -> None:
    """Its account takes one taint off, anywhere, and puts none on."""
    closed = {"metadata": NODE["metadata"], "spec": {"taints": [TEAM, PLACED, OURS]}}
    after = copy.deepcopy(closed)
    change(after)
    manifest = objects(HERE / "placement" / "watchman.yaml")
    policy = next(o for o in manifest if o["kind"] == "ValidatingAdmissionPolicy")
    assert (refusals(policy, closed, after) == []) is allowed


def _mark(node: Json) -> None:
    node["spec"]["taints"] = [*node["spec"].get("taints", []), OURS]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4))
@example(["t4'] + ['foreign"])
@example(['a"b', "a\\", "\\'", "'", "${x}", "line\nend", "x' || true || 'y", "\U0001f600", "\\U00000027"])
def test_no_name_of_a_pool_ends_its_string(names: list[str]) -> None:
    """Whatever a pool is called, the list in the policy holds these names and no other, and reads back as them."""
    written = cel_list(names)
    assert list(map(str, value_of(written))) == names
    assert names_of(written) == tuple(names)


@pytest.mark.parametrize("expression", ["params.data.pools.split(',')", "['t4'] + ['x']", "['t4' ]]", '["t4"]', ""])
def test_an_expression_of_somebody_elses_is_not_read_as_names(expression: str) -> None:
    """Only a list as it is written here is read back."""
    assert names_of(expression) is None


def test_a_pool_named_like_an_expression_opens_no_other() -> None:
    """A name that would break out of its string neither lets another pool in nor breaks the policy."""
    assert refused("nodes", NODE, _mark, pools=("x' in [''] || true || 'x", "a\\")) == [
        "This node is in no pool that the admission policy pilotlight-nodes lists."
    ]
    assert not refused("nodes", NODE, _mark, pools=("x'", "t4"))


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
