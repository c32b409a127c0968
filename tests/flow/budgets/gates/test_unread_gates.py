"""Gates that cannot be read while limits of ours stand: Karpenter buys within them all the same."""

from collections.abc import Iterator

import pytest
from api_server import ApiServer, api_server
from gated_site import GATED, GatedSite

from pilotlight.facts.policy import PoolPolicy

OWN = PoolPolicy(instance_type="one", max=40)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


@pytest.mark.parametrize("kind", ["nodepools", "nodeclaims"])
def test_dollars_behind_limits_that_cannot_be_read_are_not_spent_by_us(server: ApiServer, kind: str) -> None:
    """The right to list is gone: nothing is bought with their budget, and the alert says why, until it is back."""
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": OWN})
    site.karpenter.pool("gpu", "eight")
    site.tick()
    for n in range(40):
        site.pod(f"p{n}")
    server.fail(403, on=f"GET .*{kind}", times=99)
    site.tick()
    site.karpenter.launch("gpu", 9)
    site.karpenter.register("gpu")
    site.tick()
    assert (site.karpenter.machines("gpu"), site.stage.nodes("own")) == (3, 0)
    (said,) = set(site.told("gate-refused"))
    assert "nothing is bought with the budgets that count them" in said
    server.forget_faults()
    site.tick()
    assert site.stage.nodes("own") == 16
    assert site.within_budget()


def test_where_no_limit_of_ours_stands_an_unread_gate_stops_nobody(server: ApiServer) -> None:
    """The right to list was never given: Karpenter is not ours to bound, and the rest goes on."""
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": OWN})
    site.karpenter.pool("gpu", "eight")
    server.fail(403, on="GET .*nodepools", times=99)
    site.pod("a")
    site.tick()
    assert site.stage.nodes("own") == 1
    assert len(site.told("gate-refused")) == 1
