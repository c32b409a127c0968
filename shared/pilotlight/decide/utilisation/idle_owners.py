"""Which owners of idle pods are told, wait, rest or are left alone.

Only what was measured counts. A pod is idle when every one of its GPUs has a value for every moment of the silence up
to now, and each is between 0 and its rule's share: a gap, a negative value, a series too few or too many, or a grid
that ends in the past make it unknown, and what is unknown is never put to rest. Neither is a pod of whose owner's pods,
or by whose own past, such silences were often followed by work: the evidence of ``idle_pods``. An owner that did not
ask for it by its annotation is told only where that evidence calls each of its pods idle, as for ``waste``.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil, nan

import msgspec

from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.idle_pods import Evidence, Hours, Past, evidence, hours_by_device, silence
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.policy import ReclaimPolicy
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, Reclaim, ReclaimStep, SilentPod
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.units import MILLI_PER_GPU, Seconds, UsdPerHour, human

STALE_S: Seconds = 300
"""A grid that ends longer ago says nothing of now."""
AHEAD_S: Seconds = 60
"""Clocks may differ by so much: a grid that ends later than that is none of this clock's."""

TELLING_S: Seconds = 120
"""Who began to tell so long ago and has not written that it did is told once more."""

ReclaimRules = Mapping[str, ReclaimPolicy]


def idle(
    telemetry: Telemetry, nodes: Iterable[Node], rules: ReclaimRules, prices: Mapping[str, UsdPerHour], now: datetime
) -> list[SilentPod]:
    """Every pod of a class with a rule that is idle. ``prices``: dollars an hour by node; unknown ones are missing."""
    if not _fresh(telemetry, now):
        return []
    series: dict[str, list[GpuSeries]] = defaultdict(list)
    for one in telemetry.series:
        series[one.pod].append(_sane(one))
    own: dict[str, list[Hours]] = defaultdict(list)
    makers: dict[str, list[Hours]] = defaultdict(list)
    for (name, _), row in hours_by_device(telemetry).items():
        own[name].append(row)
        makers[made_by(name)].append(row)
    groups: dict[tuple[str, str], Past] = {}
    found = []
    for node in nodes:
        for pod in node.gpu_pods:
            rule, name = rules.get(pod.workload_class), f"{pod.namespace}/{pod.name}"
            held = series.get(name, [])
            if rule is None or (silent_s := _silent_s(pod, held, telemetry.step_s, rule, now)) is None:
                continue
            maker, known_as = made_by(name), (made_by(name), pod.workload_class)
            if known_as not in groups:
                groups[known_as] = Past(makers[maker], rule.under)
            seen = evidence(groups[known_as], Past(own[name], rule.under), silent_s)
            if not seen.against:
                found.append(_silent_pod(node, pod, silent_s, telemetry, prices.get(node.name), seen))
    return found


def working(telemetry: Telemetry, rules: ReclaimRules, nodes: Iterable[Node], now: datetime) -> set[str]:
    """Pods ("namespace/name") of a class with a rule that were seen at work within its time."""
    if not _fresh(telemetry, now):
        return set()
    of_class = {f"{p.namespace}/{p.name}": p.workload_class for node in nodes for p in node.gpu_pods}
    found = set()
    for one in telemetry.series:
        rule = rules.get(of_class.get(one.pod, ""))
        if rule is not None:
            lately = one.activity[-max(1, ceil(rule.idle / telemetry.step_s)) :]
            found |= {one.pod} if any(value >= rule.under for value in lately) else set()
    return found


def _fresh(telemetry: Telemetry, now: datetime) -> bool:
    """True where the grid ends now."""
    if not telemetry.series or not telemetry.step_s > 0 or not telemetry.samples:
        return False
    end = telemetry.start_s + (telemetry.samples - 1) * telemetry.step_s
    return -AHEAD_S <= now.timestamp() - end <= STALE_S


def _sane(one: GpuSeries) -> GpuSeries:
    """The same without values that no activity has."""
    values = [value if 0 <= value <= 1 else nan for value in one.activity]
    return msgspec.structs.replace(one, activity=values)


def _silent_s(
    pod: BoundPod, series: Sequence[GpuSeries], step_s: Seconds, rule: ReclaimPolicy, now: datetime
) -> Seconds | None:
    """For how long all of its GPUs have been silent, where that is long enough and known; else None."""
    gpu, devices = pod.gpu, {one.device for one in series}
    if gpu is None or pod.started_at is None or not series or len(devices) < len(series):
        return None
    if len(series) != (gpu.count if gpu.milli >= MILLI_PER_GPU else 1) or len({len(s.activity) for s in series}) > 1:
        return None
    samples = min(silence(one.activity, rule.under) for one in series)
    silent_s = min((samples - 1) * step_s, (now - pod.started_at).total_seconds())
    if silent_s < rule.idle or samples < ceil(rule.idle / step_s):
        return None
    return silent_s


def _silent_pod(
    node: Node,
    pod: BoundPod,
    silent_s: Seconds,
    telemetry: Telemetry,
    price: UsdPerHour | None,
    seen: Evidence,
) -> SilentPod:
    assert pod.gpu is not None
    whole = max(1, node.gpus) * MILLI_PER_GPU
    usd = None if price is None or not node.gpus else price * min(pod.gpu.total_milli, whole) / whole
    return SilentPod(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        pool=node.pool,
        workload_class=pod.workload_class,
        team=pod.team,
        gpus=str(pod.gpu),
        silent_s=silent_s,
        evidence=f"{pod.gpu} idle for {human(silent_s)} by {telemetry.metric or 'telemetry'} ({seen})",
        usd_per_hour=usd,
        called=seen.idle,
    )


def reclaim(
    pods: Iterable[tuple[SilentPod, OwnerState]],
    known: Mapping[str, Reclaim],
    states: Mapping[str, OwnerState | None],
    rules: ReclaimRules,
    acted_on: Container[str],
    working: Container[str],
    now: datetime,
) -> list[ReclaimStep]:
    """One step at most for each owner. ``known``: the records, by ``PodOwner.key``; ``states``: of those owners, None
    where one is gone. ``working``: pods ("namespace/name") whose telemetry says that they are not idle.
    """
    idle_of: dict[str, list[tuple[SilentPod, OwnerState]]] = defaultdict(list)
    for pod, state in pods:
        idle_of[state.owner.key].append((pod, state))
    steps = [
        _of_known(one, states.get(key), idle_of.get(key, []), rules, acted_on, working, now)
        for key, one in known.items()
    ]
    steps += [_of_new(found, rules, acted_on, now) for key, found in idle_of.items() if key not in known]
    return [step for step in steps if step is not None]


def _of_new(
    found: Sequence[tuple[SilentPod, OwnerState]], rules: ReclaimRules, acted_on: Container[str], now: datetime
) -> ReclaimStep | None:
    pod, state = found[0]
    rule = rules.get(pod.workload_class)
    if rule is None or not _allowed(state, rule) or not _all_idle(found) or _snoozed(state, None, now):
        return None
    acts = all(one.pool in acted_on for one, _ in found)
    record = Reclaim(
        owner=state.owner,
        stage="noticed" if acts else "advised",
        at=now,
        noticed_at=now,
        workload_class=pod.workload_class,
        team=pod.team,
        pool=pod.pool,
        pods=tuple(sorted(one.full_name for one, _ in found)),
        count=state.count,
        due_at=now + timedelta(seconds=rule.grace),
        evidence=_evidence(found),
        usd_per_hour=_dollars(found),
    )
    why = f"{record.evidence}; classes.{pod.workload_class}.reclaim says {human(rule.idle)}"
    return ReclaimStep(do="notice" if acts else "advise", why=why, was=None, became=record)


def _of_known(
    was: Reclaim,
    state: OwnerState | None,
    found: Sequence[tuple[SilentPod, OwnerState]],
    rules: ReclaimRules,
    acted_on: Container[str],
    working: Container[str],
    now: datetime,
) -> ReclaimStep | None:
    rule = rules.get(was.workload_class)
    if over := _over(was, state, rule, working):
        return _dropped(was, over)
    if state is None or rule is None or was.stage == "resting":
        return None
    if not state.count:
        return _rest(was, state, was.evidence, now)
    until = _snoozed(state, was, now)
    if until is None:
        return _of_idle(was, state, found, rule, acted_on, now)
    if was.snoozed_until == until:
        return None
    became = msgspec.structs.replace(was, snoozed_until=until, due_at=max(was.due_at, until), at=now)
    return ReclaimStep(do="snooze", why=f"left alone until {until:%Y-%m-%d %H:%M} UTC", was=was, became=became)


def _over(was: Reclaim, state: OwnerState | None, rule: ReclaimPolicy | None, working: Container[str]) -> str:
    """Why nothing more is done about an owner; empty where it goes on. One that is going may be at rest already."""
    if state is None:
        return "it is gone"
    if was.stage == "resting":
        return f"it was woken: it has {state.count}" if state.count else ""
    if rule is None or not _allowed(state, rule):
        return "its owner or the policy no longer lets it be put to rest"
    if not state.count:
        return "" if was.stage == "going" and state.before is not None else "somebody put it to rest already"
    return "it works again" if any(pod in working for pod in was.pods) else ""


def _of_idle(
    was: Reclaim,
    state: OwnerState,
    found: Sequence[tuple[SilentPod, OwnerState]],
    rule: ReclaimPolicy,
    acted_on: Container[str],
    now: datetime,
) -> ReclaimStep | None:
    """The step of an owner that is not left alone: it is told, and put to rest once its grace is over."""
    if found and min(now - timedelta(seconds=pod.silent_s) for pod, _ in found) > was.noticed_at:
        return _dropped(was, "it worked, or was not measured, since it was told")
    if not found or not _all_idle(found):
        return None
    acts = all(one.pool in acted_on for one, _ in found)
    if was.stage == "telling":
        return _told_again(was, acts, rule, now)
    if now < was.due_at or not acts:
        return None
    if was.stage == "advised":
        return _noticed_late(was, found, rule, now)
    return _rest(was, state, _evidence(found), now)


def _told_again(was: Reclaim, acts: bool, rule: ReclaimPolicy, now: datetime) -> ReclaimStep | None:
    """Whoever began it may have died before: told as of then, so that it is the same alert, with its whole grace."""
    if now - was.at < timedelta(seconds=TELLING_S):
        return None
    due_at = now + timedelta(seconds=rule.grace)
    became = msgspec.structs.replace(was, stage="noticed" if acts else "advised", at=now, due_at=due_at)
    return ReclaimStep(do="notice" if acts else "advise", why=was.evidence, was=was, became=became)


def _noticed_late(
    was: Reclaim, found: Sequence[tuple[SilentPod, OwnerState]], rule: ReclaimPolicy, now: datetime
) -> ReclaimStep:
    """Its pool is acted on now: the notice and the grace begin."""
    due_at = now + timedelta(seconds=rule.grace)
    became = msgspec.structs.replace(
        was, stage="noticed", at=now, noticed_at=now, due_at=due_at, evidence=_evidence(found)
    )
    return ReclaimStep(do="notice", why=became.evidence, was=was, became=became)


def _rest(was: Reclaim, state: OwnerState, evidence: str, now: datetime) -> ReclaimStep:
    count = state.count or state.before or was.count
    became = msgspec.structs.replace(was, stage="going", at=now, count=count, evidence=evidence)
    why = f"{evidence}; told at {was.noticed_at:%Y-%m-%d %H:%M} UTC"
    return ReclaimStep(do="rest", why=why, was=was, became=became)


def _dropped(was: Reclaim, why: str) -> ReclaimStep:
    return ReclaimStep(do="drop", why=why, was=was, became=None)


def _allowed(state: OwnerState, rule: ReclaimPolicy) -> bool:
    return state.opted is True or (rule.who == "all" and state.opted is None)


def _all_idle(found: Sequence[tuple[SilentPod, OwnerState]]) -> bool:
    """True where every pod that the owner asks for is among them, by evidence unless the owner itself opted in."""
    state = found[0][1]
    sure = state.opted is True or all(pod.called for pod, _ in found)
    return sure and state.count > 0 and len(found) >= state.count


def _snoozed(state: OwnerState, was: Reclaim | None, now: datetime) -> datetime | None:
    """Until when it is left alone, by its annotation or a command; None where it is not, or no longer."""
    said = [until for until in (state.snoozed_until, was.snoozed_until if was else None) if until and until > now]
    return max(said, default=None)


def _evidence(found: Sequence[tuple[SilentPod, OwnerState]]) -> str:
    first = found[0][0].evidence
    return first if len(found) == 1 else f"{len(found)} pods, each like {found[0][0].full_name}: {first}"


def _dollars(found: Sequence[tuple[SilentPod, OwnerState]]) -> UsdPerHour | None:
    total = UsdPerHour(0)
    for pod, _ in found:
        if pod.usd_per_hour is None:
            return None
        total += pod.usd_per_hour
    return total
