"""A pool at its cap on which a training pod works, and a worker that dies: for tests of preemption."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.units import HOUR, Seconds
from pilotlight.world.world_cluster import WorldCluster


class Dead(Exception):
    """The process is gone."""


class Counting(WorldCluster):
    """Counts the evictions that are asked for; the process dies at a call once, before or ``after`` its effect."""

    evicted: list[str]
    owner, dies, after = "", "", False

    def observe(self) -> ClusterView:
        """What runs has that owner."""
        view = super().observe()
        nodes = (
            msgspec.structs.replace(n, pods=tuple(msgspec.structs.replace(p, owner=self.owner) for p in n.pods))
            for n in view.nodes
        )
        return msgspec.structs.replace(view, nodes=tuple(nodes)) if self.owner else view

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        """One more."""
        self.evicted.append(pod)
        self._call("evict", partial(super().evict, namespace, pod, uid, grace_s))

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        """An Event, or an end."""
        self._call("tell", partial(super().tell, namespace, name, reason, message, change))

    def _call(self, call: str, effect: Callable[[], None]) -> None:
        if self.dies != call:
            return effect()
        self.dies = ""
        if self.after:
            effect()
        raise Dead


class Dying(MemoryState):
    """A store at whose ``at``-th write the process dies, before or ``after`` its effect; 0 is never."""

    at, after = 0, False

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Write, or die."""
        self.at -= 1
        if self.at == 0 and not self.after:
            raise Dead
        version = super().put(key, value, if_version=if_version, ttl_s=ttl_s)
        if self.at == 0:
            raise Dead
        return version


class Full(Stage):
    """A pool of one node at its cap, on which a training pod works for ten hours; it saves within 20 s when asked."""

    def __init__(
        self,
        *,
        may_move: tuple[Any, ...] = ("preempt",),
        pool: dict[str, Any] | None = None,
        takes_s: Seconds = 20.0,
        placement: Any = "none",
        **traits: Any,
    ) -> None:
        classes = {"training": ClassPolicy(gpu_models="any", may_move=may_move)}
        pools = {"one": PoolPolicy(**{"instance_type": "one", "max": 1, **(pool or {})})}
        super().__init__(pools=pools, classes=classes, value_of_wait=Decimal(5), placement=placement)
        self.cluster = Counting(self.world)
        self.cluster.evicted = []
        self.state = Dying(self.world.clock)
        self.deps = replace(self.deps, cluster=self.cluster, state=self.state)
        ten = Ran(ended=12, ended_s=120 * HOUR, lengths=(round(10 * HOUR),) * 12)
        MEMORY.put(self.deps.state, "c", Memory(ran={"training//1": ten}))
        self.add("long", 10 * HOUR, workload_class="training", takes_s=takes_s, **traits)
        self.minutes(30)

    def add(self, name: str, run_s: Seconds, takes_s: Seconds = 0.0, **traits: Any) -> None:
        """A pod is created."""
        made = shape(gpu=GpuRequest(count=1), **{"max_run_s": run_s, **traits})
        pod = PodDemand(
            uid=f"uid-{name}",
            namespace="ml",
            name=name,
            shape=made,
            created_at=self.world.clock.now(),
            checkpoint_takes_s=takes_s,
        )
        self.world.submit(pod, run_s)

    def urgent(self, name: str = "short", run_s: Seconds = 600.0, priority: int = 10, **traits: Any) -> None:
        """A short pod of a high priority is created."""
        self.add(name, run_s, workload_class="batch", priority=priority, **traits)

    @property
    def running(self) -> list[str]:
        """Pods that run."""
        return [job.demands[0].name for job in self.world.running.values()]

    @property
    def said(self) -> list[Any]:
        """What was told of interruptions."""
        return [alert for alert in self.alerts if alert.kind == "interruption"]

    @property
    def cut(self) -> list[str]:
        """Jobs that were stopped before their end, each as often as that."""
        return [stop["job"] for stop in self.events("stop") if stop["reason"] != "done"]

    def most(self, minutes: int) -> int:
        """Play so long: the most nodes there were."""
        most = 0
        for _ in range(minutes):
            self.minutes(1)
            most = max(most, self.nodes("one"))
        return most
