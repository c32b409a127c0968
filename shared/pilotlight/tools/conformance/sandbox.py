"""One pool of a sandbox as conformance tries it: its size before, instances bought since, and the way back."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pilotlight.errors import BadInput, Failed, PilotlightError
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.flow.deps import Deps
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.wiring import App

PATIENCE_S: Seconds = 600
"""An instance is there, or gone, within so long; else the step has failed."""
LOOK_S: Seconds = 5


class Sandbox:
    """The pool that is tried, and ``short``, one that the account's quota has no room for, where one is named."""

    def __init__(self, site: "App", pool: str, short: str = "") -> None:
        self.deps: Deps = site.deps
        self.pool, self.cluster = pool, site.settings.cluster_name
        self.token = f"conformance/{self.cluster}/{pool}/{time.time_ns()}"
        self.befores = {name: self.state(name) for name in (pool, short) if name}
        self.before, self.short = self.befores[pool], short
        self.size = self.before.desired
        self.mine: list[str] = []
        self.gates = 0
        self.calls: list[str] = []

    def state(self, pool: str = "") -> PoolState:
        """The pool, or another, as its cloud tells it now."""
        name = pool or self.pool
        found = next((state for state in self.deps.pools.describe() if state.name == name), None)
        if found is None:
            raise BadInput(f"the cloud has no pool {name}; mend pools.{name}.cluster_pool")
        return found

    def _ready(self) -> str:
        """The new instance, once it is a node that takes pods."""
        new = self._new()
        nodes = self.deps.cluster.observe().nodes
        return next((node.instance for node in nodes if node.instance in new and node.ready), "")

    def _grow(self, what: str = "") -> None:
        token = f"{self.token}/{what}" if what else self.token
        gate = self._sent(f"grow {self.pool} to {self.size + 1}")
        self.deps.pools.grow(self.pool, self.size + 1, self._zone, gate=gate, token=token)

    def _sent(self, call: str) -> Callable[..., None]:
        """A gate that writes down what it lets out."""

        def gate(size: int = 0) -> None:
            self.gates += 1
            self.calls.append(call)

        return gate

    def _sweep(self, pool: str) -> dict[str, str]:
        """Give back whatever is new in a pool, what is still to come or was refused, what stands by; what cannot be is
        named."""
        left: dict[str, str] = {}
        before = self.befores[pool]
        try:
            self._until(
                lambda: bool(self._new(pool) or self._refused(pool)) or self.state(pool).desired <= before.desired,
                f"the size of {pool} is above {before.desired} and no instance of it is told: lower it by hand",
            )
            new = [*self._new(pool), *self._refused(pool)]
            new += [one for one in self.state(pool).stopped if one not in before.stopped]
        except PilotlightError as error:
            return {"unknown": f"{error}; look at the cloud's console"}
        for instance in new:
            try:
                self._give_back(instance, pool)
            except PilotlightError as error:
                left[instance] = str(error)
        return left

    def _give_back(self, instance: str, pool: str = "") -> None:
        """One that has become a node meanwhile is closed first, and left where a GPU pod is on it."""
        node = next((node for node in self.deps.cluster.observe().nodes if node.instance == instance), None)
        if node is not None:
            self.deps.cluster.cordon(node.name)
            busy = [pod for pod in self.deps.cluster.bound_pods(node.name) if pod.gpu is not None and not pod.daemonset]
            if busy:
                self.deps.cluster.uncordon(node.name)
                raise Failed(f"{busy[0].namespace}/{busy[0].name} was bound to it: it stays")
        self.deps.pools.release(pool or self.pool, instance, gate=self._sent(f"release {instance}"))

    def _new(self, pool: str = "") -> list[str]:
        known = {one.instance for one in self.befores[pool or self.pool].booting}
        found = [one.instance for one in self.state(pool).booting if one.instance not in known]
        self.mine += [one for one in found if one not in self.mine]
        return found

    def _refused(self, pool: str) -> list[str]:
        """Nodes that the cloud could not launch, or has not yet, and would go on trying for: called off by name."""
        state, before = self.state(pool), self.befores[pool]
        known = {*before.refused, *(one.name for one in before.asked)}
        waits = (one.name for one in state.asked if one.waits is not None)
        return [one for one in (*state.refused, *waits) if one not in known]

    def _same(self) -> str:
        return self._sized(self.size)

    def _sized(self, size: int) -> str:
        now = self.state().desired
        if now != size:
            raise Failed(f"its size is {now}, not {size}")
        return f"size {size}"

    def _until(self, true: Callable[[], bool], why: str) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not true():
            if time.monotonic() > ends:
                raise Failed(f"after {PATIENCE_S:g} s {why}")
            time.sleep(LOOK_S)

    @property
    def _zone(self) -> str:
        return self._zone_of(self.pool)

    def _zone_of(self, pool: str) -> str:
        zones = self.deps.policy.pools[pool].zones
        return zones[0] if zones else ""
