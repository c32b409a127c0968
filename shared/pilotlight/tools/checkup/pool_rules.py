"""Rules of a cloud's own on a pool that end work, keep it lit, or let it grow past the policy."""

from collections.abc import Iterator, Mapping

from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.nodes.pool_state import PoolRules, PoolState
from pilotlight.facts.offers.aws_zones import region_of_id
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.tools.checkup.group_hands import hand_checks
from pilotlight.tools.install.handover import GroupState


def rule_checks(
    policy: Policy, clouds: Mapping[str, PoolState], groups: Mapping[str, GroupState] = {}
) -> Iterator[Check]:
    """Each pool of the policy whose cloud tells its rules; ``groups`` has the settings of those that tell them too."""
    for name, pool in policy.pools.items():
        state = clouds.get(name)
        if state is None or state.rules is None:
            continue
        found = [
            *_is_closed(name, state.rules),
            *_surges(name, state.rules),
            *_ends_work(name, state.rules),
            *_sizes(name, pool, state.rules),
            *_zones(name, pool, state.rules),
        ]
        if name in groups and not state.rules.closed:
            found += hand_checks(name, pool, groups[name])
        if state.paid and pool.capacity_type != "reserved":
            what = f"takes reservations alone ({state.paid[0].name}): dollars are held for what is paid for already"
            found.append(_check("pool-paid", name, "warning", what, f"write pools.{name}.capacity_type: reserved"))
        found += _kind(name, pool, state.rules)
        asked = 0 if pool.spares.stopped == "auto" else pool.spares.stopped
        if state.standby > asked:
            beyond = f"{state.standby} stopped instances beside it, the policy asks for {asked}: their disks cost"
            fix = f"remove the warm pool of {state.rules.group}, or set pools.{name}.spares.stopped to {state.standby}"
            found.append(_check("pool-standby", name, "warning", f"has {beyond}", fix))
        yield from found
        if not found:
            yield _check("pool-rules", name, "ok", f"{state.rules.group} ends no work and keeps no node by itself")


def _check(code: str, pool: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code=code, subject=f"pool {pool}", verdict=verdict, what=what, fix=fix)


def _kind(name: str, pool: PoolPolicy, rules: PoolRules) -> Iterator[Check]:
    """Where dollars are held by another price than its cloud's. What a reservation pays for is on demand there."""
    kind, says = rules.kind, pool.capacity_type
    if kind is not None and kind != ("on-demand" if says == "reserved" else says):
        verdict: Level = "fault" if kind == "on-demand" else "warning"
        fix = f"write pools.{name}.capacity_type: {kind}"
        yield _check("pool-capacity-type", name, verdict, f"is of {kind} at its cloud, and of {says} here", fix)


def _is_closed(name: str, rules: PoolRules) -> Iterator[Check]:
    if rules.closed:
        why, _, way_out = rules.closed.partition(": ")
        yield _check("pool-closed", name, "fault", why, way_out)


def _surges(name: str, rules: PoolRules) -> Iterator[Check]:
    if rules.surges:
        what, _, way_out = rules.surges.partition(": ")
        yield _check("pool-surge", name, "warning", what, way_out)


def _ends_work(name: str, rules: PoolRules) -> Iterator[Check]:
    group = f"--auto-scaling-group-name {rules.group}"
    if rules.rebalances and len(rules.zones) > 1:
        what = f"AZRebalance ends running nodes to spread {rules.group} over {len(rules.zones)} zones, jobs with them"
        fix = f"aws autoscaling suspend-processes {group} --scaling-processes AZRebalance"
        yield _check("pool-rebalance", name, "fault", what, fix)
    if not rules.protects:
        what = f"new instances of {rules.group} are not protected: whoever lowers its size ends running jobs"
        fix = f"aws autoscaling update-auto-scaling-group {group} --new-instances-protected-from-scale-in"
        yield _check("pool-protection", name, "warning", what, fix)


def _sizes(name: str, pool: PoolPolicy, rules: PoolRules) -> Iterator[Check]:
    if rules.least:
        what = f"{rules.group} has min size {rules.least}: so many nodes are never given back"
        yield _check("pool-least", name, "fault", what, "set its min size to 0")
    if rules.most is None:  # Its cloud bounds no pool.
        return
    if rules.most > pool.max:
        what = f"{rules.group} has max size {rules.most}, the policy max {pool.max}: another hand could pass it"
        yield _check("pool-most", name, "warning", what, f"set its max size to {max(1, pool.max)}")
    elif rules.most < pool.max:
        what = f"{rules.group} has max size {rules.most}, the policy max {pool.max}: purchases beyond are refused"
        yield _check("pool-most", name, "warning", what, f"set one to the other: pools.{name}.max, or its max size")


def _zones(name: str, pool: PoolPolicy, rules: PoolRules) -> Iterator[Check]:
    zones = ", ".join(rules.zones)
    if rules.names_zone and not pool.zones:
        yield _check(
            "pool-zones", name, "fault", f"{rules.group} has zones {zones}", f"name some in pools.{name}.zones"
        )
    elif len(rules.zones) > 1 and not pool.zones:
        what = f"{rules.group} launches in any of {zones}: the nodes of one gang may lie in several zones"
        fix = f"name them in pools.{name}.zones, so that each purchase names its own; or one group a zone"
        yield _check("pool-zones", name, "warning", what, fix)
    ids = [zone for zone in pool.zones if region_of_id(zone)]
    if ids:
        what = (
            f"{', '.join(ids)}: zones by their ids, which no node has as its zone: pods that are bound to one miss it"
        )
        yield _check("pool-zones", name, "warning", what, f"write names in pools.{name}.zones: {zones}")
    foreign = [zone for zone in pool.zones if rules.zones and zone not in (*rules.zones, *ids)]
    if foreign:
        what = f"{rules.group} has {zones}, and not {', '.join(foreign)}"
        yield _check("pool-zones", name, "fault", what, f"mend pools.{name}.zones")
