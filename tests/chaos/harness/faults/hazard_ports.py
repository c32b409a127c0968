"""The ports as an unlucky worker has them: every call may wait, fail before or after its effect, or never return."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from msgspec.structs import replace

from harness.faults.luck import Luck, Port
from harness.judges.invariants import Invariants
from pilotlight.errors import PilotlightError, Unavailable, Unsure
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.messages import Alert, Outgoing
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.facts.workload import PodDemand
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.ports.cluster import Cluster
from pilotlight.ports.state import Page, State, Stored
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_pools import WorldPools

T = TypeVar("T")


class Sees(Protocol):
    """Who is told what was written, sent and shown: ``Invariants``, or a line to the process where it is."""

    def wrote(self, worker: str, key: str, value: bytes) -> None: ...
    def failed(self, key: str, value: bytes) -> None: ...
    def deleted(self, key: str) -> None: ...
    def published(self, messages: Sequence[Outgoing]) -> None: ...
    def shown(self, worker: str, alert: Alert) -> None: ...
    def unsure(self, alert: Alert) -> None: ...


WATCHED = ("open/", "decision/", "hold/", "proof/", "ladder/", "rescue/")
"""Keys whose writes are looked at."""


ON_ITS_WAY, ANSWERED = " (on its way)", " (answered)"
"""What ends the name of a call whose request is let out and has not arrived, and of one whose answer is coming."""


class Hazard:
    """One worker's way to the outside. ``pause`` is called before each call, while the request of one that asks a gate
    is on its way, and before each answer; it gives the world's second. ``say`` is called with a line after it;
    ``later`` with an effect that comes so many seconds on, after its caller has given up."""

    def __init__(
        self,
        worker: str,
        luck: Luck,
        pause: Callable[[str], Seconds],
        say: Callable[[str], None],
        later: Callable[[Seconds, Callable[[], object]], None] = lambda in_s, effect: None,
    ) -> None:
        self.worker = worker
        self.later = later
        self.luck = luck
        self.pause = pause
        self.say = say

    def __call__(
        self,
        port: Port,
        what: str,
        effect: Callable[[], T],
        *,
        half: Callable[[], object] | None = None,
        conditional: bool = False,
        gate: Gate = OPEN,
    ) -> T:
        """Make a call. ``what`` begins with the method's name; ``half`` does a part of the effect.

        ``gate`` is asked by whatever gets as far as the other side: all but a connection that fails.
        """
        now_s = self.pause(what)
        fault = self.luck.fault(port, what.split(" ", 1)[0], conditional, now_s)
        try:
            if fault is None or fault.when != "before" or type(fault.error) is not Unavailable:
                gate()
                if gate is not OPEN and (fault is None or fault.when != "late"):
                    self.pause(what + ON_ITS_WAY)
            if fault is None:
                result = effect()
                self.say(what)
                self.pause(what + ANSWERED)
                return result
            if fault.when == "after":
                effect()
            if fault.when == "late":
                self.later(self.luck.late_s(), self._late(what, effect))
            if fault.when == "half" and half is not None:
                half()
        except Exception as error:
            self.say(f"{what} -> {type(error).__name__}: {error}")
            raise
        self.say(f"{what} -> {type(fault.error).__name__} {fault.when}: {fault.error}")
        raise fault.error

    def _late(self, what: str, effect: Callable[[], object]) -> Callable[[], None]:
        def arrive() -> None:
            try:
                effect()
                self.say(f"{what} arrives late")
            except PilotlightError as error:
                self.say(f"{what} arrives late -> {type(error).__name__}: {error}")

        return arrive


class HazardState:
    """A store whose writes are watched."""

    def __init__(self, state: State, hazard: Hazard, invariants: Sees) -> None:
        self._state, self._call, self._invariants = state, hazard, invariants

    def now(self) -> datetime:
        return self._state.now()

    def get(self, key: str) -> Stored | None:
        return self._call("state", f"get {key}", lambda: self._state.get(key))

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        def write() -> int:
            version = self._state.put(key, value, if_version=if_version, ttl_s=ttl_s)
            if key.startswith(WATCHED):
                self._invariants.wrote(self._call.worker, key, value)
            return version

        try:
            return self._call("state", f"put {key}", write, conditional=if_version is not None)
        except PilotlightError:
            if key.startswith("proof/"):
                self._invariants.failed(key, value)
            raise

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        def delete() -> None:
            self._state.delete(key, if_version=if_version)
            if key.startswith("hold/"):
                self._invariants.deleted(key)

        self._call("state", f"delete {key}", delete, conditional=if_version is not None)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        return self._call("state", f"scan {prefix}", lambda: self._state.scan(prefix, after=after, limit=limit))


class HazardPools:
    """A cloud that takes a node with whatever runs on it, as real ones do. Its clock is ``off_s`` wrong.

    Where it is ``silent`` it says nothing of a single instance.
    """

    cloud = "world"

    def __init__(
        self, world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
    ) -> None:
        self._off, self._silent = timedelta(seconds=off_s), silent
        self._world, self._pools, self._call, self._invariants = world, WorldPools(world), hazard, invariants

    def describe(self) -> Sequence[PoolState]:
        return [self._timed(pool) for pool in self._call("pools", "describe", self._pools.describe)]

    def _timed(self, pool: PoolState) -> PoolState:
        booting = (replace(b, requested_at=b.requested_at + self._off) for b in pool.booting)
        return replace(pool, booting=tuple(booting))

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        # Asked beside the worker: no turn of its own.
        return None if self._silent else self._pools.instance(pool, instance)

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        decision, size = self._invariants.purchases.decided(self._call.worker), to

        def grow(to: int) -> PoolState:
            with self._invariants.launching(self._call.worker, decision, pool, zone):
                return self._pools.grow(pool, to, zone)

        def half() -> None:
            desired = self._world.fleet.desired[pool]
            if size - desired > 1 and not self._world.fleet.pools[pool].atomic:
                grow(desired + 1)

        def let_out() -> None:
            nonlocal size
            size = min(to, self._world.fleet.desired[pool] + most)
            gate(size)
            self._invariants.sent(self._call.worker, f"grow {pool} to {to}", pool)

        asked = let_out if self._world.fleet.desired.get(pool, 0) < to else OPEN
        return self._call("pools", f"grow {pool} to {to}", lambda: grow(size), half=half, gate=asked)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        sent_s = self._world.now_s

        def let_out() -> None:
            nonlocal sent_s
            gate()
            sent_s = self._invariants.sent(self._call.worker, f"release {instance}", pool, instance)

        def release() -> None:
            with self._world.lock:
                self._invariants.releasing(self._call.worker, pool, instance, sent_s)
                node = self._world.nodes.get(instance)
                if node is not None and node.pool == pool:
                    self._world.terminate(instance, "released", evict=True)

        asked = let_out if self._pools.holds(pool, instance) else OPEN
        self._call("pools", f"release {pool} {instance}", release, gate=asked)


class HazardCluster:
    """An API server. Its clock is ``off_s`` wrong."""

    def __init__(self, cluster: Cluster, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0) -> None:
        self._off = timedelta(seconds=off_s)
        self._cluster, self._call, self._invariants = cluster, hazard, invariants

    def observe(self) -> ClusterView:
        view = self._call("cluster", "observe", self._cluster.observe)
        self._invariants.observed(self._call.worker, view)
        return replace(view, pending=tuple(map(self._dated, view.pending)), nodes=tuple(map(self._timed, view.nodes)))

    def _dated(self, pod: PodDemand) -> PodDemand:
        return replace(pod, created_at=pod.created_at + self._off)

    def _timed(self, node: Node) -> Node:
        idle = node.idle_since + self._off if node.idle_since else None
        return replace(node, created_at=node.created_at + self._off, idle_since=idle)

    def cordon(self, node: str, by: str = "") -> None:
        def cordon() -> None:
            self._cluster.cordon(node, by)
            self._invariants.cordoned(node)

        self._call("cluster", f"cordon {node}", cordon)

    def uncordon(self, node: str) -> None:
        def uncordon() -> None:
            self._cluster.uncordon(node)
            self._invariants.uncordoned(node)

        self._call("cluster", f"uncordon {node}", uncordon)

    def forget_opened(self, node: str) -> None:
        self._call("cluster", f"forget_opened {node}", lambda: self._cluster.forget_opened(node))

    def open(self, node: str) -> None:
        self._call("cluster", f"open {node}", lambda: self._cluster.open(node))

    def name_home(self, node: str, home: str) -> None:
        self._call("cluster", f"name_home {node}", lambda: self._cluster.name_home(node, home))

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        self._call("cluster", f"tolerate {pod}", lambda: self._cluster.tolerate(namespace, pod, uid, home))

    def beat(self) -> None:
        self._call("cluster", "beat", self._cluster.beat)

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        return self._call("cluster", f"bound_pods {node}", lambda: self._cluster.bound_pods(node))

    def drain(self, node: str) -> None:
        self._call("cluster", f"drain {node}", lambda: self._cluster.drain(node))

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        def evict() -> None:
            self._invariants.evicting(uid)
            self._cluster.evict(namespace, pod, uid, grace_s)

        self._call("cluster", f"evict {namespace}/{pod}", evict)

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        def delete() -> None:
            self._invariants.evicting(uid)
            self._cluster.delete(namespace, pod, uid, grace_s)

        self._call("cluster", f"delete {namespace}/{pod}", delete)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        def tell() -> None:
            self._cluster.tell(namespace, name, reason, message, change)

        self._call("cluster", f"tell {namespace}/{name}", tell)


class HazardOutbox:
    """Where messages go; what arrived is watched."""

    def __init__(self, hazard: Hazard, invariants: Sees) -> None:
        self._call, self._invariants = hazard, invariants

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self._call(
            "outbox",
            f"publish {' '.join(m.id for m in messages)}",
            lambda: self._invariants.published(messages),
            half=lambda: self._invariants.published(messages[: len(messages) // 2]),
        )


class HazardChannel:
    """Where people read: what they saw is counted, also where the answer was lost."""

    def __init__(self, hazard: Hazard, invariants: Sees) -> None:
        self._call, self._invariants = hazard, invariants

    def deliver(self, alert: Alert) -> str:
        def show() -> str:
            self._invariants.shown(self._call.worker, alert)
            return "shown"

        try:
            return self._call("channel", f"deliver {alert.fingerprint}", show)
        except Unsure:
            self._invariants.unsure(alert)
            raise
