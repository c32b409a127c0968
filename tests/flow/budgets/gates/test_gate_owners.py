"""What becomes of a gate that changes hands: it leaves the policy, or its NodePool is made anew."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from api_server import ApiServer, api_server
from gated_site import GATED, GatedSite
from msgspec.structs import replace as changed

from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.cycle.planning import preview
from pilotlight.tools.install.karpenter.nodepool_handback import give_back


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


def without_gates(site: GatedSite, **pools: PoolPolicy) -> None:
    """Its pool goes out of the policy."""
    site.deps = replace(site.deps, policy=changed(site.deps.policy, pools=pools))


def handed_back(api: Api, site: GatedSite) -> list[str]:
    """What ``handback`` says."""
    return [told.now for told in give_back(api, ["gpu"], site.deps.now(), dry_run=False)]


def test_a_gate_that_leaves_the_policy_keeps_its_limit_and_is_told_until_it_is_handed_back(server: ApiServer) -> None:
    """By a slip of the pen it opens nothing; with the command that gives back what stood before."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    without_gates(site, own=PoolPolicy(instance_type="one", max=1))
    site.tick()
    assert site.karpenter.limit("gpu") == "24"
    (why,) = site.told("gate-left")
    assert "our limit of 24 GPUs stands" in why
    assert "pilotlight handback --pool gpu gives back what stood before (64)" in why
    assert [found.code for found in preview(site.deps, releases=True)[1].findings] == ["gate-left"]
    assert handed_back(site.api, site) == ["64"]
    reads = len(server.lines("GET .*/nodepools"))
    for _ in range(3):
        site.tick()
    assert (len(server.lines("GET .*/nodepools")), site.karpenter.limit("gpu")) == (reads + 1, "64")


def test_a_gate_that_comes_back_into_the_policy_is_kept_again(server: ApiServer) -> None:
    """With the value that its owner wrote before ours."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    whole = site.deps
    without_gates(site, gpux=changed(GATED, cluster_pool="karpenter:gpux"))
    site.tick()
    assert len(site.told("gate-left")) == 1
    site.deps = whole
    site.tick()
    assert (site.karpenter.limit("gpu"), site.notes()["pilotlight.dev/gpu-limit-before"]) == ("24", "64")


def test_a_gate_whose_nodepool_is_gone_with_its_pool_is_forgotten(server: ApiServer) -> None:
    """There is nothing to give back, and nothing is told or read any more."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    without_gates(site)
    server.store.remove("nodepools", "gpu")
    site.tick()
    reads = len(server.lines("GET .*/nodepools"))
    site.tick()
    assert (site.told("gate-left"), len(server.lines("GET .*/nodepools"))) == ([], reads)


def test_a_nodepool_that_a_tool_replaces_whole_is_told_as_set_by_another_hand(server: ApiServer) -> None:
    """``kubectl replace`` takes our annotations too: each minute its own limit stands until the next look."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    assert site.told("gate-reverted") == []
    server.store.remove("nodepools", "gpu")
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    (why,) = site.told("gate-reverted")
    assert "another hand set its limit to 64, and ours was gone with its annotations" in why
    assert site.karpenter.limit("gpu") == "24"


def test_claims_that_say_fewer_gpus_than_their_type_has_close_the_pool(server: ApiServer) -> None:
    """A NodeOverlay says so until they are nodes: Karpenter would buy eight machines for each that is held for."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    site.karpenter.gpus = 1
    site.karpenter.launch("gpu", 2)
    site.tick()
    (why,) = site.told("gate-refused")
    assert "NodeClaim gpu-001 says 1 GPU in its status.capacity and has 8" in why
    assert (site.karpenter.limit("gpu"), site.karpenter.launch("gpu", 9)) == ("0", 0)
