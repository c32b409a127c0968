"""The deadline that a pod's annotations name: read, or a finding that says what to mend."""

from datetime import UTC, datetime
from typing import Any

import pytest
from kubernetes_objects import node, only_demand, pod, view

from pilotlight.facts.workload import Due

BY = "2026-11-24T08:00:00+01:00"
AT = datetime(2026, 11, 24, 7, tzinfo=UTC)


def _named(by: Any = BY, work: Any = "48h", **meta: Any) -> dict[str, Any]:
    notes = {"pilotlight.dev/deadline": by, "pilotlight.dev/work": work}
    return {"annotations": {name: text for name, text in notes.items() if text is not None}, **meta}


@pytest.mark.parametrize(
    ("work", "seconds"),
    [("48h", 172_800), ("48", 172_800), ("90m", 5_400), ("2d", 172_800), ("1.5", 5_400)],
    ids=["hours", "a plain number is hours", "minutes", "days", "part of an hour"],
)
def test_a_deadline_with_its_work(work: str, seconds: float) -> None:
    """Both annotations together; the time may be of any zone."""
    due = only_demand(view([pod(meta=_named(work=work))])).shape.due
    assert due is not None
    assert (due.by, due.work_s) == (AT, seconds)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        (_named(work=None), "has pilotlight.dev/deadline and no pilotlight.dev/work"),
        (_named(by=None), "has pilotlight.dev/work and no pilotlight.dev/deadline"),
        (_named(by="tomorrow"), "'tomorrow': give a time with its zone"),
        (_named(by="2026-11-24T08:00:00"), "give a time with its zone"),
        (_named(by="0001-01-01T00:00:00Z"), "give a time of the years 2000 to 2200"),
        (_named(by="9999-12-31T23:59:59Z"), "give a time of the years 2000 to 2200"),
        (_named(work="soon"), "is no duration"),
        (_named(work="0"), "a minute to a year"),
        (_named(work="nan"), "must be a duration of 0 or more"),
        (_named(work=""), "is no duration"),
        (_named(labels={"workload-type": "inference"}), "this pod is serving"),
    ],
    ids=[
        "no work",
        "no deadline",
        "words",
        "no zone",
        "year 1",
        "year 9999",
        "no number",
        "none",
        "nan",
        "empty",
        "serving",
    ],
)
def test_a_deadline_that_cannot_be_kept_is_a_finding(meta: dict[str, Any], words: str) -> None:
    """It names the annotation and what to write; the pod is not lost."""
    seen = view([pod(meta=meta)])
    (found,) = seen.findings
    assert (found.code, found.subject, seen.pending) == ("bad-deadline", "team-a/p", ())
    assert words in found.message


def _job(**meta: Any) -> str:
    due = only_demand(view([pod(meta=_named(**meta))])).shape.due
    assert due is not None
    return due.job


def test_a_job_is_known_by_its_owners_uid() -> None:
    """Its later pods are the same job; one of the same name made anew is another; an indexed one has one a number."""
    owner = [{"kind": "Job", "name": "train", "uid": "u1", "controller": True}]
    index = {"batch.kubernetes.io/job-completion-index": "3"}
    assert _job(name="train-x", ownerReferences=owner) == _job(name="train-y", ownerReferences=owner) == "u1"
    assert _job(ownerReferences=[{**owner[0], "uid": "u2"}]) == "u2"
    assert _job(ownerReferences=owner, labels=index) == "u1/3"


def _running(status: dict[str, Any]) -> Any:
    made = pod("a", meta=_named(), status={"phase": "Running", **status}, nodeName="n1")
    (found,) = view([made], [node("n1", labels={"pilotlight.dev/pool": "pool-7f3a"})]).nodes
    return found.gpu_pods[0]


def test_work_begins_when_the_containers_do() -> None:
    """Pulling images is no work: a start is the last container's, none while one does not run yet."""
    began = {"state": {"running": {"startedAt": "2026-11-21T00:09:00Z"}}}
    waits = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    started = {"startTime": "2026-11-21T00:01:00Z"}
    assert _running(started).works_since == datetime(2026, 11, 21, 0, 1, tzinfo=UTC)
    assert _running({**started, "containerStatuses": [began]}).works_since == datetime(2026, 11, 21, 0, 9, tzinfo=UTC)
    assert _running({**started, "containerStatuses": [began, waits]}).works_since is None
    assert _running(started).shape.due == Due(job="uid-a", by=AT, work_s=172_800)
