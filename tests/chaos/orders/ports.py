"""The ports as a held worker has them: each method is one call, a request that is answered when its turn comes."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from orders.moments import Sent
from orders.scenes import Request, Scene
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.messages import Outgoing
from pilotlight.facts.nodes.pool_state import InstanceState, PoolState
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.ports.state import Page, Stored
from pilotlight.settings import Settings
from pilotlight.units import Seconds
from pilotlight.wiring import App, app

Ask = Callable[[Request], Any]


def app_of(scene: Scene, ask: Ask) -> App:
    """A new process: nothing of an earlier one is left but the store."""
    return app(
        Settings(mode="act"),
        cluster=Cluster(ask),
        pools=Pools(ask),
        state=State(ask),
        outbox=Outbox(ask),
        channels={},
        clock=Clock(ask, "clock"),
        policy=scene.policy,
        catalog=scene.catalog,
    )


class Clock:
    """Reads what the time is by a call."""

    def __init__(self, ask: Ask, port: str) -> None:
        self._ask, self._port = ask, port

    def now(self) -> datetime:
        now: datetime = self._ask((self._port, "now"))
        return now

    def stopwatch(self) -> Callable[[], Seconds]:
        began = self.now()
        return lambda: (self.now() - began).total_seconds()


class State(Clock):
    """The State port, a call each."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask, "state")

    def get(self, key: str) -> Stored | None:
        found: Stored | None = self._ask(("state", "get", key))
        return found

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        version: int = self._ask(("state", "put", key, bytes(value), if_version, ttl_s))
        return version

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        self._ask(("state", "delete", key, if_version))

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        page: Page = self._ask(("state", "scan", prefix, after, limit))
        return page


class Outbox:
    """The Outbox port, a call each."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def publish(self, messages: Sequence[Outgoing]) -> None:
        self._ask(("outbox", "publish", tuple(Sent(m.id, m.type, bytes(m.data)) for m in messages)))


class Pools:
    """The Pools port: what a change must read first is a call, and so is the request after its gate."""

    cloud = "world"

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def describe(self) -> Sequence[PoolState]:
        found: Sequence[PoolState] = self._ask(("pools", "describe"))
        return found

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        found: InstanceState | None = self._ask(("pools", "instance", pool, instance))
        return found

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        size: int = self._ask(("pools", "size", pool))
        if size < to:
            to = min(to, size + most)
            gate(to)
        state: PoolState = self._ask(("pools", "grow", pool, to, zone))
        return state

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        if self._ask(("pools", "holds", pool, instance)):
            gate()
        self._ask(("pools", "release", pool, instance))


class Cluster:
    """The Cluster port, a call each."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def observe(self) -> ClusterView:
        view: ClusterView = self._ask(("cluster", "observe"))
        return view

    def cordon(self, node: str, by: str = "") -> None:
        self._ask(("cluster", "cordon", node, by))

    def uncordon(self, node: str) -> None:
        self._ask(("cluster", "uncordon", node))

    def forget_opened(self, node: str) -> None:
        self._ask(("cluster", "forget_opened", node))

    def open(self, node: str) -> None:
        self._ask(("cluster", "open", node))

    def name_home(self, node: str, home: str) -> None:
        self._ask(("cluster", "name_home", node, home))

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        self._ask(("cluster", "tolerate", namespace, pod, uid, home))

    def beat(self) -> None:
        self._ask(("cluster", "beat"))

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        found: Sequence[BoundPod] = self._ask(("cluster", "bound_pods", node))
        return found

    def drain(self, node: str) -> None:
        self._ask(("cluster", "drain", node))

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        self._ask(("cluster", "evict", namespace, pod, uid, grace_s))

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        self._ask(("cluster", "delete", namespace, pod, uid, grace_s))

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        self._ask(("cluster", "tell", namespace, name, reason, message, change))
