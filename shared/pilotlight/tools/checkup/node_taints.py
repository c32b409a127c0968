"""Which nodes take no new pods for our sake, and for whose: our taints on nodes beside what the records say."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pilotlight.facts.labels import DRAINING
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.tools.checkup.survey_facts import SeenMark, Survey


def marked_nodes(survey: Survey) -> tuple[str, ...]:
    """The nodes that carry our taint."""
    return tuple(node.name for node in survey.nodes if any(taint.key == DRAINING for taint in node.taints))


def mark_checks(survey: Survey, marks: Sequence[SeenMark]) -> Iterator[Check]:
    """A line a node with our taint: its owners, until when, and whether that is over."""
    for node in marked_nodes(survey):
        owners = [mark for mark in marks if mark.node == node]
        over = [mark for mark in owners if mark.until is not None and mark.until < survey.at]
        if not owners:
            what = "takes no new pods: it carries our taint, and no record of this state says for whose sake"
            yield _check(node, "warning", what, f"name the deployment's PILOTLIGHT_STATE; else {_lift(node)}")
        elif over:
            what = f"should take pods again since {_time(over[0].until)}: {_owners(owners)}"
            yield _check(node, "warning", what, f"see that the functions tick; else {_lift(node)}")
        else:
            yield _check(node, "ok", f"takes no new pods for our sake: {_owners(owners)}")


def _owners(marks: Sequence[SeenMark]) -> str:
    return "; ".join(map(_owner, marks))


def _owner(mark: SeenMark) -> str:
    until = f" until {_time(mark.until)}" if mark.until else ""
    return f"{mark.owner} since {_time(mark.since)}{until}, {mark.why}"


def _time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "then"


def _lift(node: str) -> str:
    return f"kubectl taint nodes {node} {DRAINING}-"


def _check(node: str, verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="mark", subject=f"node {node}", verdict=verdict, what=what, fix=fix)
