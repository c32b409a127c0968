"""Owners of idle GPUs: whoever they are of is told, then they are put to rest, and never their pods alone.

Without telemetry, and where it cannot be read, nothing is done. A step's record is written by compare-and-set before
the cluster is asked; one that was begun and may not have been done is begun again by the next look, if all still holds.
"""

import logging
from datetime import datetime

import msgspec

from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
from pilotlight.decide.utilisation.idle_owners import ReclaimRules, idle, reclaim, working
from pilotlight.errors import BadInput, Conflict, Denied, Retry
from pilotlight.facts.policy import ReclaimPolicy
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, Reclaim, ReclaimStep, SilentPod
from pilotlight.flow.billing.waste_alert import node_prices, on_its_grid
from pilotlight.flow.deps import Deps
from pilotlight.flow.reclaim import reclaim_record as told
from pilotlight.flow.records import brake_records
from pilotlight.ports.cluster import RestingCluster
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.alert_records import RECLAIM, RECLAIM_LOOK
from pilotlight.state_schema.table import Entry, Mark
from pilotlight.units import HOUR, Seconds

LOOK_S: Seconds = 300
"""Idle GPUs are looked for so often at most; with a shorter ``idle`` five times within it."""
BACK_S: Seconds = 24 * HOUR
"""So far back is looked at least: what such silences came to before says what one means."""
MOST_ASKED = 200
"""So many pods' owners are asked for in one look; the others are asked for at the next."""

_log = logging.getLogger("pilotlight.reclaim")


def watch(deps: Deps, now: datetime) -> tuple[str, ...]:
    """One look: what was done, a line each."""
    rules: dict[str, ReclaimPolicy] = {
        name: own.reclaim for name, own in deps.policy.classes.items() if own.reclaim is not None
    }
    cluster = deps.cluster
    if not rules or not isinstance(cluster, RestingCluster) or not _due(deps, rules):
        return ()
    if deps.telemetry is None:
        return ("telemetry: absent: nothing is put to rest; set PILOTLIGHT_TELEMETRY",)
    back_s = max(BACK_S, *(rule.idle + rule.grace + HOUR for rule in rules.values()))
    view = deps.observe()
    nodes = view.nodes
    try:
        read = on_its_grid(deps.telemetry, now.timestamp() - back_s, now.timestamp())
    except (Retry, Denied, BadInput) as error:
        return (f"telemetry: absent: nothing is put to rest: {error}",)
    if not read.series:
        return ("telemetry: absent: no series of a pod; nothing is put to rest",)
    entries = {entry.value.owner.key: entry for entry in RECLAIM.scan(deps.state, f"{deps.name}/")}
    pods = _with_owners(cluster, idle(read, nodes, rules, node_prices(deps, nodes), now))
    states = {key: cluster.owner_now(entry.value.owner) for key, entry in entries.items()}
    known = {key: entry.value for key, entry in entries.items()}
    others = other_autoscalers(deps.policy, view, deps.pools.describe(), now) if pods else {}
    ours = (pool for pool in deps.policy.pools if deps.mode_of(pool) == "act" and pool not in others)
    acted_on = {pool for pool in ours if not _paused(deps, pool)}
    steps = reclaim(pods, known, states, rules, acted_on, working(read, rules, nodes, now), now)
    return tuple(line for step in steps if (line := _take(deps, cluster, step, entries, now)))


def _due(deps: Deps, rules: ReclaimRules) -> bool:
    """True where it is time to look; one look at a time."""
    every_s = min(LOOK_S, *(rule.idle / 5 for rule in rules.values()))
    try:
        RECLAIM_LOOK.put(deps.state, deps.name, Mark(), if_version=ABSENT, ttl_s=every_s)
    except Conflict:
        return False
    return True


def _with_owners(cluster: RestingCluster, pods: list[SilentPod]) -> list[tuple[SilentPod, OwnerState]]:
    found = []
    for pod in pods[:MOST_ASKED]:
        try:
            state = cluster.owner_of(pod.namespace, pod.name, pod.uid)
        except Denied as error:
            _log.warning("owner not read", extra={"data": {"pod": pod.full_name, "why": str(error)}})
            continue
        if state is not None:
            found.append((pod, state))
    return found


def _paused(deps: Deps, pool: str) -> str:
    return brake_records.pause_reason(deps.state, deps.name, pool)


def _take(
    deps: Deps, cluster: RestingCluster, step: ReclaimStep, entries: dict[str, Entry[Reclaim]], now: datetime
) -> str:
    """Carry out one step; what was done. Another worker that was faster has done it."""
    one = step.became or step.was
    assert one is not None
    entry = entries.get(one.owner.key)
    name, version = f"{deps.name}/{one.owner.key}", entry.version if entry else ABSENT
    try:
        match step.do:
            case "advise" | "notice":
                return _tell(deps, step, name, version, now)
            case "snooze":
                RECLAIM.put(deps.state, name, one, if_version=version)
                told.file(deps, "snoozed", one, step.why, now)
                return f"{one.owner}: {step.do}: {step.why}"
            case "rest":
                return _rest(deps, cluster, step, name, version, now)
            case "drop":
                return _drop(deps, one, step.why, name, version, now)
    except Conflict:
        return ""


def _tell(deps: Deps, step: ReclaimStep, name: str, version: int, now: datetime) -> str:
    """Written first, so that of two looks at once one tells; who dies in between leaves a record that is told again."""
    one = step.became
    assert one is not None
    version = RECLAIM.put(deps.state, name, msgspec.structs.replace(one, stage="telling", at=now), if_version=version)
    if step.do == "notice":
        told.tell_notice(deps, one, step.why, told.file(deps, "noticed", one, step.why, now))
    else:
        told.tell_advice(deps, one, step.why, told.file(deps, "spared", one, _would(step.why), now))
    RECLAIM.put(deps.state, name, one, if_version=version)
    return f"{one.owner}: {step.do}: {step.why}"


def _would(why: str) -> str:
    return f"nothing is done, for its pool is not in mode act: {why}"


def _rest(deps: Deps, cluster: RestingCluster, step: ReclaimStep, name: str, version: int, now: datetime) -> str:
    """Written first: who dies in between leaves a record that says that it may rest already."""
    one = step.became
    assert one is not None
    version = RECLAIM.put(deps.state, name, one, if_version=version)
    if why := _paused(deps, one.pool):
        return f"{one.owner} is not put to rest: {why}"
    try:
        cluster.rest(one.owner, one.count)
    except (Retry, Denied) as error:
        _log.warning("not put to rest", extra={"data": {"owner": one.owner.key, "why": str(error)}})
        if isinstance(error, Denied):
            told.tell_refused(deps, one, str(error))
        return f"{one.owner} could not be put to rest: {error}"
    told.tell_rest(deps, one, step.why, told.file(deps, "rested", one, step.why, now))
    RECLAIM.put(deps.state, name, msgspec.structs.replace(one, stage="resting", at=now), if_version=version)
    return f"{one.owner} is put to rest: {step.why}"


def _drop(deps: Deps, one: Reclaim, why: str, name: str, version: int, now: datetime) -> str:
    decision = told.file(deps, "woken" if one.stage == "resting" else "spared", one, why, now)
    if one.stage in ("telling", "noticed"):
        told.tell_over(deps, one, why, decision)
    RECLAIM.delete(deps.state, name, if_version=version)
    return f"{one.owner}: {why}"
