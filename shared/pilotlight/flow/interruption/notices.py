"""Interruptions in the state, and what people are told of them.

Keys: ``rescue/<cluster>/<instance>`` while something is left to do, then
``interruption/<cluster>/<instance>/<moment>``.
"""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from pilotlight.codec.records import Format
from pilotlight.facts.interruption import Interruption
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.flow.deps import Deps
from pilotlight.ports import ABSENT, State
from pilotlight.units import HOUR, UsdPerHour

KEEP_S = 30 * 24 * HOUR

INTERRUPTION = Format(Interruption)


class Kept(NamedTuple):
    """An interruption and the version of its open record; ``ABSENT`` where there is none."""

    found: Interruption
    version: int


def find(deps: Deps, instance: str) -> Kept | None:
    """What is known of an instance's last interruption, open or filed."""
    key = _open_key(deps.name, instance)
    stored = deps.state.get(key)
    if stored is not None:
        return Kept(INTERRUPTION.read(key, stored.value), stored.version)
    filed = deps.state.scan(f"{_filed_key(deps.name, instance)}/").items
    return Kept(INTERRUPTION.read(filed[-1][0], filed[-1][1].value), ABSENT) if filed else None


def write(deps: Deps, kept: Kept) -> Kept:
    """Write an open record over the version that was read. Raises ``Conflict`` where another was faster."""
    key = _open_key(deps.name, kept.found.instance)
    version = deps.state.put(key, INTERRUPTION.write(kept.found), if_version=kept.version)
    return Kept(kept.found, version)


def close(deps: Deps, kept: Kept) -> None:
    """File an interruption with which nothing is left to do."""
    found = kept.found
    key = f"{_filed_key(deps.name, found.instance)}/{found.received_at:%Y%m%dT%H%M%S}"
    deps.state.put(key, INTERRUPTION.write(found), ttl_s=KEEP_S)
    deps.state.delete(_open_key(deps.name, found.instance))


def left(deps: Deps) -> list[Kept]:
    """Interruptions with which something is left to do, the first deadline first."""
    found = [
        Kept(INTERRUPTION.read(key, stored.value), stored.version)
        for key, stored in deps.state.scan(f"rescue/{deps.name}/").items
    ]
    return sorted(found, key=lambda kept: (kept.found.deadline or kept.found.begin, kept.found.instance))


def every(state: State, cluster: str) -> Iterator[Interruption]:
    """All interruptions that are known, those at work first."""
    for room in ("rescue", "interruption"):
        after = ""
        while True:
            page = state.scan(f"{room}/{cluster}/", after=after)
            yield from (INTERRUPTION.read(key, stored.value) for key, stored in page.items)
            after = page.next
            if not after:
                break


def opening(found: Interruption, pods: int, price: UsdPerHour, now: datetime) -> Outgoing:
    """What people are told when a notice comes."""
    when = f"at {found.deadline:%H:%M:%S} UTC" if found.deadline else _WHEN.get(found.kind, "now or never")
    risk = f"; {found.loss} on it are not saved" if found.lost_gpu_hours else ""
    alert = Alert(
        cluster=found.cluster,
        kind="interruption",
        severity="warning" if found.ours or pods else "info",
        fingerprint=_fingerprint(found),
        what=f"{found.kind} of {_named(found)}: it goes {when}, with {pods} GPU pod{'s' if pods != 1 else ''} on it",
        why=found.why + risk,
        next="replaced, saved, drained and given back before that"
        if found.ours and not found.over
        else _ENDED[found.outcome],
        how=f"pilotlight why {found.instance}",
        subject=found.node or found.instance,
        usd_per_hour=str(price) if found.priced else "",
        usd=str(found.lost_usd) if found.priced else "",
        at=now,
    )
    return _out(alert, f"{_id(found)}.begin")


def closing(found: Interruption, price: UsdPerHour, now: datetime) -> Outgoing:
    """What people are told when all is done: what it cost. Never at a moment before its beginning: clocks differ."""
    alert = Alert(
        cluster=found.cluster,
        kind="interruption",
        severity="info",
        fingerprint=_fingerprint(found),
        what=f"{found.kind} of {_named(found)} is over: {found.loss} lost",
        why=f"{found.proof}: {_ENDED['disproved']}" if found.outcome == "disproved" else _ENDED[found.outcome],
        next="nothing to do",
        how=f"pilotlight why {found.decision or found.instance}",
        subject=found.node or found.instance,
        usd_per_hour=str(price) if found.priced else "",
        usd=str(found.lost_usd) if found.priced else "",
        resolved=True,
        decision=found.decision,
        at=max(now, found.received_at),
    )
    return _out(alert, f"{_id(found)}.end")


def untrue(found: Interruption, now: datetime) -> Outgoing:
    """What people are told of a notice that turned out to be untrue before they were told of it."""
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
    return _out(alert, f"{_id(found)}.untrue")


def ending(found: Interruption, price: UsdPerHour, now: datetime) -> tuple[Outgoing, ...]:
    """What is left to tell once an interruption is over: of an untrue notice that nobody was told of, only that."""
    begun = f"{_id(found)}.begin"
    if found.outcome == "disproved" and any(message.id == begun for message in found.messages):
        return (untrue(found, now),)
    return (*found.messages, closing(found, price, now))


_WHEN = {"preempted": "no more: it is gone", "state-change": "no more: it is gone", "rebalance": "perhaps, soon"}

_ENDED = {
    "not ours": "left to its owner: nothing is bought and nothing is drained",
    "disproved": "nothing is bought, drained or given back for it, and the node takes pods again",
    "unknown": "look at the cloud's console for its group; nothing is done",
    "stayed": "it stays as it is",
    "advised": "nothing is done: the mode does not allow it",
    "released": "it was given back before the cloud took it",
    "gone": "the cloud took it",
    "uncordoned": "it was not taken, and takes pods again",
    "after the fact": "the cloud had taken it before it said so: nothing could be drained",
}
"""How an interruption ended, in words."""


def _named(found: Interruption) -> str:
    where = f" ({found.node})" if found.node not in ("", found.instance) else ""
    return f"{found.instance}{where} of pool {found.pool}" if found.pool else f"{found.instance}, of no known pool"


def _fingerprint(found: Interruption) -> str:
    return f"interruption/{found.instance}/{found.kind}"


def _id(found: Interruption) -> str:
    text = f"{found.cluster}/{found.instance}/{found.kind}/{found.received_at}"
    return f"notice-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _open_key(cluster: str, instance: str) -> str:
    return f"rescue/{cluster}/{instance}"


def _filed_key(cluster: str, instance: str) -> str:
    return f"interruption/{cluster}/{instance}"


def _out(alert: Alert, id: str) -> Outgoing:
    from pilotlight.flow.tell import alert_out  # A notice that was dealt with tells nothing.

    return alert_out(alert, id)
