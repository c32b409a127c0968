"""What the doctor says of the admission policy: as it lies on an API server, and as dry runs of our account show it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from api_server import Access as Review
from api_server import ApiServer, api_server
from api_store import Json
from cel import refusals
from manifests import HERE, objects

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.modes import Mode
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.account_limits import (
    cloud_pool_names,
    eviction_limit_checks,
    limit_checks,
    pod_limit_checks,
)
from pilotlight.tools.checkup.rights import ACCOUNT, EVICTION_LIMIT, LIMIT, POD_LIMIT
from pilotlight.tools.checkup.survey_facts import Survey
from pilotlight.tools.install.admission_policy import limit_to
from pilotlight.tools.install.prove_limits import eviction_limit_of, limit_of, pod_limit_of

NOW = datetime(2026, 11, 20, tzinfo=UTC)
POLICY = Policy(version=1, pools={"t4": PoolPolicy(instance_type="g4dn.xlarge", cluster_pool="gpu-t4")})
WORDS = {
    name: f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
    for name in (LIMIT, POD_LIMIT, EVICTION_LIMIT)
}


class Site:
    """An API server whose admission is the policy that lies on it, and a node in the pool and one outside."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.api = api
        api.admit = self._admit
        self.node("lit", "gpu-t4")
        self.node("web", "other")
        (folder / "kubeconfig").write_text(api.kubeconfig())
        self._source = of_file(folder / "kubeconfig")

    def node(self, name: str, pool: str, **spec: Any) -> None:
        """A node of a pool."""
        meta = {"name": name, "labels": {"cloud.google.com/gke-nodepool": pool}}
        self.api.add({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec})

    def install(self, *pools: str, bound: bool = True) -> Json:
        """The manifest, limited to pools; the policy as it lies there."""
        found = objects(HERE / "admission" / "nodes.yaml")
        limit_to(found, pools)
        self.api.add(*found[: 2 if bound else 1])
        policy: Json = self.api.store.get("validatingadmissionpolicies", LIMIT)
        return policy

    def said(self, mode: Mode = "act", policy: Policy = POLICY) -> list[tuple[str, str]]:
        """Verdict and words of each line of the check-up, less what they are about."""
        limit = limit_of(self._source, Api(self._source, pause=lambda _: None), cloud_pool_names(policy))
        survey = Survey(server="", version="", at=NOW, limit=limit)
        return [(check.verdict, check.what) for check in limit_checks(survey, policy, mode)]

    def install_for_pods(self) -> Json:
        """The other manifest; the policy as it lies there."""
        self.api.add(*objects(HERE / "admission" / "tolerations.yaml"))
        policy: Json = self.api.store.get("validatingadmissionpolicies", POD_LIMIT)
        return policy

    def said_of_pods(self) -> list[tuple[str, str]]:
        """The same of its changes of pods."""
        limit = pod_limit_of(self._source, Api(self._source, pause=lambda _: None))
        survey = Survey(server="", version="", at=NOW, pod_limit=limit)
        return [(check.verdict, check.what) for check in pod_limit_checks(survey, "act")]

    def install_for_evictions(self, *pools: str) -> None:
        """The third, limited to pools."""
        found = objects(HERE / "admission" / "evictions.yaml")
        limit_to(found, pools)
        self.api.add(*found)

    def said_of_evictions(self) -> list[tuple[str, str]]:
        """The same of its evictions."""
        api = Api(self._source, pause=lambda _: None)
        limit = eviction_limit_of(self._source, api, cloud_pool_names(POLICY))
        survey = Survey(server="", version="", at=NOW, eviction_limit=limit)
        return [(check.verdict, check.what) for check in eviction_limit_checks(survey, "act")]

    def _admit(self, user: str, before: Json, after: Json) -> str:
        resource = self.api.store.resource("validatingadmissionpolicybindings")
        name = {"Node": LIMIT, "Pod": POD_LIMIT, "Eviction": EVICTION_LIMIT}[str(after.get("kind", before["kind"]))]
        if user == ACCOUNT and name == EVICTION_LIMIT and self.api.store.has(resource, ("", name)):
            return WORDS[name] + "; ".join(why) if (why := self._keeps(before, after)) else ""
        if user != ACCOUNT or not self.api.store.has(resource, ("", name)):
            return ""
        policy = self.api.store.get("validatingadmissionpolicies", name)
        return WORDS[name] + "; ".join(why) if (why := refusals(policy, before, after)) else ""

    def _keeps(self, pod: Json, eviction: Json) -> list[str]:
        """What the three policies of evictions say: of the second the pod is the parameter, of the third each node that
        its binding selects.
        """
        store = self.api.store
        first, pods, nodes = (
            store.get("validatingadmissionpolicies", f"{EVICTION_LIMIT}{part}") for part in ("", "-pods", "-nodes")
        )
        said = refusals(first, None, eviction) + refusals(pods, None, eviction, pod)
        terms = store.get("validatingadmissionpolicybindings", f"{EVICTION_LIMIT}-nodes")["spec"]["paramRef"][
            "selector"
        ]
        for node in (store.get("nodes", name) for name in ("lit", "web")):
            labels = node["metadata"]["labels"]
            if all(labels.get(term["key"]) not in term["values"] for term in terms["matchExpressions"]):
                said += refusals(nodes, None, eviction, node)
        return said


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One that lets an admin in."""
    with api_server() as api:
        yield Site(api, tmp_path)


def test_a_policy_that_holds_is_proven(site: Site) -> None:
    """The dry runs are named; nothing is changed by them, and all are our account's own."""
    site.install("gpu-t4")
    before = [site.api.store.get("nodes", name)["metadata"]["resourceVersion"] for name in ("lit", "web")]
    words = "refused a label of lit and allowed our taint on lit and refused our taint on web"
    assert site.said() == [("ok", f"holds our account to its taint in its pools; dry runs: {words}")]
    assert [site.api.store.get("nodes", n)["metadata"]["resourceVersion"] for n in ("lit", "web")] == before
    patches = [asked for asked in site.api.requests if asked.method == "PATCH"]
    assert {(p.headers["Impersonate-User"], p.query["dryRun"]) for p in patches} == {(ACCOUNT, "All")}


def _open(policy: Json) -> None:
    policy["spec"]["validations"] = []


@pytest.mark.parametrize(
    ("pools", "bound", "spoil", "verdicts", "words"),
    [
        pytest.param(["gpu-t4"], False, None, ["fault"], "may patch every node", id="that is not bound"),
        pytest.param(["gpu-t4"], True, _open, ["fault"] * 2, "a label of node lit", id="that allows all"),
        pytest.param(
            ["a100"], True, None, ["fault"] * 2 + ["warning"], "refuses our taint on node lit", id="of others"
        ),
        pytest.param(["gpu-t4", "web"], True, None, ["warning"], "lists web", id="that lists too much"),
    ],
)
def test_a_policy_is_told_of(
    site: Site, pools: list[str], bound: bool, spoil: Callable[[Json], None] | None, verdicts: list[str], words: str
) -> None:
    """Each thing that is wrong with it is a line of its own."""
    policy = site.install(*pools, bound=bound)
    if spoil:
        spoil(policy)
    said = site.said()
    assert [verdict for verdict, _ in said] == verdicts
    assert words in said[0][1]


def test_no_policy_at_all_is_a_fault(site: Site) -> None:
    """An account that may patch nodes and is limited by nothing."""
    assert site.said() == [("fault", "does not limit our account, which may patch every node")]


def test_an_account_without_the_right_has_nothing_to_limit(site: Site) -> None:
    """Where it may patch no node there is no line."""
    site.api.allow = lambda review: review.verb != "patch"
    assert site.said("observe") == []


def test_without_leave_to_impersonate_it_is_not_proven(site: Site) -> None:
    """What lies there is judged; what it does stays unseen."""
    site.install("gpu-t4")
    site.api.allow = lambda review: review != Review("impersonate", "", "serviceaccounts")
    assert site.said() == [("unknown", "not proven: this credential may not impersonate our account")]


def test_without_a_node_it_is_not_proven(site: Site) -> None:
    """There is nothing to try it on."""
    site.install("gpu-t4")
    site.api.store.clear("nodes")
    assert site.said() == [("unknown", "not proven: there is no node to try it on")]


def test_another_webhooks_refusal_proves_nothing(site: Site) -> None:
    """A refusal that does not name the policy is no proof that it acts."""
    site.install("gpu-t4")
    site.api.admit = lambda user, before, after: "admission webhook 'x' does not support dry run"
    assert site.said() == [("unknown", "not proven: the dry runs say nothing")]


@pytest.fixture
def with_pod(site: Site) -> Site:
    """A cluster with a pod that waits, and one that is over."""
    for name, phase in (("a", "Succeeded"), ("b", "Pending")):
        meta = {"name": name, "namespace": "ml"}
        spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "x", "operator": "Exists"}]}
        site.api.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}})
    return site


def test_what_limits_changes_of_pods_is_proven(with_pod: Site) -> None:
    """The dry runs are named, and nothing is changed by them."""
    with_pod.install_for_pods()
    before = with_pod.api.store.get("pods", "b", "ml")["metadata"]["resourceVersion"]
    tried = "refused a label of ml/b and refused a toleration of everything on ml/b and allowed a home on ml/b"
    assert with_pod.said_of_pods() == [("ok", f"holds our account to tolerations of homes; dry runs: {tried}")]
    assert with_pod.api.store.get("pods", "b", "ml")["metadata"]["resourceVersion"] == before
    assert {p.headers["Impersonate-User"] for p in with_pod.api.requests if p.method == "PATCH"} == {ACCOUNT}


def _lets_all(policy: Json) -> None:
    policy["spec"]["validations"] = []


def _lets_none(policy: Json) -> None:
    policy["spec"]["validations"][1] = {"expression": "false", "message": "no"}


@pytest.mark.parametrize(
    ("spoil", "verdict", "words"),
    [
        pytest.param(None, "fault", "may patch every pod", id="that is not there"),
        pytest.param(_lets_all, "fault", "a label of pod ml/b and a toleration of pod ml/b", id="that allows all"),
        pytest.param(_lets_none, "fault", "refuses a home of pod ml/b: no", id="that refuses a home"),
    ],
)
def test_a_policy_of_pods_is_told_of(
    with_pod: Site, spoil: Callable[[Json], None] | None, verdict: str, words: str
) -> None:
    """Without it our account may change any pod; one that refuses homes is told with its words."""
    if spoil:
        spoil(with_pod.install_for_pods())
    [(said, what)] = with_pod.said_of_pods()
    assert (said, words in what) == (verdict, True), what


def test_pods_that_nobody_may_patch_or_that_are_not_there(with_pod: Site) -> None:
    """An account without the right has nothing to limit; without a pod nothing is proven."""
    with_pod.install_for_pods()
    with_pod.api.store.clear("pods")
    assert with_pod.said_of_pods() == [("unknown", "not proven: there is no pod to try it on")]
    with_pod.api.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "ml"}, "spec": {}})
    with_pod.api.allow = lambda review: review.verb != "patch"
    assert with_pod.said_of_pods() == []


@pytest.fixture
def with_bound(site: Site) -> Site:
    """A cluster with a pod on a node of the pool, and one on the node outside."""
    for name, node in (("a", "lit"), ("b", "web")):
        spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node}
        site.api.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"}, "spec": spec})
    return site


def test_what_limits_evictions_is_proven(with_bound: Site) -> None:
    """The dry runs are named: of a pod outside the pools none goes, whatever node is claimed; of one inside it does."""
    site = with_bound
    site.install_for_evictions("gpu-t4")
    tried = (
        "refused one that names no node, of ml/b and refused one that names another node, of ml/b and refused one off a"
        " node outside, of ml/b and allowed one of ml/a"
    )
    assert site.said_of_evictions() == [
        ("ok", f"holds our account's evictions to nodes of its pools; dry runs: {tried}")
    ]
    assert site.api.store.get("pods", "a", "ml")["spec"]["nodeName"] == "lit"


def _evicts_all(site: Site) -> None:
    for part in ("", "-pods", "-nodes"):
        site.api.store.get("validatingadmissionpolicies", f"{EVICTION_LIMIT}{part}")["spec"]["validations"] = []


@pytest.mark.parametrize(
    ("pools", "spoil", "words"),
    [
        pytest.param(
            ("gpu-t4",), _evicts_all, "more than pods of its pools: naming no node, pod ml/b", id="allows all"
        ),
        pytest.param(("gpu-t4", "other"), None, "off a node of no pool of the policy, pod ml/b", id="lists too much"),
        pytest.param(("a100",), None, "refuses an eviction of pod ml/a: This node is in no pool", id="lists others"),
        pytest.param((), None, "refuses an eviction of pod ml/a: This node is in no pool", id="lists none"),
    ],
)
def test_a_policy_of_evictions_is_told_of(
    with_bound: Site, pools: tuple[str, ...], spoil: Callable[[Site], None] | None, words: str
) -> None:
    """One that lets more go than it should, and one that lets nothing go, are faults with their words."""
    with_bound.install_for_evictions(*pools)
    if spoil:
        spoil(with_bound)
    [(said, what)] = with_bound.said_of_evictions()
    assert (said, words in what) == ("fault", True), what


def test_evictions_that_nothing_limits(with_bound: Site) -> None:
    """Without the policy it is a fault; without a pod on a node nothing is proven."""
    assert with_bound.said_of_evictions() == [("fault", "does not limit our account, which may evict every pod")]
    with_bound.install_for_evictions("gpu-t4")
    with_bound.api.store.clear("pods")
    assert with_bound.said_of_evictions() == [("unknown", "not proven: there is no pod on a node to try it on")]
