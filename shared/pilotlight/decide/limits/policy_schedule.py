"""Windows of a policy: at a moment, the policy as its schedules make it."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from pilotlight.facts.alerts.channel_policy import QuietHours
from pilotlight.facts.limits.rule_policy import RuleTime, Schedule
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import Policy

if TYPE_CHECKING:
    from pilotlight.decide.work import Work

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def in_window(schedule: Schedule | QuietHours | RuleTime, now: datetime) -> bool:
    """True where a schedule holds at an aware moment. Local wall-clock time decides, so daylight saving is followed.

    A window over midnight belongs to the day it begins on.
    """
    from zoneinfo import ZoneInfo

    local = now.astimezone(ZoneInfo(schedule.timezone))
    clock, today = local.strftime("%H:%M"), _DAYS[local.weekday()]
    if schedule.start < schedule.end:
        return today in schedule.days and schedule.start <= clock < schedule.end
    yesterday = _DAYS[(local - timedelta(days=1)).weekday()]
    return (today in schedule.days and clock >= schedule.start) or (yesterday in schedule.days and clock < schedule.end)


def effective(policy: Policy, now: datetime) -> Policy:
    """The policy with every schedule that holds now applied in order; the same object when none does."""
    for schedule in policy.schedules:
        if in_window(schedule, now):
            policy = _apply(policy, schedule)
    return policy


def follow_schedules(work: "Work") -> None:
    """Go by the policy of this hour."""
    work.policy = effective(work.policy, work.now)


def _apply(policy: Policy, schedule: Schedule) -> Policy:
    pools = {
        name: msgspec.structs.replace(
            pool, warm=schedule.warm.get(name, pool.warm), max=schedule.max.get(name, pool.max)
        )
        for name, pool in policy.pools.items()
    }
    classes = dict(policy.classes)
    for name, types in schedule.capacity_types.items():
        classes[name] = msgspec.structs.replace(policy.of_class(name), capacity_types=types)
    return msgspec.structs.replace(
        policy, pools=pools, classes=classes, caps=_merged(policy.caps, schedule.caps), schedules=policy.schedules
    )


def _merged(caps: Caps, window: Caps | None) -> Caps:
    if window is None:
        return caps
    return Caps(
        nodes=caps.nodes if window.nodes is None else window.nodes,
        gpus=caps.gpus if window.gpus is None else window.gpus,
        usd_per_hour=caps.usd_per_hour if window.usd_per_hour is None else window.usd_per_hour,
    )
