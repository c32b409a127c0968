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
NEW = {**OURS, "key": "pilotlight.dev/home", "value": "new"}
HOME = {**NEW, "value": "17-a-0-3"}
TEAM = {"key": "team", "effect": "NoSchedule"}
OPT_IN, CLOSED_BY = "pilotlight.dev/annotate", "pilotlight.dev/closed-by"
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
        pytest.param(lambda n: n["spec"]["taints"].append(HOME), "names a new home", id="a home that it had not"),
        pytest.param(lambda n: n["spec"]["taints"].append(NEW), "names a new home", id="a new home"),
        pytest.param(lambda n: n["spec"].update(unschedulable=True), "cordons no node", id="a cordon"),
        pytest.param(lambda n: n["spec"]["taints"].append({**OURS, "effect": "NoExecute"}), "effect", id="NoExecute"),
        pytest.param(lambda n: n["spec"]["taints"].append(TEAM), "no taint", id="another"),
        pytest.param(lambda n: n["spec"].update(taints=[OURS]), "no taint", id="the pool's taint gone"),
        pytest.param(lambda n: n["spec"].update(providerID="world://m"), "of a node's spec", id="its instance"),
        pytest.param(lambda n: n["spec"].update(podCIDRs=["10.0.0.0/24"]), "of a node's spec", id="its addresses"),
        pytest.param(lambda n: n["metadata"]["labels"].update(gpu="free"), "labels", id="a label"),
        pytest.param(lambda n: n["metadata"].update(labels={}), "labels", id="no label left"),
        pytest.param(lambda n: n["metadata"]["annotations"].clear(), "no annotation", id="an annotation"),
        pytest.param(lambda n: n["metadata"]["annotations"].update(a="c"), "no annotation", id="one, changed"),
        pytest.param(lambda n: n["metadata"]["annotations"].update(c="d"), "no annotation", id="another one"),
        pytest.param(lambda n: _close(n), "", id="our taint, and by whom"),
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
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, OURS]), True, id="the home off"),
        pytest.param(lambda n: n["spec"].update(taints=[HOME, OURS]), False, id="another taint off"),
        pytest.param(lambda n: n["spec"].update(taints=[TEAM]), False, id="our mark of a release off"),
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, OURS, {**HOME, "value": "x"}]), False, id="another home"),
        pytest.param(lambda n: n["spec"]["taints"].append({**TEAM, "key": "x"}), False, id="a taint on"),
        pytest.param(lambda n: n["metadata"]["labels"].update(gpu="free"), False, id="a label"),
        pytest.param(lambda n: n["spec"].update(taints=[TEAM, OURS], unschedulable=True), False, id="a cordon"),
    ],
)
def test_the_watchman_opens_nodes_and_does_nothing_else(change: Change, allowed: bool) -> None:
    """Its account takes what keeps a node off it, anywhere, and puts nothing on."""
    closed = {"metadata": NODE["metadata"], "spec": {"taints": [TEAM, HOME, OURS]}}
    after = copy.deepcopy(closed)
    change(after)
    manifest = objects(HERE / "placement" / "watchman.yaml")
    policy = next(o for o in manifest if o["kind"] == "ValidatingAdmissionPolicy")
    assert (refusals(policy, closed, after) == []) is allowed


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        pytest.param(NEW, [HOME], True, id="a new home is named"),
        pytest.param({k: v for k, v in NEW.items() if k != "value"}, [HOME], True, id="one without a value is named"),
        pytest.param(NEW, [], True, id="a new home comes off"),
        pytest.param(HOME, [], True, id="a home comes off"),
        pytest.param(HOME, [OURS, HOME], True, id="a home stays beside our other taint"),
        pytest.param(HOME, [{**HOME, "value": "other"}], False, id="a home is given to another"),
        pytest.param(HOME, [NEW], False, id="a home becomes new again"),
        pytest.param(NEW, [{**HOME, "effect": "NoExecute"}], False, id="a home that throws pods off"),
    ],
)
def test_a_home_is_named_once_and_comes_off(before: Json, after: list[Json], allowed: bool) -> None:
    """A node that was born with our taint gets its home, and is opened; nothing else is done with it."""
    born = {"metadata": NODE["metadata"], "spec": {"taints": [TEAM, before]}}
    assert (refused("nodes", born, lambda node: node.update(spec={"taints": [TEAM, *after]})) == []) is allowed


@pytest.mark.parametrize("taints", [[TEAM], [TEAM, OURS], [TEAM, HOME]], ids=["both off", "one off", "the other off"])
def test_each_of_our_taints_comes_off_anywhere(taints: list[Json]) -> None:
    """On a node of a pool that is listed no more one of our taints comes off beside another that stays."""
    kept = {"metadata": NODE["metadata"], "spec": {"taints": [TEAM, OURS, HOME]}}
    assert not refused("nodes", kept, lambda node: node.update(spec={"taints": taints}), pools=())
    born = {"metadata": NODE["metadata"], "spec": {"taints": [NEW]}}
    assert refused("nodes", born, lambda node: node.update(spec={"taints": [HOME]}), pools=())


def test_who_closed_a_node_is_noted_in_listed_pools_and_comes_off_anywhere() -> None:
    """As our taint: on a node of another pool it is neither written nor changed."""
    noted = copy.deepcopy(NODE)
    _note(noted)
    other = "This node is in no pool that the admission policy pilotlight-nodes lists."
    for before, change, pools, said in (
        (NODE, _note, ("t4",), []),
        (NODE, _note, (), [other]),
        (noted, lambda node: node["metadata"]["annotations"].pop(CLOSED_BY), (), []),
        (noted, lambda node: node["metadata"]["annotations"].update({CLOSED_BY: "17-b"}), (), [other]),
        (noted, lambda node: node["metadata"]["annotations"].update({CLOSED_BY: "17-b"}), ("t4",), []),
    ):
        assert refused("nodes", before, change, pools=pools) == said


def _note(node: Json) -> None:
    node["metadata"]["annotations"][CLOSED_BY] = "17-a"


def _close(node: Json) -> None:
    _mark(node)
    _note(node)


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
        pytest.param(lambda p: p["metadata"].update(finalizers=["x"]), False, id="a finalizer"),
        pytest.param(lambda p: p["metadata"].update(ownerReferences=[{"name": "x"}]), False, id="an owner"),
    ],
)
def test_of_a_pods_metadata_only_our_annotations(change: Change, allowed: bool) -> None:
    """On a pod that opted in, annotations that begin with pilotlight.dev/ and nothing else."""
    assert (refused("tolerations", POD, change) == []) is allowed


def test_a_pod_that_did_not_opt_in() -> None:
    """Without the owner's annotation nothing is written into a pod's metadata."""
    bare = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    said = refused("tolerations", bare, lambda p: p["metadata"].update(annotations={"pilotlight.dev/status": "x"}))
    assert len(said) == 1


def at_home(**more: object) -> Json:
    """A toleration of a home."""
    return {"key": "pilotlight.dev/home", "operator": "Equal", "value": "17-a-0-3", "effect": "NoSchedule", **more}


SPARE = {"key": "spare", "operator": "Exists"}
WAITS: Json = {
    "metadata": {"name": "p", "namespace": "ml", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "a"}], "tolerations": [SPARE], "nodeSelector": {"gpu": "a100"}},
}
ADDED = {
    "one home": ([SPARE, at_home()], True),
    "two homes": ([SPARE, at_home(), at_home(value="other")], True),
    "every home": ([SPARE, at_home(operator="Exists")], False),
    "every home, as it is written": ([SPARE, {"key": "pilotlight.dev/home", "operator": "Exists"}], False),
    "every new node": ([SPARE, at_home(value="new")], False),
    "no home": ([SPARE, at_home(value="")], False),
    "a home of every effect": ([SPARE, {k: v for k, v in at_home().items() if k != "effect"}], False),
    "a home of another effect": ([SPARE, at_home(effect="NoExecute")], False),
    "a home for a while": ([SPARE, at_home(tolerationSeconds=5)], False),
    "another key of ours": ([SPARE, at_home(key="pilotlight.dev/draining")], False),
    "everything": ([SPARE, {"operator": "Exists"}], False),
    "another key": ([SPARE, {"key": "x", "operator": "Exists"}], False),
    "a home for another toleration": ([at_home()], False),
    "none left": ([], False),
}


@pytest.mark.parametrize(("tolerations", "allowed"), ADDED.values(), ids=ADDED.keys())
def test_of_a_pod_only_homes_are_added(tolerations: list[Json], allowed: bool) -> None:
    """A toleration of one home comes to those that are there, on a pod that has some and on one that has none."""
    assert (refused("tolerations", WAITS, lambda p: p["spec"].update(tolerations=tolerations)) == []) is allowed
    bare = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    more = [each for each in tolerations if each != SPARE]
    if allowed:
        assert refused("tolerations", bare, lambda p: p["spec"].update(tolerations=more)) == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda s: s["containers"][0].update(image="b"), id="an image"),
        pytest.param(lambda s: s.update(initContainers=[{"name": "i", "image": "b"}]), id="an init container"),
        pytest.param(lambda s: s.update(activeDeadlineSeconds=1), id="its deadline"),
        pytest.param(lambda s: s.update(terminationGracePeriodSeconds=1), id="its grace"),
        pytest.param(lambda s: s.update(schedulingGates=[{"name": "g"}]), id="a gate"),
        pytest.param(lambda s: s.update(nodeName="n"), id="its node"),
        pytest.param(lambda s: s["nodeSelector"].clear(), id="its node selector"),
        pytest.param(lambda s: s.update(affinity={"nodeAffinity": {}}), id="its affinity"),
    ],
)
def test_nothing_else_of_a_pods_spec(change: Change) -> None:
    """Beside a home that may be added, each other field that an API server lets be changed is refused."""

    def both(pod: Json) -> None:
        pod["spec"]["tolerations"].append(at_home())
        change(pod["spec"])

    assert refused("tolerations", WAITS, both) == ["Of a pod's spec Pilotlight may change only its tolerations."]


TAKEN = {
    "a home": ([at_home()], False),
    "every home": ([SPARE, at_home(operator="Exists")], False),
    "every new node": ([at_home(value="new")], False),
    "everything, without a key": ([{"operator": "Exists"}], True),
    "another key": ([SPARE], True),
    "nothing": ([], True),
}


@pytest.mark.parametrize(("tolerations", "allowed"), TAKEN.values(), ids=TAKEN.keys())
def test_nobody_takes_a_home(tolerations: list[Json], allowed: bool) -> None:
    """In a namespace that is closed no pod is made with one, or changed to have one; one that was given stays."""
    [policy, _] = objects(HERE / "admission" / "homes.yaml")
    wanted = {**WAITS, "spec": {**WAITS["spec"], "tolerations": tolerations}}
    assert (refusals(policy, None, wanted) == []) is allowed
    assert (refusals(policy, WAITS, wanted) == []) is allowed
    given = {**WAITS, "spec": {**WAITS["spec"], "tolerations": [*tolerations, at_home(value="given")]}}
    assert refusals(policy, given, {**given, "metadata": {"name": "p", "finalizers": []}}) == []


def test_a_pod_without_tolerations_passes() -> None:
    """One that says nothing of them is as one with none."""
    [policy, _] = objects(HERE / "admission" / "homes.yaml")
    assert refusals(policy, None, {"metadata": {"name": "p"}, "spec": {"containers": []}}) == []


def test_who_is_limited_and_who_is_let() -> None:
    """Users that act beside our account are limited as it is, and may give homes as it may."""
    for name, begins in (
        ("tolerations", "request.userInfo.username in ["),
        ("homes", "!(request.userInfo.username in ["),
    ):
        manifest = objects(HERE / "admission" / f"{name}.yaml")
        limit_to(manifest, (), ["fn@x.iam"])
        [whose] = manifest[0]["spec"]["matchConditions"]
        assert whose["expression"].startswith(begins)
        assert names_of(whose["expression"].removeprefix("!(").removesuffix(")").partition(" in ")[2]) == (
            "system:serviceaccount:pilotlight:pilotlight",
            "fn@x.iam",
        )
