"""One deployment serves two clusters: what is one's own stays there, and one that is down stops no other."""

from pathlib import Path
from random import Random

from harness.deliveries import Delivery, Post
from harness.deployment import Deployment, Site
from harness.faults.luck import Luck, Outage, Port
from harness.scene import ALERTS, START, Job, Scene, Skew
from harness.serial_run import Process, run
from harness.setting import Setting
from harness.settle_down import settle_down

from pilotlight.doorway import Function
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool

DOWN_S: Seconds = 900


class Pair:
    """Two clusters, a pod of the same name in each, and a worker: some ports of the second do not answer at first."""

    def __init__(self, folder: Path, down: tuple[Port, ...]) -> None:
        file = folder / "state.db"
        self.up = _site(file, "up", ())
        self.down = _site(file, "down", tuple(Outage(port, 0, DOWN_S) for port in down))
        self.deployment = Deployment((self.up, self.down))
        self._worker = Process(self.deployment, 0)
        for site in self.deployment.sites:
            site.setting.submit(0)

    def minutes(self, count: int) -> None:
        """Every cluster's tick, and a minute passes."""
        for n in range(count):
            for site in self.deployment.sites:
                body = site.setting.tick("reconcile", f"{self.deployment.now_s}.{n}")
                self._deliver(site.setting.cluster, "capacity_reconcile", body)
            for site in self.deployment.sites:
                site.setting.world.advance(site.setting.world.now_s + 60)

    def _deliver(self, cluster: str, function: Function, body: bytes) -> None:
        self._worker.receive(Delivery(0, 0, function, body, cluster=cluster))
        while self._worker.busy:
            self._worker.resume()

    def end(self) -> list[str]:
        """All settles down; what was broken."""
        self._worker.end()
        settle_down(self.deployment)
        return [str(v) for site in self.deployment.sites for v in site.setting.invariants.violations]


def _site(file: Path, cluster: str, outages: tuple[Outage, ...]) -> Site:
    pools = {"four-on-demand": PoolPolicy(instance_type="four", max=2)}
    rules = ClassPolicy(gpu_models="any", idle_timeout=120.0)
    policy = Policy(version=1, pools=pools, classes={"batch": rules}, alerts=ALERTS)
    pod = shape(gpu=GpuRequest(count=4), max_run_s=4000)
    jobs = (Job(0.0, (PodDemand(uid="p0", namespace="default", name="p0", shape=pod, created_at=START),), 4000, True),)
    machines = tuple(WorldPool.from_policy(name, pool) for name, pool in pools.items())
    luck = Luck(Random(0))
    luck.calm()
    luck.outages = outages
    setting = Setting(0, Scene(policy, machines, Faults(boot_s=60.0), jobs, (Skew(0),)), luck, file, cluster=cluster)
    return Site(setting, Post(setting, Random(0)))


def test_a_cluster_that_is_down_stops_no_other(tmp_path: Path) -> None:
    """One's cloud and API server do not answer for a quarter of an hour: the other's pod runs within minutes."""
    pair = Pair(tmp_path, ("pools", "cluster"))
    pair.minutes(4)
    assert (list(pair.up.setting.world.running), list(pair.down.setting.world.running)) == (["p0"], [])
    pair.minutes(16)
    assert list(pair.down.setting.world.running) == ["p0"]
    assert pair.end() == []


def test_a_cloud_that_is_down_takes_no_node_of_another(tmp_path: Path) -> None:
    """Both have a node of the same id on which a pod runs; what is not seen of one changes nothing of the other."""
    pair = Pair(tmp_path, ())
    pair.minutes(4)
    pair.down.setting.luck.outages = (Outage("pools", 0, 3000),)
    pair.minutes(30)
    assert [list(site.setting.world.nodes) for site in pair.deployment.sites] == [["n1"], ["n1"]]
    assert [list(site.setting.world.running) for site in pair.deployment.sites] == [["p0"], ["p0"]]
    assert pair.end() == []


def test_a_seed_with_two_clusters_crosses_nothing() -> None:
    """Both have the same names: no record, message or call of one is taken for the other's."""
    outcome = run(64, 40)
    assert outcome.violations == ()
    assert any("second: " in line for line in outcome.lines)
