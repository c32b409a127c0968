"""Other hands on a pool's group that end, replace or buy its nodes: its cloud's own, by the names of ``handover``."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.policy import PoolPolicy
from pilotlight.tools.install.handover import GroupState
from pilotlight.tools.install.handover_steps import BY_ITSELF, WARM_BY_EKS


class Hand(NamedTuple):
    """What a setting lets a cloud do by itself, and how bad that is."""

    verdict: Level
    does: str


HANDS: Mapping[str, Hand] = {
    "capacity-rebalance": Hand(
        "warning", "Capacity Rebalancing buys and ends spot nodes: no budget holds their dollars"
    ),
    "max-lifetime": Hand("fault", "MaxInstanceLifetime ends nodes at that age, jobs with them"),
    "repairs": Hand("fault", "node auto repair of EKS replaces nodes, jobs with them"),
    "alarms": Hand("fault", "scaling policies size it: they buy nodes past budgets, and end them"),
    "schedules": Hand("fault", "scheduled actions size it: they buy nodes past budgets, and end them"),
}


def hand_checks(name: str, pool: PoolPolicy, group: GroupState) -> Iterator[Check]:
    """A line for each; none where only Pilotlight keeps the group."""
    if group.busy:
        what = f"{group.busy}: its nodes are replaced or sized, whatever runs on them"
        yield _check(name, "fault", what, "wait until it is over, or end it; then run takeover")
    for setting, hand in HANDS.items():
        is_ = group.settings.get(setting, BY_ITSELF[setting])
        if is_ != BY_ITSELF[setting] and (setting != "capacity-rebalance" or pool.capacity_type == "spot"):
            yield _check(name, hand.verdict, f"{group.group}: {hand.does}", f"pilotlight takeover --pool {name}")
    stopped = pool.spares.stopped
    if group.managed and stopped not in (0, "auto"):
        what = f"spares.stopped is {stopped}, and none of its nodes is stopped: {WARM_BY_EKS.partition(';')[0]}"
        fix = f"give it a plain Auto Scaling group, or set pools.{name}.spares.stopped to 0"
        yield _check(name, "warning", what, fix)


def _check(pool: str, verdict: Level, what: str, fix: str) -> Check:
    return Check(code="pool-hands", subject=f"pool {pool}", verdict=verdict, what=what, fix=fix)
