"""The flows with AWS as the cloud: what a lost answer, a part that came, a shortage or a kept node leads to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from aws_server import EKS, REGION, Aws, serving
from civo_server import Fault
from stage import Stage

from pilotlight.adapters.pools import asg
from pilotlight.adapters.pools.asg import pools as asg_pools
from pilotlight.errors import Retry
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.records import node_marks
from pilotlight.ports.clouds import CloudAccount
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults


@contextmanager
def on_aws(*, at_once: bool = True, **options: Any) -> Iterator[tuple[Stage, Aws]]:
    """A stage whose nodes are those of EKS node groups."""
    stage = Stage(**options)
    aws = Aws(stage.world, at_once=at_once)
    with serving(aws) as environ:
        pools = asg.open_pools(f"{REGION}/{EKS}", CloudAccount(aws.names(), stage.world.clock, lambda: "", environ))
        assert pools is not None
        stage.deps = replace(stage.deps, pools=pools)
        yield stage, aws


CALLS = {True: "LaunchInstances", False: "SetDesiredCapacity"}
LESS = {"InstanceId": "n1", "ShouldDecrementDesiredCapacity": True}
"""A smaller group, by another hand: what AWS is asked."""
WAYS = pytest.mark.parametrize("at_once", [True, False], ids=["launching at once", "by a size"])


@WAYS
def test_a_pod_gets_its_node_and_the_node_goes_when_it_ends(at_once: bool) -> None:
    """One pod: one call for one node; after its run and its idle time that very instance ends, and no other."""
    with on_aws(at_once=at_once) as (stage, aws):
        stage.event(stage.submit("a", run_s=600))
        stage.minutes(25)
        (bought, _), (released, asked) = aws.changes()
        assert (bought, released) == (CALLS[at_once], "TerminateInstanceInAutoScalingGroup")
        assert asked == {"InstanceId": "n1", "ShouldDecrementDesiredCapacity": True}
        assert (stage.world.launches, stage.nodes("one"), len(stage.world.finished)) == (1, 0, 1)


def test_a_purchase_holds_exactly_what_it_may_cost() -> None:
    """Boot, idle time and the class's longest run at the node's price, to the cent; given back when it is settled."""
    batch = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR)
    budget = Budget(name="all", usd=Decimal(100), period="day")
    with on_aws(budgets=(budget,), classes={"batch": batch}) as (stage, _):
        stage.event(stage.submit("a", run_s=600))
        (entry,) = HOLD.scan(stage.deps.state, "")
        assert entry.value.terms.run_s == 2 * HOUR
        stage.minutes(25)
        assert list(HOLD.scan(stage.deps.state, "")) == []


@WAYS
@pytest.mark.parametrize("what", ["hang", "reset", "cut", (500, "<p>"), (200, "<x/>")], ids=str)
def test_an_answer_that_is_lost_buys_nothing_twice(what: Any, at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS acted and its answer was lost: a second delivery and the ticks after it find the node on its way."""
    monkeypatch.setattr(asg_pools, "WRITE_S", 0.2)
    with on_aws(at_once=at_once) as (stage, aws):
        pod = stage.submit("a", run_s=3600)
        aws.faults = [Fault(what, when="after", method=CALLS[at_once])]
        with pytest.raises(Retry):
            stage.event(pod)
        stage.event(pod)
        stage.minutes(10)
        assert (stage.world.launches, stage.nodes("one")) == (1, 1)


def test_a_gang_that_gets_a_part_gives_it_back() -> None:
    """The quota ends after two of three nodes: none is kept, and the account is told of."""
    pools = {"eight": PoolPolicy(instance_type="eight", max=20)}
    with on_aws(pools=pools, faults=Faults(quota_nodes=2)) as (stage, aws):
        pods = stage.submit_gang("g", 3)
        stage.event(pods[0])
        stage.minutes(10)
        released = [asked["InstanceId"] for name, asked in aws.changes() if name.startswith("Terminate")]
        assert (stage.nodes("eight"), sorted(released)[:2]) == (0, ["n1", "n2"])
        assert any("VcpuLimitExceeded" in alert.why for alert in stage.alerts)


def test_a_shortage_that_is_told_later_sends_the_next_pod_elsewhere() -> None:
    """A group by its size takes the request on; its failed activity rests the pool as an answer would."""
    with on_aws(at_once=False) as (stage, aws):
        stage.world.set_faults(Faults(shortage=1.0))
        stage.event(stage.submit("a"))
        stage.world.set_faults(Faults())
        assert aws.failed
        stage.wait(30)
        stage.tick()
        stage.event(stage.submit("b", workload_class="batch"))
        assert stage.nodes("eight") == 1


def owing(stage: Stage, aws: Aws) -> None:
    """A batch pod is bought for, and its group cannot launch."""
    stage.world.set_faults(Faults(shortage=1.0))
    stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
    stage.world.set_faults(Faults())
    assert (stage.world.fleet.desired["one"], stage.nodes("one"), len(aws.failed)) == (1, 0, 1)


def test_a_pod_whose_group_could_not_launch_goes_elsewhere_itself() -> None:
    """What a group only owes is no room on its way: the pod that it was asked for gets another offering."""
    with on_aws(at_once=False) as (stage, aws):
        owing(stage, aws)
        stage.minutes(2)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


def test_a_group_that_launches_hours_later_is_told_of_and_its_idle_node_goes() -> None:
    """Nobody waits any more: people hear what is owed and that it came; the node idles its time and is given back."""
    with on_aws(at_once=False) as (stage, aws):
        owing(stage, aws)
        stage.minutes(30)
        (owed,) = [a for a in stage.alerts if a.kind == "finding-launch-owed"]
        assert owed.what == "pool one is owed nodes by its cloud"
        assert "InsufficientInstanceCapacity" in owed.why
        assert "to call it off" not in owed.why, "a lower size could end a node that came meanwhile"
        aws.try_again("one")
        stage.minutes(30)
        over = [a for a in stage.alerts if a.kind == "finding-launch-owed" and a.resolved]
        assert [a.subject for a in over] == ["pool one"]
        assert (stage.nodes("one"), stage.nodes("eight"), stage.world.launches) == (0, 1, 2)
        assert [name for name, _ in aws.changes()].count("SetDesiredCapacity") == 2


def test_what_a_group_owes_is_used_before_it_is_asked_for_more() -> None:
    """Once it may be asked again, a pod takes what is owed: the size does not rise, and one node comes."""
    pools = {"one": PoolPolicy(instance_type="one", max=1)}
    with on_aws(at_once=False, pools=pools) as (stage, aws):
        owing(stage, aws)
        stage.minutes(10)
        aws.try_again("one")
        stage.minutes(10)
        sizes = [asked["DesiredCapacity"] for name, asked in aws.changes() if name == "SetDesiredCapacity"]
        assert (sizes, stage.nodes("one"), len(stage.world.running)) == ([1], 1, 1)


def test_a_group_that_says_nothing_more_is_left_for_another_by_the_deadline() -> None:
    """What is owed is waited for, and no launch is tried: past gpu_ready_deadline it rests, and the next is bought."""
    pools = {name: PoolPolicy(instance_type=name, max=20) for name in ("one", "eight")}
    with on_aws(at_once=False, pools=pools, gpu_ready_deadline=900) as (stage, aws):
        owing(stage, aws)
        aws.extra["eight"] = {"SuspendedProcesses": [{"ProcessName": "Launch"}]}
        stage.minutes(12)
        aws.extra.pop("eight")
        stage.minutes(40)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)


def test_a_node_that_its_group_keeps_is_told_of_with_its_price_and_not_asked_for_every_minute() -> None:
    """The group's min is one: the node takes pods again, one alert names its dollars, and AWS is never asked."""
    with on_aws() as (stage, aws):
        stage.event(stage.submit("a", run_s=300))
        aws.extra["one"] = {"MinSize": 1}
        stage.minutes(60)
        (alert,) = [a for a in stage.alerts if a.kind == "capacity-denied"]
        assert ("set its min to 0" in alert.why, "$1.00/h" in alert.why) == (True, True)
        assert [name for name, _ in aws.changes()] == ["LaunchInstances"]
        assert stage.deps.cluster.observe().nodes[0].schedulable


def _terminating(stage: Stage, group: str) -> InterruptionNotice:
    """What EventBridge tells of the instance "n1" and our hook."""
    return InterruptionNotice(
        cluster="c", instance="n1", kind="lifecycle", cloud="aws", group=group, hook="pilotlight",
        identity="n1/lifecycle/t", at=stage.world.clock.now(),
    )  # fmt: skip


def test_a_release_of_our_own_is_not_held_up_by_our_hook() -> None:
    """The hook's notice of an instance that was given back: it is answered at once, nothing is bought or told again."""
    with on_aws() as (stage, aws):
        aws.hooks[group := aws.group_name("one")] = ["pilotlight"]
        stage.event(stage.submit("a", run_s=300))
        while len(aws.changes()) < 2:
            stage.minutes(1)
        before = len(stage.alerts)
        answer = interrupt(stage.deps, _terminating(stage, group))
        assert (answer.did, answer.why) == (("let n1 go",), "n1 was given back by ourselves")
        interrupt(stage.deps, _terminating(stage, group))
        stage.minutes(5)
        names = [name for name, _ in aws.changes()]
        assert names == ["LaunchInstances", "TerminateInstanceInAutoScalingGroup", "CompleteLifecycleAction"]
        assert (stage.nodes("one"), stage.world.fleet.desired["one"]) == (0, 0)
        assert [
            alert.kind for alert in stage.alerts[before:] if alert.kind == "interruption" and alert.subject == "n1"
        ] == []


def test_a_notice_of_our_hook_ends_no_node_that_stays() -> None:
    """Somebody posts one of a node that is being given back and that its group does not terminate: it stays."""
    with on_aws() as (stage, aws):
        aws.hooks[group := aws.group_name("one")] = ["pilotlight"]
        stage.event(stage.submit("a", run_s=300))
        stage.minutes(5)
        node_marks.hold(stage.deps, "n1", "release", "it idles")
        interrupt(stage.deps, _terminating(stage, group))
        assert {name for name, _ in aws.changes()} == {"LaunchInstances"}
        assert "n1" in stage.world.nodes


def test_a_group_that_terminates_a_node_waits_until_its_work_is_saved() -> None:
    """A lifecycle notice: a replacement is asked for, the pod is evicted, and only then the hook is answered."""
    with on_aws() as (stage, aws):
        pod = stage.submit("a", run_s=3600)
        stage.event(pod)
        stage.minutes(5)
        group = aws.group_name("one")
        aws.hooks[group] = ["pilotlight"]
        aws.answer("TerminateInstanceInAutoScalingGroup", LESS)
        interrupt(stage.deps, _terminating(stage, group))
        for _ in range(20):
            stage.wait(15)
            go_on(stage.deps)
        calls = [name for name, _ in aws.changes()]
        assert calls[:3] == ["LaunchInstances", "LaunchInstances", "CompleteLifecycleAction"]
        assert list(stage.world.nodes) == ["n2"]
        assert "TerminateInstanceInAutoScalingGroup" not in calls


def test_an_instance_that_never_becomes_a_node_is_told_and_given_back() -> None:
    """Paid for and no help: past the deadline that very instance ends, and the pod gets its node from another pool."""
    with on_aws(faults=Faults(boot_s=7200.0)) as (stage, aws):
        stage.event(stage.submit("a", run_s=600, workload_class="batch"))
        stage.minutes(16)
        ended = [asked["InstanceId"] for name, asked in aws.changes() if name.startswith("Terminate")]
        assert ended[:1] == ["n1"]
        (told,) = [alert.why for alert in stage.alerts if alert.kind == "capacity-release"]
        assert told.startswith("no ready GPU 16 min after the request")
        assert stage.nodes("eight") == 1


OF_EIGHT, OF_ONE = "Running On-Demand E instances", "Running On-Demand O instances"


@pytest.mark.parametrize(("left", "bought"), [(4, "one"), (3, "eight")], ids=["that leaves a node", "that is used up"])
def test_a_quota_is_asked_before_a_purchase(left: int, bought: str) -> None:
    """What the account may not run is not asked for: the next offering by price is bought, and people are told."""
    with on_aws() as (stage, aws):
        aws.quotas, aws.cores = {OF_EIGHT: 1000, OF_ONE: left}, {"one": 4, "eight": 96}
        stage.event(stage.submit("a", workload_class="batch"))
        assert [asked["AutoScalingGroupName"] for _, asked in aws.changes()] == [aws.group_name(bought)]
        told = [alert.why for alert in stage.alerts if alert.kind == "finding-quota-full"]
        assert told == [] if left == 4 else f"0 of 3 vCPUs run of the account's quota {OF_ONE}" in told[0]


def test_pools_of_one_quota_share_what_it_leaves() -> None:
    """Ten of twelve vCPUs are free: two nodes of four are bought in one plan, and the third pod is told why not."""
    pools = {name: PoolPolicy(instance_type="one", max=20) for name in ("one", "two")}
    with on_aws(pools=pools) as (stage, aws):
        aws.quotas, aws.cores = {OF_ONE: 10}, {"one": 4}
        pods = [stage.submit(f"p{n}", workload_class="batch") for n in range(3)]
        stage.event(pods[0])
        assert stage.world.launches == 2
        (refused,) = [alert for alert in stage.alerts if alert.kind == "refused"]
        assert "8 of 10 vCPUs run" in refused.why


@pytest.mark.parametrize("what", [None, (500, "<p>")], ids=["no right to it", "an outage"])
def test_quotas_that_cannot_be_read_stop_no_purchase(what: Any) -> None:
    """AWS says no by itself then."""
    with on_aws() as (stage, aws):
        aws.quotas = None if what is None else {OF_ONE: 0}
        aws.faults = [Fault(what, method="ListServiceQuotas")] * 9 if what else []
        stage.event(stage.submit("a"))
        assert stage.nodes("one") == 1


def test_a_node_that_its_group_ends_by_a_hook_hides_no_machine_that_boots() -> None:
    """Somebody terminates it, and EKS drains it for minutes: another pod's machine is launched once, and nobody is told
    to delete the node."""
    with on_aws(pools={"one": PoolPolicy(instance_type="one", max=5)}) as (stage, aws):
        aws.hooks[aws.group_name("one")] = ["eks"]
        stage.event(stage.submit("a", workload_class="batch", run_s=20 * HOUR))
        stage.minutes(10)
        aws.answer("TerminateInstanceInAutoScalingGroup", {"InstanceId": "n1", "ShouldDecrementDesiredCapacity": True})
        stage.world.set_faults(Faults(boot_s=600))
        stage.event(stage.submit("b", workload_class="batch", run_s=2 * HOUR))
        stage.minutes(12)
        launched = [asked["RequestedCapacity"] for call, asked in aws.changes() if call == "LaunchInstances"]
        assert (launched, len(stage.world.running)) == ([1, 1], 2)
        assert [alert.kind for alert in stage.alerts if "node-without-instance" in alert.kind] == []
