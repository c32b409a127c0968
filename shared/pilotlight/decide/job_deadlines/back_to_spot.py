"""Jobs with a deadline that run on demand and would cost less on spot by now: with a start there, and still in time.

So it is where spot had been away and came back, where the job got on faster than it said, or where its deadline was
moved. It is moved only to room that is ready, and only off a node of its own, once it has saved.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pilotlight.decide.interruption.drain_plan import CORDON_S
from pilotlight.decide.job_deadlines.job_deadlines import choose_for_job, job_standing, sure_of
from pilotlight.decide.job_deadlines.job_progress import restore_s
from pilotlight.decide.offers.selection import Eligible
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.memory import Memory
from pilotlight.facts.workload import PodShape
from pilotlight.units import HOUR

SAVES = 0.9
"""It goes back where that is expected to cost less than this of going on: a move for cents is none."""


class Back(NamedTuple):
    """A node on demand whose job is to go back to spot, and until when that may be."""

    node: Node
    why: str
    until: datetime


def back_to_spot(
    nodes: Iterable[Node], able: Callable[[PodShape], Eligible], memory: Memory, now: datetime
) -> list[Back]:
    """The nodes whose only pod costs less on spot. ``able`` knows no deadlines."""
    found = ((node, _why(node.gpu_pods, able, memory, now)) for node in nodes if _alone(node))
    return [Back(node, why[0], why[1]) for node, why in found if why is not None]


def _alone(node: Node) -> bool:
    """True for a node on demand with one pod that saves when it is asked, and whose job has a deadline."""
    if node.capacity_type != "on-demand" or not node.ready or not node.schedulable or len(node.gpu_pods) != 1:
        return False
    [pod] = node.gpu_pods
    saves = pod.checkpoint_takes_s > 0 and not pod.gang and not pod.blocks
    return saves and pod.shape is not None and pod.shape.due is not None and pod.shape.checkpoint_s > 0


def _why(
    pods: Sequence[BoundPod], able: Callable[[PodShape], Eligible], memory: Memory, now: datetime
) -> tuple[str, datetime] | None:
    [pod] = pods
    if pod.shape is None or pod.shape.due is None:
        return None
    may = able(pod.shape)
    spot, sure = [c for c in may.candidates if c.offering.capacity_type == "spot"], sure_of(may)
    if not spot or not sure:
        return None
    stands = job_standing(pod.shape.due, sure, memory, restore_s(pod.checkpoint_takes_s))
    choice = choose_for_job(pod.shape.due, stands, spot, [], sure, pod.shape.checkpoint_s, now)
    if choice.capacity != "spot" or choice.hours >= SAVES * stands.left_s / HOUR:
        return None
    until = min(now + timedelta(seconds=CORDON_S), stands.latest)
    return f"{pod.namespace}/{pod.name} has {choice.why}", until
