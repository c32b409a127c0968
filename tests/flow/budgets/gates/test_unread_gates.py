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


@pytest.mark.parametrize("status", [403, 503])
@pytest.mark.parametrize("kind", ["nodepools", "nodeclaims"])
def test_dollars_behind_limits_that_cannot_be_read_are_not_spent_by_us(
    server: ApiServer, kind: str, status: int
) -> None:
    """The right to list is gone, or they do not answer: nothing is bought with their budget, and the alert says why,
    until they are read again."""
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": OWN})
    site.karpenter.pool("gpu", "eight")
    site.tick()
    for n in range(40):
        site.pod(f"p{n}")
    server.fail(status, on=f"GET .*{kind}", times=99)
    site.tick()
    site.karpenter.launch("gpu", 9)
    site.karpenter.register("gpu")
    for _ in range(5 if status == 503 else 1):
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


def test_idle_nodes_go_while_gates_do_not_answer(server: ApiServer) -> None:
    """Nothing is bought with their budgets, and what costs without work costs no longer."""
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": OWN})
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.pod("a")
    site.tick()
    assert site.stage.nodes("own") == 1
    server.fail(503, on="GET .*nodepools", times=999)
    server.store.drop(server.store.resource("pods"), ("ml", "a"))
    for _ in range(20):
        site.tick()
    assert site.stage.nodes("own") == 0


@pytest.mark.parametrize("on", ["GET .*nodepools", "PATCH .*nodepools/.*"], ids=["read", "write"])
def test_gates_that_do_not_answer_are_told_once_it_lasts(server: ApiServer, on: str) -> None:
    """A blip of four minutes is nobody's news, and the next one has five minutes of its own; half an hour is told."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    for minutes, told in ((4, 0), (4, 0), (30, 1)):
        another = {"spec": {"limits": {"nvidia.com/gpu": "9"}}}  # By another hand: ours is to be written again.
        server.store.patch(server.store.resource("nodepools"), ("", "gpu"), another)
        server.fail(503, on=on, times=9999)
        for _ in range(minutes):
            site.tick()
        assert len(site.told("gate-refused")) == told
        server.forget_faults()
        site.tick()
