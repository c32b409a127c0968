"""One pod from its event to an EKS node group and back to nothing: two functions, a served world and AWS's stand-in."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aws_server import EKS, REGION, Aws, serving
from both_ways import served
from civo_server import Fault
from msgspec.structs import replace

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.doorway import Function
from pilotlight.facts.messages import PodPending, Tick
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.records import ledger
from pilotlight.settings import Settings
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.tools.glance.look_at_cluster import glance
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock

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
  g4dn.xlarge: {cloud: eks, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, boot_s: 240,
                wake_s: 45, standby_usd_per_hour: 0.01,
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
    with deployed(tmp_path, POLICY) as made:
        yield made


@contextmanager
def deployed(tmp_path: Path, rules: str, paid: int = 0) -> Iterator[Stand]:
    """The same with these rules; the account has reserved so many nodes of each reserved pool."""
    (tmp_path / "policy.yaml").write_text(rules)
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    policy, catalog = read_policy(rules.encode(), "policy"), read_catalog(CATALOG.encode(), "catalog")
    pools = [WorldPool.from_policy(n, p) for n, p in policy.pools.items()]
    pools = [replace(p, paid=paid if p.capacity_type == "reserved" else None) for p in pools]
    world = World(catalog, pools, clock=VirtualClock(START))
    aws = Aws(world)
    with served(world) as outside, serving(aws) as environ:
        settings = Settings.from_environ(
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
    seconds = (hold.until - hold.since).total_seconds()
    assert list(account.held.values()) == [Decimal(seconds) * 2 / 3600]
    assert "asked for 1 node of pool t4" in stand.told()
    stand.minutes(20)
    (_, (ended, which)) = stand.aws.changes()
    assert (ended, which["InstanceId"]) == ("TerminateInstanceInAutoScalingGroup", "n1")
    assert list(HOLD.scan(stand.app.state, "")) == []
    assert "classes.batch.idle_timeout" in stand.told()
    assert all(secret not in stand.told() for secret in stand.app.settings.environ.values() if "planted" in secret)


RESERVED = """
version: 1
pools:
  block: {cloud: eks, cluster_pool: block-nodes, instance_type: g4dn.xlarge, zones: [eu-west-1a], max: 4,
          capacity_type: reserved}
  t4: {cloud: eks, cluster_pool: t4-nodes, instance_type: g4dn.xlarge, zones: [eu-west-1a], max: 4}
classes:
  batch: {gpu_models: any, idle_timeout: 2m, max_runtime: 1h}
budgets:
  - {name: everyone, usd: 100, period: day}
"""


def held(stand: Stand) -> Decimal:
    """Dollars that budgets hold now."""
    return sum((sum(e.value.held.values(), Decimal(0)) for e in CAP.scan(stand.app.state, "")), Decimal(0))


def launched(stand: Stand) -> list[str]:
    """The groups that instances were launched in, one after the other."""
    groups = [asked["AutoScalingGroupName"] for call, asked in stand.aws.changes() if call == "LaunchInstances"]
    return [group.removeprefix("eks-").partition("-")[0] for group in groups]


def waiting(name: str) -> PodDemand:
    """A pod that wants a GPU."""
    kind = shape(gpu=GpuRequest(count=1), workload_class="batch", checkpoint_s=60.0)
    return PodDemand(uid=f"u-{name}", namespace="ml", name=name, shape=kind, created_at=START)


def test_what_is_reserved_is_taken_at_no_price_until_it_is_full(tmp_path: Path) -> None:
    """A pod's event launches into the reservation and holds no dollars; once that is full, the next costs dollars."""
    with deployed(tmp_path, RESERVED, paid=1) as stand:
        for name, group, dollars in (("a", "block", False), ("b", "t4", True)):
            stand.aws.world.submit(waiting(name), 600)
            stand.post("pod_pending", PodPending(cluster="prod", namespace="ml", name=name, uid=f"u-{name}"), name)
            assert launched(stand)[-1] == group
            assert (held(stand) > 0) is dollars
            stand.minutes(3)
        assert launched(stand) == ["block", "t4"]
        assert stand.app.for_cluster("prod").deps.pools.describe()[0].paid[0].free == 0


def test_a_block_is_emptied_before_it_ends(tmp_path: Path) -> None:
    """Work on a Capacity Block is saved, moved to a node that costs dollars and the block's node given back, before EC2
    takes it; nothing new is put on it meanwhile."""
    with deployed(tmp_path, RESERVED, paid=1) as stand:
        stand.aws.blocks["block"] = START + timedelta(minutes=90)
        stand.aws.world.submit(waiting("a"), 4 * 3600)
        stand.post("pod_pending", PodPending(cluster="prod", namespace="ml", name="a", uid="u-a"), "a")
        stand.minutes(3)
        assert launched(stand) == ["block"]
        for at_s in (31 * 60, 50 * 60):
            stand.aws.world.advance(at_s)
            stand.minutes(1)
        stand.minutes(9)
        (ended,) = [asked["InstanceId"] for call, asked in stand.aws.changes() if call.startswith("Terminate")]
        assert (launched(stand), ended) == (["block", "t4"], "n1")
        assert "capacity-reservation of n1" in stand.told()
        assert [node.pool for node in stand.aws.world.nodes.values()] == ["t4"]


def test_a_pod_starts_a_node_that_stands_by(stand: Stand) -> None:
    """A group with a warm pool: its desired capacity is raised, the stopped instance starts, and none is launched; it
    is held for at its price, and after the run that very instance ends."""
    world = stand.aws.world
    (kept,) = world.launch("t4")
    world.advance(600)
    world.stop(kept)
    world.advance(1200)
    launched = world.launches
    pod = PodDemand(
        uid="u-a", namespace="ml", name="a", created_at=world.clock.now(),
        shape=shape(gpu=GpuRequest(count=1), workload_class="batch"),
    )  # fmt: skip
    world.submit(pod, 600)
    event = PodPending(cluster="prod", namespace="ml", name="a", uid="u-a", identity="u-a/1")
    answer = stand.post("pod_pending", event, "1")
    ((call, asked),) = stand.aws.changes()
    assert (call, asked["DesiredCapacity"]) == ("SetDesiredCapacity", 1)
    assert (list(world.nodes), world.launches - launched, world.fleet.wakes) == ([kept], 0, 1)
    assert len(answer["did"]) == 1
    (account,) = [entry.value for entry in CAP.scan(stand.app.state, "")]
    (hold,) = [entry.value for entry in HOLD.scan(stand.app.state, "")]
    assert list(account.held.values()) == [Decimal((hold.until - hold.since).total_seconds()) * 2 / 3600]
    stand.minutes(20)
    assert stand.aws.changes()[-1] == (
        "TerminateInstanceInAutoScalingGroup",
        {"InstanceId": kept, "ShouldDecrementDesiredCapacity": True},
    )
    assert list(HOLD.scan(stand.app.state, "")) == []


def test_a_node_that_idles_comes_to_stand_by_and_the_next_pod_starts_it(stand: Stand) -> None:
    """By the policy's sum, in a warm pool that takes nodes back: no instance is launched for the second pod, its start
    is measured, and nothing is held once all is over."""
    world = stand.aws.world
    stand.aws.reuse["t4"] = {"MaxGroupPreparedCapacity": 0, "MinSize": 0}
    for name in ("a", "b"):
        pod = replace(waiting(name), created_at=world.clock.now())
        world.submit(pod, 600)
        stand.post("pod_pending", PodPending(cluster="prod", namespace="ml", name=name, uid=pod.uid), name)
        stand.minutes(20)
        assert (list(world.nodes), list(world.fleet.standing)) == ([], ["n1"])
    assert (world.launches, world.wakes, stand.aws.refilled) == (1, 1, 0)
    assert "stopped, not given back" in stand.told()
    (took,) = ledger.recall(stand.app.state, "prod").memory.wakes["t4"]
    assert 30 <= took <= 120
    assert list(HOLD.scan(stand.app.state, "")) == []


def test_what_the_cloud_tells_of_prices_is_kept_in_the_state(stand: Stand) -> None:
    """Asked for a few times a day, not at every tick; a process that starts then buys at that price, and holds it."""
    stand.aws.listed = {"g4dn.xlarge": "0.71"}
    for n in range(3):
        stand.post("billing_tick", Tick(cluster="prod", what="billing"), f"b{n}")
    asked = [name for name, _ in stand.aws.calls]
    assert (asked.count("GetProducts"), asked.count("DescribeSpotPriceHistory")) == (1, 1)
    later = App(stand.app.settings)
    (offering,) = later.for_cluster("prod").deps.offerings
    assert App(stand.app.settings).price_offerings() == ((offering,), ())
    assert (offering.usd_per_hour, offering.priced_at) != (stand.app.deps.offerings[0].usd_per_hour, None)
    assert offering.usd_per_hour == Decimal("0.71")


def test_a_process_that_goes_on_buys_at_what_the_cloud_told_meanwhile(stand: Stand) -> None:
    """Ten minutes later at the most, without a restart: the hold of the next purchase is of that price."""
    assert stand.app.deps.offerings[0].usd_per_hour == 2
    stand.aws.listed = {"g4dn.xlarge": "0.71"}
    stand.post("billing_tick", Tick(cluster="prod", what="billing"), "b")
    assert stand.app.deps.offerings[0].usd_per_hour == 2
    stand.aws.world.advance(601)
    stand.aws.world.submit(waiting("a"), 600)
    stand.post("pod_pending", PodPending(cluster="prod", namespace="ml", name="a", uid="u-a"), "a")
    assert Decimal("0.71") < held(stand) < 1


def test_a_price_list_that_refuses_is_named_by_the_right_that_is_missing(stand: Stand) -> None:
    """The tick says so, status needs a person, and spot's prices are told all the same."""
    stand.aws.listed, stand.aws.spot = None, {"g4dn.xlarge": {"eu-west-1a": "0.2"}}
    answer = str(stand.post("billing_tick", Tick(cluster="prod", what="billing"), "b"))
    assert "read prices of 1 of 1 type" in answer
    assert "pricing:GetProducts is refused" in answer
    seen = glance(stand.app.for_cluster("prod"))
    assert [one.code for one in seen.findings] == ["cloud-unread"]
    assert any("pricing:GetProducts is refused, so prices of on-demand grow old" in line for line in seen.needs)
    stand.aws.listed = {}
    stand.aws.world.advance(stand.aws.world.now_s + 3601)
    stand.post("billing_tick", Tick(cluster="prod", what="billing"), "c")
    assert glance(stand.app.for_cluster("prod")).findings == ()


def test_each_read_that_is_refused_is_named_by_status(stand: Stand) -> None:
    """Quotas, what is paid for and what EC2 announces: status needs a person for each, by its right."""
    stand.aws.quotas, stand.aws.reserved_instances, stand.aws.tells = None, None, False
    stand.post("billing_tick", Tick(cluster="prod", what="billing"), "b")
    (found,) = glance(stand.app.for_cluster("prod")).findings
    assert found.code == "cloud-unread"
    assert re.findall(r"(\w+:\w+) is refused", found.message) == [
        "ec2:DescribeSpotInstanceRequests",
        "ec2:DescribeInstanceStatus",
        "ec2:DescribeReservedInstances",
        "servicequotas:ListServiceQuotas",
    ]


def test_prices_that_cannot_be_read_stop_no_tick(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files' count on; an hour later it is asked again."""
    monkeypatch.setattr("pilotlight.adapters.aws_api.services.QUERY_PAUSES_S", ())
    stand.aws.faults = [Fault((503, "<p>"), "before", "DescribeSpotPriceHistory")]
    assert "prices could not be read" in str(stand.post("billing_tick", Tick(cluster="prod", what="billing"), "b"))
    assert App(stand.app.settings).deps.offerings == stand.app.deps.offerings


def test_a_start_that_fails_is_a_shortage(stand: Stand) -> None:
    """EC2 has no room for the stopped instance: the group's activity says so, and the pool rests as after any other."""
    world = stand.aws.world
    (kept,) = world.launch("t4")
    world.advance(600)
    world.stop(kept)
    world.advance(1200)
    world.set_faults(Faults(shortage=1.0))
    pod = PodDemand(
        uid="u-a", namespace="ml", name="a", created_at=world.clock.now(),
        shape=shape(gpu=GpuRequest(count=1), workload_class="batch"),
    )  # fmt: skip
    world.submit(pod, 600)
    stand.post("pod_pending", PodPending(cluster="prod", namespace="ml", name="a", uid="u-a", identity="u-a/1"), "1")
    stand.minutes(2)
    assert world.nodes == {}
    (resting,) = ledger.recall(stand.app.state, "prod").memory.backoffs
    assert resting.offering == "t4/g4dn.xlarge/eu-west-1a/on-demand"
