"""The roles and admission policies of infra/kubernetes on the control plane that KUBECONFIG names, as a real account.

Everything is applied under a name of the run's own, so that an account that is there stays as it is, and taken away.
test_admission_expressions evaluates the policies without a control plane.
"""

import os
import re
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from manifests import HERE

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Metadata
from pilotlight.errors import BadRequest, Forbidden, Retry
from pilotlight.tools.checkup.rights import ANNOTATING, EVIDENCE, GANGS, LOOK, SURVEY, TAKE, TELL, TOO_MUCH, Right
from pilotlight.tools.checkup.survey import ask_rights
from pilotlight.tools.install import connect_account
from pilotlight.tools.install.admission_policy import limit_to

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
CORE, RBAC, ADMISSION = "/api/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "Namespace": f"{CORE}/namespaces",
    "Node": f"{CORE}/nodes",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
OURS = {"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}
GRANTS = {
    "observe": (*LOOK, *GANGS, *EVIDENCE, *SURVEY),
    "act": (*TELL, *TAKE),
    "annotate": ANNOTATING,
}
RESTART = os.environ.get("RESTART_API_SERVER", "")
"""A shell command that restarts the API server: "stop apiserver; start apiserver" of a test bed."""
WAIT_S = 300
"""Roles and policies reach every server within seconds; a slow machine gets more."""


class Given:
    """The account a token is for."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def access(self, *, anew: bool = False) -> Access:
        """The same, always."""
        return self._access


class Site:
    """A control plane with our account under a name of its own."""

    def __init__(self) -> None:
        source = of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))
        self.admin, self.mark = Api(source), f"pl-{uuid.uuid4().hex[:8]}"
        self._access, self._made, self._nodes = source.access(), list[str](), 0

    def apply(self, name: str) -> None:
        """The objects of a manifest, named after the run."""
        for each in self.objects(name):
            self.make(each)

    def objects(self, name: str) -> list[dict[str, Any]]:
        """The objects of a manifest, named after the run and limited to the pools ``lit`` and ``other``."""
        text = re.sub(r"\bpilotlight\b(?!\.dev)", self.mark, (HERE / name).read_text("utf-8"))
        found = list(yaml.safe_load_all(text))
        for each in found:
            each["metadata"]["labels"] = {connect_account.LABEL: connect_account.ACCOUNT}
            for rule in each.get("rules", ()):  # What a role names is what the code asks for.
                rule |= {"resourceNames": [n.replace(self.mark, "pilotlight") for n in rule.get("resourceNames", ())]}
        limit_to(found, ("other", "lit"))
        return found

    def make(self, value: dict[str, Any]) -> None:
        """Create one object, to be taken away."""
        namespace = value["metadata"].get("namespace")
        plural = PLURALS.get(value["kind"]) or f"{CORE}/namespaces/{namespace}/{value['kind'].lower()}s"
        eventually(lambda: self.admin.ask("POST", plural, NOTHING, value), Forbidden)
        self._made.append(f"{plural}/{value['metadata']['name']}")

    def account(self) -> Api:
        """The API server as our account sees it, by a token as connect makes it."""
        where = f"{CORE}/namespaces/{self.mark}/serviceaccounts/{self.mark}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.admin.ask("POST", where, ANY, body)["status"]["token"]
        return Api(Given(replace(self._access, token=token, certificate="", key="")))

    def node(self, pool: str) -> str:
        """A new node of a pool."""
        self._nodes += 1
        name = f"{self.mark}-{pool}-{self._nodes}"
        labels = {"pilotlight.dev/pool": pool}
        self.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}})
        return name

    def pod(self, name: str, **annotations: str) -> Metadata:
        """A pod that waits for ever."""
        keys = {key.replace("_", "/"): value for key, value in annotations.items()}
        meta = {"name": name, "namespace": self.mark, "annotations": keys}
        secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "securityContext": secure}
        spec = {
            "containers": [container],
            "nodeSelector": {"pilotlight.dev/test": "nowhere"},
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        }
        self.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        path = f"{CORE}/namespaces/{self.mark}/pods/{name}"
        return self.admin.get(path, msgspec.json.Decoder(_Named)).metadata

    def clear(self) -> None:
        """Take away what was made, the last first, and wait until all of it is gone."""
        for path in reversed(self._made):
            with suppress(Missing):
                self.admin.ask("DELETE", path, NOTHING)
        for path in self._made:
            eventually(partial(self._gone, path), AssertionError)

    def _gone(self, path: str) -> None:
        with suppress(Missing):
            self.admin.get(path, NOTHING)
            raise AssertionError(f"{path} is still there")


class _Named(msgspec.Struct):
    metadata: Metadata


def eventually(do: Callable[[], Any], *problems: type[BaseException]) -> Any:
    """What ``do`` returns once it raises none of these problems any more."""
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            return do()
        except problems:
            if time.monotonic() > ends:
                raise
            time.sleep(0.5)


def until_refused(api: Api, path: str, change: Callable[[str], dict[str, Any]]) -> None:
    """Wait until the admission policy is seen to act: until it refuses this, which is never the same twice, in earnest
    or not: nothing is written."""

    def once() -> None:
        with pytest.raises(BadRequest, match="ValidatingAdmissionPolicy"):
            api.ask("PATCH", f"{path}?dryRun=All", NOTHING, change(uuid.uuid4().hex), MERGE_PATCH)

    eventually(once, Forbidden, pytest.fail.Exception)


@contextmanager
def a_site() -> Iterator[Site]:
    """A control plane with our namespace and account, without rights."""
    found = Site()
    try:
        found.apply("namespace.yaml")
        yield found
    finally:
        found.clear()


@pytest.fixture
def site() -> Iterator[Site]:
    """One for a test alone."""
    with a_site() as found:
        yield found


def _held(api: Api, rights: tuple[Right, ...]) -> set[Right]:
    return {right for right, granted in ask_rights(api, rights, {}).items() if granted}


EVERY = tuple(right for rights in GRANTS.values() for right in rights) + TOO_MUCH


@pytest.mark.parametrize("roles", [(), ("observe",), ("observe", "act"), ("observe", "act", "annotate")])
def test_a_role_grants_what_it_says_and_no_more(site: Site, roles: tuple[str, ...]) -> None:
    """The API server's own answers to every right, for each sum of roles."""
    for name in roles:
        site.apply(f"rbac/{name}.yaml")
    account = site.account()
    expected = {right for name in roles for right in GRANTS[name]}
    ends = time.monotonic() + WAIT_S
    while _held(account, EVERY) != expected and time.monotonic() < ends:
        time.sleep(0.5)
    assert _held(account, EVERY) == expected


@pytest.fixture(scope="module")
def acting() -> Iterator[tuple[Site, Api]]:
    """The account with observe and act, limited to the pools ``lit`` and ``other``."""
    with a_site() as site:
        site.apply("admission/nodes.yaml")
        site.apply("rbac/observe.yaml")
        site.apply("rbac/act.yaml")
        account = site.account()
        path = f"{CORE}/nodes/{site.node('other')}"
        eventually(lambda: account.get(path, NOTHING), Forbidden)
        until_refused(account, path, lambda value: {"metadata": {"labels": {"probe": value}}})
        yield site, account


def test_our_taint_is_let_through(acting: tuple[Site, Api]) -> None:
    """On a node of a listed pool our taint goes on and off again, beside the taints of others."""
    site, account = acting
    node = site.node("lit")
    path = f"{CORE}/nodes/{node}"
    before = site.admin.get(path, ANY)["spec"].get("taints", [])
    writes.cordon(account, node)
    spec = site.admin.get(path, ANY)["spec"]
    assert (spec.get("unschedulable"), OURS in spec["taints"]) == (None, True)
    writes.uncordon(account, node)
    left = site.admin.get(path, ANY)["spec"]
    mine = [taint for taint in left.get("taints", []) if not taint["key"].startswith("node.kubernetes.io/")]
    assert mine == [taint for taint in before if not taint["key"].startswith("node.kubernetes.io/")]
    assert not left.get("unschedulable")


def test_no_cordon_is_lifted(acting: tuple[Site, Api]) -> None:
    """Our taint comes off and somebody's cordon stays; to lift that is refused us."""
    site, account = acting
    node = site.node("lit")
    closed = {"spec": {"unschedulable": True, "taints": [OURS]}}
    site.admin.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, closed, MERGE_PATCH)
    writes.uncordon(account, node)
    assert site.admin.get(f"{CORE}/nodes/{node}", ANY)["spec"]["unschedulable"]
    with pytest.raises(BadRequest, match="cordons no node"):
        account.ask("PATCH", f"{CORE}/nodes/{node}", NOTHING, {"spec": {"unschedulable": None}}, MERGE_PATCH)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="a cordon"),
        pytest.param({"metadata": {"labels": {"gpu": "free"}}}, id="a label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="an annotation"),
        pytest.param({"metadata": {"finalizers": ["example.com/stay"]}}, id="a finalizer"),
        pytest.param({"spec": {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}}, id="another taint"),
        pytest.param({"spec": {"taints": [{**OURS, "effect": "NoExecute"}]}}, id="our taint, throwing pods off"),
        pytest.param({"spec": {"providerID": "world://x"}}, id="its instance"),
    ],
)
def test_nothing_else_of_a_node_may_change(acting: tuple[Site, Api], change: dict[str, Any]) -> None:
    """Whatever is no taint of ours is refused by the policy, and the node stays as it was."""
    site, account = acting
    path = f"{CORE}/nodes/{site.node('lit')}"
    with pytest.raises(BadRequest, match="ilotlight"):
        account.ask("PATCH", path, NOTHING, change, MERGE_PATCH)


def test_a_node_of_another_pool_is_out_of_reach(acting: tuple[Site, Api]) -> None:
    """A pool that the policy does not list is refused, though RBAC would allow it."""
    site, account = acting
    with pytest.raises(BadRequest, match="in no pool"):
        writes.cordon(account, site.node("foreign"))


def test_nobody_else_is_looked_at(acting: tuple[Site, Api]) -> None:
    """Another account patches what it likes."""
    site, _ = acting
    path = f"{CORE}/nodes/{site.node('foreign')}"
    site.admin.ask("PATCH", path, NOTHING, {"metadata": {"labels": {"gpu": "free"}}}, MERGE_PATCH)
    assert site.admin.get(path, ANY)["metadata"]["labels"]["gpu"] == "free"


def test_a_restart_takes_no_right_away(acting: tuple[Site, Api]) -> None:
    """While the API server starts again our account is told to come back, never that it may not."""
    _, account = acting
    if not RESTART:
        pytest.skip("RESTART_API_SERVER names no command that restarts the API server")
    process = subprocess.Popen(RESTART, shell=True, stdout=subprocess.DEVNULL)
    seen, ends = set[str](), time.monotonic() + 600
    while process.poll() is None and time.monotonic() < ends:
        try:
            account.get(f"{CORE}/nodes", NOTHING, limit="1")
            seen.add("answered")
        except Retry:
            seen.add("later")
    assert process.wait(60) == 0
    assert seen == {"answered", "later"}
    account.get(f"{CORE}/nodes", NOTHING, limit="1")


def test_a_pool_of_any_name_is_taken_as_it_is(site: Site) -> None:
    """The API server takes names with quotes and backslashes as strings, and opens no other pool for them."""
    odd = ("it's", 'a"b', "back\\slash", "x' in [''] || true || 'x", "\U0001f525", "lit")
    found = site.objects("admission/nodes.yaml")
    limit_to(found, odd)
    for each in found:
        site.make(each)
    for role in ("observe", "act"):
        site.apply(f"rbac/{role}.yaml")
    account = site.account()
    until_refused(account, f"{CORE}/nodes/{site.node('foreign')}", lambda value: {"spec": {"taints": [OURS]}})
    writes.cordon(account, site.node("lit"))
    with pytest.raises(BadRequest, match="in no pool"):
        writes.cordon(account, site.node("foreign"))


def test_annotations_are_our_own_and_asked_for(site: Site) -> None:
    """With annotate a pod that opted in gets ours; one that did not, another's annotation and a label are refused."""
    site.apply("admission/pods.yaml")
    site.apply("rbac/observe.yaml")
    site.apply("rbac/annotate.yaml")
    account = site.account()
    asked, silent = site.pod("asked", **{"pilotlight.dev_annotate": "true"}), site.pod("silent")
    path = f"{CORE}/namespaces/{site.mark}/pods"
    eventually(lambda: account.get(path, NOTHING), Forbidden)
    until_refused(
        account, f"{path}/{silent.name}", lambda value: {"metadata": {"annotations": {"pilotlight.dev/status": value}}}
    )
    writes.annotate(account, asked, "Bought", "a node is on its way")
    kept = site.admin.get(f"{path}/asked", ANY)["metadata"]["annotations"]
    assert kept["pilotlight.dev/status"] == "Bought: a node is on its way"
    others: tuple[dict[str, Any], ...] = (
        {"annotations": {"other": "x"}},
        {"annotations": {"pilotlight.dev/annotate": None}},
        {"labels": {"a": "b"}},
    )
    for change in others:
        with pytest.raises(BadRequest):
            account.ask("PATCH", f"{path}/asked", NOTHING, {"metadata": change}, MERGE_PATCH)
