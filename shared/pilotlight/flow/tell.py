"""The messages of a decision: what changed for capacity's readers, and what people should know, each told once."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Buy, Effect, NodeVerdict, Plan
from pilotlight.facts.messages import TYPES, Alert, CapacityChanged, Outgoing
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps
from pilotlight.flow.unmet import mark, warnings

if TYPE_CHECKING:
    from pilotlight.flow.worth import Worth

MOST_OWNERS = 50
"""Of one refused group so many pods get an Event of their own."""

_NAMES = {kind: name for name, kind in TYPES.items()}
_OF_PODS = ("refused/", "finding-")
_alert = msgspec.json.Decoder(Alert)


def messages_of(
    deps: Deps, plan: Plan, effects: Sequence[Effect], decision: str, now: datetime
) -> tuple[Outgoing, ...]:
    """All messages of a decision as far as its effects are known: a planned one is taken for done.

    Ids are by effect, so that a message sent again after a crash carries the id it had.
    """
    from pilotlight.flow.worth import worth  # An event that decides nothing has no use for it.

    out: list[Outgoing] = []
    calls: tuple[Buy | NodeVerdict, ...] = (*plan.buys, *plan.releases)
    for index, (call, effect) in enumerate(zip(calls, effects, strict=True)):
        change = _change(deps, call, effect, decision, now)
        if effect.outcome in ("planned", "done") or (effect.outcome == "denied" and effect.count):
            out.append(_outgoing(change, "capacity", change.pool, f"{decision}.{index}"))
            alert = _alert_of(change, call, worth(deps, call, effect.count))
            out.append(_outgoing(alert, "alerts", change.pool, f"{decision}.{index}.alert"))
        if effect.outcome in ("advised", "stopped", "denied", "undone"):
            alert = _not_done(change, effect, worth(deps, call, effect.count))
            if not ledger.was_told(deps.state, deps.name, alert.fingerprint):
                out.append(_outgoing(alert, "alerts", alert.fingerprint, f"{decision}.{index}.{effect.outcome}"))
    for n, alert in enumerate(warnings(deps, plan, decision, now)):
        if not ledger.was_told(deps.state, deps.name, alert.fingerprint):
            out.append(_outgoing(alert, "alerts", alert.fingerprint, f"{decision}.w{n}"))
    return tuple(out)


def endings(deps: Deps, plan: Plan, decision: str, now: datetime) -> tuple[Outgoing, ...]:
    """Warnings that are over: their pod waits no longer. From a whole plan, never from a record's, which is cut."""
    waiting = {pod for group in plan.pods for pod in group.pods} | {f.subject for f in plan.findings if f.uid}
    return tuple(
        alert_out(_ending(deps, fingerprint, pod, decision, now), f"{decision}.over.{fingerprint}")
        for fingerprint, pod in ledger.all_told(deps.state, deps.name)
        if pod and pod not in waiting and fingerprint.startswith(_OF_PODS)
    )


def _ending(deps: Deps, fingerprint: str, pod: str, decision: str, now: datetime) -> Alert:
    """As severe as what it ends, so that it goes where that went."""
    return Alert(
        cluster=deps.name,
        kind=fingerprint.partition("/")[0],
        severity="warning",
        fingerprint=fingerprint,
        what=f"{pod} waits no longer",
        why="it has its GPUs, or it is gone",
        next="nothing to do",
        how=f"pilotlight why {pod}",
        subject=pod,
        resolved=True,
        decision=decision,
        at=now,
    )


def kept_endings(messages: Sequence[Outgoing]) -> tuple[Outgoing, ...]:
    """Those of a record's messages that say what is over."""
    return tuple(message for message in messages if ".over." in message.id)


def send(deps: Deps, messages: Sequence[Outgoing]) -> None:
    """Publish, then mark warnings told, or over: their key is their fingerprint."""
    deps.outbox.publish(messages)
    for message in messages:
        if message.topic == "alerts" and "/" in message.key:
            alert = _alert.decode(message.data)
            if alert.resolved:
                ledger.untell(deps.state, deps.name, message.key)
            else:
                ledger.told(deps.state, deps.name, message.key, alert.subject)


def tell_owners(deps: Deps, plan: Plan, messages: Sequence[Outgoing]) -> None:
    """An Event on each pod that a new warning is about. Best effort: the alert is out already."""
    new = {message.key for message in messages}
    told = [(g.pods, g.why) for g in plan.pods if g.verdict == "refused" and mark("refused", g.pods) in new]
    told += [
        ((f.subject,), f.message) for f in plan.findings if f.uid and mark(f"finding-{f.code}", (f.subject,)) in new
    ]
    try:
        for pods, why in told:
            for pod in pods[:MOST_OWNERS]:
                namespace, _, name = pod.partition("/")
                deps.cluster.tell(namespace, name, "NoGpuNode", why)
    except (Denied, Retry):
        return


def alert_out(alert: Alert, id: str) -> Outgoing:
    """An alert on its way out, told once by its fingerprint."""
    return _outgoing(alert, "alerts", alert.fingerprint, id)


def _outgoing(message: Alert | CapacityChanged, topic: Literal["alerts", "capacity"], key: str, id: str) -> Outgoing:
    data = msgspec.Raw(msgspec.json.encode(message))
    return Outgoing(id=id, topic=topic, type=_NAMES[type(message)], key=key, data=data)


def _change(deps: Deps, call: Buy | NodeVerdict, effect: Effect, decision: str, now: datetime) -> CapacityChanged:
    grow = isinstance(call, Buy)
    return CapacityChanged(
        cluster=deps.name,
        decision=decision,
        pool=call.pool,
        change="grow" if grow else "release",
        nodes=effect.count,
        usd_per_hour=str(effect.count * call.usd_per_hour),
        why=call.why,
        at=now,
    )


def _alert_of(change: CapacityChanged, call: Buy | NodeVerdict, in_all: "Worth") -> Alert:
    failed = call.node if isinstance(call, NodeVerdict) and call.failed else ""
    verb = "asked for" if change.change == "grow" else "released"
    return Alert(
        cluster=change.cluster,
        kind=f"capacity-{change.change}",
        severity="warning" if failed else "info",
        fingerprint=f"{change.decision}/{change.pool}/{change.change}" + (f"/{failed}" if failed else ""),
        what=f"{verb} {change.nodes} node{'s' if change.nodes != 1 else ''} of pool {change.pool}",
        why=change.why,
        next="; ".join(filter(None, (_NEXT[change.change], in_all.why))),
        how=f"pilotlight why {change.decision}",
        usd_per_hour=change.usd_per_hour,
        usd=in_all.usd,
        subject=f"pool {change.pool}",
        decision=change.decision,
        at=change.at,
    )


def _not_done(change: CapacityChanged, effect: Effect, in_all: "Worth") -> Alert:
    """What was not done, told once a cause: advice, a refusal of the cloud, a call that never happened."""
    said = {"advised": "would", "stopped": "may not", "denied": "could not", "undone": "did not"}[effect.outcome]
    verb = f"{said} {effect.call} pool {effect.pool} ({effect.target})"
    return Alert(
        cluster=change.cluster,
        kind=f"capacity-{effect.outcome}",
        severity="info" if effect.outcome == "advised" else "warning",
        fingerprint=f"{effect.outcome}/{effect.call}/{effect.pool}/{effect.target}",
        what=verb,
        why=f"{change.why}; {effect.note}",
        next=_NEXT[effect.outcome],
        how=f"pilotlight why {change.decision}",
        usd_per_hour=change.usd_per_hour,
        usd=in_all.usd if effect.call == "grow" else "",
        subject=f"pool {change.pool}",
        decision=change.decision,
        at=change.at,
    )


_NEXT = {
    "grow": "the pods bind when the node is ready",
    "release": "nothing to do",
    "advised": "set the pool's mode to act",
    "stopped": "pilotlight resume, or approve with this decision's id",
    "denied": "another offering is tried",
    "undone": "looked at again at once",
}


def flap_alerts(deps: Deps, pools: Sequence[str], decision: str, now: datetime) -> tuple[Outgoing, ...]:
    """Pools that were put out and lit again too often: they idle for longer now."""
    return tuple(
        _outgoing(
            Alert(
                cluster=deps.name,
                kind="flapping",
                severity="warning",
                fingerprint=f"flapping/{pool}/{decision}",
                what=f"pool {pool} was put out and lit again 3 times within an hour",
                why="each time sooner than its idle time: relighting cost more than keeping would have",
                next="its nodes may idle for twice as long, up to max_idle_timeout",
                how=f"pilotlight why {decision}",
                decision=decision,
                at=now,
            ),
            "alerts",
            f"flapping/{pool}/{decision}",
            f"{decision}.flap.{pool}",
        )
        for pool in pools
    )
