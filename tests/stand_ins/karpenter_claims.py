"""Karpenter over the small world, for claims that somebody makes by hand: what becomes of them, and its own deadlines.

Written from kubernetes-sigs/karpenter, ``nodeclaim/lifecycle`` and ``nodeclaim/garbagecollection``: a claim that no
machine is left for is deleted at once with a Warning; one that is not launched after 5 minutes, or no node after 15, is
deleted without a word (``liveness``); a claim of a machine that went is deleted; a deleted claim stays until its node
has drained. It knows no NodePool for a claim without its label.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from api_server import Asked, api_server
from api_store import Json
from both_ways import Ports
from small_cloud import world as small_world
from world_as_kubernetes import WorldApi

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.pools.karpenter import KarpenterPools
from pilotlight.errors import NoCapacity, PilotlightError
from pilotlight.facts.policy import PoolPolicy
from pilotlight.world.simulation import World

POOL, GPU = "pilotlight.dev/pool", "nvidia.com/gpu"
LAUNCHED_WITHIN, NODE_WITHIN = timedelta(minutes=5), timedelta(minutes=15)
"""Karpenter's own: ``launchTimeout`` and ``registrationTimeout``."""
CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}


@dataclass
class KarpenterWorld(WorldApi):
    """An API server with a Karpenter whose machines are a world's.

    ``machines`` are the world's nodes by claim. What is posted while it is ``slow`` is ``stuck``: it is launched once
    it is taken out there. ``draining`` claims stay while they are deleted, until ``end``. ``dead`` machines never join.
    ``kept`` are the claims as they were posted. While it is ``idle`` it keeps no deadline. ``events`` are told, or
    never, as where they are forbidden or have expired, or later: by ``tell``.
    """

    machines: dict[str, str] = field(default_factory=dict)
    slow: bool = False
    draining: bool = False
    dead: bool = False
    idle: bool = False
    events: Literal["told", "never", "later"] = "told"
    untold: list[Json] = field(default_factory=list)
    kept: list[Json] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in ("karpenter", "karpenter-claims"):
            self.store.serve(name)
        for pool in self.world.fleet.pools:
            self.node_pool(pool)

    def node_pool(self, name: str, limit: str | None = "0", **fields: Any) -> None:
        """A NodePool, closed unless said otherwise."""
        spec: Json = {"template": {"spec": {"nodeClassRef": CLASS, "requirements": []}}, **fields}
        spec |= {"limits": {GPU: limit}} if limit is not None else {}
        made = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}
        self.store.write(self.store.resource("nodepools"), made)

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """As the stand-in answers, with what Karpenter has done since."""
        self.reconcile()
        claims = "/nodeclaims" in asked.path
        if claims and asked.method == "DELETE" and (self.draining or self._drains(asked)):
            return self._marked(asked)
        status, value = super().answer(asked)
        if claims and asked.method == "POST" and status == 201:
            self.kept.append(asked.json())
            dated = {**value["metadata"], "creationTimestamp": self.stamp()}
            value = self.store.write(self.store.resource("nodeclaims"), {**value, "metadata": dated})
            if self.slow:
                self.stuck.add(value["metadata"]["name"])
            self.launch()
        if claims and asked.method == "DELETE" and status == 200:
            self._end(value["metadata"]["name"])
        return status, value

    def reconcile(self) -> None:
        """Machines that went take their claims with them; those that joined are nodes."""
        resource = self.store.resource("nodeclaims")
        for claim in self.claims():
            name = claim["metadata"]["name"]
            machine = self.machines.get(name)
            if self._overdue(claim):
                self.give_up(claim)
                continue
            if machine is None:
                continue
            node = self.world.nodes.get(machine)
            if node is None:
                self.store.drop(resource, ("", name))
                del self.machines[name]
            elif node.joined and not self.dead and claim.get("status", {}).get("nodeName") != machine:
                self.store.write(resource, {**claim, "status": {**claim["status"], "nodeName": machine}})

    def _overdue(self, claim: Json) -> bool:
        """Not launched after 5 minutes, or no node after 15."""
        if self.idle or "deletionTimestamp" in claim["metadata"]:
            return False
        age = self.world.clock.now() - datetime.fromisoformat(claim["metadata"]["creationTimestamp"])
        status = claim.get("status", {})
        most = None if status.get("nodeName") else NODE_WITHIN if status.get("providerID") else LAUNCHED_WITHIN
        return most is not None and age >= most

    def give_up(self, claim: Json) -> None:
        """Delete a claim by its deadline: while it is ``draining`` its machine stays, and bills."""
        name, resource = claim["metadata"]["name"], self.store.resource("nodeclaims")
        self.stuck.discard(name)
        if self.draining and name in self.machines:
            self.store.write(resource, {**claim, "metadata": {**claim["metadata"], "deletionTimestamp": self.stamp()}})
        else:
            self.store.drop(resource, ("", name))
            self._end(name)

    def launch(self) -> None:
        """Launch what was asked for and is not there; what no machine is left for is deleted, with an Event."""
        resource = self.store.resource("nodeclaims")
        for claim in self.claims():
            name = claim["metadata"]["name"]
            if name in self.stuck or name in self.machines or "deletionTimestamp" in claim["metadata"]:
                continue
            zones = [one["values"][0] for one in claim["spec"]["requirements"] if one["key"].endswith("/zone")]
            try:
                if self.none_left():
                    raise NoCapacity("none left")
                (node,) = self.world.launch(claim["metadata"]["labels"][POOL], 1, zones[0] if zones else "")
            except PilotlightError as no:
                self.store.drop(resource, ("", name))
                self.event(name, str(no))
                continue
            self.machines[name] = node
            launched = {"type": "Launched", "status": "True", "reason": "Launched", "lastTransitionTime": self.stamp()}
            status = {"providerID": f"world:///{node}", "conditions": [{"message": "", **launched}]}
            self.store.write(resource, {**claim, "status": status})

    def none_left(self) -> bool:
        """True where its provider has no machine for a claim, beside what the world refuses."""
        return False

    def event(self, claim: str, why: str) -> None:
        """What Karpenter says of a claim that it deletes."""
        self.untold.append(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{claim}.1", "namespace": "default"},
                "involvedObject": {"kind": "NodeClaim", "name": claim},
                "type": "Warning",
                "reason": "InsufficientCapacityError",
                "message": f"NodeClaim {claim} event: {why}",
                "lastTimestamp": self.stamp(),
            }
        )
        if self.events == "told":
            self.tell()

    def tell(self) -> None:
        """Events that were held back come, but those that never do."""
        for event in self.untold if self.events != "never" else ():
            self.add(event)
        self.untold.clear()

    def end(self) -> None:
        """What drains is gone."""
        for claim in self.claims():
            if "deletionTimestamp" in claim["metadata"]:
                self.store.drop(self.store.resource("nodeclaims"), ("", claim["metadata"]["name"]))
                self._end(claim["metadata"]["name"])

    def claims(self) -> list[Json]:
        """Every claim."""
        return self.store.list(self.store.resource("nodeclaims"), "", "", "")

    def stamp(self) -> str:
        """Now, as objects write it."""
        return self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _drains(self, asked: Asked) -> bool:
        """True where its node has pods: Karpenter's finalizer evicts them first."""
        node = self.world.nodes.get(self.machines.get(asked.path.rpartition("/")[2], ""))
        return node is not None and bool(node.jobs)

    def _marked(self, asked: Asked) -> tuple[int, Json]:
        resource = self.store.resource("nodeclaims")
        claim = self.store.read(resource, ("", asked.path.rpartition("/")[2]))
        meta = {**claim["metadata"], "deletionTimestamp": self.stamp()}
        return 200, self.store.write(resource, {**claim, "metadata": meta})

    def _end(self, claim: str) -> None:
        machine = self.machines.pop(claim, None)
        if machine in self.world.nodes:
            self.world.terminate(machine, "released", evict=True)


def claim_pools(server: KarpenterWorld, policy: Mapping[str, PoolPolicy] | None = None) -> KarpenterPools:
    """The port to it."""
    source = source_of("kubeconfig-env:TEST", {"TEST": server.kubeconfig()})
    kinds = {name: PoolPolicy(instance_type=pool.instance_type) for name, pool in server.world.fleet.pools.items()}
    return KarpenterPools(Api(source, pause=lambda _: None), policy or kinds)


@contextmanager
def on_claims(here: World | None = None, **options: Any) -> Iterator[tuple[KarpenterWorld, KarpenterPools]]:
    """A small world behind claims."""
    with api_server(KarpenterWorld(world=here or small_world(**options))) as server:
        assert isinstance(server, KarpenterWorld)
        yield server, claim_pools(server)


@contextmanager
def claim_ports(made: Ports) -> Iterator[Ports]:
    """A world's ports, with claims as its pools."""
    with on_claims(made.world) as (_, pools):
        yield made._replace(pools=pools)
