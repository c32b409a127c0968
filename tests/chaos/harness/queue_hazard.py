"""The chaos harness with GKE's queue as its cloud: ProvisioningRequests at an API server, and what becomes of them.

As ``gke_hazard``, whose luck decides of instances. Sources of what befalls a request: the API and the reasons of
kubernetes/autoscaler (``provisioningrequest``), and Google's "Provisioning request statuses". All nodes of one come at
once, in the middle of a later look, or never: then it fails when it was valid for. Some fail, come in part, are deleted
by somebody, or are answered 409 though nothing was kept. Ten minutes after its nodes came it is BookingExpired, and
GKE's autoscaler takes empty ones; some are revoked with what runs on them.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, TypeVar

import pytest
from api_server import ApiServer, Asked, api_server
from api_store import Json
from api_store import Refused as ApiRefused
from civo_server import Fault
from gke_answers import WHERE
from gke_site import serving
from msgspec.structs import replace

from harness import deployment, setting, settle_down
from harness.faults.hazard_ports import Hazard
from harness.gke_hazard import ChaosGke, GkeHazard
from harness.judges.invariants import Invariants
from harness.judges.queue_judge import QueueJudge, Waiting
from harness.scene import Scene, draw
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import Api, Patience
from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.adapters.pools.gke import google_rest
from pilotlight.codec.kubernetes.provisioning_requests import WAITS_S
from pilotlight.errors import PilotlightError
from pilotlight.ports.clouds import OPEN, CloudAccount, Gate
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_events import Event
from pilotlight.world.world_nodes import WorldNode

T = TypeVar("T")

FATES = ("at once", "later", "later", "in part", "fails", "never", "not kept")
UNLUCKY, HOPELESS, MISCHIEF = 8, 2, 3
"""So many requests have a fate that is drawn, of which so many get no nodes; so often somebody takes what is there. All
of it also after the seed's luck is calm, for most is bought then: after those, requests get their nodes at once."""
COMES, FAILS, DELETED, FORSAKEN, REVOKED, EMPTIED, RACED = 0.2, 0.3, 0.03, 0.03, 0.03, 0.2, 0.6
"""In so many looks a request gets its nodes or fails, somebody deletes it, or its pods; GKE revokes its nodes, or its
autoscaler takes an empty one. So many deletions come just after the nodes did."""
BOOKED_S: Seconds = 600
REASONS = ("ResourcePoolExhausted", "QuotaExceeded", "IPSpaceExhausted", "InternalError")
CHANGE, LOOK = "(POST|DELETE) .*/provisioningrequests", "GET .*/provisioningrequests"
ONCE = Patience(tries=1)


@dataclass
class QueueApi(ApiServer):
    """An API server whose requests GKE's queue sees."""

    queue: "ChaosQueue | None" = None

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """As an API server answers, with what the queue has done since."""
        queue = self.queue
        if queue is None or "/provisioningrequests" not in asked.path:
            return super().answer(asked)
        try:
            with queue.lock, nullcontext() if asked.method == "GET" else queue.around():
                return queue.hears(asked, super().answer)
        except ApiRefused:
            raise
        except Exception as error:  # A server's thread would end unseen.
            queue.seen.broke("internal_errors", f"the queue of the harness failed: {error!r}")
            raise


class ChaosQueue(ChaosGke):
    """A project whose pools have queues, and whose answers a seed decides. ``asking`` is the worker of a change, with
    its decision. ``vanished`` are nodes that were asked for by pool, and that nobody calls off any more."""

    def __init__(self, world: World, dice: Random, seen: Invariants, setting: Any) -> None:
        self.server = QueueApi()
        self.server.store.serve("gke-queue")
        self._planned: list[Fault] = []
        super().__init__(world, dice, seen)
        self.server.queue = self
        self.judge = QueueJudge(world, seen, setting)
        self.seen, self.asking = seen, ("", "")
        self.unlucky, self.hopeless, self.mischief = UNLUCKY, HOPELESS, MISCHIEF
        self.fate: dict[str, str] = {}
        self.vanished: Counter[str] = Counter()
        self.fates: Counter[str] = Counter()
        for name, pool in world.fleet.pools.items():
            gpus = str(world.fleet.machine(name).gpus)
            self.extra[name] = {
                "queuedProvisioning": {"enabled": True},
                "autoscaling": {"enabled": True, "locationPolicy": "ANY"},
                "config": {
                    "machineType": pool.instance_type,
                    "labels": {"gpu": name},
                    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": gpus}],
                },
            }
        told = world.set_faults

        def alone(faults: Faults) -> None:
            told(replace(faults, replace_lost=False))

        setattr(world, "set_faults", alone)  # noqa: B010  # No group makes anew what went: a request is over then.
        alone(world.faults)

    def misbehave(self) -> None:
        """None of it: its nodes come by requests, which have fates of their own."""

    @property
    def faults(self) -> list[Fault]:
        """What Compute Engine does instead of what it is asked."""
        return self._planned

    @faults.setter
    def faults(self, planned: list[Fault]) -> None:
        self._planned = list(planned)
        self.server.forget_faults()
        for fault in planned:
            after = ("cut", "truncated", "not json")
            status = fault.what[0] if isinstance(fault.what, tuple) else 0
            before = (status,) if status in (403, 429) else ("reset", 500, 503, 302)
            kind = self.dice.choice(after if fault.when == "after" else before)
            self.server.fail(kind, on=LOOK if fault.method else CHANGE)

    def changes(self) -> list[Any]:
        """What was asked for: requests, deletions of them, and of instances."""
        return [*super().changes(), *self.server.lines(CHANGE)]

    def owes(self, pool: str) -> int:
        """Nodes that are asked for, failed ones too until they are called off."""
        return sum(_nodes(one) for one in self.wanted() if _pool(one) == pool and not _is(one, "Provisioned"))

    def wanted(self) -> list[Json]:
        """Every request."""
        return self.server.store.list(self.server.store.resource("provisioningrequests"), "", "", "")

    def hears(self, asked: Asked, answer: Callable[[Asked], tuple[int, Json]]) -> tuple[int, Json]:
        """A request about requests."""
        match asked.method:
            case "POST":
                return self.takes(asked, answer)
            case "DELETE":
                return self.drops(asked, answer)
        self.go_on()
        return answer(asked)

    def takes(self, asked: Asked, answer: Callable[[Asked], tuple[int, Json]]) -> tuple[int, Json]:
        """A request comes: what is to become of it is drawn."""
        body = asked.json()
        name, pool, nodes = body["metadata"]["name"], _pool(body), _nodes(body)
        there = any(one["metadata"]["name"] == name for one in self.wanted())
        luck = "at once" if there else self._fate()
        if luck == "not kept":
            self.vanished[pool] += nodes
            raise ApiRefused(409, "AlreadyExists", f'provisioningrequests "{name}" already exists')
        status, value = answer(asked)
        store = self.server.store
        stamped = {**value["metadata"], "creationTimestamp": self.stamp()}
        value = store.write(store.resource("provisioningrequests"), {**value, "metadata": stamped})
        self.fate[name], self.asked_by[name] = luck, self.late
        late = self.asking[0] in self.seen._late
        self.judge.asked(name, Waiting(pool, nodes), *self.asking, late=late)
        if luck == "at once":
            self.provision(value)
        return status, value

    def _fate(self) -> str:
        """What is to become of the next request."""
        luck = "at once"
        if self.unlucky:
            self.unlucky -= 1
            luck = self.dice.choice(FATES)
        if luck == "never" and not self.hopeless:
            luck = "later"
        self.hopeless -= luck == "never"
        self.fates[luck] += 1
        return luck

    def drops(self, asked: Asked, answer: Callable[[Asked], tuple[int, Json]]) -> tuple[int, Json]:
        """A deletion comes; some just after the nodes did."""
        name = asked.path.rpartition("/")[2]
        one = next((each for each in self.wanted() if each["metadata"]["name"] == name), None)
        if one and self._waits(one) and self.dice.random() < RACED:
            with self.asked_by[name]():
                self.provision(one)
        status, value = answer(asked)
        self.called_off += 1
        self.vanished[_pool(value)] += _nodes(value) - 1  # They go together, and are told one by one.
        self.judge.deleted(name)
        return status, value

    def go_on(self) -> None:
        """What has become of requests since the last look."""
        for one in self.wanted():
            name, luck = one["metadata"]["name"], self.fate[one["metadata"]["name"]]
            age_s = self._age_s(one["metadata"]["creationTimestamp"])
            valid_s = int(one["spec"]["parameters"]["ValidUntilSeconds"])
            if self._waits(one) and (age_s >= valid_s or (luck == "fails" and self.dice.random() < FAILS)):
                self.turns_down(one, "WaitTimeExceeded" if age_s >= valid_s else self.dice.choice(REASONS))
            elif self._waits(one) and self.mischief and self.dice.random() < DELETED:
                self.somebody_deletes(one)
            elif self._waits(one) and self.mischief and self.dice.random() < FORSAKEN:
                self._forsake(name)
            elif self._waits(one) and luck != "never" and self.dice.random() < COMES:
                with self.asked_by[name]():
                    self.provision(one)
            elif self._waits(one) and not _is(one, "Accepted"):
                self.says(one, "Accepted")
            elif _is(one, "Provisioned"):
                self._books(one)

    def _forsake(self, name: str) -> None:
        """A person deletes the pods that it was asked for, or all that wait: then nobody wants its nodes."""
        self._mischief("pods deleted")
        wanted, every = self.judge.demands(name), self.dice.random() < 0.7
        with self.world.lock:
            for job in list(self.world.pending.values()):
                if every or wanted & {demand.uid for demand in job.demands}:
                    self.world.delete(job)

    def _books(self, one: Json) -> None:
        """What was booked expires, is taken, or is revoked."""
        name = one["metadata"]["name"]
        nodes = [self.world.nodes[each] for each in self.judge.nodes[name] if each in self.world.nodes]
        came = next(c for c in one["status"]["conditions"] if c["type"] == "Provisioned")["lastTransitionTime"]
        if not _is(one, "BookingExpired") and self._age_s(came) >= BOOKED_S:
            self.says(one, "BookingExpired")
        empty = [node for node in nodes if node.ready and not node.jobs]
        if not self.mischief or _is(one, "CapacityRevoked"):
            return
        with self.world.lock:
            if _is(one, "BookingExpired") and empty and self.dice.random() < EMPTIED:
                self._mischief("taken by the autoscaler")
                self._goes_soon(self.dice.choice(empty))
            elif nodes and self.dice.random() < REVOKED:
                self._mischief("revoked")
                for node in nodes:
                    self._goes_soon(node)
                self.says(one, "CapacityRevoked")

    def _goes_soon(self, node: WorldNode) -> None:
        """Between two looks: an event of the world, as any loss."""
        self.world._agenda.add(self.world.now_s + 1.0, Event("reclaim", node))

    def _mischief(self, what: str) -> None:
        self.mischief -= 1
        self.fates[what] += 1

    def provision(self, one: Json) -> None:
        """All its nodes come; some of them where that is its fate; where there are none it fails."""
        name, pool, asked = one["metadata"]["name"], _pool(one), _nodes(one)
        count = max(1, asked - 1) if self.fate[name] == "in part" else asked
        for _ in range(count):
            self.born += 1
            self._names.append(f"{self.base(pool)}-{self.born:04x}")
        names = tuple(self._names)
        try:
            self.world.launch(pool, count)
        except PilotlightError:
            self._names.clear()
            self.turns_down(one, self.dice.choice(REASONS[:2]))
            return
        self.vanished[pool] += asked - count
        self.says(one, "Accepted", "Provisioned")
        self.judge.provisioned(name, names)

    def turns_down(self, one: Json, reason: str) -> None:
        """It gets no nodes."""
        self.fates[reason] += 1
        self.says(one, "Failed", reason=reason)
        self.judge.ended(one["metadata"]["name"])

    def somebody_deletes(self, one: Json) -> None:
        """A person deletes a request that waits."""
        self._mischief("deleted by somebody")
        meta = one["metadata"]
        self.server.store.drop(self.server.store.resource("provisioningrequests"), (meta["namespace"], meta["name"]))
        self.vanished[_pool(one)] += _nodes(one)
        self.judge.ended(meta["name"])

    def says(self, one: Json, *kinds: str, reason: str = "") -> None:
        """Conditions that it gets beside those that it has."""
        meta, stamp = one["metadata"], self.stamp()
        had = [each for each in one.get("status", {}).get("conditions", []) if each["type"] not in kinds]
        fresh = [{"type": k, "status": "True", "reason": reason or k, "lastTransitionTime": stamp} for k in kinds]
        one["status"] = {"conditions": [*had, *({"message": "", **each} for each in fresh)]}
        key = meta["namespace"], meta["name"]
        self.server.store.patch(self.server.store.resource("provisioningrequests"), key, {"status": one["status"]})

    def stamp(self) -> str:
        """Now, as objects write it."""
        return self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _waits(self, one: Json) -> bool:
        return not (_is(one, "Provisioned") or _is(one, "Failed"))

    def _age_s(self, stamp: str) -> Seconds:
        return (self.world.clock.now() - datetime.fromisoformat(stamp)).total_seconds()


def _pool(one: Json) -> str:
    return str(one["metadata"]["labels"]["pilotlight.dev/pool"]).removesuffix("-pool")


def _nodes(one: Json) -> int:
    return sum(each["count"] for each in one["spec"]["podSets"])


def _is(one: Json, kind: str) -> bool:
    return any(each["type"] == kind for each in one.get("status", {}).get("conditions", []))


class QueueHazard(GkeHazard):
    """A worker's way to the project and its queue, looked at and full of faults."""

    def _open(self, account: CloudAccount) -> Any:
        source = source_of("kubeconfig-env:TEST", {"TEST": self._aws.server.kubeconfig()})
        api = Api(source, patience=ONCE, pause=lambda _: None)
        return gke_cloud.open_pools(WHERE, account._replace(api=api))

    def _through(
        self,
        what: str,
        call: Callable[[Gate], T],
        let_out: Gate = OPEN,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> T:
        worker, cloud = self._hazard.worker, self._aws
        decision = self._invariants.purchases.decided(worker)

        @contextmanager
        def known() -> Iterator[None]:
            cloud.asking = worker, decision
            with around():
                yield

        return super()._through(what, call, let_out, nullcontext if around is nullcontext else known)


def _atomic(rng: Random, jobs: int, over_s: Seconds) -> Scene:
    """As any seed's, with pools as the guide writes those of the queue."""
    scene = draw(rng, jobs, over_s)
    pools = {name: replace(rules, atomic=True) for name, rules in scene.policy.pools.items()}
    policy = replace(scene.policy, pools=pools)
    return scene._replace(policy=policy, pools=tuple(WorldPool.from_policy(name, pool) for name, pool in pools.items()))


@contextmanager
def on_queue(seed: int, *, patch: pytest.MonkeyPatch) -> Iterator[list[ChaosQueue]]:
    """Runs of the harness have the queue as their cloud: the projects that they opened, in order."""
    opened: dict[int, tuple[ChaosQueue, Any]] = {}
    with ExitStack() as stack:

        def pools(
            world: World, hazard: Hazard, invariants: Invariants, off_s: Seconds = 0.0, *, silent: bool = False
        ) -> QueueHazard:
            if id(world) not in opened:
                dice = Random(f"queue/{seed}/{len(opened)}")
                queue = ChaosQueue(world, dice, invariants, invariants._policy)
                stack.enter_context(api_server(queue.server))
                opened[id(world)] = queue, stack.enter_context(serving(queue))
                invariants.owed, invariants.vanished = queue.owes, queue.vanished.__getitem__
                invariants.books.owes = queue.owes
            return QueueHazard(*opened[id(world)], hazard, invariants, off_s)

        for module in (setting, deployment):
            patch.setattr(module, "HazardPools", pools)
        patch.setattr(setting, "draw", _atomic)
        patch.setattr(settle_down, "BOUND_S", settle_down.BOUND_S + UNLUCKY * 2 * WAITS_S)
        patch.setattr(google_rest, "PAUSES_S", ())
        projects: list[ChaosQueue] = []
        yield projects
        projects += [queue for queue, _ in opened.values()]
