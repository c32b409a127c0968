"""Why a node without work does not do for pods that wait, or for which something is bought: asked only to be told."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice

import msgspec

from pilotlight.decide.fit.fit import Bin, model_allowed, pods_that_fit
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.fit.claimed_devices import CLAIMED
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import GPU_MODEL, ZONE
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.pod_verdicts import IdleCode, IdleNode, PodGroup
from pilotlight.facts.workload import PodDemand, PodShape, clash, unlisted_amount

NAMED = 3
"""So many nodes are named for a group of pods."""
LOOKED_AT = 20
"""So many nodes are asked at most; more of them would say the same."""


class IdleNodes:
    """The nodes without a GPU pod, by instance type, and what a plan has put on them."""

    def __init__(
        self, nodes: Iterable[Node], ready: Sequence[Bin], leaving: Collection[str], memory: Memory, now: datetime
    ) -> None:
        self._by_type: dict[str, list[Node]] = defaultdict(list)
        for node in sorted((n for n in nodes if not n.gpu_pods), key=lambda n: n.name):
            self._by_type[node.instance_type].append(node)
        self._bins = {b.where: b for b in ready}
        self._leaving, self._memory, self._now = leaving, memory, now

    def explain_idle(
        self, groups: Sequence[PodGroup], pending: Sequence[PodDemand], offerings: Mapping[str, Offering]
    ) -> tuple[PodGroup, ...]:
        """The groups; those without a lit node say why idle ones do not do: of the type that is bought, else of any."""
        if not self._by_type:
            return tuple(groups)
        shapes = {pod.uid: pod.shape for pod in pending}
        return tuple(
            group
            if group.verdict in ("fits", "booting") or not group.uids
            else msgspec.structs.replace(group, idle=self._why(group, shapes[group.uids[0]], offerings))
            for group in groups
        )

    def _why(self, group: PodGroup, shape: PodShape, offerings: Mapping[str, Offering]) -> tuple[IdleNode, ...]:
        bought = offerings.get(group.where)
        types = (bought.instance_type,) if bought is not None else sorted(self._by_type)
        nodes = islice((node for kind in types for node in self._by_type.get(kind, ())), LOOKED_AT)
        found = ((node, self.unfit(node, shape)) for node in nodes)
        said = (IdleNode(node=node.name, code=why[0], why=why[1]) for node, why in found if why)
        return tuple(islice(said, NAMED))

    def unfit(self, node: Node, shape: PodShape) -> tuple[IdleCode, str] | None:
        """Why a pod of a shape is not put on a node, as (code, reason); None where nothing speaks against it."""
        return self._closed(node) or self._not_allowed(node, shape) or self._no_room(node, shape)

    def _closed(self, node: Node) -> tuple[IdleCode, str] | None:
        if node.name in self._leaving:
            return "leaving", "it is on its way out"
        if node.marked:
            return "mark", "it carries our mark: it is being released, or a drain holds it"
        if not node.schedulable:
            return "cordon", "somebody cordoned it: uncordon it to use it"
        return None if node.ready else ("not-ready", "it is not ready, or its GPUs are not allocatable")

    def _not_allowed(self, node: Node, shape: PodShape) -> tuple[IdleCode, str] | None:
        refused = (m for m in self._memory.misfits if (m.shape, m.node) == (shape.key, node.name))
        misfit = next((m for m in refused if m.until > self._now), None)
        if misfit is not None:
            return "misfit", f"not before {misfit.until:%H:%M}: the pod {misfit.why}"
        taint = untolerated_taint(node.taints, shape.tolerations)
        if taint is not None:
            return "toleration", f"the pod does not tolerate {taint.key}={taint.value}:{taint.effect}"
        if not all(selects(node.labels, terms) for terms in shape.reach):
            return "volume", "a volume of the pod cannot be had there"
        if not selects(node.labels, shape.terms):
            return _selector(node, shape)
        model = node.labels.get(GPU_MODEL, "")
        if not model_allowed(shape, model):
            return "model", f"{model or 'its model'} is not one of {', '.join(shape.gpu_models)}"
        return None

    def _no_room(self, node: Node, shape: PodShape) -> tuple[IdleCode, str] | None:
        if not pods_that_fit(shape, node.resource, node.devices, node.slices, node.free):
            return "room", _lack(node, shape)
        bin_ = self._bins.get(node.name)
        if bin_ is not None and bin_.taken and not bin_.room_for(shape):
            return "planned", f"{sum(n for _, n in bin_.taken)} other waiting pod(s) will take its room"
        return None


def _selector(node: Node, shape: PodShape) -> tuple[IdleCode, str]:
    """Code and reason of a selector or affinity that does not match: the zone alone, or another label."""
    rest = [[r for r in term if r.key != ZONE] for term in shape.terms]
    zones = sorted({v for term in shape.terms for r in term if r.key == ZONE and r.operator == "In" for v in r.values})
    if zones and selects(node.labels, rest):
        return "zone", f"it is in zone {node.labels.get(ZONE) or 'unknown'}, the pod asks for {' or '.join(zones[:4])}"
    return "selector", "the pod's node selector or affinity does not match its labels"


def _lack(node: Node, shape: PodShape) -> str:
    """Which resource it has too little of."""
    free, gpu = node.free, shape.gpu
    whole = gpu.resource == node.resource
    count = sum(1 for d in node.devices if d >= gpu.milli) if whole else node.slices.get(gpu.resource, 0)
    if count < gpu.count:
        return f"needs {gpu}, it has {count} {gpu.resource.removeprefix(CLAIMED)} free"
    if shape.cpu_milli > free.cpu_milli:
        return f"needs {shape.cpu_milli / 1000:g} CPU, it has {free.cpu_milli / 1000:g} free"
    if shape.memory > free.memory:
        return f"needs {shape.memory / 2**30:.1f} GiB of memory, it has {free.memory / 2**30:.1f} free"
    if shape.ephemeral > free.ephemeral:
        return f"needs {shape.ephemeral / 2**30:.1f} GiB of disk, it has {free.ephemeral / 2**30:.1f} free"
    if shape.near is not None and clash(free.ports, shape.near.ports):
        return f"host port {' or '.join(shape.near.ports)} is taken"
    have = {**node.slices, **dict(free.other)}
    short = next(
        ((name, amount) for name, amount in shape.other if have.get(name, unlisted_amount(name)) < amount), None
    )
    return f"needs {short[1]} {short[0]}, it has {have.get(short[0], 0)} free" if short else "no pod slot is free"


def explain_idle_nodes(work: Work) -> None:
    """Explain why idle nodes do not do for pods that have none."""
    idle = IdleNodes(work.view.nodes, work.run.ready, work.no_room, work.memory, work.now)
    work.pods = idle.explain_idle(work.run.outcomes, work.view.pending, {o.name: o for o in work.offerings})
