"""One new plan: made where doubt about fit, the account's quotas, or both have an answer; its record says which."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from stage import Stage

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import CapacityType, ClusterView
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.cycle import planning
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.records import ledger
from pilotlight.ports.clouds import QuotaPools
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools


class Unbound(WorldCluster):
    """A cluster with a pod that its scheduler never binds."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.world)
        made = {"namespace": "ml", "name": "picky", "shape": shape(gpu=GpuRequest(count=1)), "said": "no node"}
        self.pod = PodDemand(uid="uid-picky", created_at=stage.world.clock.now(), **made)  # type: ignore[arg-type]

    def observe(self) -> ClusterView:
        """With the pod, for ever."""
        view = super().observe()
        return msgspec.structs.replace(view, pending=(*view.pending, self.pod))


class WithQuotas(WorldPools):
    """A cloud whose account may run so many nodes of each pool."""

    def __init__(self, stage: Stage, **most: int) -> None:
        super().__init__(stage.world)
        self.most, self.asked = most, 0

    def quotas(self, types: Mapping[str, tuple[str, CapacityType]]) -> Mapping[str, Quota]:
        """One quota a pool; nothing else runs."""
        self.asked += 1
        return {pool: Quota(name=pool, limit=self.most[pool], used=0, takes=1) for pool in types if pool in self.most}


class Counted:
    """The plan, and how often it was made."""

    def __init__(self) -> None:
        self.looks: list[Look] = []

    def __call__(self, look: Look) -> Plan:
        """A plan."""
        self.looks.append(look)
        return plan_cluster(look)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts of the plans that a cycle makes."""
    counted = Counted()
    monkeypatch.setattr(planning, "plan_cluster", counted)
    return counted


def stage_with(**most: int) -> tuple[Stage, WithQuotas, Unbound]:
    """A cluster of two kinds of one-GPU pools, such a pod, and an account with quotas."""
    pools = {name: PoolPolicy(instance_type="one", max=20) for name in ("one", "two")}
    stage = Stage(pools=pools, classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300)})
    cloud, cluster = WithQuotas(stage, **most), Unbound(stage)
    stage.deps = replace(stage.deps, cluster=cluster, pools=cloud)
    return stage, cloud, cluster


def records(stage: Stage) -> list[Record]:
    """Every decision, the oldest first."""
    return sorted(ledger.filed_records(stage.deps.state, stage.deps.name), key=lambda record: record.at)


def look(stage: Stage, cluster: Unbound) -> None:
    """A look for the pod, at an event of now."""
    stage.event(cluster.pod, identity=str(stage.world.clock.now()))


def test_a_purchase_within_quotas_is_planned_once(plans: Counted) -> None:
    """The account's quotas are read, leave room, and nothing is planned anew."""
    stage, cloud, cluster = stage_with(one=5, two=5)
    look(stage, cluster)
    assert (len(plans.looks), cloud.asked, stage.world.launches) == (1, 1, 1)
    assert [record.plan.again for record in records(stage)] == [()]


def test_a_quota_that_is_used_up_makes_one_new_plan(plans: Counted) -> None:
    """The other pool is bought, after one new plan, and the record says for what."""
    stage, cloud, cluster = stage_with(one=0, two=5)
    look(stage, cluster)
    assert (len(plans.looks), cloud.asked, stage.nodes("one"), stage.world.launches) == (2, 1, 0, 1)
    assert [record.plan.again for record in records(stage)] == [("quotas",)]


def test_doubt_and_quotas_together_make_one_new_plan(plans: Counted) -> None:
    """A pod stays unbound beside its ready node, and the account is full: both are asked, one new plan is made."""
    stage, cloud, cluster = stage_with(one=1, two=0)
    look(stage, cluster)
    stage.wait(240)
    assert stage.world.launches == 1
    for seconds in (60, 65):
        look(stage, cluster)
        stage.wait(seconds)
    plans.looks.clear()
    cloud.asked = 0
    look(stage, cluster)
    assert (len(plans.looks), cloud.asked, stage.world.launches) == (2, 1, 1)
    assert plans.looks[1].asks == frozenset()
    assert records(stage)[-1].plan.again == ("fit", "quotas")


def test_a_doubt_that_is_not_due_makes_no_new_plan(plans: Counted) -> None:
    """A pod that seems to fit for some seconds is watched; the plan stays."""
    stage, _, cluster = stage_with(one=5, two=5)
    look(stage, cluster)
    stage.wait(240)
    plans.looks.clear()
    look(stage, cluster)
    assert len(plans.looks) == 1


def test_a_preview_asks_for_quotas_alone(plans: Counted) -> None:
    """A dry run changes nothing: it gives up no belief, and honours the quotas."""
    stage, cloud, _ = stage_with(one=0, two=5)
    _, plan = preview(stage.deps, releases=True)
    assert isinstance(cloud, QuotaPools)
    assert ([buy.pool for buy in plan.buys], plan.again, cloud.asked) == (["two"], ("quotas",), 1)
    assert all("fit" not in look.asks for look in plans.looks)
