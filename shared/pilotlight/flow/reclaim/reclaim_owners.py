"""Owners of idle GPUs: whoever they are of is told, then they are put to rest, and never their pods alone.

Without telemetry, and where it cannot be read, nothing is done. A step's record is written by compare-and-set before
the cluster is asked; one that was begun and may not have been done is begun again by the next look, if all still holds.

The record of each step is a decision of the flow ``reclaim``, an alert, and Events. It is told before the record says
so: whoever dies in between tells it again, as the same alert, and never puts to rest unannounced.
"""

import logging
from datetime import datetime

import msgspec

from pilotlight.decide.nodes.other_autoscalers import other_autoscalers
from pilotlight.decide.utilisation.idle_owners import ReclaimRules, idle, reclaim, working
from pilotlight.errors import BadInput, Conflict, Denied, Retry
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.labels import GPU_IDLE, SNOOZE_UNTIL
from pilotlight.facts.messages import Alert
from pilotlight.facts.place.pod_verdicts import PodGroup, Verdict
from pilotlight.facts.policy import ReclaimPolicy
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, Reclaim, ReclaimStep, SilentPod
from pilotlight.flow.answer import by_fingerprint, tell_once
from pilotlight.flow.billing.waste_alert import node_prices, on_its_grid
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import brake_records, ledger
from pilotlight.ports.cluster import RestingCluster
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.alert_records import RECLAIM, RECLAIM_LOOK
from pilotlight.state_schema.marks import Mark
from pilotlight.state_schema.table import Entry
from pilotlight.units import HOUR, Seconds, an_hour

LOOK_S: Seconds = 300
"""Idle GPUs are looked for so often at most; with a shorter ``idle`` five times within it."""
BACK_S: Seconds = 24 * HOUR
"""So far back is looked at least: what such silences came to before says what one means."""
MOST_ASKED = 200
"""So many pods' owners are asked for in one look; the others are asked for at the next."""

_log = logging.getLogger("pilotlight.reclaim")

SNOOZE = "pilotlight reclaim snooze {} --for 8h"
WAKE = "pilotlight reclaim wake {}"


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
                file(deps, "snoozed", one, step.why, now)
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
        tell_notice(deps, one, step.why, file(deps, "noticed", one, step.why, now))
    else:
        why = f"nothing is done, for its pool is not in mode act: {step.why}"
        tell_advice(deps, one, step.why, file(deps, "spared", one, why, now))
    RECLAIM.put(deps.state, name, one, if_version=version)
    return f"{one.owner}: {step.do}: {step.why}"


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
            tell_refused(deps, one, str(error))
        return f"{one.owner} could not be put to rest: {error}"
    tell_rest(deps, one, step.why, file(deps, "rested", one, step.why, now))
    RECLAIM.put(deps.state, name, msgspec.structs.replace(one, stage="resting", at=now), if_version=version)
    return f"{one.owner} is put to rest: {step.why}"


def _drop(deps: Deps, one: Reclaim, why: str, name: str, version: int, now: datetime) -> str:
    decision = file(deps, "woken" if one.stage == "resting" else "spared", one, why, now)
    if one.stage in ("telling", "noticed"):
        tell_over(deps, one, why, decision)
    RECLAIM.delete(deps.state, name, if_version=version)
    return f"{one.owner}: {why}"


def file(deps: Deps, verdict: Verdict, one: Reclaim, why: str, now: datetime, by: str = "tick") -> str:
    """Link a step into the audit chain, where ``why`` finds it by pod, owner and team; the decision's id."""
    group = PodGroup(
        verdict=verdict,
        pods=one.pods,
        uids=(one.owner.key,),
        where=str(one.owner),
        why=f"{why}; {an_hour(one.usd_per_hour)}",
        workload_class=one.workload_class,
        team=one.team,
    )
    id = ledger.new_id(now, f"{one.owner.key}/{verdict}/{why}")
    plan = Plan(pods=(group,))
    record = Record(id=id, cluster=deps.name, flow="reclaim", trigger=by, at=now, status="closed", plan=plan, steps=())
    ledger.close(deps.state, record)
    return id


def tell_notice(deps: Deps, one: Reclaim, why: str, decision: str) -> None:
    """Whoever it is of hears it in their channel, and sees it on each pod."""
    key, due = one.owner.key, f"{one.due_at:%Y-%m-%d %H:%M} UTC"
    alert = _alert(deps, one, "warning", f"{one.owner} holds GPUs that do nothing", why, decision)
    alert = _with(alert, f"it is put to rest at {due} unless it works again", SNOOZE.format(key))
    deps.outbox.publish([by_fingerprint(alert)])
    annotate = f"kubectl annotate {one.owner.kind.lower()} {one.owner.name} {SNOOZE_UNTIL}=..."
    for pod in one.pods:
        namespace, _, name = pod.partition("/")
        message = f"{why}. {one.owner} is put to rest at {due}; keep it with `{SNOOZE.format(key)}` or `{annotate}`"
        deps.tell(namespace, name, GPU_IDLE, message, str(one.noticed_at))


def tell_advice(deps: Deps, one: Reclaim, why: str, decision: str) -> None:
    """Its pool is not acted on: whoever runs the cluster hears what would be done."""
    alert = _alert(deps, one, "info", f"{one.owner} holds GPUs that do nothing", why, decision)
    following = "nothing: its pool is not in mode act"
    deps.outbox.publish([by_fingerprint(_with(alert, following, "pilotlight reclaim list"))])


def tell_rest(deps: Deps, one: Reclaim, why: str, decision: str) -> None:
    """It rests, and how it is woken."""
    did = {"Job": "is suspended", "Notebook": "is stopped"}.get(one.owner.kind, "is scaled to zero")
    alert = _alert(deps, one, "info", f"{one.owner} {did}", why, decision, "rested")
    following = f"its nodes go when nothing else runs there; woken, it has {one.count} again"
    deps.outbox.publish([by_fingerprint(_with(alert, following, WAKE.format(one.owner.key)))])


def tell_refused(deps: Deps, one: Reclaim, why: str) -> None:
    """It was told and does not rest, for the cluster refuses: once a day, until somebody gives the right."""
    alert = _alert(deps, one, "warning", f"{one.owner} could not be put to rest", why, "", "refused")
    following = "it is tried again at every look; its GPUs cost what they did"
    tell_once(
        deps,
        _with(alert, following, "pilotlight show infra/kubernetes/rbac/reclaim.yaml | kubectl apply -f -"),
        24 * HOUR,
    )


def tell_over(deps: Deps, one: Reclaim, why: str, decision: str) -> None:
    """The notice is void."""
    alert = _alert(deps, one, "warning", f"{one.owner} is left alone", why, decision)
    over = _with(alert, "nothing to do", f"pilotlight why {decision}", resolved=True)
    deps.outbox.publish([by_fingerprint(over, "-over")])


def _alert(deps: Deps, one: Reclaim, severity: str, what: str, why: str, decision: str, stage: str = "idle") -> Alert:
    return Alert(
        cluster=deps.name,
        kind=f"reclaim-{stage}",
        severity="warning" if severity == "warning" else "info",
        fingerprint=f"reclaim-{stage}/{one.owner.key}/{one.noticed_at:%Y-%m-%dT%H:%M:%S}",
        what=what,
        why=why,
        usd_per_hour="" if one.usd_per_hour is None else str(one.usd_per_hour),
        subject=str(one.owner),
        team=one.team,
        decision=decision,
        at=one.at,
    )


def _with(alert: Alert, following: str, how: str, *, resolved: bool = False) -> Alert:
    return msgspec.structs.replace(alert, next=following, how=how, resolved=resolved)
