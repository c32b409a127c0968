"""The record of each step of an idle owner: a decision of the flow ``reclaim``, an alert, Events.

Told before the record says so: whoever dies in between tells it again, as the same alert, and never puts to rest
unannounced.
"""

from datetime import datetime

import msgspec

from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.labels import GPU_IDLE, SNOOZE_UNTIL
from pilotlight.facts.messages import Alert
from pilotlight.facts.place.pod_verdicts import PodGroup, Verdict
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.flow.alerts.decision_messages import by_fingerprint
from pilotlight.flow.alerts.told_once import tell_once
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.units import HOUR, an_hour

SNOOZE = "pilotlight reclaim snooze {} --for 8h"
WAKE = "pilotlight reclaim wake {}"


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
    tell_once(deps, _with(alert, following, "kubectl apply -f infra/kubernetes/rbac/reclaim.yaml"), 24 * HOUR)


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
