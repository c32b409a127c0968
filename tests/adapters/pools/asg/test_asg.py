"""Auto Scaling groups beyond the contract: which call is made, what is refused unasked, and what is told later."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from aws_server import EKS, REGION, ZONE, Aws, activity, serving
from civo_server import Fault
from small_cloud import START, world

from pilotlight.adapters.pools import asg
from pilotlight.adapters.pools.asg import pools as asg_pools
from pilotlight.errors import (
    BadRequest,
    Busy,
    Denied,
    LastNode,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.facts.nodes.pool_state import LateRefusal, PoolState
from pilotlight.ports.clouds import CloudAccount, Pools

TWO_ZONES = {"AvailabilityZones": [ZONE, "eu-west-1b"]}


class Here(NamedTuple):
    """An account, and the port to it."""

    aws: Aws
    pools: Pools

    def pool(self, name: str = "one") -> PoolState:
        """A pool as it is told."""
        return next(pool for pool in self.pools.describe() if pool.name == name)


@contextmanager
def account(*, at_once: bool = True, eks: bool = True, faults: dict[str, Any] | None = None) -> Iterator[Here]:
    """An account in a region of the small cloud."""
    here = world(faults=faults or {})
    aws = Aws(here, at_once=at_once, eks=eks)
    with serving(aws) as environ:
        yield Here(aws, opened(aws, environ))


def opened(aws: Aws, environ: Mapping[str, str]) -> Pools:
    """The port, as the settings' address opens it."""
    where = f"{REGION}/{EKS}" if aws.eks else REGION
    found = asg.open_pools(where, CloudAccount(aws.names(), aws.world.clock, lambda: "", environ))
    assert found is not None
    return found


@pytest.fixture
def here() -> Iterator[Here]:
    """Node groups of an EKS cluster that take LaunchInstances."""
    with account() as made:
        yield made


GROUPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "of one zone": ({}, "", "LaunchInstances"),
    "of two zones, one named": (TWO_ZONES, ZONE, "LaunchInstances"),
    "of two zones, one named by its id": (TWO_ZONES, "euw1-az1", "LaunchInstances"),
    "of two zones, none named": (TWO_ZONES, "", "SetDesiredCapacity"),
    "with a warm pool": ({"WarmPoolConfiguration": {"MinSize": 1, "PoolState": "Stopped"}}, "", "SetDesiredCapacity"),
    "of spot alone": (
        {"MixedInstancesPolicy": {"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0}}},
        "",
        "LaunchInstances",
    ),
    "of both capacity types": (
        {"MixedInstancesPolicy": {"InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 50}}},
        "",
        "SetDesiredCapacity",
    ),
    "with on-demand below its spot": (
        {
            "MixedInstancesPolicy": {
                "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0, "OnDemandBaseCapacity": 1}
            }
        },
        "",
        "SetDesiredCapacity",
    ),
}


@pytest.mark.parametrize(("extra", "zone", "call"), GROUPS.values(), ids=GROUPS)
def test_a_group_is_grown_by_the_call_that_it_allows(here: Here, extra: dict[str, Any], zone: str, call: str) -> None:
    """At once where AWS documents that it may be; by its size elsewhere."""
    here.aws.extra["one"] = extra
    assert here.pools.grow("one", 2, zone).desired == 2
    assert [name for name, _ in here.aws.changes()] == [call]


def test_a_launch_is_tried_once_and_named_by_its_step(here: Here) -> None:
    """AWS retries nothing by itself, and the same step never launches twice."""
    here.pools.grow("one", 1, ZONE, token="prod/20261122-1/0000")
    (_, asked), *_ = here.aws.changes()
    assert (asked["RetryStrategy"], asked["RequestedCapacity"], asked["AvailabilityZones"]) == ("none", 1, [ZONE])
    assert len(asked["ClientToken"]) == 64
    here.pools.grow("one", 2, ZONE, token="prod/20261122-1/0000")
    assert here.aws.world.launches == 1
    here.pools.grow("one", 2, ZONE, token="prod/20261122-2/0000")
    assert here.aws.world.launches == 2


def test_more_than_a_hundred_are_asked_for_by_the_groups_size(here: Here) -> None:
    """LaunchInstances launches a hundred at most."""
    here.aws.extra["one"] = {"MaxSize": 200}
    here.pools.grow("one", 101)
    assert here.aws.changes()[0][0] == "SetDesiredCapacity"


REFUSED_UNASKED: dict[str, tuple[dict[str, Any], type[Denied], str]] = {
    "over its max size": ({"MaxSize": 1}, QuotaExceeded, "at most 1, and 2 are wanted; raise its max size"),
    "of weights": (
        {"MixedInstancesPolicy": {"LaunchTemplate": {"Overrides": [{"WeightedCapacity": "8"}]}}},
        BadRequest,
        "counts weights",
    ),
    "of vCPUs": ({"DesiredCapacityType": "vcpu"}, BadRequest, "counts weights"),
    "whose launches are stopped": (
        {"SuspendedProcesses": [{"ProcessName": "Launch"}]},
        BadRequest,
        "Launch of group .* is suspended",
    ),
}


@pytest.mark.parametrize(("extra", "kind", "why"), REFUSED_UNASKED.values(), ids=REFUSED_UNASKED)
def test_what_a_group_cannot_do_is_not_asked_of_it(
    here: Here, extra: dict[str, Any], kind: type[Denied], why: str
) -> None:
    """It is refused before anything is sent, with what to do about it."""
    here.aws.extra["one"] = extra
    with pytest.raises(kind, match=why):
        here.pools.grow("one", 2)
    assert here.aws.changes() == []


def test_a_part_that_came_stays_and_is_told() -> None:
    """Of three that are asked for two come: the refusal names the rest, and the group has two."""
    with account(faults={"quota_nodes": 2}) as here:
        with pytest.raises(QuotaExceeded, match="2 of 3 instances could be launched in eu-west-1a: VcpuLimitExceeded"):
            here.pools.grow("one", 3)
        assert (here.pool().desired, len(here.pool().booting)) == (2, 2)


def test_a_group_at_its_least_keeps_its_node(here: Here) -> None:
    """It is not asked to go below: what to change is said."""
    here.pools.grow("one", 1)
    here.aws.extra["one"] = {"MinSize": 1}
    with pytest.raises(LastNode, match="keeps 1 at least; set its min to 0"):
        here.pools.release("one", "n1")
    assert list(here.aws.world.nodes) == ["n1"]


def test_an_instance_that_goes_is_told_so(here: Here) -> None:
    """A group that terminates an instance says it; of one that runs nothing is said."""
    here.pools.grow("one", 2)
    here.aws.world.interrupt("n1", 120)
    first, second = (here.pools.instance("one", name) for name in ("n1", "n2"))
    assert first is not None
    assert second is not None
    assert (first.going, second.going, second.created_at) == (True, None, START)
    assert [b.instance for b in here.pool().booting] == ["n2"]


def test_instances_that_stand_by_are_no_nodes(here: Here) -> None:
    """They are counted beside the pool, not in it; only those that are stopped, and so can be started."""
    here.aws.warming["one"] = ["i-warming"]
    assert (here.pool().desired, here.pool().booting, here.pool().standby) == (0, (), 0)
    assert "DescribeWarmPool" in [name for name, _ in here.aws.calls]


def test_a_launch_that_failed_later_is_told_with_its_reason() -> None:
    """A group that tries on by itself: its last failed launch is the pool's refusal, as an event of it would be."""
    with account(at_once=False, faults={"shortage": 1.0}) as here:
        here.pools.grow("one", 2)
        group, now = here.aws.group_name("one"), here.aws.world.clock.now()
        said = "InsufficientInstanceCapacity: none left"
        assert here.pool().refusal == LateRefusal(
            identity=f"{group}/Launching-{now:%H%M%S}", reason="no-capacity", message=said, zone=ZONE, at=now
        )
        here.aws.failed.append(activity(group, "", now + timedelta(seconds=60), "Successful"))
        assert here.pool().refusal is None


def test_groups_by_name_need_no_cluster() -> None:
    """A region alone: pools are groups, and another's group of that region is none of ours."""
    with account(eks=False) as here:
        here.pools.grow("one", 1)
        assert [(p.name, p.desired) for p in here.pools.describe()] == [("one", 1), ("four", 0), ("eight", 0)]


def test_a_pool_at_zero_is_read_by_one_call(here: Here) -> None:
    """Nothing runs: no instance is asked for."""
    here.pools.describe()
    assert [name for name, _ in here.aws.calls] == ["DescribeAutoScalingGroups"]


WRONG = "<LaunchInstancesResult><Instances>7</Instances></LaunchInstancesResult>"
LOST: dict[str, Any] = {
    "no answer": "hang",
    "a reset": "reset",
    "half an answer": "cut",
    "an answer that drips": "drip",
    "an outage": (500, "<html>"),
    "a gateway that waited in vain": (408, "<html>"),
    "an answer of another call": (200, "<DescribeTagsResponse/>"),
    "a wrong type": (200, f"<LaunchInstancesResponse>{WRONG}</LaunchInstancesResponse>"),
}


@pytest.mark.parametrize("what", LOST.values(), ids=LOST)
def test_a_launch_whose_answer_is_lost_is_unsure(here: Here, what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is sent once; whether it was done, only a look tells."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.2)
    here.aws.faults = [Fault(what, when="after", method="LaunchInstances")]
    with pytest.raises(Unsure):
        here.pools.grow("one", 1)
    assert len(here.aws.changes()) == 1
    assert here.pool().desired == 1


SAID: dict[str, tuple[tuple[int, str], type[PilotlightError]]] = {
    "too many calls": ((400, "Throttling"), Throttled),
    "at work": ((400, "ScalingActivityInProgress"), Busy),
    "out of stock": ((400, "InsufficientInstanceCapacity"), NoCapacity),
}


@pytest.mark.parametrize(("answer", "kind"), SAID.values(), ids=SAID)
def test_what_aws_says_no_with_is_told_by_what_to_do(
    here: Here, answer: tuple[int, str], kind: type[PilotlightError]
) -> None:
    """A code tells that nothing was done."""
    status, code = answer
    body = f"<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>"
    here.aws.faults = [Fault((status, body), method="LaunchInstances")]
    with pytest.raises(kind) as raised:
        here.pools.grow("one", 1)
    assert not isinstance(raised.value, Unavailable)


def test_a_gone_instance_is_no_error_even_as_it_goes(here: Here) -> None:
    """AWS knows no such instance any more between our look and our call."""
    here.pools.grow("one", 1)
    here.pools.release("one", "n1", gate=lambda: here.aws.world.terminate("n1", "by hand", evict=True))
    assert here.pool().desired == 0


@pytest.mark.parametrize("where", ["", "LON1", "eu-west-1/", "eu-west-1/a/b", "eu-west-1?x"])
def test_an_address_that_is_none_is_not_opened(where: str) -> None:
    """A region as AWS writes them, and a cluster's name where there is one."""
    assert asg.open_pools(where, CloudAccount({}, world().clock, lambda: "", {})) is None


@pytest.mark.parametrize(
    ("hooks", "answered"),
    [(["pilotlight"], True), (["another", "pilotlight"], True), (["another"], False), ([], False)],
    ids=["ours", "ours beside another's", "another's", "none"],
)
def test_an_instance_that_its_group_terminates_is_let_go_where_it_waits_for_us(
    here: Here, hooks: list[str], answered: bool
) -> None:
    """Our hook is answered and nobody else's; the instance is never terminated a second time."""
    here.pools.grow("one", 1)
    here.aws.hooks[here.aws.group_name("one")] = hooks
    here.aws.world.interrupt("n1", 600)
    asked: list[str] = []
    here.pools.release("one", "n1", gate=lambda: asked.append("gate"))
    calls = [(name, values.get("LifecycleHookName")) for name, values in here.aws.changes()[1:]]
    assert calls == ([("CompleteLifecycleAction", "pilotlight")] if answered else [])
    assert (asked, "n1" in here.aws.world.nodes) == (["gate"] if answered else [], not answered)


def test_a_hook_whose_time_was_up_is_no_error(here: Here) -> None:
    """Between our look and our answer it ended."""
    here.pools.grow("one", 1)
    here.aws.hooks[here.aws.group_name("one")] = ["pilotlight"]
    here.aws.world.interrupt("n1", 600)
    here.pools.release("one", "n1", gate=lambda: here.aws.world.terminate("n1", "by itself", evict=True))
    assert here.pool().desired == 0


@pytest.mark.parametrize(
    ("version", "drifted"), [("4", ("n1",)), ("3", ("n2",)), ("$Latest", ())], ids=["newer", "older", "not told"]
)
def test_nodes_of_another_template_version_are_told(here: Here, version: str, drifted: tuple[str, ...]) -> None:
    """A group names its version by number, as EKS does; by an alias nobody knows."""
    here.aws.extra["one"] = {"LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": version}}
    here.pools.grow("one", 2)
    here.aws.versions["n2"] = "4"
    assert here.pool().drifted == drifted


def test_a_size_that_came_late_leaves_no_node_that_cannot_be_given_back() -> None:
    """A stalled worker's size of one comes to a group of two: both are protected and count, the next is one more, and
    the node beyond the size goes without lowering it."""
    with account(at_once=False) as here:
        here.aws.protects = True
        here.pools.grow("one", 2)
        here.aws.answer(
            "SetDesiredCapacity", {"AutoScalingGroupName": here.aws.group_name("one"), "DesiredCapacity": 1}
        )
        assert (here.pool().desired, here.pool().owed, here.aws.world.launches) == (2, 0, 2)
        first, second = here.aws.world.nodes
        here.pools.release("one", first)
        here.pools.release("one", second)
        sent = [asked["ShouldDecrementDesiredCapacity"] for name, asked in here.aws.changes() if "Terminate" in name]
        assert (sent, list(here.aws.world.nodes), here.pool().desired) == ([False, True], [], 0)
        assert here.pools.grow("one", 1).desired == 1
