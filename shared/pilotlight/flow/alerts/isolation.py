"""Objects that are set apart, since an unexpected error came of judging them: each is counted, and told once.

That it is over is told by a tick that sees everything of its kind, once none has set it apart for an hour: not every
look asks the same of an object.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from pilotlight.facts.limits.isolated_objects import Isolations, OpenIsolation, SetApart, SetApartKind
from pilotlight.facts.messages import Alert
from pilotlight.flow.answer import by_fingerprint
from pilotlight.flow.deps import Deps
from pilotlight.state_schema.cluster_records import ISOLATED

QUIET = timedelta(hours=1)
"""What was not set apart for so long is over."""

MOST_TOLD = 10
"""So many objects of one look have an alert of their own; the others share one."""

MOST_OPEN = 500
"""So many are remembered as set apart; further ones are counted."""


def settle(deps: Deps, ticked: str, apart: Sequence[SetApart]) -> None:
    """Count what a look set apart, tell what is new of it, and what is over by a tick for ``ticked``."""
    entry = ISOLATED.get(deps.state, deps.name)
    was = entry.value if entry else Isolations()
    by = "billing" if ticked == "billing" else "look"
    may_end = was.open if ticked in ("billing", "reconcile") else {}
    now_apart = {one.about: one for one in apart}
    if not (apart or may_end):
        return
    now = deps.now()
    over = {
        about: one
        for about, one in may_end.items()
        if one.by == by and about not in now_apart and now - one.last >= QUIET
    }
    if not (apart or over):
        return
    new = _opened([one for one in apart if one.about not in was.open], by, now)
    found, alerts = new | over, _alerts(now_apart, new, over, was.open, now)
    deps.outbox.publish(
        [
            by_fingerprint(msgspec.structs.replace(alert, cluster=deps.name), f"-{_since(found, alert)}")
            for alert in alerts
        ]
    )

    def counted(known: Isolations | None) -> Isolations:
        known = known or Isolations()
        counts = dict(known.counts)
        for one in apart:
            counts[f"{one.kind} {one.where}"] = counts.get(f"{one.kind} {one.where}", 0) + 1
        going = {
            about: msgspec.structs.replace(one, last=now) if about in now_apart else one
            for about, one in known.open.items()
            if about not in over
        }
        return Isolations(counts=counts, open=dict([*going.items(), *new.items()][:MOST_OPEN]))

    ISOLATED.change(deps.state, deps.name, counted)


def _alerts(
    apart: Mapping[str, SetApart],
    new: Mapping[str, OpenIsolation],
    over: Mapping[str, OpenIsolation],
    was: Mapping[str, OpenIsolation],
    now: datetime,
) -> list[Alert]:
    """The alerts of objects that are set apart anew, and of those that are over with all that share their alert."""
    begun = [_begun(about, one, now, apart, new) for about, one in _one_each(new).items()]
    still = {one.fingerprint for about, one in was.items() if about not in over}
    return begun + [_over(about, one, now) for about, one in _one_each(over).items() if one.fingerprint not in still]


def _opened(fresh: Sequence[SetApart], by: str, now: datetime) -> dict[str, OpenIsolation]:
    """Objects that are set apart anew, each with the fingerprint of the alert that tells it."""
    return {
        one.about: OpenIsolation(
            by=by,  # type: ignore[arg-type]
            error=f"{one.error} in {one.where}",
            since=now,
            last=now,
            fingerprint=_fingerprint(one.about if n < MOST_TOLD else f"more/{one.where}"),
        )
        for n, one in enumerate(sorted(fresh, key=lambda one: one.about))
    }


def _fingerprint(about: str) -> str:
    return f"isolated/{hashlib.blake2b(about.encode(), digest_size=8).hexdigest()}"


def _one_each(found: Mapping[str, OpenIsolation]) -> dict[str, OpenIsolation]:
    """One object for each alert."""
    first: dict[str, str] = {}
    for about, one in found.items():
        first.setdefault(one.fingerprint, about)
    return {about: found[about] for about in first.values()}


def _since(found: Mapping[str, OpenIsolation], alert: Alert) -> str:
    """The part of an alert's id that tells this time from an earlier one: two looks at once tell under one id."""
    since = next(one.since for one in found.values() if one.fingerprint == alert.fingerprint)
    return f"{since:%Y%m%d%H}" + (".over" if alert.resolved else "")


def _begun(
    about: str,
    one: OpenIsolation,
    now: datetime,
    apart: Mapping[str, SetApart],
    new: Mapping[str, OpenIsolation],
) -> Alert:
    others = sum(other.fingerprint == one.fingerprint for other in new.values()) - 1
    kind = apart[about].kind
    return Alert(
        cluster="",
        kind="isolated",
        severity="critical" if kind == "rescue" else "warning",
        fingerprint=one.fingerprint,
        what=f"{about}{f' and {others} more' if others else ''} cannot be judged: {one.error}",
        why=_MEANS[kind],
        next="it is tried again at every look, and told when it is over; everything else goes on",
        how=_HOW[kind].format(name=apart[about].called),
        subject=apart[about].called if kind == "pod" else about,
        at=now,
    )


def _over(about: str, one: OpenIsolation, now: datetime) -> Alert:
    return Alert(
        cluster="",
        kind="isolated",
        severity="critical" if about.startswith("rescue ") else "warning",
        fingerprint=one.fingerprint,
        what=f"{about} is judged as any other again, or it is gone",
        why=f"no look met {one.error} any more",
        next="nothing to do",
        how="pilotlight status",
        subject=about.removeprefix("pod "),
        resolved=True,
        at=now,
    )


_MEANS: Mapping[SetApartKind, str] = {
    "pod": "nothing is bought for it while it waits; where it runs, its node counts as working and stays held for",
    "node": "it counts as lit and working: nothing is put on it or taken from it, and it counts in every cap",
    "hold": "its dollars stay held in full; its node is stopped by the end of what is held where its class allows that",
    "rescue": "its pods are not moved now; other drains go on",
    "workload": "its admission check stays unanswered",
}
"""What becomes of an object that is set apart."""

_HOW: Mapping[SetApartKind, str] = {
    "pod": "pilotlight why {name}; kubectl: look for an extreme value in its annotations, resources or grace period",
    "node": "kubectl describe node {name}: look for an extreme value in its labels, annotations or capacity",
    "hold": "pilotlight budget; send the function's log to Pilotlight's issues",
    "rescue": "pilotlight why {name}; the function's log has the error: move its pods by hand if time is short",
    "workload": "kubectl describe workload {name}: look for an extreme value in its pod sets",
}
"""What to do about it."""
