"""Karpenter behind budgets: the real adapter over a stand-in API server, and a Karpenter that overshoots as it may."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from api_server import ApiServer, api_server
from gated_site import GATED, NODE, GatedSite
from karpenter import GPU
from msgspec.structs import replace as changed
from stage import START

from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.limits.brakes import Pause
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWhen
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Caps
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.cycle.planning import preview
from pilotlight.state_schema.cluster_records import PAUSE


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


def test_a_limit_is_what_is_there_and_what_the_budget_has_room_for(server: ApiServer) -> None:
    """Three nodes' dollars open three nodes; as they come the limit stays, and no fourth is ever bought."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    answer = site.tick()
    assert site.karpenter.limit("gpu") == "24"
    assert answer.did == (
        "set NodePool gpu: limit of nvidia.com/gpu 64 -> 24: 0 are there, and budgets have room for 3 more nodes",
    )
    for _ in range(6):
        site.karpenter.launch("gpu", 9)
        site.karpenter.register("gpu")
        site.tick()
        assert site.karpenter.limit("gpu") == "24"
    assert site.karpenter.machines("gpu") == 3
    assert len(server.lines("PATCH .*nodepools")) == 1
    assert site.within_budget()
    assert site.notes() == {"pilotlight.dev/gpu-limit-before": "64", "pilotlight.dev/gpu-limit": "24"}


def test_nothing_is_written_where_pilotlight_only_advises(server: ApiServer) -> None:
    """In mode advise the limit is said and not set."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.deps = replace(site.deps, mode="advise")
    (said,) = site.tick().did
    assert said.startswith("would set NodePool gpu: limit of nvidia.com/gpu none -> 24: 0 are there")
    assert site.karpenter.limit("gpu") is None
    assert server.lines("PATCH") == []


def test_a_preview_says_each_limit_and_writes_none(server: ApiServer) -> None:
    """Limit now and then, a node's dollars, and why; a plan of ours leaves the dollars behind it alone."""
    own = PoolPolicy(instance_type="one", max=40)
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": own})
    site.karpenter.pool("gpu", "eight", limit="64")
    for n in range(20):
        site.pod(f"p{n}")
    plan = preview(site.deps, releases=True)[1]
    (gate,) = plan.gates
    assert (gate.pool, gate.now, gate.limit) == ("gpu", "64", 24)
    assert gate.why == "0 are there, and budgets have room for 3 more nodes"
    assert NODE - 20 < gate.usd_a_node < NODE
    assert sum(buy.count for buy in plan.buys) == 17
    assert server.lines("PATCH") == []


def test_a_preview_without_memory_pays_for_what_runs(server: ApiServer) -> None:
    """Nodes that nothing is held for in its state take their dollars all the same: the limit is that of a tick."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.karpenter.launch("gpu", 2)
    site.karpenter.register("gpu")
    site.tick()
    for deps in (site.deps, replace(site.deps, state=MemoryState(site.deps.clock))):
        assert [gate.limit for gate in preview(deps, releases=True)[1].gates] == [24]


def test_without_dollars_the_pool_is_closed(server: ApiServer) -> None:
    """A budget without room for one node sets the limit to nothing, and Karpenter buys none."""
    site = GatedSite(server, 0)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    assert site.karpenter.limit("gpu") == "0"
    assert site.karpenter.launch("gpu") == 0


def test_what_karpenter_may_light_is_not_spent_by_us(server: ApiServer) -> None:
    """Of 20 pods 17 get a node: the rest of the dollars stands behind a limit, and is there when Karpenter uses it."""
    own = PoolPolicy(instance_type="one", max=20)
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": own})
    site.karpenter.pool("gpu", "eight")
    site.tick()
    for n in range(20):
        site.pod(f"p{n}")
    site.tick()
    assert site.stage.nodes("own") == 17
    assert site.karpenter.limit("gpu") == "24"
    site.karpenter.launch("gpu", 9)
    site.karpenter.register("gpu")
    site.tick()
    assert site.within_budget()


def test_dollars_of_a_limit_that_sinks_are_free_a_look_later(server: ApiServer) -> None:
    """Karpenter may be buying within the limit of a moment ago: at the look that closes it nobody else spends them."""
    own = PoolPolicy(instance_type="one", max=40)
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": own})
    site.karpenter.pool("gpu", "eight")
    site.tick()
    PAUSE.put(site.deps.state, "c/gpu", Pause(reason="maintenance", at=site.deps.now()))
    for n in range(40):
        site.pod(f"p{n}")
    site.tick()
    assert (site.karpenter.limit("gpu"), site.stage.nodes("own")) == ("0", 17)
    site.tick()
    assert site.stage.nodes("own") == 40


@pytest.mark.parametrize(("what", "limit"), [("cut", "24"), ("reset", "0")])
def test_dollars_of_a_limit_whose_answer_is_lost_are_not_spent_by_us(server: ApiServer, what: str, limit: str) -> None:
    """Whether it was raised only the next look tells: at this one nobody else spends what it may have opened."""
    own = PoolPolicy(instance_type="one", max=40)
    site = GatedSite(server, 3, pools={"gpu": GATED, "own": own})
    site.karpenter.pool("gpu", "eight")
    PAUSE.put(site.deps.state, "c/gpu", Pause(reason="maintenance", at=site.deps.now()))
    site.tick()
    PAUSE.delete(site.deps.state, "c/gpu")
    for n in range(40):
        site.pod(f"p{n}")
    server.fail(what, on="PATCH .*/nodepools/gpu", times=9)
    site.tick()
    assert (site.karpenter.limit("gpu"), site.stage.nodes("own")) == (limit, 17)


@pytest.mark.parametrize(
    ("caps", "limit"),
    [({"nodes": 4}, "16"), ({"gpus": 20}, "16"), ({"usd_per_hour": Decimal(90)}, "16"), ({"nodes": 2}, "0")],
)
def test_caps_bound_what_karpenter_may_light(server: ApiServer, caps: dict[str, Any], limit: str) -> None:
    """Beside two nodes of ours that are lit a limit leaves no more than each cap does."""
    own = PoolPolicy(instance_type="one", max=40)
    site = GatedSite(server, 9, pools={"gpu": GATED, "own": own}, caps=Caps(**caps))
    site.karpenter.pool("gpu", "eight")
    for n in range(2):
        site.stage.deps.pools.grow("own", n + 1)
    site.tick()
    assert site.karpenter.limit("gpu") == limit


class Ending:
    """Pools of which one has a machine that its cloud is ending, and that is no node any more."""

    def __init__(self, inner: Any, pool: str) -> None:
        self._inner, self._pool = inner, pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def describe(self) -> list[PoolState]:
        """All of them."""
        one = Booting(instance="x", requested_at=START, going=START)
        told = self._inner.describe()
        return [changed(pool, booting=(one,)) if pool.name == self._pool else pool for pool in told]


def test_a_machine_that_its_cloud_ends_and_still_bills_counts_against_a_cap(server: ApiServer) -> None:
    """Of four nodes one is taken until it is gone: a limit opens three."""
    own = PoolPolicy(instance_type="one", max=40)
    site = GatedSite(server, 9, pools={"gpu": GATED, "own": own}, caps=Caps(nodes=4))
    site.karpenter.pool("gpu", "eight")
    site.deps = replace(site.deps, pools=Ending(site.deps.pools, "own"))
    site.tick()
    assert site.karpenter.limit("gpu") == "24"


def test_a_rule_of_hours_bounds_a_limit(server: ApiServer) -> None:
    """Where the policy lets a pool have one node at this hour, Karpenter may light one."""
    hours = RuleTime(days=("mon", "tue", "wed", "thu", "fri", "sat", "sun"), start="00:00", end="23:59", timezone="UTC")
    rule = Rule(name="night", when=RuleWhen(time=hours), does=RuleSet(max={"gpu": 1}))
    site = GatedSite(server, 3, rules=(rule,))
    site.karpenter.pool("gpu", "eight")
    site.tick()
    assert site.karpenter.limit("gpu") == "8"


def test_two_pools_share_a_budget_by_weight(server: ApiServer) -> None:
    """A NodePool of three times the weight gets three times the nodes."""
    other = PoolPolicy(cluster_pool="karpenter:other", instance_type="eight", max=20)
    site = GatedSite(server, 8, pools={"gpu": GATED, "other": other})
    site.karpenter.pool("gpu", "eight", spec={"weight": 30})
    site.karpenter.pool("other", "eight", spec={"weight": 10})
    site.tick()
    assert (site.karpenter.limit("gpu"), site.karpenter.limit("other")) == ("48", "16")


def test_a_budget_of_another_pool_says_nothing(server: ApiServer) -> None:
    """Where no hard budget counts the pool it is left as it is, and that is told once."""
    budgets = (
        Budget(name="t", usd=Decimal(9000), scope=BudgetScope(team="t")),
        Budget(name="soft", usd=Decimal(1), hard=False),
    )
    site = GatedSite(server, 0, budgets=budgets)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    site.tick()
    assert site.karpenter.limit("gpu") == "64"
    assert site.told("gate-refused") == ["no hard budget counts it: write one of scope all, or of this pool"]


@pytest.mark.parametrize("usd", ["600", "2000"])
def test_a_budget_that_shrinks_opens_nothing_and_takes_nothing(server: ApiServer, usd: str) -> None:
    """Machines that are lit stay and are counted; the limit is what is there, or one more where that fits."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.karpenter.launch("gpu", 2)
    site.karpenter.register("gpu")
    site.tick()
    site.deps = replace(site.deps, policy=changed(site.deps.policy, budgets=(Budget(name="all", usd=Decimal(usd)),)))
    site.tick()
    assert site.karpenter.limit("gpu") == "16"
    assert (site.karpenter.launch("gpu", 5), site.karpenter.machines("gpu")) == (0, 2)


def test_a_dearer_price_opens_fewer_nodes(server: ApiServer) -> None:
    """At twice the price of before the dollars of three nodes are those of one."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    offers = [changed(each, usd_per_hour=2 * each.usd_per_hour) for each in site.deps.offerings]
    site.deps = replace(site.deps, offerings=tuple(offers))
    site.tick()
    assert site.karpenter.limit("gpu") == "8"


def test_a_pool_whose_price_is_gone_is_closed(server: ApiServer) -> None:
    """Once a type has no price, nobody knows the dollars behind a limit of ours: it opens nothing, and that is told."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    site.deps = replace(site.deps, offerings=())
    site.tick()
    assert (site.karpenter.limit("gpu"), site.karpenter.launch("gpu")) == ("0", 0)
    assert site.told("gate-refused") == ["its instance type has no price, or no GPU"]


def test_a_limit_that_another_hand_sets_is_set_again_and_told(server: ApiServer) -> None:
    """A GitOps tool that writes its own value is named with the field that it should ignore."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    owned: Any = {"f:spec": {"f:limits": {f"f:{GPU}": {}}}}
    meta = {"managedFields": [{"manager": "argocd-controller", "fieldsV1": owned}]}
    store = server.store
    store.patch(store.resource("nodepools"), ("", "gpu"), {"metadata": meta, "spec": {"limits": {GPU: "64"}}})
    site.tick()
    assert site.karpenter.limit("gpu") == "24"
    (why,) = site.told("gate-reverted")
    assert why.startswith("argocd-controller set its limit to 64, and ours was 24")
    assert "ignoreDifferences: [{group: karpenter.sh, kind: NodePool, name: gpu, jsonPointers: [/spec/limits/" in why
    assert "syncOptions: [RespectIgnoreDifferences=true]" in why


@pytest.mark.parametrize("stop", ["8", "0"])
def test_a_limit_that_its_owner_lowers_holds_until_he_raises_it(server: ApiServer, stop: str) -> None:
    """No room in a budget overrules an owner's stop, which is given back as it is; nobody is told to ignore it."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    limits = {"spec": {"limits": {GPU: stop}}}
    server.store.patch(server.store.resource("nodepools"), ("", "gpu"), limits)
    for _ in range(3):
        site.tick()
        site.karpenter.launch("gpu", 9)
        site.karpenter.register("gpu")
    assert (site.karpenter.limit("gpu"), site.karpenter.machines("gpu")) == (stop, int(stop) // 8)
    assert site.told("gate-reverted") == []
    server.store.patch(server.store.resource("nodepools"), ("", "gpu"), {"spec": {"limits": {GPU: "64"}}})
    site.tick()
    assert site.karpenter.limit("gpu") == "24"


@pytest.mark.parametrize(("changes", "limit"), [({"weight": 2}, "24"), ({"limits": {GPU: "48"}}, "48")])
def test_a_nodepool_that_changed_meanwhile(server: ApiServer, changes: dict[str, Any], limit: str) -> None:
    """What Karpenter writes of it stops no limit; one that another hand has just set is met at the next look."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    store = server.store
    server.before(
        "PATCH /apis/karpenter", lambda: store.patch(store.resource("nodepools"), ("", "gpu"), {"spec": changes})
    )
    site.tick()
    assert site.karpenter.limit("gpu") == limit
    site.tick()
    assert site.karpenter.limit("gpu") == "24"


def test_where_karpenter_alone_buys_no_cloud_is_asked(server: ApiServer) -> None:
    """With PILOTLIGHT_POOLS=karpenter the limit is set, and nobody else buys for a pod that Karpenter serves."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.deps = replace(site.deps, pools=KarpenterPools(None, {}))
    site.pod("p", 8)
    did = site.tick().did
    assert site.karpenter.limit("gpu") == "24"
    assert not any(line.startswith("bought") for line in did)
    assert site.stage.nodes("gpu") == 0


def test_a_cluster_without_karpenter_is_told_and_served(server: ApiServer) -> None:
    """Where NodePools are not known the tick says so in a finding, and does the rest of its work."""
    site = GatedSite(server, 3)
    for name in ("nodepools", "nodeclaims"):
        server.store.resources.pop(("karpenter.sh/v1", name))
    site.tick()
    assert len(site.told("gate-refused")) == 1


def test_a_paused_pool_is_not_opened_further(server: ApiServer) -> None:
    """While people pause a pool its limit is what is there."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.karpenter.launch("gpu")
    site.karpenter.register("gpu")
    PAUSE.put(site.deps.state, "c/gpu", Pause(reason="maintenance", at=site.deps.now()))
    site.tick()
    assert site.karpenter.limit("gpu") == "8"


# Karpenter's overshoots, one at a time: machines that are billed stay within what the budget holds.


def test_a_node_that_drains_uncounted_is_not_bought_again(server: ApiServer) -> None:
    """Karpenter forgets a node that drains; our limit sinks by it, as its dollars are spent there still."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.karpenter.launch("gpu", 3)
    site.karpenter.register("gpu")
    site.tick()
    site.karpenter.drain("gpu")
    site.tick()
    assert site.karpenter.limit("gpu") == "16"
    assert site.karpenter.launch("gpu") == 0
    assert site.karpenter.machines("gpu") == 3


def test_an_expiry_is_met_before_it_comes(server: ApiServer) -> None:
    """The limit sinks minutes before a claim expires, so that its GPUs are not lit twice in between."""
    site = GatedSite(server, 3)
    claims = {"template": {"spec": {"requirements": [], "expireAfter": "1h"}}}
    site.karpenter.pool("gpu", "eight")
    found = server.store.get("nodepools", "gpu")
    claims["template"]["spec"]["requirements"] = found["spec"]["template"]["spec"]["requirements"]
    server.store.patch(server.store.resource("nodepools"), ("", "gpu"), {"spec": claims})
    site.tick()
    site.karpenter.launch("gpu", 3)
    site.karpenter.register("gpu")
    site.tick()
    site.tick(57 * 60.0)
    assert site.karpenter.limit("gpu") == "0"
    for _ in range(3):
        site.karpenter.drain("gpu")
    assert site.karpenter.launch("gpu", 3) == 0


def test_replacements_are_paid_for_beside_the_old_node(server: ApiServer) -> None:
    """Where drift may replace one node, the dollars of one stay free: the replacement passes no budget."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", spec={"disruption": {"budgets": [{"nodes": "1"}]}})
    site.tick()
    assert site.karpenter.launch("gpu", 9) == 2
    site.karpenter.register("gpu")
    site.tick()
    assert site.karpenter.limit("gpu") == "16"
    assert site.karpenter.replace("gpu") == 1
    site.karpenter.register("gpu")
    site.tick()
    assert site.karpenter.machines("gpu") == 3
    assert site.karpenter.launch("gpu") == 0
    assert site.within_budget()


@pytest.mark.parametrize("shows", [0, 80], ids=["MIG or DRA", "time-slicing"])
def test_nodes_that_show_other_gpus_close_the_pool(server: ApiServer, shows: int) -> None:
    """Once a node of ours shows no GPU or replicas Karpenter counts those: nothing more is opened."""
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight")
    site.tick()
    site.karpenter.launch("gpu")
    site.karpenter.register("gpu", shows=shows)
    site.tick()
    assert site.karpenter.limit("gpu") == "0"
    assert site.karpenter.launch("gpu", 5) == 0
    assert "no limit holds where MIG, time-slicing or DRA share GPUs" in site.told("gate-refused")[0]
