"""A deployment over the real adapter to an API server in memory, where a tenant writes what that server admits."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
from api_server import Asked, _status
from api_store import Json, Refused, Resource
from small_cloud import CATALOG, pod, world
from world_as_kubernetes import OF_WORLD, WorldApi, waiting_pod

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.http import HttpAnswer
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.messages import Alert, InterruptionNotice, Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import DEFAULT_CLASSES, ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Finding, PodDemand
from pilotlight.flow.answer import Answer
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.reconcile import reconcile
from pilotlight.units import HOUR
from pilotlight.world.machines import WorldPool
from pilotlight.world.world_pools import WorldPools

RULES = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))
POOLS = (WorldPool(name="one", instance_type="one"), WorldPool(name="spot", instance_type="one", capacity_type="spot"))
KUEUE = "kueue.x-k8s.io/v1beta2"
MORE = (
    Resource(KUEUE, "workloads", "Workload"),
    Resource(KUEUE, "resourceflavors", "ResourceFlavor", False),
)


class HostileApi(WorldApi):
    """The world's API server, in which ``written`` is put over the objects of the world by kind and name."""

    written: dict[tuple[str, str], Callable[[Json], None]]
    seen: float = -1.0
    """The world's second that was mirrored last: what changes within it is mirrored by who changes it."""

    def mirror(self) -> None:
        """What the world is, with what a tenant wrote over it."""
        if self.seen == self.world.now_s:
            return
        super().mirror()
        self.seen = self.world.now_s
        for (plural, name), write in self.written.items():
            resource = self.store.resource(plural)
            for there in self.store.list(resource, "", "", ""):
                if there["metadata"]["name"] == name:
                    write(there)
                    self.store.write(resource, there)


class _Direct(Api):
    """The adapter's calls land in the server without a socket."""

    def __init__(self, server: HostileApi) -> None:
        server.url = "http://127.0.0.1:1"
        super().__init__(source_of("kubeconfig-env:TEST", {"TEST": server.kubeconfig()}), pause=lambda _: None)
        self._server = server

    def _answer(
        self,
        access: Any,
        method: str,
        path: str,
        body: object,
        kind: str,
        within_s: float,
        gate: Callable[[], None] | None = None,
    ) -> HttpAnswer:
        where = urlsplit(path)
        query = {name: values[-1] for name, values in parse_qs(where.query, keep_blank_values=True).items()}
        sent = b"" if body is None else msgspec.json.encode(body)
        asked = Asked(method=method, path=unquote(where.path), query=query, body=sent, headers={})
        try:
            status, value = self._server.answer(asked)
        except Refused as no:
            status, value = no.code, _status(no)
        if method != "GET":
            self._server.seen = -1.0
        return HttpAnswer(status, {}, json.dumps(value).encode())


class HostileSite:
    """A hard budget of ``usd`` dollars a day over pools of one-GPU nodes at a dollar and at a quarter an hour."""

    def __init__(self, usd: str = "6", most: int = 20) -> None:
        self.log: list[dict[str, Any]] = []
        self.world = world(pools=POOLS, log=self.log.append)
        self.api = HostileApi(world=self.world)
        self.api.written = {}
        for resource in MORE:
            self.api.store.resources[resource.group_version, resource.plural] = resource
        self.outbox = MemoryOutbox()
        pools = {
            "one": PoolPolicy(instance_type="one", max=most),
            "spot": PoolPolicy(instance_type="one", capacity_type="spot", max=most),
        }
        budget = Budget(name="all", usd=Decimal(usd), period="day")
        policy = Policy(version=1, pools=pools, classes=dict.fromkeys(DEFAULT_CLASSES, RULES), budgets=(budget,))
        self.deps = Deps(
            name="c",
            cluster=KubernetesCluster(_Direct(self.api), policy, self.world.clock, pause=lambda _: None),
            pools=WorldPools(self.world),
            state=MemoryState(self.world.clock),
            outbox=self.outbox,
            clock=self.world.clock,
            policy=policy,
            offerings=offerings(policy, CATALOG)[0],
            throughput={str(name): speeds for name, speeds in CATALOG.throughput.items()},
            mode="act",
        )

    def submit(self, name: str, run_s: float = 1 * HOUR, **fields: Any) -> PodDemand:
        """A pod of the world is created."""
        made = msgspec.structs.replace(pod(name, team="default"), created_at=self.world.clock.now(), **fields)
        self.world.submit(made, run_s)
        self.api.seen = -1.0
        return made

    def write(self, plural: str, name: str, change: Callable[[Json], None]) -> None:
        """A tenant changes an object of the world, now and whenever it is read."""
        self.api.seen = -1.0
        self.api.written[plural, name] = change

    def add(self, *objects: Json) -> None:
        """A tenant creates objects."""
        for each in objects:
            plural = _PLURALS[each["kind"]]
            self.api.store.write(self.api.store.resource(plural), each)

    def look(self, **options: Any) -> Answer:
        """The schedule ticks."""
        return reconcile(self.deps, Tick(cluster="c"), **options)

    def meter(self) -> Answer:
        """The billing tick."""
        return billing(self.deps, Tick(cluster="c"))

    def notice(self, node: str) -> Answer:
        """The cloud says that it takes a node in two minutes."""
        deadline = self.world.moment(self.world.interrupt(node, 120))
        self.api.seen = -1.0
        now = self.world.clock.now()
        told = InterruptionNotice(
            cluster="c", instance=node, kind="spot-interruption", cloud="world", at=now, deadline=deadline
        )
        return interrupt(self.deps, told)

    def minutes(self, count: float) -> None:
        """So many minutes pass, with a look, a rescue's and a billing's tick in each."""
        for _ in range(int(count)):
            self.world.advance(self.world.now_s + 60)
            self.look()
            go_on(self.deps)
            self.meter()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a look finds that a person must mend."""
        return tuple(self.deps.cluster.observe().findings)

    @property
    def alerts(self) -> list[Alert]:
        """Every alert sent."""
        return [msgspec.json.decode(m.data, type=Alert) for m in self.outbox.sent if m.topic == "alerts"]

    @property
    def usd(self) -> Decimal:
        """What all nodes have cost so far, by the world's log alone."""
        ends = {r["node"]: r["t"] for r in self.log if r["event"] == "terminate"}
        prices = {"on-demand": Decimal(1), "spot": Decimal("0.25")}
        launched = [r for r in self.log if r["event"] == "launch"]
        return sum(
            (
                prices[r["capacity_type"]] * Decimal(ends.get(r["node"], self.world.now_s) - r["t"]) / 3600
                for r in launched
            ),
            Decimal(0),
        )


def stranger(name: str) -> Json:
    """A pod that waits for a GPU, which the world knows nothing of: no scheduler will place it."""
    made = waiting_pod(pod(name, team="default"))
    del made["metadata"]["labels"][OF_WORLD]
    return made


_PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "Workload": "workloads",
    "ResourceFlavor": "resourceflavors",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "PodGroup": "podgroups",
}
