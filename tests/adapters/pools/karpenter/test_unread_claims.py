"""Karpenter's claims that cannot be read, NodePools that do not answer, and claims of a pool that is a gate since."""

from collections.abc import Iterator

import pytest
from api_store import Json
from karpenter_claims import POOL, KarpenterWorld, claim_pools, on_claims

from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.errors import BadRequest
from pilotlight.facts.policy import PoolPolicy

DELETE = "DELETE .*/nodeclaims"
GATE = {"one": PoolPolicy(instance_type="one", cluster_pool="karpenter:one")}


@pytest.fixture
def here() -> Iterator[tuple[KarpenterWorld, KarpenterPools]]:
    """A small world behind claims."""
    with on_claims() as made:
        yield made


Here = tuple[KarpenterWorld, KarpenterPools]


ODD: dict[str, Json] = {
    "a field of another kind": {"status": {"providerID": 7}},
    "a number beyond a claim's": {"status": {"capacity": {"nvidia.com/gpu": [8]}}},
    "a time that is none": {"status": {"conditions": [{"type": "Launched", "lastTransitionTime": "soon"}]}},
    "no requirements": {"spec": {"requirements": 3}},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_claim_that_cannot_be_read_costs_its_pool_alone(here: Here, odd: Json) -> None:
    """It may be a machine: it counts, its pool is not bought from and told by the claim's name, and what else is there
    of that pool goes back; the other pool goes on."""
    server, pools = here
    pools.grow("one", 2)
    pools.grow("eight", 1)
    bad, good = [claim for claim in server.claims() if claim["metadata"]["labels"][POOL] == "one"]
    server.store.write(server.store.resource("nodeclaims"), {**bad, **odd})
    told = {each.name: each for each in pools.describe()}
    one, eight = told["one"], told["eight"]
    name = bad["metadata"]["name"]
    assert one.rules is not None
    assert one.unread.startswith(f"NodeClaim {name} cannot be read: ")
    assert (one.desired, one.hidden, one.rules.closed, one.rules.starves) == (2, True, one.unread, True)
    assert one.rules.gives == (good["status"]["providerID"].rpartition("/")[2],)
    assert (eight.desired, eight.unread, bool(eight.rules and eight.rules.closed)) == (1, "", False)
    assert (pools.instance("one", name), pools.instance("one", "gone")) == (None, None)
    for ask in (lambda: pools.grow("one", 3), lambda: pools.release("one", name), lambda: pools.release("one", "gone")):
        with pytest.raises(BadRequest, match=name):
            ask()
    pools.release("one", good["metadata"]["name"])
    assert pools.grow("eight", 2).desired == 2
    assert len(server.lines(DELETE)) == 1


def test_our_claims_are_known_though_node_pools_do_not_answer(here: Here) -> None:
    """Every pool says that nothing is bought there for now, and what it has goes back as ever."""
    server, pools = here
    pools.grow("one", 1)
    server.fail(503, on="GET .*/nodepools", times=99)
    told = {each.name: each for each in pools.describe()}
    assert told.keys() == server.world.fleet.pools.keys()
    for each in told.values():
        assert each.rules is not None
        assert "NodePools do not answer" in each.rules.closed
        assert (each.rules.silent, each.rules.starves, each.unread) == (True, True, "")
        assert (each.desired, len(each.rules.gives)) == ((1, 1) if each.name == "one" else (0, 0))
    pools.release("one", server.claims()[0]["metadata"]["name"])
    assert server.claims() == []


def test_events_that_do_not_answer_keep_nothing_from_being_read(here: Here) -> None:
    """They only say why: what is gone is seen without them."""
    server, pools = here
    pools.grow("one", 1)
    server.fail(503, on="GET .*/events", times=99)
    assert {each.name: each.desired for each in pools.describe()}["one"] == 1


def test_gates_alone_are_bought_for_nowhere() -> None:
    """A policy of gates asks the API server for claims of ours alone, and changes nothing."""
    with on_claims() as (server, _):
        pools = claim_pools(server, GATE)
        assert pools.describe() == []
        with pytest.raises(BadRequest):
            pools.grow("one", 1)
        pools.release("one", "n1")
        assert {line.partition("?")[0] for line in server.lines()} == {"GET /apis/karpenter.sh/v1/nodeclaims"}
    alone = KarpenterPools(None, {"one": PoolPolicy(instance_type="one")})
    assert alone.describe() == ()


@pytest.mark.parametrize(("status", "silent"), [(503, True), (403, False)])
def test_a_gate_whose_claims_cannot_be_read_is_not_seen_whole(status: int, silent: bool) -> None:
    """Some may be ours, from before it was one."""
    with on_claims() as (server, _):
        server.fail(status, on="GET .*/nodeclaims", times=99)
        (gate,) = claim_pools(server, GATE).describe()
        assert gate.rules is not None
        assert (gate.hidden, gate.rules.silent) == (True, silent)
        assert gate.unread.startswith("its NodeClaims cannot be read: ")


def test_a_pool_that_became_a_gate_gives_back_its_claims_of_ours(here: Here) -> None:
    """Karpenter ends none that no NodePool has; its own are no matter of ours."""
    server, pools = here
    pools.grow("one", 1)
    (ours,) = server.claims()
    meta = {"name": "theirs", "labels": {POOL: "one", "karpenter.sh/nodepool": "one"}}
    server.add({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}, "status": {}})
    gate = claim_pools(server, GATE)
    (one,) = gate.describe()
    assert one.rules is not None
    assert (one.desired, one.rules.closed, len(one.rules.gives)) == (1, "", 1)
    with pytest.raises(BadRequest):
        gate.grow("one", 2)
    gate.release("one", "theirs")
    gate.release("one", one.rules.gives[0])
    assert [claim["metadata"]["name"] for claim in server.claims()] == ["theirs"]
    assert ours["metadata"]["name"] != "theirs"
