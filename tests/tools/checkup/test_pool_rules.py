"""What the check-up says of what a cloud does to a pool by itself."""

from typing import Any

import pytest

from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.facts.policy import Policy, PoolPolicy, SparePolicy
from pilotlight.tools.checkup.pool_rules import rule_checks
from pilotlight.tools.install.handover import GroupState


def said(
    rules: dict[str, Any] | None = None, *, standby: int = 0, zones: tuple[str, ...] = (), most: int = 4
) -> list[tuple[str, str, str]]:
    """Code, verdict and fix of each check of one pool whose group is well but for these rules."""
    made = PoolRules(**{"group": "gpu-asg", "most": 4, "zones": ("a",), **(rules or {})})
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="g5.xlarge", max=most, zones=zones)})
    state = PoolState(name="gpu", desired=0, standby=standby, rules=made)
    return [(c.code, c.verdict, c.fix) for c in rule_checks(policy, {"gpu": state})]


def test_a_group_that_leaves_all_to_us_is_well() -> None:
    """One line says so; a cloud that tells no rules is not asked for any."""
    assert said() == said({"most": None}) == [("pool-rules", "ok", "")]
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="x")})
    assert list(rule_checks(policy, {"gpu": PoolState(name="gpu", desired=0)})) == []


WRONG: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "ends nodes to spread them": (
        {"rebalances": True, "zones": ("a", "b"), "most": 4},
        "pool-rebalance",
        "fault",
        "aws autoscaling suspend-processes --auto-scaling-group-name gpu-asg --scaling-processes AZRebalance",
    ),
    "does not protect what is new": (
        {"protects": False},
        "pool-protection",
        "warning",
        "aws autoscaling update-auto-scaling-group --auto-scaling-group-name gpu-asg "
        "--new-instances-protected-from-scale-in",
    ),
    "keeps one lit": ({"least": 1}, "pool-least", "fault", "set its min size to 0"),
    "is another's": (
        {"closed": "the cluster autoscaler scales node pool gpu: gcloud ... --no-enable-autoscaling"},
        "pool-closed",
        "fault",
        "gcloud ... --no-enable-autoscaling",
    ),
    "has a max above the policy's": ({"most": 100}, "pool-most", "warning", "set its max size to 4"),
    "has a max below the policy's": (
        {"most": 2},
        "pool-most",
        "warning",
        "set one to the other: pools.gpu.max, or its max size",
    ),
    "buys in none that is not named": (
        {"zones": ("a", "b"), "names_zone": True},
        "pool-zones",
        "fault",
        "name some in pools.gpu.zones",
    ),
    "is of flex-start": (
        {"kind": "flex-start"},
        "pool-capacity-type",
        "warning",
        "write pools.gpu.capacity_type: flex-start",
    ),
    "is of spot": ({"kind": "spot"}, "pool-capacity-type", "warning", "write pools.gpu.capacity_type: spot"),
    "launches anywhere": (
        {"zones": ("a", "b")},
        "pool-zones",
        "warning",
        "name them in pools.gpu.zones, so that each purchase names its own; or one group a zone",
    ),
}


@pytest.mark.parametrize(("rules", "code", "verdict", "fix"), WRONG.values(), ids=WRONG)
def test_a_group_that_acts_by_itself_is_told_with_the_fix(
    rules: dict[str, Any], code: str, verdict: str, fix: str
) -> None:
    """What ends jobs, keeps nodes lit or lets others grow it."""
    assert (code, verdict, fix) in said(rules)


@pytest.mark.parametrize(("kind", "says", "verdict"), [
    (None, "spot", ""), ("spot", "spot", ""), ("on-demand", "reserved", ""), ("on-demand", "spot", "fault"),
    ("on-demand", "flex-start", "fault"), ("spot", "reserved", "warning"), ("flex-start", "flex-start", ""),
])  # fmt: skip
def test_a_pool_that_is_paid_for_otherwise_than_the_policy_says_is_told(kind: Any, says: Any, verdict: str) -> None:
    """One that costs more than is held for it is a fault; a reservation pays for what is on demand at its cloud."""
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="x", capacity_type=says)})
    state = PoolState(name="gpu", desired=0, rules=PoolRules(group="gpu-pool", kind=kind))
    found = [check.verdict for check in rule_checks(policy, {"gpu": state}) if check.code == "pool-capacity-type"]
    assert found == [verdict] * bool(verdict)


def test_nodes_that_an_upgrade_lights_are_told_with_the_command() -> None:
    """No budget holds them; the pool is bought in all the same."""
    told = "an upgrade lights 1 node beside those of l4, which no budget holds: gcloud container update l4"
    assert said({"surges": told}) == [("pool-surge", "warning", "gcloud container update l4")]


def test_one_zone_has_nothing_to_rebalance() -> None:
    """The process may run there."""
    assert said({"rebalances": True}) == [("pool-rules", "ok", "")]


def test_zones_that_are_named_are_the_groups_own() -> None:
    """Then each purchase names one of them; another is a fault."""
    assert said({"zones": ("a", "b")}, zones=("a", "b")) == [("pool-rules", "ok", "")]
    assert said({"zones": ("a", "b")}, zones=("a", "c")) == [("pool-zones", "fault", "mend pools.gpu.zones")]


def test_a_warm_pool_that_nobody_asked_for_is_told() -> None:
    """Its disks cost."""
    fix = "remove the warm pool of gpu-asg, or set pools.gpu.spares.stopped to 2"
    assert said(standby=2) == [("pool-standby", "warning", fix)]
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="x", max=4, spares=SparePolicy(stopped=2))})
    state = PoolState(name="gpu", desired=0, standby=2, rules=PoolRules(group="gpu-asg", most=4))
    assert [check.code for check in rule_checks(policy, {"gpu": state})] == ["pool-rules"]


def test_a_zone_by_its_id_is_told_and_is_not_foreign() -> None:
    """EC2 launches there; nodes and volumes carry its name."""
    ((code, verdict, fix),) = said(zones=("usw2-az1",))
    assert (code, verdict, fix) == ("pool-zones", "warning", "write names in pools.gpu.zones: a")


def told_of(group: GroupState, **fields: Any) -> list[tuple[str, str]]:
    """Verdict and words of each check of that group, of a pool whose size and zones are well."""
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="g5.xlarge", max=4, **fields)})
    state = PoolState(name="gpu", desired=0, rules=PoolRules(group="gpu-asg", most=4, zones=("a",)))
    return [(c.verdict, c.what) for c in rule_checks(policy, {"gpu": state}, {"gpu": group})]


HANDS_TOLD: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "it ends old nodes": ({"settings": {"max-lifetime": "604800"}}, {}, "fault", "MaxInstanceLifetime ends nodes"),
    "EKS repairs": ({"settings": {"repairs": "true"}}, {}, "fault", "node auto repair of EKS replaces nodes"),
    "policies size it": ({"settings": {"alarms": "true"}}, {}, "fault", "scaling policies size it"),
    "a calendar sizes it": ({"settings": {"schedules": "true"}}, {}, "fault", "scheduled actions size it"),
    "spot is replaced": (
        {"settings": {"capacity-rebalance": "true"}}, {"capacity_type": "spot"}, "warning", "Capacity Rebalancing buys",
    ),
    "an update runs": ({"settings": {}, "busy": "EKS is UPDATING node group x"}, {}, "fault", "EKS is UPDATING"),
    "nodes are to stand by in a node group": (
        {"settings": {}, "managed": True}, {"spares": SparePolicy(stopped=2)},
        "warning", "EKS keeps the warm pool of a node group",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("group", "fields", "verdict", "says"), HANDS_TOLD.values(), ids=HANDS_TOLD)
def test_each_other_hand_on_a_group_is_told(
    group: dict[str, Any], fields: dict[str, Any], verdict: str, says: str
) -> None:
    """One line, with what it does; it is not called well beside that."""
    ((level, what),) = told_of(GroupState(group="gpu-asg", **group), **fields)
    assert (level, says in what) == (verdict, True)


def test_a_pool_that_is_anothers_is_told_once() -> None:
    """Its cloud's own words name the way out: its settings are not told beside them."""
    policy = Policy(version=1, pools={"gpu": PoolPolicy(instance_type="g5.xlarge", max=4)})
    state = PoolState(name="gpu", desired=0, rules=PoolRules(group="gpu", most=4, closed="auto-repair is on: switch"))
    group = GroupState(group="gpu", settings={"repairs": "true"}, marks=False)
    assert [check.code for check in rule_checks(policy, {"gpu": state}, {"gpu": group})] == ["pool-closed"]


def test_what_a_group_leaves_to_us_is_not_told() -> None:
    """Every switch off, and Capacity Rebalancing where there is no spot to replace."""
    off = {"max-lifetime": "0", "repairs": "false", "alarms": "false", "schedules": "false"}
    group = GroupState(group="gpu-asg", settings={**off, "capacity-rebalance": "true"})
    assert [verdict for verdict, _ in told_of(group)] == ["ok"]


def test_a_pool_that_runs_on_a_reservation_and_is_not_called_reserved_is_told() -> None:
    """Dollars are held for nodes that are paid for already, until the policy says so."""
    rules = PoolRules(group="gpu", zones=("a",))
    state = PoolState(name="gpu", desired=0, rules=rules, paid=(Paid(name="r-1", count=2, free=2),))
    kinds: tuple[tuple[CapacityType, list[str]], ...] = (("on-demand", ["pool-paid"]), ("reserved", ["pool-rules"]))
    for kind, codes in kinds:
        pool = PoolPolicy(instance_type="g2-standard-4", capacity_type=kind)
        checks = list(rule_checks(Policy(version=1, pools={"gpu": pool}), {"gpu": state}))
        assert [check.code for check in checks] == codes
