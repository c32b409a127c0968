"""Evictions on trial: a pod is made to leave only where its node goes, may go, or ends by its budgets.

A notice that is not true may take no work; a stop of our own takes none before the whole run of a pod that may not be
stopped is over, and no other pod's while its budgets have room. Pods that leave alone, from a node that stays, are of
teams whose own budgets have no room, and of classes that may be stopped.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from harness.faults.forgeries import CLOCKS_S, Forgeries
from harness.judges.strangers_books import StrangersBooks
from harness.scene import BOOT_S, TAIL_S
from pilotlight.facts.policy import Policy
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldJob

_STOPS = ("hard-cap", "max-runtime")


class _Rescue(msgspec.Struct):
    kind: str
    instance: str
    leaving: tuple[str, ...] = ()


class EvictionJudge:
    """Told of rescues as they are written, of nodes that may go, and before each eviction; ``broke`` of false ones."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        books: StrangersBooks,
        forgeries: Forgeries,
        broke: Callable[[Literal["false_evictions"], str], None],
    ) -> None:
        self._world, self._policy, self._books, self._forgeries = world, policy, books, forgeries
        self._broke = broke
        self._stops: dict[str, tuple[object, str]] = {}
        self._may_go: set[str] = set()
        self._leaving: dict[str, str] = {}  # By uid of a pod that leaves alone: what is wrong with that, if anything.

    def may_go(self, instance: str) -> None:
        """The cloud says that it may take a node."""
        self._may_go.add(instance)

    def rescue(self, value: bytes) -> None:
        """A rescue was written: a stop of our own begins where there was none."""
        found = msgspec.json.decode(value, type=_Rescue)
        for uid in found.leaving:
            self._leaves(found.instance, uid)
        if found.kind not in _STOPS:
            self._stops.pop(found.instance, None)
        elif found.instance not in self._stops:
            self._judge(found.instance)

    def held(self) -> None:
        """Holds were written: a node that is another's by them is stopped for that one. A stop is written down before
        the holds of its look are."""
        for id, (whose, _) in list(self._stops.items()):
            if self._books.whose.get(id) != whose:
                self._judge(id)

    def _leaves(self, id: str, uid: str) -> None:
        """Whether a pod that is told to leave alone has dollars of its own, or may not be stopped."""
        job = next((j for j in self._world.running.values() if any(d.uid == uid for d in j.demands)), None)
        if uid in self._leaving or job is None:
            return
        now_s, shape = self._world.now_s, next(d.shape for d in job.demands if d.uid == uid)
        rules = self._policy.classes[shape.workload_class]
        left_s = job.start_s + shape.max_run_s - now_s
        unpaid = self._books.spare_of(id, shape, min(rules.hold, BOOT_S + max(0.0, left_s) + TAIL_S), now_s)
        self._leaving[uid] = unpaid if rules.stops else "though its class may not be stopped"

    def _judge(self, id: str) -> None:
        """Whether a stop that begins now takes work for which there are dollars, and whose node it is."""
        self._stops[id] = self._books.whose.get(id), self._books.spare(id, self._world.now_s)

    def evicting(self, uid: str) -> None:
        """A pod is made to leave, and with it its gang."""
        job = next((j for j in self._world.running.values() if any(d.uid == uid for d in j.demands)), None)
        if job is None:
            return
        nodes = sorted({p.node.id for p in job.placement})
        goes = any(p.node.doomed_s is not None or p.node.id in self._may_go for p in job.placement)
        if goes or self._forgeries.due(nodes):
            return
        if uid in self._leaving:
            if why := self._leaving[uid]:
                self._broke("false_evictions", f"{job.id} was made to leave {', '.join(nodes)} {why}")
            return
        stopped = [id for id in nodes if id in self._stops]
        why = self._unfair(job, stopped) if stopped else "by a notice that is not true"
        if why:
            self._broke("false_evictions", f"{job.id} was evicted from {', '.join(nodes)} {why}")

    def _unfair(self, job: WorldJob, stopped: list[str]) -> str:
        """What is wrong with a stop, if anything."""
        left_s = job.start_s + max(d.shape.max_run_s for d in job.demands) - self._world.now_s
        if any(self._policy.classes[d.shape.workload_class].stops for d in job.demands):
            return next((why for id in stopped if (why := self._stops[id][1])), "")
        return f"{left_s:.0f} s before the end of its whole run" if left_s > CLOCKS_S else ""
