"""Limits of NodePools given back as they were, without any state of ours."""

from collections.abc import Iterator

import pytest
from api_server import ApiServer, api_server
from karpenter import Karpenter

from pilotlight.adapters.cluster.kubernetes import nodepool_limits
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.tools.install.nodepool_handback import give_back


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


@pytest.fixture
def api(server: ApiServer) -> Api:
    """Its client."""
    return Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)


@pytest.mark.parametrize("limit", [None, "64", "0"])
def test_a_limit_is_as_it_was(server: ApiServer, api: Api, limit: str | None) -> None:
    """After some changes of ours the owner's value stands again, or none does, and no note of ours is left."""
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit=limit)
    for gpus in (24, 8, 0):
        (state,) = nodepool_limits.read(api, ["gpu"])
        nodepool_limits.set_limit(api, state, gpus)
    (said,) = give_back(api, (), dry_run=True)
    assert (said.verb, said.was, said.now, karpenter.limit("gpu")) == ("would set", "0", limit or "none", "0")
    list(give_back(api, ["gpu"], dry_run=False))
    assert karpenter.limit("gpu") == limit
    assert not server.store.get("nodepools", "gpu")["metadata"]["annotations"]
    assert list(give_back(api, (), dry_run=False)) == []


def test_only_those_that_are_named_are_given_back(server: ApiServer, api: Api) -> None:
    """Another NodePool keeps the limit of ours, and one that we never limited is not touched."""
    karpenter = Karpenter(server, 8)
    for name in ("a", "b", "c"):
        karpenter.pool(name, "p4d", limit="64")
    for state in nodepool_limits.read(api, ["a", "b"]):
        nodepool_limits.set_limit(api, state, 8)
    assert [line.pool for line in give_back(api, ["b"], dry_run=False)] == ["NodePool b"]
    assert [karpenter.limit(name) for name in ("a", "b", "c")] == ["8", "64", "64"]


def test_a_cluster_without_karpenter_has_nothing_to_give_back(api: Api) -> None:
    """A server that does not know NodePools is no error."""
    assert list(give_back(api, (), dry_run=False)) == []
