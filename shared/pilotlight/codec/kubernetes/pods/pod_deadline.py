"""The deadline that a pod's annotations name, and since when its containers work: read only of pods that name one."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pilotlight.codec.kubernetes.bounds import Unreadable, whole_name
from pilotlight.codec.kubernetes.times import FIRST_YEAR, LAST_YEAR, in_range
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.codec.policy_values import parse_duration
from pilotlight.facts.labels import DEADLINE, WORK
from pilotlight.facts.workload import Due
from pilotlight.units import HOUR, Seconds

MAY = ("batch", "training")
"""The classes whose pods may name a deadline: their work ends, and can be carried over."""

INDEX = "batch.kubernetes.io/job-completion-index"
"""Which of an indexed Job's pods it is."""

CODE = "bad-deadline"


def due_of(pod: Pod, workload_class: str, *, gang: bool) -> Due | None:
    """The deadline of a pod's job; None where it names none. Raises ``Unreadable`` for one that cannot be kept."""
    notes = pod.metadata.annotations
    if DEADLINE not in notes and WORK not in notes:
        return None
    if workload_class not in MAY:
        raise Unreadable(CODE, f"{DEADLINE} is for batch and training, and this pod is {workload_class}: take it off")
    for name, other in ((DEADLINE, WORK), (WORK, DEADLINE)):
        if name not in notes:
            raise Unreadable(CODE, f"has {other} and no {name}: one says nothing without the other; add it")
    return Due(job=_job(pod, gang), by=_moment(notes), work_s=_work(notes))


def _moment(notes: Mapping[str, str]) -> datetime:
    text = notes[DEADLINE]
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise Unreadable(CODE, f"{DEADLINE} is {text!r:.60}: give a time with its zone, as 2026-11-24T08:00:00Z")
    if not in_range(at):
        raise Unreadable(CODE, f"{DEADLINE} is {text!r:.60}: give a time of the years {FIRST_YEAR} to {LAST_YEAR}")
    return at.astimezone(UTC)


def _work(notes: Mapping[str, str]) -> Seconds:
    text = notes[WORK].strip()
    try:
        work_s = parse_duration(text) * (1 if text[-1:].isalpha() else HOUR)
    except ValueError as error:
        raise Unreadable(CODE, f"{WORK} is {text!r:.60}, which {error}; a plain number is hours") from None
    if not 60 <= work_s <= 366 * 24 * HOUR:
        raise Unreadable(CODE, f"{WORK} is {text!r:.60}: give the run that it needs, a minute to a year, as 48h")
    return work_s


def _job(pod: Pod, gang: bool) -> str:
    """One and the same for all pods that a job has in turn. By uid: who takes over a name begins anew."""
    meta, owner = pod.metadata, pod.metadata.owner
    if owner is None:
        return whole_name(meta.uid or pod.name)
    base = whole_name(owner.uid or f"{meta.namespace}/{owner.kind}/{owner.name}")
    index = meta.labels.get(INDEX) or meta.annotations.get(INDEX, "")
    own = whole_name(meta.name if owner.kind == "StatefulSet" else index)
    return base if gang or not own else f"{base}/{own}"
