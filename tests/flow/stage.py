"""One cluster in the world with its ports, policy and clock: scripts of events and ticks play on it."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import msgspec

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import PilotlightError
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.messages import Alert, PodPending, Tick
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.answer import Answer
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.provision import provision
from pilotlight.flow.reconcile import reconcile
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = 60.0


def _type(model: str, gpus: int, usd: str, boot_s: float, wake_s: float | None) -> InstanceType:
    prices: dict[CapacityType, Price] = {
        "on-demand": Price(usd_per_hour=Decimal(usd), source="test", date="2026-11-01"),
        "spot": Price(usd_per_hour=Decimal(usd) / 4, source="test", date="2026-11-01"),
    }
    stops: dict[str, Any] = {"wake_s": wake_s, "standby_usd_per_hour": Decimal("0.01")} if wake_s else {}
    return InstanceType(cloud="world", gpu_model=model, gpus=gpus, prices=prices, boot_s=boot_s, **stops)


class Stage:
    """A cluster with a pool of one-GPU nodes at $1 and one of eight-GPU nodes at $32, or the ``pools`` given.

    ``on_cloud`` are fields of the cloud's pools that the policy does not know of.
    """

    def __init__(
        self,
        *,
        boot_s: float = 180.0,
        wake_s: float | None = None,
        pools: dict[str, PoolPolicy] | None = None,
        faults: Faults | None = None,
        on_cloud: dict[str, Any] | None = None,
        **rules: Any,
    ) -> None:
        types = {"one": _type("T4", 1, "1", boot_s, wake_s), "eight": _type("A100", 8, "32", boot_s, wake_s)}
        speeds: Any = {name: {"T4": 1.0, "A100": 1.0} for name in ("training", "serving", "notebook", "batch")}
        self.catalog = catalog = Catalog(name="stage", as_of=START, instance_types=types, throughput=speeds)
        pools = pools or {name: PoolPolicy(instance_type=name, max=20) for name in types}
        classes = {"batch": ClassPolicy(gpu_models="any", idle_timeout=300), **rules.pop("classes", {})}
        policy = Policy(version=1, pools=pools, classes=classes, **rules)
        real = [
            WorldPool(
                name=n,
                instance_type=p.instance_type,
                capacity_type=p.capacity_type,
                **{"taints": p.taints, **(on_cloud or {})},
            )
            for n, p in pools.items()
        ]
        self._versions = count(1)
        self.log: list[dict[str, Any]] = []
        self.world = World(catalog, real, faults=faults, log=self.log.append)
        self.outbox = MemoryOutbox()
        self.deps = Deps(
            name="c",
            cluster=WorldCluster(self.world),
            pools=WorldPools(self.world),
            state=MemoryState(self.world.clock),
            outbox=self.outbox,
            clock=self.world.clock,
            policy=policy,
            offerings=offerings(policy, catalog)[0],
            throughput={str(name): speeds for name, speeds in catalog.throughput.items()},
            mode="act",
        )

    def submit(self, name: str, gpus: int = 1, run_s: float = 3600.0, **traits: Any) -> PodDemand:
        """A pod is created."""
        made = shape(gpu=GpuRequest(count=gpus), **traits)
        now = self.world.clock.now()
        pod = PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=made, created_at=now)
        self.world.submit(pod, run_s)
        return pod

    def submit_gang(self, name: str, size: int, run_s: float = 3600.0, gpus: int = 8, **traits: Any) -> list[PodDemand]:
        """The pods of a gang, of 8 GPUs each where nothing else is said, are created."""
        made = shape(gpu=GpuRequest(count=gpus), gang=Gang(key=name, size=size), **traits)
        now = self.world.clock.now()
        pods = [
            PodDemand(uid=f"uid-{name}-{n}", namespace="ml", name=f"{name}-{n}", shape=made, created_at=now)
            for n in range(size)
        ]
        self.world.submit(pods, run_s, job=name)
        return pods

    def event(self, pod: PodDemand, identity: str = "", **options: Any) -> Answer:
        """A pod-pending event arrives: a new one, or another delivery of that ``identity``."""
        identity = identity or f"{pod.uid}/{next(self._versions)}"
        message = PodPending(cluster="c", namespace=pod.namespace, name=pod.name, uid=pod.uid, identity=identity)
        return provision(self.deps, message, **options)

    def tick(self, **options: Any) -> Answer:
        """The schedule ticks."""
        return reconcile(self.deps, Tick(cluster="c"), **options)

    def fail(self, call: str, error: PilotlightError) -> None:
        """The next call of that name to cluster or cloud fails."""
        self.world._errors.append((call, error))

    @property
    def failures_left(self) -> int:
        """Faults that no call has met yet."""
        return len(self.world._errors)

    def wait(self, seconds: float) -> None:
        """Time passes; nobody looks."""
        self.world.advance(self.world.now_s + seconds)

    def minutes(self, count: float, meanwhile: Callable[[], object] | None = None) -> None:
        """So many minutes pass with a tick in each, and what else goes on meanwhile."""
        for _ in range(int(count)):
            self.wait(MINUTE)
            if meanwhile is not None:
                meanwhile()
            self.tick()

    def hours(self, count: float) -> None:
        """So long passes; each minute ticks and carries on what is at work."""
        for _ in range(int(count * 60)):
            self.wait(MINUTE)
            self.tick()
            go_on(self.deps)

    @property
    def alerts(self) -> list[Alert]:
        """Every alert sent."""
        return [msgspec.json.decode(m.data, type=Alert) for m in self.outbox.sent if m.topic == "alerts"]

    def nodes(self, pool: str) -> int:
        """The live nodes of a pool."""
        return sum(n.pool == pool for n in self.world.nodes.values())

    def events(self, name: str) -> list[dict[str, Any]]:
        """The records of one kind in the world's log."""
        return [r for r in self.log if r["event"] == name]
