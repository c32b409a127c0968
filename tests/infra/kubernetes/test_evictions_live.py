"""What our account may evict, on the control plane that KUBECONFIG names: pods of nodes of its pools, and no other."""

from collections.abc import Iterator
from typing import Any

import pytest
from live_account import ANY, CORE, LIVE, Site, an_acting_account, eventually

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.errors import BadRequest
from pilotlight.facts.labels import EVICTS, ON_NODE

pytestmark = LIVE

UNNAMED = "evictions name the node that they are from|not on the node that Pilotlight's eviction names"
"""Two policies refuse an eviction that names no node; the API server tells of the one that it asked first."""


@pytest.fixture(scope="module")
def acting() -> Iterator[tuple[Site, Api]]:
    """The account with observe and act, limited to the pools ``lit`` and ``other``."""
    with an_acting_account() as made:
        yield made


def bound(site: Site, name: str, node: str) -> str:
    """A pod on a node; its uid."""
    pod = site.pod(name)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    site.admin.ask("POST", f"{CORE}/namespaces/{site.mark}/pods/{name}/binding", NOTHING, body)
    return pod.uid


def refused(account: Api, site: Site, pod: str, uid: str, node: str) -> None:
    """Wait until the policies are seen to act on it: the first are there within seconds."""

    def once() -> None:
        with pytest.raises(BadRequest, match="denied request"):
            writes.evict(account, site.mark, pod, uid, node, only_ask=True)

    eventually(once, pytest.fail.Exception)


def test_only_pods_of_our_nodes_are_evicted(acting: tuple[Site, Api]) -> None:
    """Off a node outside none goes, whatever node is claimed; off a node of a pool that one goes, and no other."""
    site, account = acting
    outside, inside = site.node("web"), site.node("lit")
    stray, own = bound(site, "stray", outside), bound(site, "own", inside)
    refused(account, site, "stray", stray, outside)
    refused(account, site, "stray", stray, inside)
    refused(account, site, "own", own, outside)
    with pytest.raises(BadRequest, match=UNNAMED):
        writes.evict(account, site.mark, "own", own, "", only_ask=True)
    assert writes.node_of(account, site.mark, "own", own) == inside
    writes.evict(account, site.mark, "own", own, inside, only_ask=True)
    writes.evict(account, site.mark, "own", own, inside)
    assert writes.node_of(account, site.mark, "stray", stray) == outside


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        pytest.param({}, {EVICTS: "true"}, id="without a uid"),
        pytest.param({"preconditions": {"uid": "x"}, "gracePeriodSeconds": 0}, {EVICTS: "true"}, id="at once"),
        pytest.param({"preconditions": {"uid": "x"}}, {}, id="without our label"),
    ],
)
def test_an_eviction_of_another_form(acting: tuple[Site, Api], options: dict[str, Any], labels: dict[str, str]) -> None:
    """One that could hit another pod of the name, kill it where it stands, or pass the other policies by is refused."""
    site, account = acting
    node = site.node("lit")
    name = f"form-{node}"
    bound(site, name, node)
    meta = {"name": name, "namespace": site.mark, "labels": labels, "annotations": {ON_NODE: node}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    path = f"{CORE}/namespaces/{site.mark}/pods/{name}"
    with pytest.raises(BadRequest, match="denied request: Pilotlight"):
        account.ask("POST", f"{path}/eviction", NOTHING, body)
    assert site.admin.get(path, ANY)["spec"]["nodeName"] == node


def test_nobody_else_is_asked(acting: tuple[Site, Api]) -> None:
    """An admin evicts off any node, with and without a word of ours."""
    site, _ = acting
    node = site.node("web")
    for name in ("plain", "labelled"):
        uid = bound(site, name, node)
        writes.evict(site.admin, site.mark, name, uid, node if name == "plain" else "elsewhere")
