"""The messages of a decision: what changed for capacity's readers, and what people should know, each told once."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from pilotlight.facts.decisions import Plan, PodGroup
from pilotlight.facts.messages import TYPES, Alert, CapacityChanged, Outgoing
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps

_NAMES = {kind: name for name, kind in TYPES.items()}


def messages_of(deps: Deps, plan: Plan, decision: str, now: datetime) -> tuple[Outgoing, ...]:
    """All messages of a plan, each with an id that a re-send keeps."""
    out: list[Outgoing] = []
    for change in _changes(deps, plan, decision, now):
        out.append(_outgoing(change, "capacity", change.pool, decision, len(out)))
        out.append(_outgoing(_alert_of(change), "alerts", change.pool, decision, len(out)))
    for alert in _warnings(deps, plan, decision, now):
        if not ledger.was_told(deps.state, deps.name, alert.fingerprint):
            out.append(_outgoing(alert, "alerts", alert.fingerprint, decision, len(out)))
    return tuple(out)


def send(deps: Deps, messages: Sequence[Outgoing]) -> None:
    """Publish, then mark warnings told: their key is their fingerprint."""
    deps.outbox.publish(messages)
    for message in messages:
        if message.topic == "alerts" and "/" in message.key:
            ledger.told(deps.state, deps.name, message.key)


def _outgoing(message: Alert | CapacityChanged, topic: str, key: str, decision: str, n: int) -> Outgoing:
    return Outgoing(
        id=f"{decision}.{n}",
        topic=topic,  # type: ignore[arg-type]
        type=_NAMES[type(message)],
        key=key,
        data=msgspec.Raw(msgspec.json.encode(message)),
    )


def _changes(deps: Deps, plan: Plan, decision: str, now: datetime) -> list[CapacityChanged]:
    grows = [
        CapacityChanged(
            cluster=deps.name,
            decision=decision,
            pool=b.pool,
            change="grow",
            nodes=b.count,
            usd_per_hour=str(b.count * b.usd_per_hour),
            why=b.why,
            at=now,
        )
        for b in plan.buys
    ]
    releases = [
        CapacityChanged(
            cluster=deps.name,
            decision=decision,
            pool=n.pool,
            change="release",
            nodes=1,
            usd_per_hour=str(n.usd_per_hour),
            why=n.why,
            at=now,
        )
        for n in plan.releases
    ]
    return grows + releases


def _alert_of(change: CapacityChanged) -> Alert:
    verb = "asked for" if change.change == "grow" else "released"
    return Alert(
        cluster=change.cluster,
        kind=f"capacity-{change.change}",
        severity="info",
        fingerprint=f"{change.decision}/{change.pool}/{change.change}",
        what=f"{verb} {change.nodes} node{'s' if change.nodes != 1 else ''} of pool {change.pool}",
        why=change.why,
        next="the pods bind when the node is ready" if change.change == "grow" else "nothing to do",
        how=f"pilotlight why {change.decision}",
        usd_per_hour=change.usd_per_hour,
        decision=change.decision,
        at=change.at,
    )


def _warnings(deps: Deps, plan: Plan, decision: str, now: datetime) -> list[Alert]:
    """Pods that people must mend, and demand that a cap refuses: one alert a cause, naming the pods."""
    findings = [
        _warning(deps, decision, now, f"finding-{f.code}", f"{f.subject} gets no node", f.message, (f.subject,))
        for f in plan.findings
    ]
    refused = [
        _warning(deps, decision, now, "refused", f"{_names(g)} refused", g.why, g.pods)
        for g in plan.pods
        if g.verdict == "refused"
    ]
    return findings + refused


def _warning(deps: Deps, decision: str, now: datetime, kind: str, what: str, why: str, pods: tuple[str, ...]) -> Alert:
    digest = hashlib.blake2b("\n".join(sorted(pods)).encode(), digest_size=8).hexdigest()
    return Alert(
        cluster=deps.name,
        kind=kind,
        severity="warning",
        fingerprint=f"{kind}/{digest}",
        what=what,
        why=why,
        next="looked at again every minute",
        how=f"pilotlight why {pods[0]}",
        decision=decision,
        at=now,
    )


def _names(group: PodGroup) -> str:
    more = f" and {len(group.pods) - 1} more" if len(group.pods) > 1 else ""
    return f"{group.pods[0]}{more}"
