"""Demand that gets no node: pods that people must mend, and what a cap or a budget refuses. An alert a cause."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from pilotlight.facts.decisions import Plan, PodGroup
from pilotlight.facts.messages import Alert
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps


def warnings(deps: Deps, plan: Plan, decision: str, now: datetime) -> list[Alert]:
    """The alerts of a plan's findings and refusals, each naming its pods and their team."""
    found = [_finding(one) for one in plan.findings]
    found += [_refused(group) for group in plan.pods if group.verdict == "refused"]
    return [msgspec.structs.replace(alert, cluster=deps.name, decision=decision, at=now) for alert in found]


def mark(kind: str, pods: Sequence[str]) -> str:
    """A warning's fingerprint: its kind and the pods it is about."""
    return f"{kind}/{hashlib.blake2b(chr(10).join(sorted(pods)).encode(), digest_size=8).hexdigest()}"


def _finding(one: Finding) -> Alert:
    kind = f"finding-{one.code}"
    if one.uid:
        return _warning(kind, f"{one.subject} gets no node", one.message, (one.subject,), one.subject, one.team)
    title = _TITLES.get(one.code, f"has a problem: {one.code}")
    alert = _warning(kind, f"{one.subject} {title}", one.message, (one.subject,), "", one.team)
    how = "pilotlight budget status" if one.code.startswith("budget-") else "pilotlight doctor"
    return msgspec.structs.replace(alert, how=how)


_TITLES = {
    "budget-hold": "has no room for all that runs",
    "budget-endless": "runs on past a hard budget",
    "scheduler-refuses": "has room that the scheduler does not use",
    "opened-by-hand": "was opened by a person while it was being given back",
    "budget-cordon": "could not be closed to new pods",
    "pool-resized": "was raised by another hand",
    "node-without-instance": "shows nodes without an instance",
    "unknown-instance-type": "has an unknown instance type",
    "unknown-price": "has no price",
    "stale-price": "has an old price",
}
"""What is the matter with something that is no pod, by a finding's code."""


def _refused(group: PodGroup) -> Alert:
    more = f" and {len(group.pods) - 1} more" if len(group.pods) > 1 else ""
    return _warning("refused", f"{group.pods[0]}{more} refused", group.why, group.pods, group.pods[0], group.team)


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
