"""Karpenter's claims as a cloud: what is posted, what is counted, and each of Karpenter's own ways to say no."""

from collections.abc import Iterator
from typing import Any

import pytest
from api_store import Json
from karpenter_claims import CLASS, GPU, KarpenterWorld, claim_pools, on_claims

from pilotlight.adapters.cluster.kubernetes.transport import Missing
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.errors import BadRequest, Conflict, Denied, Forbidden, Unsure
from pilotlight.facts.nodes.pool_state import AskedNode, InstanceState, PoolState
from pilotlight.facts.policy import PoolPolicy

MINUTE = 60
CLAIMS, EVENTS = r"/nodeclaims", r"GET .*/events"
POST, DELETE = f"POST .*{CLAIMS}", f"DELETE .*{CLAIMS}"


@pytest.fixture
def here() -> Iterator[tuple[KarpenterWorld, KarpenterPools]]:
    """A small world behind claims."""
    with on_claims() as made:
        yield made


Here = tuple[KarpenterWorld, KarpenterPools]


def state(pools: KarpenterPools, name: str = "one") -> PoolState:
    """A pool, as the port tells it."""
    return next(one for one in pools.describe() if one.name == name)


def posted(server: KarpenterWorld) -> list[str]:
    """Names of claims that were posted."""
    return [claim["metadata"]["name"] for claim in server.kept]


def test_a_claim_is_of_its_node_pools_template_and_of_no_node_pool(here: Here) -> None:
    """Type, capacity type and zone are the purchase's; it never expires, and no NodePool's label makes it a candidate
    of drift or consolidation. The rest of the template is kept, but for counts of values."""
    server, _ = here
    template: Json = {
        "metadata": {"labels": {"team": "ml", "karpenter.sh/nodepool": "gpu"}},
        "spec": {
            "nodeClassRef": CLASS,
            "expireAfter": "720h",
            "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "boots", "effect": "NoExecute"}],
            "requirements": [
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["one", "two"], "minValues": 2},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
                {"key": "karpenter.k8s.aws/instance-local-nvme", "operator": "Gt", "values": ["100"]},
                {"key": "example.com/rack", "operator": "Exists"},
            ],
        },
    }
    server.node_pool("gpu", template=template)
    pools = claim_pools(server, {"one": PoolPolicy(instance_type="one", capacity_type="spot", cluster_pool="gpu")})
    pools.grow("one", 1, "b", token="step-1")
    (claim,) = server.kept
    name = claim["metadata"].pop("name")
    assert name.startswith("gpu-")
    assert claim["metadata"]["labels"] == {"team": "ml", "pilotlight.dev/pool": "gpu"}
    assert claim["spec"] == {
        "nodeClassRef": CLASS,
        "expireAfter": "Never",
        "taints": template["spec"]["taints"],
        "startupTaints": template["spec"]["startupTaints"],
        "requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["one"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]},
            {"key": "karpenter.k8s.aws/instance-local-nvme", "operator": "Gt", "values": ["100"]},
            {"key": "example.com/rack", "operator": "Exists"},
        ],
    }


def test_the_same_step_has_the_same_names_and_makes_nothing_twice(here: Here) -> None:
    """A name that is there was asked for by this very step: 409 is no error, and no second machine."""
    server, pools = here
    pools.grow("one", 2, token="step-1")
    resource = server.store.resource("nodeclaims")
    first = posted(server)
    for claim in server.claims():  # Another look that came before them.
        server.store.write(resource, {**claim, "metadata": {**claim["metadata"], "labels": {}}})
    pools.grow("one", 2, token="step-1")
    assert (posted(server), server.world.launches) == (first, 2)
    pools.grow("one", 1, token="step-2")
    assert set(posted(server)[2:]).isdisjoint(first)


@pytest.mark.parametrize("what", ["reset", 500, 302, 408, "cut", "truncated", "not json"], ids=str)
def test_an_answer_that_is_lost_is_unsure(here: Here, what: Any) -> None:
    """It is sent once; whether it was done only a look tells."""
    server, pools = here
    server.fail(what, on=POST)
    with pytest.raises(Unsure):
        pools.grow("one", 1, token="step-1")
    assert len(server.lines(POST)) == 1
    assert state(pools).desired == len(server.claims()) == (what in ("cut", "truncated", "not json"))


def test_a_conflict_without_a_claim_of_that_name_made_nothing(here: Here) -> None:
    """Somebody else answers 409, a webhook say: it is no lost answer; where claims may not be read it may be one."""
    server, pools = here
    server.fail(409, on=POST, times=2)
    with pytest.raises(Conflict, match="409, and it is not there"):
        pools.grow("one", 1, token="step-1")
    server.fail(403, on=f"GET .*{CLAIMS}", skip=2, times=9)
    with pytest.raises(Unsure, match="may be there"):
        pools.grow("one", 1, token="step-1")


def test_what_fails_after_the_first_of_several_is_unsure(here: Here) -> None:
    """One was asked for: that nothing was done would be untrue."""
    server, pools = here
    server.before(POST, lambda: server.fail(403, on=POST) if server.kept else None, times=2)
    with pytest.raises(Unsure, match="some of it was asked for"):
        pools.grow("one", 2)
    assert state(pools).desired == 1


def test_a_first_one_that_is_refused_is_as_it_is(here: Here) -> None:
    """Without the right nothing was asked for; a kind that is not served is no claim that is there."""
    server, pools = here
    server.fail(403, on=POST)
    with pytest.raises(Forbidden):
        pools.grow("one", 1)
    server.fail(404, on=POST)
    with pytest.raises(Missing):
        pools.grow("one", 1)
    assert state(pools).desired == 0


SHORT: dict[str, tuple[dict[str, Any], str]] = {
    "none is left": ({"shortage": 1.0}, "no-capacity"),
    "a quota": ({"quota_nodes": 0}, "quota"),
}


@pytest.mark.parametrize(("faults", "reason"), SHORT.values(), ids=SHORT)
def test_a_claim_that_is_deleted_on_a_shortage_is_a_refusal(faults: dict[str, Any], reason: str) -> None:
    """It is gone at once; the Event says why, once for each claim."""
    with on_claims(faults=faults) as (server, pools):
        pools.grow("one", 1)
        told = state(pools)
        assert (told.desired, told.refused, told.owed) == (0, (), 0)
        assert told.refusal is not None
        assert told.refusal.reason == reason
        assert told.refusal.identity == f"{posted(server)[0]}/InsufficientCapacityError"
        assert state(pools, "four").refusal is None


def test_without_the_right_to_events_a_look_goes_on(here: Here) -> None:
    """Then a shortage is a claim that is gone, and nobody says why."""
    server, pools = here
    server.event("one-00000000", "none left")
    server.fail(403, on=EVENTS, times=9)
    assert state(pools).refusal is None


def test_a_claim_that_is_not_launched_waits_in_its_providers_words_and_goes_by_its_name(here: Here) -> None:
    """It is on its way, without a name that a node could have; how long it has waited is told by no clock of ours."""
    server, pools = here
    server.slow = server.idle = True
    pools.grow("one", 1)
    (name,) = posted(server)
    claim = server.store.get("nodeclaims", name)
    why = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "SKUFamilyQuotaExceeded"}
    server.store.write(server.store.resource("nodeclaims"), {**claim, "status": {"conditions": [why]}})
    server.world.advance(30 * MINUTE)
    told = state(pools)
    assert (told.desired, told.booting, told.refused, told.refusal) == (1, (), (), None)
    (waits,) = [one.waits for one in told.asked]
    assert waits is not None
    assert (waits.identity, waits.reason) == (f"{name}/late", "quota")
    assert "SKUFamilyQuotaExceeded" in waits.message
    pools.release("one", name)
    assert (state(pools).desired, server.claims()) == (0, [])


def test_what_is_asked_for_is_told_by_its_name_until_it_goes(here: Here) -> None:
    """With its zone, its machine once that is launched, and whether it is a node; what Karpenter ends is told apart."""
    server, pools = here
    server.slow = True
    (name,) = [one.name for one in pools.grow("one", 1, "b").asked]
    assert [name] == posted(server)
    (told,) = state(pools).asked
    assert (told.name, told.instance, told.zone, told.waits is not None) == (name, "", "b", True)
    server.slow = False
    server.stuck.clear()
    server.launch()
    (machine,), at = server.world.nodes, server.world.clock.now()
    assert state(pools).asked == (AskedNode(name=name, instance=machine, made_at=at, zone="b"),)
    server.world.advance(10 * MINUTE)
    assert state(pools).asked == (AskedNode(name=name, instance=machine, made_at=at, zone="b", joined=True),)


def test_a_machine_that_karpenter_ends_before_it_joins_costs_until_it_is_gone(here: Here) -> None:
    """It is no part of the pool's size, and on its way nowhere; its conditions say why it goes."""
    server, pools = here
    server.dead = server.draining = True
    pools.grow("one", 1)
    (machine,), (name,) = server.world.nodes, posted(server)
    claim = server.store.get("nodeclaims", name)
    why = {"type": "Registered", "status": "Unknown", "reason": "NodeNotFound", "message": "not registered"}
    status = {**claim["status"], "conditions": [*claim["status"]["conditions"], why]}
    server.store.write(server.store.resource("nodeclaims"), {**claim, "status": status})
    server.world.advance(16 * MINUTE)
    told = state(pools)
    assert (told.desired, told.asked, told.refused) == (0, (), ())
    assert [(one.instance, one.going is not None) for one in told.booting] == [(machine, True)]
    (late,) = told.ended
    assert (late.identity, late.reason) == (f"{name}/going", "other")
    assert "NodeNotFound: not registered" in late.message
    claim = server.store.get("nodeclaims", name)
    ends = {"type": "InstanceTerminating", "status": "True", "reason": "InstanceTerminating", "message": ""}
    status = {**claim["status"], "conditions": [*claim["status"]["conditions"], ends]}
    server.store.write(server.store.resource("nodeclaims"), {**claim, "status": status})
    assert state(pools).booting == ()


UNLAUNCHED = {
    "UnauthorizedOperation": "other",
    "RequestLimitExceeded: request limit exceeded": "other",
    "MaxSpotInstanceCountExceeded: max spot instance count exceeded": "quota",
    "VcpuLimitExceeded": "quota",
    "OperationNotAllowed: exceeding approved LowPriorityCores quota": "quota",
    "ZonalAllocationFailed": "no-capacity",
}


@pytest.mark.parametrize(("said", "reason"), UNLAUNCHED.items(), ids=UNLAUNCHED)
def test_a_claim_that_is_not_launched_is_told_by_its_providers_words(here: Here, said: str, reason: str) -> None:
    """A right that is missing, or throttling, is no shortage: another zone would not have it either."""
    server, pools = here
    server.slow = server.idle = True
    pools.grow("one", 1)
    (name,) = posted(server)
    claim = server.store.get("nodeclaims", name)
    why = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": said}
    server.store.write(server.store.resource("nodeclaims"), {**claim, "status": {"conditions": [why]}})
    (told,) = [one.waits for one in state(pools).asked]
    assert told is not None
    assert (told.reason, said in told.message) == (reason, True)


def test_a_claim_that_drains_is_no_part_of_its_pool_and_is_deleted_once(here: Here) -> None:
    """Karpenter's finalizer keeps it until its machine is gone: it goes, and is there until then."""
    server, pools = here
    server.draining = True
    pools.grow("one", 1)
    (machine,) = server.world.nodes
    for _ in range(2):
        pools.release("one", machine)
    assert (len(server.lines(DELETE)), state(pools).desired) == (1, 0)
    found = pools.instance("one", machine)
    assert found is not None
    assert (found.there, found.going, found.runs) == (True, True, False)
    server.end()
    assert pools.instance("one", machine) == InstanceState(there=False)


def test_another_claim_of_its_name_is_left(here: Here) -> None:
    """The one that was read is the one that goes."""
    server, pools = here
    pools.grow("one", 1)
    (machine,), (claim,) = server.world.nodes, server.claims()
    meta = {**claim["metadata"], "uid": "another"}
    server.before(DELETE, lambda: _again(server, {**claim, "metadata": meta}))
    pools.release("one", machine)
    assert len(server.claims()) == 1


def _again(server: KarpenterWorld, claim: Json) -> None:
    resource = server.store.resource("nodeclaims")
    server.store.drop(resource, ("", claim["metadata"]["name"]))
    server.store.write(resource, claim)


OPEN: dict[str, tuple[dict[str, Any], bool]] = {
    "it has no limit": ({"limit": None}, True),
    "its limit lets it buy": ({"limit": "8"}, True),
    "its limit is 0": ({"limit": "0"}, False),
    "it is static and keeps none": ({"limit": None, "replicas": 0}, False),
    "it is static and keeps some": ({"limit": None, "replicas": 2}, True),
}


@pytest.mark.parametrize(("fields", "closed"), OPEN.values(), ids=OPEN)
def test_a_node_pool_that_buys_by_itself_is_left_to_karpenter(here: Here, fields: dict[str, Any], closed: bool) -> None:
    """Both would buy for the same pods: it is refused with both ways out, and nothing is posted."""
    server, pools = here
    server.node_pool("one", **fields)
    rules = state(pools).rules
    assert rules is not None
    assert bool(rules.closed) is closed
    if closed:
        assert "limits nvidia.com/gpu to 0" in rules.closed
        with pytest.raises(BadRequest, match="karpenter:one"):
            pools.grow("one", 1)
        assert server.kept == []
    else:
        pools.grow("one", 1)
        assert state(pools).desired == 1


def test_a_pool_without_a_node_pool_is_not_told_and_not_bought(here: Here) -> None:
    """What to mend is said."""
    server, pools = here
    server.store.remove("nodepools", "four")
    assert [one.name for one in pools.describe()] == ["one", "eight"]
    with pytest.raises(BadRequest, match=r"no NodePool four: create it, or mend pools\.four"):
        pools.grow("four", 1)


def test_a_node_pool_whose_class_is_not_ready_is_not_bought_by(here: Here) -> None:
    """Karpenter would delete each claim at once: it is refused in its words, and what is there may still go."""
    server, pools = here
    pools.grow("one", 1)
    pool = server.store.get("nodepools", "one")
    bad = {"type": "NodeClassReady", "status": "False", "reason": "NodeClassNotFound", "message": "no EC2NodeClass gpu"}
    server.store.write(server.store.resource("nodepools"), {**pool, "status": {"conditions": [bad]}})
    with pytest.raises(Denied, match="NodeClassNotFound: no EC2NodeClass gpu"):
        pools.grow("one", 2)
    assert len(server.kept) == 1
    (machine,) = server.world.nodes
    pools.release("one", machine)
    assert server.claims() == []


def test_without_karpenters_kinds_the_way_out_is_said(here: Here) -> None:
    """It was uninstalled: what its claims launched bills on, and nobody else would say so."""
    server, pools = here
    server.fail(404, on="GET .*/nodeclaims")
    with pytest.raises(BadRequest, match=r"install Karpenter's CRDs and Karpenter again; .* they go on billing"):
        pools.describe()


def test_claims_of_karpenters_own_are_none_of_ours(here: Here) -> None:
    """They carry no label of ours, and count nowhere."""
    server, pools = here
    meta = {"name": "gpu-x", "labels": {"karpenter.sh/nodepool": "one"}}
    server.store.write(
        server.store.resource("nodeclaims"),
        {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": meta, "spec": {}, "status": {}},
    )
    assert state(pools).desired == 0
    pools.release("one", "gpu-x")
    assert server.lines(DELETE) == []


def test_a_claim_that_waits_costs_nothing_until_its_provider_launched_it(here: Here) -> None:
    """It is on its way, and its machine is as old, from when the claim says that it was launched."""
    server, pools = here
    server.slow = True
    pools.grow("one", 1, token="step-1")
    server.world.advance(4 * MINUTE)
    assert state(pools).booting == ()
    server.stuck.clear()
    server.launch()
    launched = server.world.clock.now().replace(microsecond=0)
    server.world.advance(5 * MINUTE)
    (booting,) = state(pools).booting
    told = pools.instance("one", booting.instance)
    assert told is not None
    assert (booting.requested_at, told.created_at) == (launched, launched)
