"""Interruptions in the state, and what people are told of them.

``RESCUE`` has one while something is left to do, ``INTERRUPTION`` those that are over. An instance's name is quoted in
keys: one with slashes is no folder of another's.
"""

import hashlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from pilotlight.errors import Conflict, Retry
from pilotlight.facts.interruption.interruption import (
    BACK,
    OUR_OWN,
    PODS_LEAVE,
    PREEMPTION,
    STILL_THERE,
    STOP_KINDS,
    UNFUNDED,
    Interruption,
    RescueOutcome,
    StopKind,
    Truth,
    bound_interruption,
)
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.flow.answer import alert_out
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.instance_records import INTERRUPTION, RESCUE
from pilotlight.units import HOUR, UsdPerHour, moment_of

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps

BRIEFLY_S = 24 * HOUR
"""A notice that was untrue, or of nobody known, is kept so long: whoever posts many fills no store with them."""

LONGEST = 300
"""Of a quoted name a key holds so much, and tells the rest apart."""


class Versioned(NamedTuple):
    """An interruption and the version of its open record; ``ABSENT`` where there is none."""

    found: Interruption
    version: int


def moment(deps: "Deps") -> datetime:
    """The store's time; this worker's own where the store does not answer: work is saved without it too."""
    try:
        return deps.now()
    except Retry:
        return deps.clock.now()


def find(deps: "Deps", instance: str) -> Versioned | None:
    """An instance's last interruption, open or filed."""
    name = _name(deps.name, instance)
    entry = RESCUE.get(deps.state, name)
    if entry is not None:
        return Versioned(entry.value, entry.version)
    over = last_filed(deps, instance)
    return Versioned(over, ABSENT) if over else None


def last_filed(deps: "Deps", instance: str) -> Interruption | None:
    """An instance's last interruption that is over."""
    last = deque(past(deps, instance), maxlen=1)
    return last[0] if last else None


def past(deps: "Deps", instance: str) -> Iterator[Interruption]:
    """An instance's interruptions that are over, the first one first."""
    return (entry.value for entry in INTERRUPTION.scan(deps.state, f"{_name(deps.name, instance)}/"))


def withdraw(deps: "Deps", kept: Versioned) -> None:
    """Take back an open record of which nothing was told. Raises ``Conflict`` where another went on with it."""
    RESCUE.delete(deps.state, _name(deps.name, kept.found.instance), if_version=kept.version)


def write(deps: "Deps", kept: Versioned) -> Versioned:
    """Write an open record over the version that was read. Raises ``Conflict`` where another was faster."""
    found = bound_interruption(kept.found)
    version = RESCUE.put(deps.state, _name(deps.name, found.instance), found, if_version=kept.version)
    return Versioned(found, version)


def close(deps: "Deps", kept: Versioned) -> None:
    """File an interruption with which nothing is left to do; a later end of a node that is still there goes on."""
    name, later = _name(deps.name, kept.found.instance), kept.found.later
    found = msgspec.structs.replace(kept.found, later=None)
    keep_s = BRIEFLY_S if found.outcome in ("unknown", "disproved") else None
    INTERRUPTION.put(deps.state, f"{name}/{found.received_at:%Y%m%dT%H%M%S}", found, ttl_s=keep_s)
    if later is None or found.outcome not in STILL_THERE:
        RESCUE.delete(deps.state, name)
    else:
        with suppress(Conflict):  # Another look, or another word of its end, carries it on.
            RESCUE.put(deps.state, name, later, if_version=kept.version)


def given_way(deps: "Deps", found: Interruption, price: UsdPerHour, now: datetime) -> tuple[Outgoing, ...]:
    """File one that a stop of our own takes the place of, and what is left to tell of it."""
    over = msgspec.structs.replace(found, outcome="stopped first", ended_at=now)
    told = ending(over, price, now)
    name = _name(deps.name, found.instance)
    filed = msgspec.structs.replace(over, messages=())
    INTERRUPTION.put(deps.state, f"{name}/{found.received_at:%Y%m%dT%H%M%S}", filed)
    return told


def open_interruptions(deps: "Deps") -> list[Versioned]:
    """Interruptions with which something is left to do, the first deadline first; without those that are set apart."""
    found = [Versioned(entry.value, entry.version) for entry in RESCUE.scan(deps.state, f"{deps.name}/")]
    if deps.apart:
        names = deps.set_apart("rescue")
        found = [kept for kept in found if kept.found.instance not in names]
    return sorted(found, key=lambda kept: (kept.found.deadline or kept.found.begin, kept.found.instance))


def every(state: State, cluster: str) -> Iterator[Interruption]:
    """All interruptions that are known, those at work first."""
    for table in (RESCUE, INTERRUPTION):
        yield from (entry.value for entry in table.scan(state, f"{cluster}/"))


def opening(found: Interruption, pods: int, price: UsdPerHour, now: datetime) -> Outgoing:
    """The alert that tells people of a notice as it comes."""
    when = f"at {moment_of(found.deadline, now)} UTC" if found.deadline else _WHEN.get(found.kind, "now or never")
    risk = f"; {found.loss} on it are not saved" if found.lost_gpu_hours else ""
    alert = Alert(
        cluster=found.cluster,
        kind="interruption",
        severity="warning" if found.ours or pods else "info",
        fingerprint=_fingerprint(found),
        what=_what(found, when, pods),
        why=found.why + risk,
        next=_ENDED[found.outcome] if found.is_over or not found.ours else _next(found),
        how=f"pilotlight why {found.instance}",
        subject=found.node or found.instance,
        usd_per_hour=str(price) if found.priced else "",
        usd=str(found.lost_usd) if found.priced else "",
        at=now,
    )
    return alert_out(alert, f"{_id(found)}.begin")


def retold(found: Interruption, pods: int | None, price: UsdPerHour) -> tuple[Outgoing, ...]:
    """Messages that are left to tell, the opening among them with what is known of the notice by now; as it was where
    its node's ``pods`` are not known."""
    begun = f"{_id(found)}.begin"
    return tuple(
        opening(found, pods, price, found.received_at) if pods is not None and message.id == begun else message
        for message in found.messages
    )


def closing(found: Interruption, price: UsdPerHour, now: datetime) -> Outgoing:
    """The alert that tells people what it cost, once all is done. Never dated before its beginning: clocks differ."""
    alert = Alert(
        cluster=found.cluster,
        kind="interruption",
        severity="info",
        fingerprint=_fingerprint(found),
        what=f"{found.kind} of {_named(found)} is over: {found.loss} lost",
        why=f"{found.proof}: {_ENDED['disproved']}" if found.outcome == "disproved" else _how_over(found),
        next="nothing to do",
        how=f"pilotlight why {found.decision or found.instance}",
        subject=found.node or found.instance,
        usd_per_hour=str(price) if found.priced else "",
        usd=str(found.lost_usd) if found.priced else "",
        resolved=True,
        decision=found.decision,
        at=max(now, found.received_at),
    )
    return alert_out(alert, f"{_id(found)}.end")


def untrue(found: Interruption, now: datetime) -> Outgoing:
    """The alert on a notice that turned out to be untrue before people were told of it."""
    alert = Alert(
        cluster=found.cluster,
        kind="interruption",
        severity="warning",
        fingerprint=f"{_fingerprint(found)}/untrue",
        what=f"a notice that is not true: {found.kind} of {_named(found)}",
        why=found.proof,
        next=_ENDED["disproved"],
        how=f"pilotlight why {found.instance}; see who may post notices",
        subject=found.node or found.instance,
        at=now,
    )
    return alert_out(alert, f"{_id(found)}.untrue")


def ending(found: Interruption, price: UsdPerHour, now: datetime) -> tuple[Outgoing, ...]:
    """Messages left to tell once an interruption is over: of an untrue notice that nobody was told of, only that."""
    begun = f"{_id(found)}.begin"
    if found.outcome == "disproved" and not found.told and any(message.id == begun for message in found.messages):
        return (untrue(found, now),)
    return (*found.messages, closing(found, price, now))


def _what(found: Interruption, when: str, pods: int) -> str:
    if found.kind in PODS_LEAVE:
        leave = f"{len(found.leaving)} GPU pod{'s leave' if len(found.leaving) != 1 else ' leaves'}"
        return f"{found.kind}: {leave} {_named(found)}, which stays"
    return f"{found.kind} of {_named(found)}: it goes {when}, with {pods} GPU pod{'s' if pods != 1 else ''} on it"


_WHEN = {
    "preempted": "no more: it is gone",
    "state-change": "no more: it is gone",
    "rebalance": "perhaps, soon",
    "node-age": "when its pods have moved",
    "back-to-spot": "when its pod has moved",
    "sick-gpu": "when its pods have moved",
    "off-hours": "when its pods have left",
}


class OnItsWay(NamedTuple):
    """In words what is under way with a node; ``goes`` where the node itself goes."""

    words: str
    goes: bool


def on_their_way(deps: "Deps", now: datetime) -> dict[str, OnItsWay]:
    """Why each node that we empty goes, and when, and for whom a pod of one that stays gives way, by its instance and
    by its name; one whose time has not come yet, and one of which pods leave for money, stays until then unsaid."""
    words: dict[str, OnItsWay] = {}
    for kept in open_interruptions(deps):
        found = kept.found
        begun = found.ours and found.begin <= now and found.truth == "verified" and found.kind not in PODS_LEAVE
        if found.kind == PREEMPTION:
            way = OnItsWay(f"{found.kind}: {found.why}", goes=False)
            words[found.instance] = words[found.node or found.instance] = way
        elif begun and (found.replaced or found.kind != BACK):
            when = f"at {moment_of(found.deadline, now)} UTC" if found.deadline else _WHEN.get(found.kind, "soon")
            words[found.instance] = words[found.node or found.instance] = OnItsWay(
                f"{found.kind}: it goes {when}", goes=True
            )
    return words


_NEXT: dict[str, str] = {
    "hard-cap": "saved, drained and released before that; nothing new is bought for it",
    "max-runtime": "saved, drained and released before that; nothing new is bought for it",
    "out-of-budget": "asked for a checkpoint and evicted within their grace; the node goes on with whoever pays for it",
    "preemption": "asked for a checkpoint and evicted once that is safe; nothing is bought for the one that waits",
    "off-hours": "saved, evicted as their disruption budgets allow, and released; nothing is bought there meanwhile",
}
"""What is done next at an end of our own: no cloud takes anything, and nothing takes its place."""

_STOPPED: dict[StopKind, str] = {
    "hard-cap": "it was released before what its budget holds for it ended",
    "max-runtime": "it was released at the end of its class's max_runtime",
}
"""How a stop of our own ended."""

_COMES: dict[Truth, str] = {
    "verified": "replaced, saved, drained and given back before that",
    "unverified": "nobody confirms it: pods leave only when their grace begins, and nothing is bought or given back "
    "before its cloud shows it going",
    "disproved": "nothing is bought, drained or given back for it, and the node takes pods again",
}
"""What is done next, by what is known of the notice."""

_ENDED: dict[RescueOutcome | Literal[""], str] = {
    "": "it goes on",
    "not ours": "left to its owner: nothing is bought and nothing is drained",
    "disproved": "nothing is bought, drained or given back for it, and the node takes pods again",
    "unknown": "look at the cloud's console for its group; nothing is done",
    "stayed": "it stays as it is",
    "advised": "nothing is done: the mode does not allow it",
    "released": "it was given back before the cloud took it",
    "gone": "the cloud took it",
    "stopped first": "what its budget holds ends sooner: it is stopped in order before that",
    "uncordoned": "it was not taken, and takes pods again",
    "after the fact": "the cloud had taken it before it said so: nothing could be drained",
}
"""How an interruption ended, in words."""


def _stop(found: Interruption) -> StopKind | None:
    return next((kind for kind in STOP_KINDS if found.kind == kind), None)


def _next(found: Interruption) -> str:
    return _NEXT.get(found.kind, _COMES[found.truth])


def _how_over(found: Interruption) -> str:
    stop = _stop(found)
    if found.kind == UNFUNDED and found.outcome == "stayed":
        return "its pods without money left; the node stays with whoever pays for it"
    if found.kind == PREEMPTION and found.outcome == "stayed":
        return f"{found.why}; it {'has left' if found.evicted else 'was not evicted'}, and the node stays"
    if found.outcome != "released" or found.kind not in OUR_OWN:
        return _ENDED[found.outcome]
    return "its pods moved, and it was released" if stop is None else _STOPPED[stop]


def _named(found: Interruption) -> str:
    where = f" ({found.node})" if found.node not in ("", found.instance) else ""
    return f"{found.instance}{where} of pool {found.pool}" if found.pool else f"{found.instance}, of no known pool"


def _fingerprint(found: Interruption) -> str:
    return f"interruption/{found.instance}/{found.kind}"


def _id(found: Interruption) -> str:
    text = f"{found.cluster}/{found.instance}/{found.kind}/{found.received_at}"
    return f"notice-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _name(cluster: str, instance: str) -> str:
    quoted = quote(instance, safe="")
    if len(quoted) > LONGEST:
        quoted = f"{quoted[:LONGEST]}.{hashlib.blake2b(quoted.encode(), digest_size=8).hexdigest()}"
    return f"{cluster}/{quoted}"
