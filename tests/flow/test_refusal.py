"""A cloud that tells later that it could not launch: its offering rests, and demand goes elsewhere."""

from datetime import timedelta
from typing import Any

import pytest
from stage import START, Stage

from pilotlight.errors import Busy, QuotaExceeded
from pilotlight.facts.messages import CapacityFailed
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.flow.answer import Answer
from pilotlight.flow.records import lease, ledger
from pilotlight.flow.refusal import pool_of, refusal


def _fail(stage: Stage, group: str = "one", **said: Any) -> Answer:
    dry_run = said.pop("dry_run", False)
    said = {"reason": "no-capacity", "identity": "r1", "at": stage.world.clock.now(), **said}
    return refusal(stage.deps, CapacityFailed(cluster="c", group=group, message="no T4 left", **said), dry_run=dry_run)


def _resting(stage: Stage) -> dict[str, float]:
    """The offerings at rest, and for how long."""
    now = stage.world.clock.now()
    memory = ledger.recall(stage.deps.state, "c").memory
    return {b.offering: (b.until - now).total_seconds() for b in memory.backoffs if b.until > now}


def test_a_refused_pool_rests_and_what_waits_goes_to_another() -> None:
    """The next pod is not put on the pool whose cloud has nothing, though it is the cheapest."""
    stage = Stage()
    _fail(stage)
    assert list(_resting(stage)) == ["one/one/on-demand"]
    stage.event(stage.submit("p", workload_class="batch"))
    assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


def test_a_quota_rests_for_longer_than_a_shortage() -> None:
    """A shortage passes in a minute, a quota is mended by people; what is neither is tried again soon."""
    rests = {}
    for reason in ("no-capacity", "quota", "other"):
        stage = Stage()
        _fail(stage, reason=reason)
        [rests[reason]] = _resting(stage).values()
    assert 60 <= rests["no-capacity"] < 70
    assert 600 <= rests["quota"] < 670
    assert 60 <= rests["other"] < 70


def test_the_same_refusal_again_changes_nothing() -> None:
    """A second delivery is answered; the rest does not double."""
    stage = Stage()
    _fail(stage)
    before = _resting(stage)
    assert _fail(stage).why == "this refusal was handled already"
    assert _resting(stage) == before
    _fail(stage, identity="r2")
    assert _resting(stage)["one/one/on-demand"] > 110


def test_a_refusal_of_a_zone_rests_only_that_zone() -> None:
    """Another zone of the pool may have what this one has not."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", zones=("a", "b"))})
    _fail(stage, zone="a")
    assert list(_resting(stage)) == ["one/one/a/on-demand"]


def test_a_quota_that_is_refused_in_one_zone_rests_every_zone() -> None:
    """It counts a region: another zone is not asked in vain, whether the cloud says so at once or later."""
    zones = {"one": PoolPolicy(instance_type="one", zones=("a", "b"))}
    later, at_once = Stage(pools=zones), Stage(pools=zones)
    _fail(later, zone="a", reason="quota")
    at_once.fail("grow", QuotaExceeded("0 of this type"))
    at_once.event(at_once.submit("p", workload_class="batch"))
    assert sorted(_resting(later)) == sorted(_resting(at_once)) == ["one/one/a/on-demand", "one/one/b/on-demand"]
    assert at_once.world.launches == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param({"group": "eks-other-1"}, "no pool of the policy is called eks-other-1", id="another's group"),
        pytest.param({"at": START - timedelta(days=2)}, "too long to still hold", id="yesterday's"),
    ],
)
def test_a_refusal_of_no_use_is_answered_and_changes_nothing(said: dict[str, Any], why: str) -> None:
    """It is no error: others' groups and late events are part of life."""
    stage = Stage()
    answer = _fail(stage, **said)
    assert why in answer.why
    assert (_resting(stage), answer.did) == ({}, ())


def test_while_another_works_on_the_cluster_a_refusal_comes_again() -> None:
    """Memory is written under the lease alone: the sender is told to come back."""
    stage = Stage()
    held = lease.acquire(stage.deps.state, "c", "another")
    assert held is not None
    with pytest.raises(Busy):
        _fail(stage)
    held.release()
    _fail(stage)
    assert len(_resting(stage)) == 1


def test_a_dry_run_of_a_refusal_remembers_nothing() -> None:
    """It answers with the plan of this moment."""
    stage = Stage()
    assert _fail(stage, dry_run=True).plan is not None
    assert _resting(stage) == {}


@pytest.mark.parametrize(
    ("group", "pool"),
    [
        pytest.param("t4", "t4", id="the pool's own name"),
        pytest.param("a100-group", "a100", id="its name at the cloud"),
        pytest.param("gke-train-t4-5e1b20aa-grp", "t4", id="a managed instance group of GKE"),
        pytest.param("gke-train-t4-spot-5e1b20aa-grp", "t4-spot", id="the longer of two names that fit"),
        pytest.param("eks-t4-3ac81f70-5d2e-11f0-9c4b-0a1b2c3d4e5f", "t4", id="an Auto Scaling group of EKS"),
        pytest.param("my-t4-group", "", id="a group that only looks like it"),
        pytest.param("a100", "", id="the pool's name here, where the cloud has another"),
    ],
)
def test_the_clouds_group_is_found_among_the_pools(group: str, pool: str) -> None:
    """By the name the policy gives it, or as GKE and EKS make theirs of it."""
    pools = {n: PoolPolicy(instance_type="x") for n in ("t4", "t4-spot")}
    pools["a100"] = PoolPolicy(instance_type="x", cluster_pool="a100-group")
    assert pool_of(Policy(version=1, pools=pools), group) == pool
