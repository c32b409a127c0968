"""The messages of a decision: what changed for capacity's readers, and what people should know, each told once."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from pilotlight import typed_json
from pilotlight.facts.decisions import Buy, CallStep, Held, NodeVerdict, Record, StepCode, StepState
from pilotlight.facts.messages import TYPES, Alert, CapacityChanged, Outgoing
from pilotlight.facts.workload import IDLE_BLOCKED, LAUNCH_OWED
from pilotlight.flow.alerts.cluster_events import on_objects
from pilotlight.flow.alerts.wording import (
    CallWorth,
    NotDone,
    blocks_no_more,
    call_worth,
    landed_late,
    mark,
    node_gone_alert,
    not_done,
    owes_no_more,
    warnings,
)
from pilotlight.flow.answer import alert_out
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import call_steps, ledger

_NAMES = {kind: name for name, kind in TYPES.items()}
_OF_PODS = ("refused/", "finding-", "deadline/")
_OWED = f"finding-{LAUNCH_OWED}/"
_BLOCKED = f"finding-{IDLE_BLOCKED}/"
_alert = typed_json.decoder(Alert)


def with_messages(deps: Deps, record: Record, flapping: Sequence[str], is_gone: Callable[[str, str], bool]) -> Record:
    """The record with all that is to be told of it, unless it has them; ``is_gone`` is asked of pool and node."""
    if record.messages:
        return record
    flaps = flap_alerts(deps, flapping, record.id, record.at)
    told = messages_of(deps, record) + flaps + endings(deps, record, is_gone)
    return msgspec.structs.replace(record, messages=told)


def messages_of(deps: Deps, record: Record) -> tuple[Outgoing, ...]:
    """All messages of a decision whose steps are known: what came of them, what brakes hold, what people should mend.

    Ids are by step, so that a message sent again after a crash carries the id it had.
    """
    out: list[Outgoing] = []
    for call, step in record.calls_with_steps:
        if step.code == "there":
            continue
        if step.state == "done" or (step.count and step.state in ("denied", "unknown")):
            change = _change(deps, call, step.count, record)
            out.append(_outgoing(change, "capacity", change.pool, f"{record.id}.{step.n}"))
            if not _of_a_broken_gang(call, step):
                alert = _alert_of(change, call, call_worth(deps, call, step.count))
                out.append(_outgoing(alert, "alerts", change.pool, f"{record.id}.{step.n}.alert"))
        if (ended := _ENDED.get((step.state, step.code)) or _ENDED.get((step.state, ""))) is not None:
            change = _change(deps, call, step.count, record)
            alert = not_done(change, ended, step.call, step.target, step.note, call_worth(deps, call, step.count))
            out += _news(deps, alert, f"{record.id}.{step.n}.{ended}")
    for n, held in enumerate(record.plan.held):
        if held.code != "settling":
            change = _change(deps, held.action, held.count, record)
            stays: NotDone = "advised" if held.code == "mode" else "stopped"
            why = f"{held.why}; {_HOW_TO_APPROVE.format(record.id)}" if held.code == "approval" else held.why
            alert = not_done(change, stays, held.call, held.target, why, call_worth(deps, held.action, held.count))
            alert = msgspec.structs.replace(alert, fingerprint=_news_of(alert.fingerprint, held))
            out += _news(deps, alert, f"{record.id}.h{n}.{stays}")
    for n, alert in enumerate(warnings(deps, record.plan, record.id, record.at)):
        out += _news(deps, alert, f"{record.id}.w{n}")
    return tuple(out)


def _news_of(fingerprint: str, held: Held) -> str:
    """A request to approve another count is news, or the same count once an approval is used up or has lapsed; so is
    a node that passes a budget from here on."""
    if held.code == "approval":
        fingerprint += f"/{held.count}" + (f"/{held.after}" if held.after else "")
    return f"{fingerprint}/hard-cap" if held.node is not None and held.node.capped else fingerprint


def _of_a_broken_gang(call: Buy | NodeVerdict, step: CallStep) -> bool:
    """True for a node that came for a gang and goes back at once: people hear once that the gang could not be had."""
    return (
        bool(call.flight and call.failed)
        if isinstance(call, NodeVerdict)
        else bool(call.gangs) and step.state == "denied"
    )


def _news(deps: Deps, alert: Alert, id: str) -> list[Outgoing]:
    """An alert that was not told lately."""
    if ledger.was_told(deps.state, deps.name, alert.fingerprint):
        return []
    return [_outgoing(alert, "alerts", alert.fingerprint, id)]


def close_and_tell(deps: Deps, record: Record, version: int) -> Record:
    """Tell and file a decision whose steps are all known. What is to be told is written before it is told.

    Messages that did not fit the record of a worker that was lost are made anew, under their ids.

    Raises ``Busy`` where another worker has settled it since ``version``.
    """
    if not record.messages or record.left_out.get("messages"):
        known = {message.id for message in record.messages}
        more = tuple(message for message in messages_of(deps, record) if message.id not in known)
        record = msgspec.structs.replace(record, messages=record.messages + more)
    if record.messages or record.steps:
        ledger.write(deps.state, record, if_version=version)
    send(deps, record.messages)
    on_objects(deps, record)
    ledger.close(deps.state, record)
    call_steps.forget(deps, record)
    return record


_ENDED: dict[tuple[StepState, StepCode], NotDone] = {
    ("denied", ""): "denied",
    ("unknown", ""): "undone",
    ("revoked", "failed"): "undone",
    ("revoked", "overtaken"): "undone",
    ("revoked", "paused"): "stopped",
    ("revoked", "drain"): "kept",
}
"""Which alert tells how a step ended, where people should know of it."""

_HOW_TO_APPROVE = "allow it once with: pilotlight approve {}"


def endings(deps: Deps, record: Record, is_gone: Callable[[str, str], bool]) -> tuple[Outgoing, ...]:
    """Warnings that are over: their pod waits no longer, or their node, which was not given back, is gone.

    From a record whose plan is whole, never from one that was read. ``is_gone`` is asked of a pool and its node.
    """
    plan, out, told = record.plan, list[Alert](), ledger.all_told(deps.state, deps.name)
    if not told:
        return ()
    still = {alert.fingerprint for alert in warnings(deps, plan, record.id, record.at)}
    owed = {mark(f"finding-{LAUNCH_OWED}", (f"pool {name}",)): f"pool {name}" for name in deps.policy.pools}
    waiting = {pod for group in plan.pods for pod in group.pods} | {f.subject for f in plan.findings if f.uid}
    for fingerprint, pod in told:
        if fingerprint in still:
            continue
        if fingerprint.startswith(_BLOCKED):
            out.append(blocks_no_more(record, fingerprint, pod))
        elif pod and pod not in waiting and fingerprint.startswith(_OF_PODS):
            out.append(_ending(deps, fingerprint, pod, record.id, record.at))
        elif fingerprint.startswith(_OWED):
            out.append(owes_no_more(record, fingerprint, owed.get(fingerprint, "a pool")))
        elif node := landed_late(fingerprint, is_gone):
            out.append(node_gone_alert(record, fingerprint, node))
    return tuple(alert_out(alert, f"{record.id}.over.{alert.fingerprint}") for alert in out)


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


def send(deps: Deps, messages: Sequence[Outgoing]) -> None:
    """Publish, then mark warnings told, or over: their key is their fingerprint."""
    deps.outbox.publish(messages)
    for message in messages:
        if message.topic == "alerts" and "/" in message.key:
            alert = _alert.decode(message.data)
            if alert.resolved:
                ledger.untell(deps.state, deps.name, message.key)
            else:
                ledger.mark_told(deps.state, deps.name, message.key, alert.subject)


def _outgoing(message: Alert | CapacityChanged, topic: Literal["alerts", "capacity"], key: str, id: str) -> Outgoing:
    data = msgspec.Raw(msgspec.json.encode(message))
    return Outgoing(id=id, topic=topic, type=_NAMES[type(message)], key=key, data=data)


def _change(deps: Deps, call: Buy | NodeVerdict, count: int, record: Record) -> CapacityChanged:
    return CapacityChanged(
        cluster=deps.name,
        decision=record.id,
        pool=call.pool,
        change="grow" if isinstance(call, Buy) else "release",
        nodes=count,
        usd_per_hour="" if call.usd_per_hour is None else str(count * call.usd_per_hour),
        why=call.why,
        at=record.at,
    )


def _alert_of(change: CapacityChanged, call: Buy | NodeVerdict, in_all: CallWorth) -> Alert:
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


_NEXT = {"grow": "the pods bind when the node is ready", "release": "nothing to do"}


def flap_alerts(deps: Deps, pools: Sequence[str], decision: str, now: datetime) -> tuple[Outgoing, ...]:
    """Pools that were put out and lit again too often: they idle for longer now."""
    return tuple(
        _outgoing(
            Alert(
                cluster=deps.name,
                kind="flapping",
                severity="warning",
                fingerprint=f"flapping/{pool}/{decision}",
                what=f"pool {pool} was released and bought again 3 times within an hour",
                why="each time sooner than its idle time: buying again cost more than keeping would have",
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
