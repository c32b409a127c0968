"""kill -9 at every write of a real store, in a look that buys and in one that gives back: the next workers go on."""

import json
import os
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from harness.scene import CATALOG, START
from harness.setting import HEADERS
from mortal_worker import Where, work

from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.codec.events import encode
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import EMBEDDED_CLUSTER
from pilotlight.state_schema.table import plain
from pilotlight.tools.install.state_store import create_table
from pilotlight.tools.serve.world_server import WorldServer
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock

POLICY = Policy(
    version=1,
    pools={"four": PoolPolicy(instance_type="four", max=3)},
    classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=120.0, max_runtime=3600)},
    budgets=(Budget(name="day", scope="all", period="day", usd=Decimal(60)),),
)
LEFT = ("lease/", "open/", "inflight/", "hold/", "mark/")
"""What has to be gone once all is quiet."""

EMULATORS = {"sqlite": "", "firestore": "firestore_emulator", "dynamodb": "dynamodb_server"}
"""Where stores are: a file, or what a fixture serves."""
STRIDES = {"sqlite": 9, "firestore": 35, "dynamodb": 41}
"""One in so many points, before or after a write, from half as many on; EVERY_WRITE=1 takes all of them."""

_forks = get_context("forkserver")
_forks.set_forkserver_preload(["mortal_worker"])


class Story:
    """A world with one pod of ten minutes, and workers that look at it by one store."""

    def __init__(self, folder: Path, emulator: str) -> None:
        self.log: list[dict[str, object]] = []
        machines = [WorldPool.from_policy(name, pool) for name, pool in POLICY.pools.items()]
        clock = VirtualClock(START)
        self.world = World(CATALOG, machines, faults=Faults(boot_s=60.0), clock=clock, log=self.log.append)
        pod = shape(gpu=GpuRequest(count=4), max_run_s=600)
        self.world.submit(PodDemand(uid="p", namespace="default", name="p", shape=pod, created_at=START), 600)
        self._server = WorldServer(self.world, 0)
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.where = Where(self._server.url, folder, POLICY, emulator)
        if emulator.startswith("http"):
            create_table(DynamoDBState(self.where.name, endpoint=emulator).client, self.where.name)
        self.app = self.where.app()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.world.advance(self.world.now_s + seconds)

    def tick(self) -> None:
        """A worker looks, from beginning to end."""
        answer = self.app.receive("capacity_reconcile", self._body(), HEADERS)
        assert answer.status == 200, answer.body

    def die(self, write: int, *, after: bool) -> bool:
        """A worker looks, and dies around that write; whether it did: False where there are not so many."""
        words = (self.where, "capacity_reconcile", self._body(), write, after)
        worker = _forks.Process(target=work, args=words, daemon=True)
        worker.start()
        worker.join()
        return worker.exitcode != 0

    def _body(self) -> bytes:
        tick = Tick(cluster=EMBEDDED_CLUSTER, what="reconcile", identity=f"t{self.world.now_s}", at=START)
        return encode(tick, id=f"t{self.world.now_s}")

    def settle(self) -> None:
        """Ticks until the pod is done and its node gone, and a quarter of an hour more: fewer where a look is slow."""
        times = 2 if self.where.emulator else 1
        for _ in range(40):
            self.wait(61 if self.world.finished else 61 * times)
            self.tick()
            if self.world.finished and not self.world.nodes:
                break
        for _ in range(12 // times):
            self.wait(90 * times)
            self.tick()

    def check(self) -> None:
        """One node was bought and given back, nothing is held, and the budget was charged once what it cost."""
        launches = [record for record in self.log if record["event"] == "launch"]
        assert (len(launches), len(self.world.finished), len(self.world.nodes)) == (1, 1, 0)
        state = self.app.state
        assert [key for family in LEFT for key, _ in state.scan(family).items] == []
        settled = [msgspec.json.decode(plain(v.value))["settled"] for _, v in state.scan("cap/").items]
        cost = Decimal(self.world.cost())
        assert cost <= sum(map(Decimal, settled)) <= cost + Decimal("0.5")
        self._told()

    def _told(self) -> None:
        """Every recorded message is in the outbox, under one content an id."""
        sent: dict[str, bytes] = {}
        for file in (self.where.folder / "outbox").glob("*"):
            for line in file.read_bytes().splitlines():
                event = json.loads(line)
                assert sent.setdefault(event["id"], event["data"]) == event["data"]
        for _, found in self.app.state.scan("decision/").items:
            for message in msgspec.json.decode(found.value).get("messages", []):
                assert message["id"] in sent


def _buys(story: Story) -> None:
    """The look that comes finds a pod without room."""


def _gives_back(story: Story) -> None:
    """The look that comes finds a node that has idled past its timeout."""
    story.tick()
    story.wait(61)
    story.tick()
    story.wait(700)
    story.tick()
    story.wait(130)


@pytest.mark.parametrize("store", EMULATORS)
@pytest.mark.parametrize("before", [_buys, _gives_back])
def test_the_next_workers_go_on(
    before: Callable[[Story], None],
    store: str,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whichever write a worker died before or after: the pod gets one node, which goes back, told and charged once."""
    emulator = str(request.getfixturevalue(EMULATORS[store])) if EMULATORS[store] else ""
    stride = int(os.environ.get("EVERY_WRITE", STRIDES[store]))
    died = 0
    for point in count(stride // 2, stride):
        story = Story(tmp_path_factory.mktemp("killed"), emulator)
        try:
            before(story)
            if not story.die(point // 2, after=bool(point % 2)):
                assert died > 0
                return
            died += 1
            story.wait(61)
            story.settle()
            story.check()
        finally:
            story.close()
