"""Times of a policy: windows of the week, and at a moment the policy as rules of time alone make it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import asdict, replace

from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWhen
from pilotlight.facts.policy import Policy

NOTICE = timedelta(minutes=30)
"""People are told of off-hours so long before pods leave."""

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def in_window(window: RuleTime, now: datetime) -> bool:
    """True where a window holds at an aware moment. Local wall-clock time decides, so daylight saving is followed.

    A window over midnight belongs to the day it begins on.
    """
    from zoneinfo import ZoneInfo

    local = now.astimezone(ZoneInfo(window.timezone))
    clock, today = local.strftime("%H:%M"), _DAYS[local.weekday()]
    if window.start < window.end:
        return today in window.days and window.start <= clock < window.end
    yesterday = _DAYS[(local - timedelta(days=1)).weekday()]
    return (today in window.days and clock >= window.start) or (yesterday in window.days and clock < window.end)


def leave_off_hours(policy: Policy, now: datetime) -> dict[tuple[str, str], Rule]:
    """The rules by which classes that consent leave pools from half an hour on, by (pool, class)."""
    return {
        (pool, kind): rule
        for rule in policy.rules
        if rule.does.evict and rule.when.time is not None and in_window(rule.when.time, now + NOTICE)
        for pool, kinds in rule.does.avoid.items()
        for kind in kinds
        if "off-hours" in policy.of_class(kind).may_move
    }


def emptied_by(node: Node, leave: Mapping[tuple[str, str], Rule]) -> tuple[Rule, ...]:
    """The rules by which all of a node's pods leave, by name; none where it has no pod, or one that stays."""
    rules = [leave.get((node.pool, pod.workload_class or "batch")) for pod in node.gpu_pods]
    found = {rule.name: rule for rule in rules if rule is not None}
    return () if None in rules else tuple(found[name] for name in sorted(found))


def effective(policy: Policy, now: datetime) -> Policy:
    """The policy with every rule of time alone that holds now, in order; the same object when none does."""
    for rule in policy.rules:
        time = rule.when.time
        if time is not None and rule.when == RuleWhen(time=time) and in_window(time, now):
            policy = apply_set(policy, rule.does)
    return policy


def follow_hours(work: Work) -> None:
    """Go by the policy of this hour."""
    work.policy = effective(work.policy, work.now)


def apply_set(policy: Policy, does: RuleSet) -> Policy:
    """The policy with what a rule sets of pools' sizes, caps and classes."""
    pools, classes = dict(policy.pools), dict(policy.classes)
    for name in {**does.max, **does.warm}:
        pool = pools[name]
        most = does.max.get(name, pool.max)
        pool = pool.with_warm(min(does.warm[name], most)) if name in does.warm else pool
        pools[name] = replace(pool, max=most)
    for kind, types in does.capacity_types.items():
        classes[kind] = replace(policy.of_class(kind), capacity_types=types)
    caps = {key: cap for key, cap in asdict(does.caps).items() if cap is not None} if does.caps else {}
    return replace(policy, pools=pools, classes=classes, caps=replace(policy.caps, **caps))
