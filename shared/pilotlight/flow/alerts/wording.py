"""Words and dollars of a decision: its calls as its steps ended, never as they were planned alone; the worth of a call;
and the demand that gets no node, an alert a cause.

Calls that were not made are told once a cause: advice, a brake, a refusal of the cloud, a call that never happened.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple

import msgspec

from pilotlight.decide.money.budget_limits import class_of, most, terms
from pilotlight.facts.decisions import Buy, CallStep, Held, NodeVerdict, Plan, Record
from pilotlight.facts.demand.settled_claims import same_claim
from pilotlight.facts.messages import Alert, CapacityChanged
from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.nodes.gpu_faults import MANY_SICK, NODE_LOST, SHORT_OF_GPUS, SICK_GPU
from pilotlight.facts.place.pod_verdicts import PodGroup, Verdict
from pilotlight.facts.workload import (
    CLAIM_REFUSED,
    HOME_REFUSED,
    IDLE_BLOCKED,
    LAUNCH_OWED,
    TAKES_HOMES,
    Finding,
)
from pilotlight.flow.answer import Answer
from pilotlight.flow.deps import Deps
from pilotlight.units import cents, human, round_usd

NOTHING = "nothing to do"


def answer_of(record: Record) -> Answer:
    """The answer of a decision whose calls were made."""
    why = summary(record.plan, record.calls_with_steps)
    released = tuple(step.target for step in record.steps if step.call == "release" and step.state == "done")
    return Answer(decision=record.id, did=did(record), why=why, released=released)


def did(record: Record) -> tuple[str, ...]:
    """Lines on a decision: one for each call that was made, and one for each that a brake holds."""
    held = (f"{h.call} {h.target}: {'advised' if h.code == 'mode' else 'stopped'}, {h.why}" for h in record.plan.held)
    return (*map(line, record.steps), *held)


def line(step: CallStep) -> str:
    """One call and what became of it."""
    if step.code == "there":
        return f"asked pool {step.pool} for nothing: {step.note}"
    if step.state == "done":
        grown = f"asked pool {step.pool} for {step.count} x {step.target}"
        call = {"grow": grown, "release": f"released {step.target}"}[step.call]
        return call + (f" ({step.note})" if step.note else "")
    return f"{step.call} {step.target}: {step.state}" + (f", {step.note}" if step.note else "")


def summary(plan: Plan, made: Sequence[tuple[Buy | NodeVerdict, CallStep]]) -> str:
    """A decision in one line; ``made`` are its steps, none of a plan that was not carried out."""
    counts: dict[Verdict, int] = {}
    for group in plan.pods:
        counts[group.verdict] = counts.get(group.verdict, 0) + len(group.pods)
    parts = [_became(call, step) for call, step in made] if made else [_planned(call) for call in plan.calls]
    parts += _nothing(plan) + [_would(held) for held in plan.held]
    parts += [_counted(v, n) for v, n in sorted(counts.items()) if v != "bought"]
    first = next((g.why for g in plan.pods if g.verdict in ("refused", "waiting", "finding")), "")
    stated = any(map(first.count, [one.why for one in plan.held]))  # A brake's reason stands with what it holds.
    return "; ".join(parts) + (f" ({first})" if first and not stated else "") if parts else NOTHING


def _nothing(plan: Plan) -> list[str]:
    """The part that comes first where a person's brake holds every purchase."""
    why = next((held.why for held in plan.held if held.buy is not None and held.code == "paused"), "")
    return [f"buys nothing: {why}"] if why and not plan.buys else []


def _planned(call: Buy | NodeVerdict) -> str:
    if isinstance(call, Buy):
        ahead = "" if call.demands else " as spares" if call.count > 1 else " as a spare"
        return f"buys {call.count} x {call.offering}{ahead}"
    return f"{'stops' if call.stop else 'releases'} {call.node}: {call.why}"


def _became(call: Buy | NodeVerdict, step: CallStep) -> str:
    if step.state == "done" and step.code != "there":
        return _planned(call)
    verb = f"buys no {step.target}" if step.call == "grow" else f"keeps {step.target}"
    if step.call == "grow" and step.count and step.state in ("denied", "unknown"):
        verb = f"buys {step.count} x {step.target} only"
    return f"{verb}: {step.note or step.state}"


def _would(held: Held) -> str:
    if held.buy is not None:
        return f"would buy {held.count} x {held.target}: {held.why}"
    return f"would release {held.target}: {held.why}"


def _counted(verdict: Verdict, count: int) -> str:
    one, many = _WORDS[verdict]
    return f"1 pod {one}" if count == 1 else f"{count} pods {many}"


_WORDS: dict[Verdict, tuple[str, str]] = {
    "bought": ("gets a new node", "get new nodes"),
    "fits": ("fits on a ready node", "fit on ready nodes"),
    "booting": ("waits for a node on its way", "wait for nodes on their way"),
    "waiting": ("waits", "wait"),
    "refused": ("refused", "refused"),
    "finding": ("needs mending", "need mending"),
    "noticed": ("is idle: its owner was told", "are idle: their owners were told"),
    "snoozed": ("is idle and may stay a while", "are idle and may stay a while"),
    "rested": ("was put to rest", "were put to rest"),
    "woken": ("was woken", "were woken"),
    "spared": ("works again and stays", "work again and stay"),
}
"""What is said of one pod, and of more."""


def warnings(deps: Deps, plan: Plan, decision: str, now: datetime) -> list[Alert]:
    """The alerts of a plan's findings and refusals, each naming its pods and their team."""
    found = [_finding(one) for one in plan.findings]
    found += [_refused(group) for group in plan.pods if group.verdict == "refused"]
    found += [_for_spot(group) for group in plan.pods if group.verdict == "waiting" and group.code == "deadline"]
    return [msgspec.structs.replace(alert, cluster=deps.name, decision=decision, at=now) for alert in found]


def mark(kind: str, pods: Sequence[str]) -> str:
    """A warning's fingerprint: its kind and the pods it is about."""
    return f"{kind}/{hashlib.blake2b(chr(10).join(sorted(pods)).encode(), digest_size=8).hexdigest()}"


def _finding(one: Finding) -> Alert:
    kind = f"finding-{one.code}"
    if one.uid:
        what = "may take the room of others" if one.code == TAKES_HOMES else "gets no node"
        return _warning(kind, f"{one.subject} {what}", one.message, (one.subject,), one.subject, one.team)
    title = _TITLES.get(one.code, f"has a problem: {one.code}")
    alert = _warning(kind, f"{one.subject} {title}", one.message, (one.subject,), "", one.team)
    if one.code == IDLE_BLOCKED:  # Others in the way are news.
        node = one.subject.removeprefix("node ")
        named = mark(kind, (one.subject, one.message))
        return msgspec.structs.replace(alert, fingerprint=named, subject=one.subject, how=f"pilotlight why {node}")
    if one.code == CLAIM_REFUSED:  # One of each claim, whichever pods make it.
        alert = msgspec.structs.replace(alert, fingerprint=mark(kind, (same_claim(one.message),)))
    how = "pilotlight budget" if one.code.startswith("budget-") else "pilotlight doctor"
    return msgspec.structs.replace(alert, how=how)


_TITLES = {
    "budget-hold": "has no room for all that runs",
    "budget-passed": "is below what is settled and held already",
    "budget-endless": "runs on past a hard budget",
    "budget-lost": "is gone from the state",
    "budget-period": "counts in another period",
    "budget-gone": "is gone from the policy, and counts",
    "gate-refused": "is not opened to Karpenter",
    "gate-reverted": "is set by another hand",
    "end-stuck": "has machines that do not end",
    "request-deleted": "loses its requests to another hand",
    "gate-left": "has a limit of ours, and no pool",
    "pool-left": "has nodes that we bought, and left the policy",
    "state-restored": "was restored, and does not know what came since",
    "scheduler-refuses": "is not bound where it seems to fit",
    "scheduler-unheard": "says nothing of pods beside nodes with room",
    "opened-by-hand": "was opened by a person while it was being given back",
    LAUNCH_OWED: "is owed nodes by its cloud",
    IDLE_BLOCKED: "idles, and cannot be emptied",
    "pool-unread": "cannot be read whole",
    "pool-resized": "was raised by another hand",
    "node-without-instance": "shows nodes without an instance",
    "instance-without-node": "has instances that no node stands for",
    "other-type": "has a node of another type",
    "unknown-instance-type": "has an unknown instance type",
    "unknown-price": "has no price",
    "waits-for-quota": "has work that waits for quota",
    "stale-price": "has an old price",
    SICK_GPU: "has GPUs that are not well",
    SHORT_OF_GPUS: "shows too few GPUs",
    MANY_SICK: "has many sick nodes",
    NODE_LOST: "is lost with its pods",
    CLAIM_REFUSED: "claims what its namespace may not",
    HOME_REFUSED: "lets none of its pods have a home",
    "quota-full": "has used up its account's quota",
}
"""Titles of alerts on things that are no pods, by a finding's code."""


def _refused(group: PodGroup) -> Alert:
    more = f" and {len(group.pods) - 1} more" if len(group.pods) > 1 else ""
    return _warning("refused", f"{group.pods[0]}{more} refused", group.why, group.pods, group.pods[0], group.team)


def _for_spot(group: PodGroup) -> Alert:
    """A job with a deadline that waits because that costs least, and on-demand is still in time."""
    told = _warning("deadline", f"{group.pods[0]} waits for spot", group.why, group.pods, group.pods[0], group.team)
    return msgspec.structs.replace(told, severity="info")


def _warning(kind: str, what: str, why: str, pods: tuple[str, ...], subject: str, team: str) -> Alert:
    return Alert(
        cluster="",
        kind=kind,
        severity="warning",
        fingerprint=mark(kind, pods),
        what=what,
        why=why,
        next="looked at again every minute",
        how=f"pilotlight why {pods[0]}",
        subject=subject,
        team=team,
    )


class CallWorth(NamedTuple):
    """Dollars as decimal text, empty where they are not known, and what they are made of."""

    usd: str = ""
    why: str = ""


def call_worth(deps: Deps, call: Buy | NodeVerdict, count: int) -> CallWorth:
    """The dollars of a call that is made for ``count`` nodes."""
    if isinstance(call, NodeVerdict):
        return CallWorth(_text(call.spent_usd)) if call.spent_usd else CallWorth()
    if not call.demands:
        return CallWorth(why="a spare costs its price an hour while it is kept")
    asked = _terms(deps, call)[:count]
    if not asked:
        return CallWorth()
    usd = sum((most(each) for each in asked), Decimal(0))
    longest = max(asked, key=lambda each: each.run_s)
    return CallWorth(_text(usd), f"at most {cents(usd)}, if a run takes {human(longest.run_s)} ({longest.run_source})")


def _terms(deps: Deps, buy: Buy) -> tuple[Terms, ...]:
    """One a node: those that budgets hold, else those that the policy's classes make."""
    offering = next((one for one in deps.offerings if one.name == buy.offering), None)
    if buy.terms or offering is None:
        return buy.terms
    return (terms(offering, deps.policy, workload_class=class_of(buy.workload_class), team=""),) * buy.count


def _text(usd: Decimal) -> str:
    return str(round_usd(usd) if usd >= 1 else round_usd(usd, Decimal("0.0001")))


Call = Literal["grow", "release"]

NotDone = Literal["advised", "stopped", "kept", "denied", "undone"]
"""How a call that was not made, or not carried out, ended."""

_UNDONE = ("undone/release/", "denied/release/")
_SAID: dict[NotDone, str] = {
    "advised": "would",
    "stopped": "may not",
    "denied": "could not",
    "undone": "did not",
    "kept": "could not",
}
_NEXT: dict[NotDone, str] = {
    "advised": "set the pool's mode to act",
    "stopped": "tried again at every look, until the brake lets it through",
    "kept": "tried again at every look; it is paid for meanwhile",
    "denied": "another offering is tried",
    "undone": "looked at again at once",
}


def not_done(change: CapacityChanged, ended: NotDone, call: Call, target: str, note: str, in_all: CallWorth) -> Alert:
    """The alert of a call that was not made, or not carried out; ``note`` says why not."""
    return Alert(
        cluster=change.cluster,
        kind=f"capacity-{ended}",
        severity="info" if ended == "advised" else "warning",
        fingerprint=f"{ended}/{call}/{change.pool}/{target}",
        what=f"{_SAID[ended]} {call} pool {change.pool} ({target})",
        why=f"{change.why}; {note}",
        next="tried again, after a longer pause each time" if (ended, call) == ("denied", "release") else _NEXT[ended],
        how=f"pilotlight why {change.decision}",
        usd_per_hour=change.usd_per_hour,
        usd=in_all.usd if call == "grow" else "",
        subject=f"pool {change.pool}",
        decision=change.decision,
        at=change.at,
    )


def landed_late(fingerprint: str, is_gone: Callable[[str, str], bool]) -> str:
    """The node of a release that people were told was not made, where it is gone by now; else nothing."""
    pool, _, node = fingerprint.partition("/release/")[2].partition("/")
    return node if fingerprint.startswith(_UNDONE) and is_gone(pool, node) else ""


def node_gone_alert(record: Record, fingerprint: str, node: str) -> Alert:
    """The end of what was told of a node that was not given back: it is gone after all."""
    return Alert(
        cluster=record.cluster,
        kind=f"capacity-{fingerprint.partition('/')[0]}",
        severity="warning",
        fingerprint=fingerprint,
        what=f"node {node} is gone",
        why="it was given back since, or the call whose answer was lost has landed late",
        next="GPU pods that ran on it wait again, and are served as any that wait",
        how=f"pilotlight why {node}",
        subject=f"node {node}",
        resolved=True,
        decision=record.id,
        at=record.at,
    )


def blocks_no_more(record: Record, fingerprint: str, node: str) -> Alert:
    """The end of what was told of pods that kept an idle node lit: they have gone, are others, or the node works."""
    return Alert(
        cluster=record.cluster,
        kind=fingerprint.partition("/")[0],
        severity="warning",
        fingerprint=fingerprint,
        what=f"{node} is kept lit by those pods no longer",
        why="they have gone, others are in the way now, or it is at work or gone itself",
        next="an idle node goes when its time is over and nothing is in the way",
        how=f"pilotlight why {node.removeprefix('node ')}",
        subject=node,
        resolved=True,
        decision=record.id,
        at=record.at,
    )


def owes_no_more(record: Record, fingerprint: str, pool: str) -> Alert:
    """The end of what was told of nodes that a cloud could not launch."""
    return Alert(
        cluster=record.cluster,
        kind=fingerprint.partition("/")[0],
        severity="warning",
        fingerprint=fingerprint,
        what=f"{pool} is owed nothing any more",
        why="its cloud has launched what was asked for, or it was called off",
        next="a node that came late is used, or given back when it has idled its time",
        how="pilotlight pools",
        subject=pool,
        resolved=True,
        decision=record.id,
        at=record.at,
    )
