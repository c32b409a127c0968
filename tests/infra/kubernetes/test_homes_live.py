"""What our account, the watchman and tenants may do about homes, on the control plane that KUBECONFIG names."""

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from live_account import ANY, CORE, LIVE, OURS, PLURALS, Site, a_site, an_acting_account, eventually, until_refused

from pilotlight.adapters.cluster.kubernetes import pod_tolerations, writes
from pilotlight.adapters.cluster.kubernetes.transport import JSON_PATCH, MERGE_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.typed_objects import Metadata, Pod
from pilotlight.errors import BadRequest, Forbidden
from pilotlight.facts.labels import HOME

pytestmark = LIVE


@pytest.fixture(scope="module")
def acting() -> Iterator[tuple[Site, Api]]:
    """The account with observe and act, limited to the pools ``lit`` and ``other``."""
    with an_acting_account() as made:
        yield made


@pytest.fixture
def site() -> Iterator[Site]:
    """A namespace and an account for a test alone."""
    with a_site() as found:
        yield found


def test_annotations_are_our_own_and_asked_for(acting: tuple[Site, Api]) -> None:
    """A pod that opted in gets ours; one that did not, another's annotation and a label are refused."""
    site, account = acting
    asked, silent = site.pod("asked", **{"pilotlight.dev_annotate": "true"}), site.pod("silent")
    path = f"{CORE}/namespaces/{site.mark}/pods"
    writes.annotate(account, asked, "Bought", "a node is on its way")
    kept = site.admin.get(f"{path}/asked", ANY)["metadata"]["annotations"]
    assert kept["pilotlight.dev/status"] == "Bought: a node is on its way"
    change = {"metadata": {"annotations": {"pilotlight.dev/status": "x"}}}
    with pytest.raises(BadRequest, match="only annotations"):
        account.ask("PATCH", f"{path}/{silent.name}", NOTHING, change, MERGE_PATCH)
    others: tuple[dict[str, Any], ...] = (
        {"annotations": {"other": "x"}},
        {"annotations": {"pilotlight.dev/annotate": None}},
        {"labels": {"a": "b"}},
    )
    for other in others:
        with pytest.raises(BadRequest):
            account.ask("PATCH", f"{path}/asked", NOTHING, {"metadata": other}, MERGE_PATCH)


def at_home(value: str, **more: str) -> dict[str, str]:
    """A toleration of a home."""
    return {"key": HOME, "operator": "Equal", "value": value, "effect": "NoSchedule", **more}


def test_a_home_is_named_tolerated_and_opened(acting: tuple[Site, Api]) -> None:
    """A node born with our taint gets its value once, a waiting pod its toleration; opening takes all of it off."""
    site, account = acting
    node, pod = site.node("lit"), site.pod("homeless")
    born = {"spec": {"taints": [{"key": HOME, "value": "new", "effect": "NoSchedule"}]}}
    site.admin.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, born, MERGE_PATCH)
    writes.name_home(account, node, "h-0")
    writes.name_home(account, node, "h-1")
    taints = site.admin.get(f"{CORE}/nodes/{node}", ANY)["spec"]["taints"]
    assert [taint["value"] for taint in taints if taint["key"] == HOME] == ["h-0"]
    path = f"{CORE}/namespaces/{site.mark}/pods/{pod.name}"
    before = site.admin.get(path, ANY)["spec"]
    for home in ("h-0", "h-0", "h-7"):
        pod_tolerations.tolerate(account, site.mark, pod.name, pod.uid, home)
    after = site.admin.get(path, ANY)["spec"]
    assert after["tolerations"] == [*before["tolerations"], at_home("h-0"), at_home("h-7")]
    assert {**after, "tolerations": []} == {**before, "tolerations": []}
    writes.open(account, node)
    assert not [
        t for t in site.admin.get(f"{CORE}/nodes/{node}", ANY)["spec"].get("taints", []) if "pilotlight" in t["key"]
    ]
    with pytest.raises(BadRequest, match="names a new home"):
        account.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, born, MERGE_PATCH)


def test_a_pod_that_is_gone_or_another_gets_no_home(acting: tuple[Site, Api]) -> None:
    """A real server's refusal of a test is told from a policy's: the one is no error, the other is told."""
    site, account = acting
    pod = site.pod("known")
    path = f"{CORE}/namespaces/{site.mark}/pods/{pod.name}"
    pod_tolerations.tolerate(account, site.mark, pod.name, "00000000-0000-0000-0000-000000000000", "h-0")
    pod_tolerations.tolerate(account, site.mark, "nobody", pod.uid, "h-0")
    assert HOME not in {t.get("key") for t in site.admin.get(path, ANY)["spec"]["tolerations"]}
    with pytest.raises(BadRequest, match="only tolerations of"):
        pod_tolerations.tolerate(account, site.mark, pod.name, pod.uid, "new")
    wrong = [{"op": "test", "path": "/metadata/uid", "value": "x"}, {"op": "remove", "path": "/spec/tolerations"}]
    with pytest.raises(BadRequest):
        account.ask("PATCH", path, NOTHING, wrong, JSON_PATCH)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="a label"),
        pytest.param({"metadata": {"finalizers": ["example.com/stay"]}}, id="a finalizer"),
        pytest.param({"spec": {"activeDeadlineSeconds": 5}}, id="its deadline"),
        pytest.param({"spec": {"tolerations": [{"operator": "Exists"}]}}, id="a toleration of everything"),
        pytest.param({"spec": {"containers": [{"name": "c", "image": "x"}]}}, id="an image"),
        pytest.param({"spec": {"nodeName": "n"}}, id="its node"),
        pytest.param({"spec": {"nodeSelector": {"pilotlight.dev/test": "here"}}}, id="its node selector"),
        pytest.param({"spec": {"priority": 7}}, id="its priority"),
    ],
)
def test_nothing_else_of_a_pod_may_change(acting: tuple[Site, Api], change: dict[str, Any]) -> None:
    """Whatever is no toleration of a home is refused, by the policy or by the server itself, and so is a status."""
    site, account = acting
    path = f"{CORE}/namespaces/{site.mark}/pods/probe"
    if "tolerations" in change.get("spec", {}):
        change = {"spec": {"tolerations": [*site.admin.get(path, ANY)["spec"]["tolerations"], {"operator": "Exists"}]}}
    with pytest.raises(BadRequest):
        account.ask("PATCH", path, NOTHING, change, MERGE_PATCH)
    with pytest.raises(Forbidden):
        account.ask("PATCH", f"{path}/status", NOTHING, {"status": {"phase": "Failed"}}, MERGE_PATCH)


def test_the_limit_is_proved_on_a_real_server(acting: tuple[Site, Api]) -> None:
    """The words of the policy's refusal tell that it is there; an account that nothing limits has no such proof."""
    site, account = acting
    probe = Pod(metadata=Metadata(name="probe", namespace=site.mark))
    assert f"{site.mark}-tolerations" in str(pod_tolerations.refusal(account, probe))
    assert pod_tolerations.refusal(site.admin, probe) == ""
    assert pod_tolerations.refusal(account, Pod(metadata=Metadata(name="nobody", namespace=site.mark))) is None


def test_nobody_takes_a_home_where_that_is_closed(acting: tuple[Site, Api]) -> None:
    """In a namespace with our label only our account adds one; a pod that has one is changed as before, and goes."""
    site, account = acting
    closed = {"metadata": {"labels": {"pilotlight.dev/homes": "closed"}}}
    pod = site.pod("tenant")
    path = f"{CORE}/namespaces/{site.mark}/pods/{pod.name}"
    site.admin.ask("PATCH", f"{CORE}/namespaces/{site.mark}", NOTHING, closed, MERGE_PATCH)
    own = site.admin.get(path, ANY)["spec"]["tolerations"]

    def refused() -> None:
        taken = {"spec": {"tolerations": [*own, at_home(uuid.uuid4().hex)]}}
        with pytest.raises(BadRequest, match="Only Pilotlight gives pods"):
            site.admin.ask("PATCH", f"{path}?dryRun=All", NOTHING, taken, MERGE_PATCH)

    eventually(refused, pytest.fail.Exception)
    pod_tolerations.tolerate(account, site.mark, pod.name, pod.uid, "h-0")
    site.admin.ask("PATCH", path, NOTHING, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": site.mark}}
    spec = {"containers": [{"name": "c", "image": "a"}], "tolerations": [{"key": HOME, "operator": "Exists"}]}
    pods = f"{CORE}/namespaces/{site.mark}/pods?dryRun=All"
    with pytest.raises(BadRequest, match="Only Pilotlight gives pods"):
        site.admin.ask("POST", pods, NOTHING, {**body, "spec": spec})
    everything = {**spec, "tolerations": [{"operator": "Exists"}]}
    with suppress(Forbidden):  # Of a namespace that is restricted; the policy is asked before.
        site.admin.ask("POST", pods, NOTHING, {**body, "spec": everything})
    site.admin.ask(
        "PATCH",
        f"{CORE}/namespaces/{site.mark}",
        NOTHING,
        {"metadata": {"labels": {"pilotlight.dev/homes": None}}},
        MERGE_PATCH,
    )


def test_the_watchman_opens_on_a_real_server(site: Site) -> None:
    """Its account takes the home off a node, leaves our mark, and may do nothing else."""
    for each in site.objects("placement/watchman.yaml"):
        if each["kind"] in PLURALS or each["kind"] == "ServiceAccount":
            site.make(each)
    watchman = site.account(f"{site.mark}-watchman")
    node = site.node("lit")
    path = f"{CORE}/nodes/{node}"
    kept = [OURS, {**OURS, "key": HOME, "value": "h-0"}]
    site.admin.ask("PATCH", path, NOTHING, {"spec": {"taints": kept}}, MERGE_PATCH)
    eventually(lambda: watchman.get(path, NOTHING), Forbidden)
    until_refused(watchman, path, lambda value: {"metadata": {"labels": {"probe": value}}})
    with pytest.raises(BadRequest, match="changes no other"):
        writes.uncordon(watchman, node)
    writes.open(watchman, node)
    left = [t["key"] for t in site.admin.get(path, ANY)["spec"]["taints"] if "pilotlight" in t["key"]]
    assert left == ["pilotlight.dev/draining"]
