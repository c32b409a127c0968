"""One pod from its event to an EKS node group and back to nothing: two functions, a served world and AWS's stand-in."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aws_server import EKS, REGION, Aws, serving
from both_ways import served

from pilotlight.codec.catalog import read_catalog
from pilotlight.codec.events import encode
from pilotlight.codec.policy import read_policy
from pilotlight.doorway import Function
from pilotlight.facts.messages import PodPending, Tick
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.state_schema.books import CAP, HOLD
from pilotlight.wiring import App
from pilotlight.world.clock import VirtualClock
from pilotlight.world.machines import WorldPool
from pilotlight.world.world import World

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
POLICY = """
version: 1
pools:
  t4: {cloud: eks, cluster_pool: t4-nodes, instance_type: g4dn.xlarge, zones: [eu-west-1a], max: 4}
classes:
  batch: {gpu_models: any, idle_timeout: 2m, max_runtime: 1h}
budgets:
  - {name: everyone, usd: 100, period: day}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  g4dn.xlarge: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, boot_s: 60,
                prices: {on-demand: {usd_per_hour: 2, source: a test, date: 2026-11-01}}}
"""
JSON = {"Content-Type": "application/json"}


class Stand(NamedTuple):
    """The account, the deployment, and where its messages lie."""

    aws: Aws
    app: App
    outbox: Path

    def post(self, function: Function, message: PodPending | Tick, name: str) -> dict[str, Any]:
        """One event at a function's door: its answer."""
        answer = self.app.receive(function, encode(message, id=name), JSON)
        assert answer.status == 200, answer.body
        return dict(answer.body)

    def minutes(self, count: int) -> None:
        """So many pass, with a tick in each."""
        for _ in range(count):
            self.aws.world.advance(self.aws.world.now_s + 60)
            self.post("capacity_reconcile", Tick(cluster="prod"), f"t-{self.aws.world.now_s:g}")

    def told(self) -> str:
        """All that was published."""
        return " ".join(file.read_text() for file in sorted(self.outbox.rglob("*")) if file.is_file())


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A cluster without nodes, deployed as the environment of a function says it."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    policy, catalog = read_policy(POLICY.encode(), "policy"), read_catalog(CATALOG.encode(), "catalog")
    world = World(catalog, [WorldPool.of(n, p) for n, p in policy.pools.items()], clock=VirtualClock(START))
    aws = Aws(world)
    with served(world) as outside, serving(aws) as environ:
        settings = Settings.of(
            {
                "PILOTLIGHT_HOME": str(tmp_path),
                "PILOTLIGHT_POLICY": str(tmp_path / "policy.yaml"),
                "PILOTLIGHT_CATALOG": str(tmp_path / "catalog.yaml"),
                "PILOTLIGHT_CLUSTER": "prod",
                "PILOTLIGHT_WORLD": outside.url,
                "PILOTLIGHT_POOLS": f"asg:{REGION}/{EKS}",
                "PILOTLIGHT_MODE": "act",
                **environ,
            }
        )
        yield Stand(aws, App(settings), tmp_path / "outbox")


def test_from_a_pods_event_to_a_node_of_its_group_and_back(stand: Stand) -> None:
    """The event launches one instance in the plan's zone, holds exactly its dollars and publishes; after the run that
    very instance ends, and nothing is held."""
    pod = PodDemand(
        uid="u-a",
        namespace="ml",
        name="a",
        shape=shape(gpu=GpuRequest(count=1), workload_class="batch"),
        created_at=START,
    )
    stand.aws.world.submit(pod, 600)
    event = PodPending(cluster="prod", namespace="ml", name="a", uid="u-a", identity="u-a/1")
    answers = [stand.post("pod_pending", event, name) for name in ("1", "1")]
    assert [len(answer["did"]) for answer in answers] == [1, 0]
    ((call, asked),) = stand.aws.changes()
    assert call == "LaunchInstances"
    assert (asked["RequestedCapacity"], asked["AvailabilityZones"]) == (1, ["eu-west-1a"])
    (hold,) = [entry.value for entry in HOLD.scan(stand.app.state, "")]
    (account,) = [entry.value for entry in CAP.scan(stand.app.state, "")]
    seconds = (hold.binds_until - hold.since).total_seconds() + 3600
    assert list(account.held.values()) == [Decimal(seconds) * 2 / 3600]
    assert "asked for 1 node of pool t4" in stand.told()
    stand.minutes(20)
    (_, (ended, which)) = stand.aws.changes()
    assert (ended, which["InstanceId"]) == ("TerminateInstanceInAutoScalingGroup", "n1")
    assert list(HOLD.scan(stand.app.state, "")) == []
    assert "classes.batch.idle_timeout" in stand.told()
    assert all(secret not in stand.told() for secret in stand.app.settings.environ.values() if "planted" in secret)
