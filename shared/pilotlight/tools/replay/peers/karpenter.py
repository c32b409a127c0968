"""Karpenter: batches pending pods, packs them into as few nodes as it can, and consolidates what it has."""

from collections.abc import Iterable

from pilotlight.tools.replay.peers.base import Bin, Market, Pod, release_idle, unmet_pods
from pilotlight.units import Seconds
from pilotlight.world.machines import Machine
from pilotlight.world.scheduling.scheduler import Need
from pilotlight.world.simulation import World
from pilotlight.world.world_events import Change
from pilotlight.world.world_nodes import WorldNode

BATCH_IDLE_S = 1.0
BATCH_MAX_S = 10.0
CONSOLIDATE_EVERY_S = 15.0
CANDIDATES = 15


class Karpenter:
    """Buys when a batch closes: 1 s after the last arrival, 10 s after the first.

    ``consolidates``: at most every 15 s, of the 15 nodes with the fewest jobs (the dearest first), one whose jobs
    fit elsewhere, or on one cheaper node, is replaced (WhenEmptyOrUnderutilized). Without it only empty nodes go,
    ``idle_s`` after they became so.
    """

    spread = False

    def __init__(self, name: str, *, pinned: bool = False, idle_s: Seconds = 0.0, consolidates: bool = True) -> None:
        self.name = name
        self.pinned = pinned
        self._market = Market()
        self._idle_s = idle_s
        self._batch: tuple[Seconds, Seconds] | None = None
        self._consolidates = consolidates
        self._looked_s = -CONSOLIDATE_EVERY_S
        self._stirred = False
        self._swaps: dict[str, str] = {}
        """Nodes bought to replace another, and that other."""
        self._landed: list[str] = []

    def notice(self, change: Change) -> None:
        if change.what in ("pending", "lost"):
            self._batch = (self._batch[0] if self._batch else change.t, change.t)
        if change.what == "ready" and change.subject in self._swaps:
            self._landed.append(change.subject)
        self._stirred = True

    def wake_s(self, world: World) -> Seconds | None:
        due: list[Seconds] = [world.now_s] if self._landed else []
        if self._batch:
            due.append(min(self._batch[0] + BATCH_MAX_S, self._batch[1] + BATCH_IDLE_S))
        if self._consolidates and self._stirred and len(world.nodes) > 0:
            due.append(self._looked_s + CONSOLIDATE_EVERY_S)
        if not self._consolidates and world.idle:
            first = next(iter(world.idle.values()))
            due.append((first.idle_since_s or 0.0) + self._idle_s)
        return max(world.now_s, min(due)) if due else None

    def act(self, world: World) -> None:
        self._finish_swaps(world)
        if self._batch and world.now_s >= min(self._batch[0] + BATCH_MAX_S, self._batch[1] + BATCH_IDLE_S):
            self._batch = None
            self._buy(world)
        if not self._consolidates:
            release_idle(world, self._idle_s)
        elif self._stirred and world.now_s >= self._looked_s + CONSOLIDATE_EVERY_S:
            self._looked_s = world.now_s
            release_idle(world, 0.0)
            self._stirred = self._consolidate(world)

    def _buy(self, world: World) -> None:
        for claim in _claims(world, unmet_pods(world, self._swaps)):
            if not self._market.launch(world, *claim.machines()):
                # Nothing to be had: these pods begin the next batch.
                self._batch = (world.now_s, world.now_s + BATCH_MAX_S)

    def _finish_swaps(self, world: World) -> None:
        for fresh in self._landed:
            old = self._swaps.pop(fresh)
            if old in world.nodes:
                world.terminate(old, "consolidated", evict=True)
        self._landed.clear()

    def _consolidate(self, world: World) -> bool:
        """Replace one node; whether there was one."""
        leaving = set(self._swaps.values())
        busy = [n for n in world.nodes.values() if n.jobs and n.id not in leaving]
        busy.sort(key=lambda n: (len(n.jobs), -n.price))
        return any(self._replace(world, node) for node in busy[:CANDIDATES])

    def _replace(self, world: World, node: WorldNode) -> bool:
        if world.fits_elsewhere(node.id):
            world.terminate(node.id, "consolidated", evict=True)
            return True
        cheaper = _cheaper(world, node)
        if cheaper is None or not self._market.launch(world, cheaper):
            return False
        self._swaps[next(reversed(world.nodes))] = node.id
        world.cordon(node.id)
        return True


class NodeClaim:
    """A node to be bought: a bin for every machine that can still hold all of its pods."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._bins = [Bin(m) for m in machines]

    def put(self, need: Need) -> bool:
        """Add a pod where some machine holds it too; the machines that do not are out."""
        # A bin changes only when it takes the pod, so a claim that no bin stands for is as it was.
        taken = [b for b in self._bins if need.allows(b.machine) and b.take(need)]
        if taken:
            self._bins = taken
        return bool(taken)

    def machines(self) -> list[Machine]:
        """The machines that hold it all, cheapest first."""
        return sorted((b.machine for b in self._bins), key=lambda m: m.price)


def _claims(world: World, pods: Iterable[Pod]) -> list[NodeClaim]:
    """First-fit of pods, largest first, into as few claims as possible."""
    machines = [world.fleet.machine(name) for name in world.fleet.pools]
    claims: list[NodeClaim] = []
    fits_from: dict[Need, int] = {}
    for need, _ in pods:
        # Claims only fill: what had no room for such a pod never has again.
        index = next((i for i in range(fits_from.get(need, 0), len(claims)) if claims[i].put(need)), len(claims))
        fits_from[need] = index
        if index == len(claims):
            fresh = NodeClaim(machines)
            if fresh.put(need):
                claims.append(fresh)
    return claims


def _cheaper(world: World, node: WorldNode) -> Machine | None:
    """The cheapest machine that holds all that runs on a node and costs less."""
    claim = NodeClaim(map(world.fleet.machine, world.fleet.pools))
    needs = [world.need(p.demand.shape) for job in node.jobs.values() for p in job.placement if p.node is node]
    if not all(claim.put(need) for need in sorted(needs, key=lambda n: -n.shape.gpu.total_milli)):
        return None
    return next((m for m in claim.machines() if m.price < node.price), None)
