"""Limits of NodePools on the wire: what is read and written, held against the CRD, and on a real API server."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import yaml
from api_server import ApiServer, api_server
from api_store import merged
from karpenter import GPU, Karpenter
from real_api import applied, real_api

from pilotlight.adapters.cluster.kubernetes import nodepool_limits
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.codec.kubernetes.karpenter_objects import BEFORE, MANAGER, WROTE
from pilotlight.errors import BadRequest, Conflict
from pilotlight.facts.labels import KARPENTER_NODE_POOL as NODEPOOL
from pilotlight.facts.labels import POOL
from pilotlight.tools.install.karpenter.nodepool_handback import give_back

ANY = msgspec.json.Decoder(dict[str, Any])


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server with Karpenter's kinds."""
    with api_server() as found:
        yield found


@pytest.fixture
def api(server: ApiServer) -> Api:
    """Its client."""
    return Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)


def _crd(shelf: Path, plural: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        (shelf / "contracts" / "crds" / "karpenter" / f"karpenter.sh_{plural}.yaml").read_text()
    )
    return found


def _whole(name: str, limit: str | None = None) -> dict[str, Any]:
    """A NodePool that the CRD takes."""
    wanted = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    spec: dict[str, Any] = {
        "template": {"spec": {"nodeClassRef": ref, "requirements": wanted, "expireAfter": "Never"}},
        "disruption": {
            "consolidateAfter": "0s",
            "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
        },
    }
    spec |= {"limits": {GPU: limit, "cpu": "1000"}} if limit is not None else {}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def test_what_is_written_is_by_the_crds_schema(server: ApiServer, api: Api, shelf: Path) -> None:
    """The NodePool with our limit is one that Karpenter's own schema takes, and only our key of limits is written."""
    Karpenter(server, 8)
    server.add(_whole("gpu", "64"))
    (state,) = nodepool_limits.read(api, ["gpu"])
    nodepool_limits.set_limit(api, state, 24)
    sent = server.requests[-1]
    schema = _crd(shelf, "nodepools")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    body = sent.json()
    jsonschema.validate(merged(_whole("gpu", "64"), body), schema)
    assert body["spec"] == {"limits": {GPU: "24"}}
    assert body["metadata"]["annotations"] == {BEFORE: "64", WROTE: "24"}
    assert sent.query == {"fieldManager": MANAGER, "force": "true"}
    assert sent.headers["Content-Type"] == "application/apply-patch+yaml"


def test_the_fields_that_are_read_are_in_the_crds(shelf: Path) -> None:
    """Every field that a limit goes by stands in the schemas of NodePool and NodeClaim."""
    read = {
        "nodepools": (
            "spec.limits", "spec.replicas", "spec.weight", "spec.disruption.budgets", "spec.template.spec.requirements",
            "spec.disruption.consolidationPolicy", "spec.disruption.consolidateAfter",
        ),
        "nodeclaims": ("spec.expireAfter", "status.capacity", "status.nodeName"),
    }  # fmt: skip
    for plural, paths in read.items():
        top = _crd(shelf, plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for path in paths:
            schema = top
            for part in path.split("."):
                schema = schema["properties"][part]


def test_a_nodepool_that_is_not_there_says_so(server: ApiServer, api: Api) -> None:
    """The others are read all the same, in the order that they were asked for in."""
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit="8")
    gone, there = nodepool_limits.read(api, ["gone", "gpu"])
    assert "no such NodePool" in gone.unread
    assert (there.nodepool, there.limit, there.unread) == ("gpu", 8, "")


@pytest.mark.parametrize(("labels", "blind"), [
    ({}, ("gpu", "cpu")), ({NODEPOOL: "gpu"}, ("gpu",)), ({POOL: "gpu"}, ()), ({POOL: "x", NODEPOOL: "cpu"}, ("cpu",)),
])  # fmt: skip
def test_a_claim_that_cannot_be_read_blinds_its_gate_alone(
    server: ApiServer, api: Api, labels: dict[str, str], blind: tuple[str, ...]
) -> None:
    """No NodePool is opened by a count without it; one of which nobody knows whose it is blinds every gate, and one of
    ours blinds none."""
    karpenter = Karpenter(server, 8)
    for name in ("gpu", "cpu"):
        karpenter.pool(name, "p4d", limit="8")
    meta = {"name": "odd", "labels": labels}
    server.add({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "status": {"capacity": 7}})
    found = nodepool_limits.read(api, ["gpu", "cpu"])
    assert tuple(state.nodepool for state in found if state.unread.startswith("NodeClaim odd: ")) == blind
    assert [len(state.claims) for state in found] == [labels.get(NODEPOOL) == name for name in ("gpu", "cpu")]


def test_a_cluster_without_karpenter_is_refused_in_words(api: Api) -> None:
    """A server that does not know NodePools raises what a flow tells as a finding."""
    with pytest.raises(BadRequest):
        nodepool_limits.read(api, ["gpu"])


def test_a_write_goes_over_the_version_that_was_read(server: ApiServer, api: Api) -> None:
    """Another writer in between is a conflict, and its value stands."""
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit="8")
    (state,) = nodepool_limits.read(api, ["gpu"])
    store = server.store
    store.patch(store.resource("nodepools"), ("", "gpu"), {"spec": {"limits": {GPU: "16"}}})
    with pytest.raises(Conflict):
        nodepool_limits.set_limit(api, state, 24)
    assert karpenter.limit("gpu") == "16"


@pytest.mark.cluster
def test_a_real_api_server_takes_our_limit_and_gives_the_owners_back(shelf: Path) -> None:
    """By the CRDs' CEL rules: the owner's value, ours, a conflict, another hand's, and the owner's again."""
    here, name = real_api(), f"pilotlight-test-{uuid.uuid4().hex[:8]}"
    for plural in ("nodepools", "nodeclaims"):
        applied(here, _crd(shelf, plural))
    path = f"{nodepool_limits.NODE_POOLS}/{name}"
    owner = "?fieldManager=argocd-controller&force=true"
    kind = "application/apply-patch+yaml"
    here.ask("PATCH", path + owner, NOTHING, _whole(name, "64"), kind)
    try:
        (state,) = nodepool_limits.read(here, [name])
        assert (state.limit, state.before, state.managers, state.surge(5)) == (64, None, ("argocd-controller",), 0)
        nodepool_limits.set_limit(here, state, 24)
        with pytest.raises(Conflict):
            nodepool_limits.set_limit(here, state, 32)
        (state,) = nodepool_limits.read(here, [name])
        assert (state.limit, state.cap, state.wrote, state.managers) == (24, 64, 24, ())
        assert here.get(path, ANY)["spec"]["limits"] == {GPU: "24", "cpu": "1000"}
        here.ask("PATCH", path + owner, NOTHING, _whole(name, "64"), kind)
        (state,) = nodepool_limits.read(here, [name])
        assert (state.limit, state.wrote, state.managers) == (64, 24, ("argocd-controller",))
        nodepool_limits.set_limit(here, state, 0)
        (said,) = give_back(here, [name], datetime.now(UTC), dry_run=False)
        assert (said.was, said.now) == ("0", "64")
        (state,) = nodepool_limits.read(here, [name])
        assert (state.limit, state.before, state.wrote) == (64, None, None)
    finally:
        here.ask("DELETE", path, NOTHING)
