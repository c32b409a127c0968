"""Groups that are taken over and handed back: node groups by EKS's API, plain groups by Auto Scaling's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from aws_server import EKS, REGION, SECRET, Aws, Refused, activity, serving
from aws_wire_format import signature_holds
from civo_server import Fault
from hypothesis import given
from hypothesis import strategies as st
from test_asg import opened
from test_on_aws import on_aws
from test_standby_world import world

from pilotlight.adapters.aws_api import services
from pilotlight.adapters.aws_api.signing import Keys, signed_rest
from pilotlight.errors import BadRequest, Busy, Denied, Forbidden, PilotlightError, Unavailable
from pilotlight.facts.limits.pool_handover import Taken
from pilotlight.facts.policy import PoolPolicy, SparePolicy
from pilotlight.ports.clouds import CloudAccount
from pilotlight.tools.install import asg_handover, node_groups
from pilotlight.tools.install.hand_over import Cloud, take_over
from pilotlight.tools.install.handover import KEPT, Handover
from pilotlight.tools.install.handover_steps import back, forth, take

NOW = datetime(2026, 11, 22, 16, 0, tzinfo=UTC)
RULES = PoolPolicy(instance_type="one", max=100, spares=SparePolicy(stopped=2))


@contextmanager
def account(*, eks: bool = True) -> Iterator[tuple[Aws, Handover]]:
    """An account, and what takes its groups over."""
    aws = Aws(world(), at_once=False, eks=eks)
    with serving(aws) as environ:
        where = f"{REGION}/{EKS}" if eks else REGION
        found = asg_handover.open_handover(where, CloudAccount(aws.names(), aws.world.clock, lambda: "", environ))
        assert found is not None
        yield aws, found


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_groups, "LOOK_S", 0.0)
    monkeypatch.setattr(services, "JSON_PAUSES_S", ())


@given(
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,30}", fullmatch=True),
    method=st.sampled_from(["GET", "POST"]),
    query=st.sampled_from(["", "?nodegroupName=gpu-a"]),
    session=st.sampled_from(["", "a/b+c="]),
    body=st.binary(max_size=80),
)
def test_every_signature_of_a_rest_call_is_botocores(
    name: str, method: str, query: str, session: str, body: bytes
) -> None:
    """Any node group's path, with a query or none."""
    url = f"https://eks.{REGION}.amazonaws.com/clusters/prod/node-groups/{name}{query}"
    headers = signed_rest(method, url, body, Keys("AKIA1", "secret", session), "eks", REGION, NOW)
    assert signature_holds(url, body, headers, "secret", method)
    assert not signature_holds(url, body + b".", headers, "secret", method)


def test_a_warm_pool_of_a_plain_group_is_made_and_taken_away() -> None:
    """Empty, stopped, and taking nodes back; AWS launches nothing into it. Handing back takes it away again."""
    with account(eks=False) as (aws, handover):
        before = handover.read()["one"]
        taken = take("one", RULES, before, "asg:x", None, NOW, stands=True)
        for change in forth(taken, before):
            handover.put(before.group, change.name, change.to) if change.name == "warm" else None
        assert aws.reuse["one"] == {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
        aws.reuse["one"] = {"MaxGroupPreparedCapacity": 3, "MinSize": 1}  # As it moves with what stands by.
        between = handover.read()["one"]
        assert (between.settings["warm"], aws.refilled) == (KEPT, 0)
        changes, _ = back(taken, between, NOW)
        assert [one.to for one in changes if one.name == "warm"] == [""]
        handover.put(between.group, "warm", "")
        assert (aws.reuse, handover.read()["one"].settings["warm"]) == ({}, "")


EKS_WARM = {
    "MaxGroupPreparedCapacity": 4,
    "MinSize": 0,
    "PoolState": "Stopped",
    "InstanceReusePolicy": {"ReuseOnScaleIn": True},
}


def test_a_node_groups_warm_pool_is_left_to_eks() -> None:
    """Taking over makes none there and says why; one that is asked for all the same is refused; that of an older
    Pilotlight is taken away by EKS. No call of Auto Scaling's ever sets one."""
    with account() as (aws, handover):
        before = handover.read()["one"]
        assert "warm" not in {one.name for one in take("one", RULES, before, "asg:x", None, NOW, stands=True).settings}
        with pytest.raises(BadRequest, match="EKS keeps the warm pool of a node group"):
            handover.put(before.group, "warm", KEPT)
        aws.eks_warm["one"] = EKS_WARM
        handover.put(before.group, "warm", "")
        assert aws.eks_warm == {}
        assert not {"PutWarmPool", "DeleteWarmPool"} & {name for name, _ in aws.calls}


def test_a_node_of_a_node_group_with_a_warm_pool_is_ended_and_not_stopped() -> None:
    """Its warm pool is EKS's own, to fill and to draw on: nothing of it is set by a look."""
    with account() as (aws, _), serving(aws) as environ:
        pools = opened(aws, environ)
        aws.extra["one"] = {"NewInstancesProtectedFromScaleIn": True}
        aws.eks_warm["one"] = EKS_WARM
        pools.grow("one", 1)
        assert next(p for p in pools.describe() if p.name == "one").stops is False
        pools.stop("one", "n1")  # type: ignore[attr-defined]
        changes = [name for name, _ in aws.changes()]
        assert changes == ["SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"]


def _taken_over(handover: Handover, rules: PoolPolicy = RULES) -> Taken:
    state = handover.read()["one"]
    taken = take("one", rules, state, "asg:x", None, NOW)
    for change in forth(taken, state):
        handover.put(state.group, change.name, change.to)
    return taken


def test_sizes_and_repair_of_a_node_group_are_set_by_eks_and_stay() -> None:
    """What EKS does to the group later undoes nothing of it; handing back sets EKS's own figures as they were."""
    with account() as (aws, handover):
        aws.kept["one"] = {"nodeRepairConfig": {"enabled": True}, "scalingConfig": {"minSize": 0, "maxSize": 7}}
        aws.extra["one"] = {"MaxSize": 7}
        taken = _taken_over(handover, PoolPolicy(instance_type="one", max=3))
        assert (aws.kept["one"]["scalingConfig"]["maxSize"], aws.kept["one"]["nodeRepairConfig"]) == (
            3,
            {"enabled": False},
        )
        aws._UpdateNodegroupConfig({"nodegroupName": "one-nodes", "clientRequestToken": "theirs"})
        after = handover.read()["one"]
        assert (after.settings["max"], after.settings["repairs"]) == ("3", "false")
        for change in back(taken, after, NOW)[0]:
            handover.put(after.group, change.name, change.to) if change.name in ("max", "repairs") else None
        assert aws.kept["one"]["scalingConfig"]["maxSize"] == 7
        assert aws.kept["one"]["nodeRepairConfig"] == {"enabled": True}
        sizes = [asked for name, asked in aws.calls if name == "UpdateAutoScalingGroup"]
        assert not any({"MinSize", "MaxSize"} & asked.keys() for asked in sizes)


def test_a_min_size_that_is_given_back_lights_its_nodes() -> None:
    """EKS refuses a min above the size that is wanted: both rise in one update."""
    with account() as (aws, handover):
        aws.kept["one"] = {"scalingConfig": {"minSize": 2, "maxSize": 9}}
        aws.extra["one"] = {"MinSize": 2, "MaxSize": 9}
        aws.world.fleet.desired["one"] = 2
        taken = _taken_over(handover)
        assert handover.read()["one"].settings["min"] == "0"
        aws.world.fleet.desired["one"] = 0
        state = handover.read()["one"]
        for change in back(taken, state, NOW)[0]:
            handover.put(state.group, change.name, change.to) if change.name in ("min", "max") else None
        assert (aws.kept["one"]["scalingConfig"]["minSize"], aws.world.fleet.desired["one"]) == (2, 2)


@pytest.mark.parametrize("eks", [True, False], ids=["a node group of EKS", "a plain group"])
def test_what_a_group_does_by_itself_is_stopped_and_given_back(eks: bool) -> None:
    """Capacity Rebalancing, a longest life, scaling policies and scheduled actions: each off while it is ours, each as
    it was afterwards; a life is given back once no node runs that it would end."""
    with account(eks=eks) as (aws, handover):
        aws.extra["one"] = {"CapacityRebalance": True, "MaxInstanceLifetime": 604800}
        aws.policies["one"] = [{"PolicyName": "cpu", "PolicyType": "TargetTrackingScaling", "Enabled": True}]
        aws.scheduled_actions["one"] = ["nights"]
        before = handover.read()["one"]
        taken = _taken_over(handover)
        ours = handover.read()["one"].settings
        names = ("capacity-rebalance", "max-lifetime", "alarms", "schedules")
        assert [ours[name] for name in names] == ["false", "0", "false", "false"]
        aws.world.launch("one")
        state = handover.read()["one"]
        assert "max-lifetime" in {one.name for one in back(taken, state, NOW)[1]}
        aws.world.terminate("n1", "released")
        state = handover.read()["one"]
        for change in back(taken, state, NOW)[0]:
            handover.put(state.group, change.name, change.to) if change.name in names else None
        assert {name: handover.read()["one"].settings[name] for name in names} == {
            name: before.settings[name] for name in names
        }


BUSY: dict[str, tuple[Any, str]] = {
    "an instance refresh": (
        lambda aws: aws.refreshes.update(one=["Successful", "InProgress"]), "instance refresh r-1 is InProgress",
    ),
    "an update of its node group": (lambda aws: aws.kept.update(one={"status": "UPDATING"}), "EKS is UPDATING node"),
    "a policy that predicts": (
        lambda aws: aws.policies.update(one=[{
            "PolicyName": "ahead", "PolicyType": "PredictiveScaling", "Enabled": True,
            "PredictiveScalingConfiguration": {"Mode": "ForecastAndScale", "MetricSpecifications": []},
        }]), "scaling policy ahead predicts and scales",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("how", "says"), BUSY.values(), ids=BUSY)
def test_a_group_whose_nodes_are_being_replaced_is_not_taken_over(how: Any, says: str) -> None:
    """It is said which, before anything is written down or set."""
    with account() as (aws, handover):
        how(aws)
        state = handover.read()["one"]
        assert says in state.busy
        with pytest.raises(Busy, match="take it over again when that is over"):
            list(take_over("one", RULES, Cloud("asg:x", "", handover), state, None, NOW, False, False))  # type: ignore[arg-type]
        assert aws.changes() == []


def test_a_pool_that_is_not_to_stand_by_gets_no_warm_pool() -> None:
    """What the policy or the prices do not ask for is not made."""
    with account() as (_, handover):
        taken = take("one", RULES, handover.read()["one"], "asg:x", None, NOW)
        assert "warm" not in [setting.name for setting in taken.settings]


def _fails(aws: Aws) -> None:
    errors = [{"errorCode": "AccessDenied", "errorMessage": "the role may not"}]
    aws.updates.append({"id": "u-9", "status": "Failed", "errors": errors})


def _never_ends(aws: Aws) -> None:
    aws.updates += [{"id": "u-9", "status": "InProgress"}] * (node_groups.LOOKS + 1)


def _may_not(aws: Aws) -> None:
    aws._UpdateNodegroupConfig = _refused  # type: ignore[assignment, method-assign]


def _refused(_: dict[str, Any]) -> dict[str, Any]:
    raise Refused(403, "AccessDeniedException", f"not with {SECRET}")


NO: dict[str, tuple[Any, type[PilotlightError], str]] = {
    "an update that fails": (_fails, Denied, "Failed: AccessDenied the role may not"),
    "an update that does not end": (_never_ends, Unavailable, "run it again later"),
    "no right": (_may_not, Forbidden, "AccessDeniedException; give the role"),
}


@pytest.mark.parametrize(("how", "kind", "says"), NO.values(), ids=NO)
def test_what_eks_does_not_do_is_said(how: Any, kind: type[PilotlightError], says: str) -> None:
    """In one line, without a secret."""
    with account() as (aws, handover):
        group = handover.read()["one"].group
        how(aws)
        with pytest.raises(kind, match=says) as no:
            handover.put(group, "max", "5")
        assert "planted" not in str(no.value)


@pytest.mark.parametrize("what", ["hang", "reset", "cut", (200, "<x/>"), (500, "{}")], ids=str)
def test_a_lost_answer_of_eks_is_an_error_and_may_be_asked_again(what: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is as it was or as it is wanted; the second try makes it so."""
    monkeypatch.setattr(node_groups, "CALL_S", 0.2)
    with account() as (aws, handover):
        group = handover.read()["one"].group
        aws.faults = [Fault(what, "after", "UpdateNodegroupConfig")]
        with pytest.raises(Unavailable):
            handover.put(group, "max", "5")
        aws.updates.clear()
        handover.put(group, "max", "5")
        assert handover.read()["one"].settings["max"] == "5"


def test_another_hands_warm_pool_is_written_down_and_not_made_by_us() -> None:
    """Its own shape is told; giving that back is a person's."""
    with account() as (aws, handover):
        aws.extra["one"] = {"WarmPoolConfiguration": {"MinSize": 4, "PoolState": "Running"}, "WarmPoolSize": 0}
        state = handover.read()["one"]
        assert json.loads(state.settings["warm"])["MinSize"] == 4
        with pytest.raises(BadRequest, match="make it so by hand"):
            handover.put(state.group, "warm", state.settings["warm"])


ISSUES: dict[str, tuple[list[tuple[str, str]], str | None]] = {
    "a shortage in the group's words": (
        [("AsgInstanceLaunchFailures", "Could not launch: InsufficientInstanceCapacity")], "no-capacity",
    ),
    "a quota in the group's words": ([("AsgInstanceLaunchFailures", "VcpuLimitExceeded")], "quota"),
    "no addresses left": ([("InsufficientFreeAddresses", "subnet-1 is full")], "no-capacity"),
    "a quota by its code": ([("InstanceLimitExceeded", "no more")], "quota"),
    "its launch template is gone": ([("Ec2LaunchTemplateNotFound", "lt-1")], "other"),
    "the clearest of several": (
        [("IamNodeRoleNotFound", "gone"), ("AsgInstanceLaunchFailures", "MaxSpotInstanceCountExceeded")], "quota",
    ),
    "what is about no launch": ([("NodeCreationFailure", "did not join"), ("ClusterUnreachable", "no")], None),
    "none": ([], None),
}  # fmt: skip


def owing(aws: Aws) -> None:
    """A group of two that has none yet, and whose activities say nothing of it."""
    aws.world.fleet.desired["one"] = 2


@pytest.mark.parametrize(("issues", "reason"), ISSUES.values(), ids=ISSUES)
def test_what_ails_a_node_group_is_a_refusal_like_any(issues: list[tuple[str, str]], reason: str | None) -> None:
    """In EKS's words, mapped as an answer would be; the same issue has one name however often it is read."""
    with account() as (aws, _), serving(aws) as environ:
        pools = opened(aws, environ)
        owing(aws)
        aws.ailing["one"] = [{"code": code, "message": message, "resourceIds": ["r"]} for code, message in issues]
        first, second = (next(p for p in pools.describe() if p.name == "one") for _ in range(2))
        assert (first.refusal.reason if first.refusal else None, first.owed) == (reason, 2 if reason else 0)
        assert first.refusal is None or second.refusal is None or first.refusal.identity == second.refusal.identity


def test_eks_is_asked_only_where_the_group_does_not_tell() -> None:
    """A group that has its size is not; one that tries, or tells why it failed, says it itself; an outage of EKS, or
    a role without the right, tells nothing and stops nothing."""
    with account() as (aws, _), serving(aws) as environ:
        pools = opened(aws, environ)
        pools.describe()
        owing(aws)
        group, now = aws.group_name("one"), aws.world.clock.now()
        aws.ailing["one"] = [{"code": "InstanceLimitExceeded", "message": "no", "resourceIds": ["r"]}]
        for status in ("InProgress", "Failed"):
            aws.failed = [activity(group, "InsufficientInstanceCapacity", now, status)]
            pools.describe()
        assert "DescribeNodegroup" not in [name for name, _ in aws.calls]
        aws.failed = []
        for said in ((403, '{"message": "no"}'), (500, "{}")):
            aws.faults = [Fault(said, "before", "DescribeNodegroup")]
            assert [p.refusal for p in pools.describe()] == [None, None, None]


def test_a_pod_whose_node_group_ails_gets_another_offering() -> None:
    """What was just asked for may be launched yet; two minutes later EKS's word counts, and the pod goes elsewhere."""
    with on_aws(at_once=False) as (stage, aws):
        aws._SetDesiredCapacity = partial(_takes_it_on, aws)  # type: ignore[method-assign]
        aws.ailing["one"] = [{"code": "InsufficientFreeAddresses", "message": "full", "resourceIds": ["subnet-1"]}]
        stage.event(stage.submit("a", workload_class="batch", run_s=7200))
        stage.minutes(1)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 0)
        aws._SetDesiredCapacity = partial(Aws._SetDesiredCapacity, aws)  # type: ignore[method-assign]
        stage.minutes(4)
        assert (stage.nodes("one"), stage.nodes("eight")) == (0, 1)
        assert any("InsufficientFreeAddresses" in alert.why for alert in stage.alerts)


def _takes_it_on(aws: Aws, asked: dict[str, Any]) -> dict[str, Any]:
    """The size is set, and nothing is tried."""
    aws.world.fleet.desired[aws._pool(asked["AutoScalingGroupName"])] = asked["DesiredCapacity"]
    return {}
