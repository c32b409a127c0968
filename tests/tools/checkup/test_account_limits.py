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
from pilotlight.facts.capacity import Mode
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.account_limits import cloud_pool_names, limit_checks
from pilotlight.tools.checkup.rights import ACCOUNT, LIMIT
from pilotlight.tools.checkup.survey_facts import Survey
from pilotlight.tools.install.admission_policy import limit_to
from pilotlight.tools.install.prove_limits import limit_of

NOW = datetime(2026, 11, 20, tzinfo=UTC)
POLICY = Policy(version=1, pools={"t4": PoolPolicy(instance_type="g4dn.xlarge", cluster_pool="gpu-t4")})
WORDS = "ValidatingAdmissionPolicy 'pilotlight-nodes' with binding 'pilotlight-nodes' denied request: "


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

    def _admit(self, user: str, before: Json, after: Json) -> str:
        resource = self.api.store.resource("validatingadmissionpolicybindings")
        if user != ACCOUNT or not self.api.store.has(resource, ("", LIMIT)):
            return ""
        return WORDS + "; ".join(why) if (why := refusals(self.policy(), before, after)) else ""

    def policy(self) -> Json:
        """The policy as it lies there."""
        found: Json = self.api.store.get("validatingadmissionpolicies", LIMIT)
        return found


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
