"""Which object an unexpected error is set down to: the one that the innermost function of its traceback works on.

Decisions are made an object at a time, so the function that raised has it at hand. Where a function has several, those
that a tenant writes come first. An object that was set apart in vain was not to blame: the next is tried.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from pilotlight.codec.kubernetes.kueue_objects import Workload
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod
from pilotlight.decide.limits.set_apart import stand_in
from pilotlight.decide.money.holds import Lit
from pilotlight.decide.place.purchase import Group
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.limits.isolated_objects import NAMELESS, SetApart, SetApartKind
from pilotlight.facts.money.bill import Life, MeteredNode
from pilotlight.facts.money.budgets import Hold
from pilotlight.facts.workload import PodDemand, Queued
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.save_work import Saving

MOST_RUNS = 40
"""So often a message is run anew at most; then it fails as a whole, and nothing is bought or given back."""

FEW = 16
"""A list of no more objects is looked into: the pods of one node, the pods of one shape."""

MOST_ALONE = 8
"""Of no more objects each is tried alone."""

DEGREES: dict[SetApartKind, int] = {"pod": NAMELESS, "node": NAMELESS, "hold": 1, "rescue": 1, "workload": 1}
_ORDER: tuple[SetApartKind, ...] = ("pod", "workload", "node", "hold", "rescue")
_PACKAGE = Path(__file__).resolve().parents[1]


Key = tuple[SetApartKind, str]


class Suspects:
    """Objects that are set apart for one message, as far as found; and the trials that are left at the last error."""

    def __init__(self) -> None:
        self.apart: dict[Key, SetApart] = {}
        self._runs = 0
        self._sure: dict[Key, SetApart] = {}
        self._trials: deque[list[SetApart]] = deque()
        self._place, self._about = "", set[Key]()

    def blame(self, error: Exception) -> bool:
        """Set apart what the error is set down to; False where nothing is left to be blamed."""
        self._runs += 1
        frames = _frames(error)
        place, where = _place(frames)
        found = [of for frame in frames if (of := _suspected(frame))]
        about = {key for group in found[0] for key in group} if found else set()
        if place != self._place or not self._still(about):  # What was set apart last was to blame: this is another.
            self._sure, self._place, self._about = self.apart, place, about
            self._trials = deque(self._to_try(found, type(error).__name__, where))
        if not self._trials or self._runs > MOST_RUNS:
            return False
        self.apart = {**self._sure, **{(one.kind, one.name): one for one in self._trials.popleft()}}
        return True

    def deps(self, late: Deps) -> Deps:
        """The ports and policy with what is set apart."""
        apart = tuple(self.apart.values())
        return Deps(**{**{name: getattr(late, name) for name in Deps.__slots__}, "apart": apart})

    def _still(self, about: set[Key]) -> bool:
        """True where an error is about what the last one was about, or what stands in for that."""
        return any(key in about or _standing_in(key) in about for key in self._about)

    def _to_try(self, found: list[list[dict[Key, str]]], error: str, where: str) -> Iterator[list[SetApart]]:
        """Trials of suspects, from the innermost frame on: each alone in both degrees, then more and more of them."""
        seen = {_standing_in(key) for key in self._sure}
        for group in (group for of in found for group in of):
            left = {key: called for key, called in group.items() if key not in seen}
            seen |= left.keys()
            for degree in (1, NAMELESS):
                some = [
                    SetApart(kind=kind, name=name, called=called, error=error, where=where, degree=degree)
                    for (kind, name), called in left.items()
                    if degree <= DEGREES[kind] and self._new(kind, name, degree)
                ]
                yield from _trials(some)

    def _new(self, kind: SetApartKind, name: str, degree: int) -> bool:
        known = self._sure.get((kind, name))
        return known is None or known.degree < degree


def _trials(some: list[SetApart]) -> Iterator[list[SetApart]]:
    """Few are tried each alone, then more and more of them; many only all together."""
    alone = some if len(some) <= MOST_ALONE else []
    yield from ([one] for one in alone)
    yield from (some[:n] for n in range(2, len(alone)))
    if len(some) > 1:
        yield some


def _standing_in(key: Key) -> Key:
    return key[0], stand_in(key[1])


def _frames(error: Exception) -> list[FrameType]:
    """The frames of a traceback, the innermost first."""
    found: list[FrameType] = []
    trace = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found[::-1]


def _place(frames: Sequence[FrameType]) -> tuple[str, str]:
    """The function that raised, and the innermost file of ours as people find it."""
    inner = frames[0].f_code
    ours = next((f for frame in frames if _PACKAGE in (f := Path(frame.f_code.co_filename)).parents), _PACKAGE / "?")
    return f"{inner.co_filename}:{inner.co_name}", str(ours.relative_to(_PACKAGE).with_suffix(""))


def _suspected(frame: FrameType) -> list[dict[Key, str]]:
    """Objects that a frame has at hand, those first that a tenant writes: by kind and name, what each is called."""
    every = list(_objects(frame))
    pods = [pod for node in every if isinstance(node, Node) for pod in node.gpu_pods]
    groups = [{key: called for value in every for key, called in _named(value) if key[0] == kind} for kind in _ORDER]
    groups.insert(1, {key: called for pod in pods[: MOST_ALONE + 1] for key, called in _named(pod)})
    return [group for n, group in enumerate(groups) if group and (n != 1 or len(group) <= MOST_ALONE)]


def _objects(frame: FrameType) -> Iterator[object]:
    """A frame's objects, and those in its short lists, and in lists of such."""
    for value in frame.f_locals.values():
        yield value
        for each in _few(value):
            yield each
            yield from _few(each)


def _few(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) and len(value) <= FEW else ()


def _plainly(kind: SetApartKind, name: str) -> tuple[SetApartKind, str, str]:
    return kind, name, name


_NAMES: dict[type, Callable[[Any], tuple[SetApartKind, str, str]]] = {
    PodDemand: lambda pod: ("pod", pod.uid, pod.full_name),
    BoundPod: lambda pod: ("pod", pod.uid, f"{pod.namespace}/{pod.name}"),
    Pod: lambda pod: ("pod", pod.metadata.uid or pod.name, pod.name),
    Node: lambda node: _plainly("node", node.name),
    MeteredNode: lambda node: _plainly("node", node.name),
    KubeNode: lambda node: _plainly("node", node.metadata.name),
    NodeVerdict: lambda verdict: _plainly("node", verdict.node),
    Life: lambda life: _plainly("node", life.instance),
    Hold: lambda hold: _plainly("hold", hold.id),
    Interruption: lambda found: ("rescue", found.instance, f"of {found.node or found.instance}"),
    Queued: lambda queued: _plainly("workload", f"{queued.namespace}/{queued.name}"),
    Workload: lambda wire: _plainly("workload", f"{wire.metadata.namespace}/{wire.metadata.name}"),
}
"""Objects that may be set apart: the kind of each, its name, and what people call it."""


def _named(value: object) -> Iterator[tuple[Key, str]]:
    """An object that may be set apart, or one that stands for some, with what it is called."""
    if isinstance(value, Saving):
        yield from _named(value.found)
    elif isinstance(value, Group):
        yield from (each for pod in value.pods for each in _named(pod))
    elif isinstance(value, Lit):
        name = value.node.name if value.node is not None else value.instance
        yield ("node", name), name
    elif (named := next((_NAMES[of] for of in type(value).__mro__ if of in _NAMES), None)) is not None:
        kind, name, called = named(value)
        yield (kind, name), called
