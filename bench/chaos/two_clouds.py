"""Two clusters on two clouds in one deployment, AWS and Civo: what an hour without AWS costs the cluster on Civo.

``python bench/chaos/two_clouds.py`` prints the waits of each cluster's pods, with AWS well and with it answering 503
for an hour. Both clouds are the stand-ins of the tests, on one clock that moves by minutes.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "stand_ins"), str(ROOT / "tests" / "world")]

import aws_server  # noqa: E402
import civo_server  # noqa: E402

from pilotlight.adapters.aws_api import services  # noqa: E402
from pilotlight.adapters.civo_api import CivoApi  # noqa: E402
from pilotlight.adapters.outbox.local import MemoryOutbox  # noqa: E402
from pilotlight.adapters.pools import asg  # noqa: E402
from pilotlight.adapters.pools.civo.pools import CivoPools  # noqa: E402
from pilotlight.adapters.state.memory import MemoryState  # noqa: E402
from pilotlight.codec.catalog_file import read_catalog  # noqa: E402
from pilotlight.codec.events import encode  # noqa: E402
from pilotlight.codec.policy_file import read_policy  # noqa: E402
from pilotlight.facts.messages import Tick  # noqa: E402
from pilotlight.facts.workload import GpuRequest, PodDemand, shape  # noqa: E402
from pilotlight.ports.clouds import CloudAccount  # noqa: E402
from pilotlight.ports.seams import Seams  # noqa: E402
from pilotlight.settings import ClusterSettings, Settings  # noqa: E402
from pilotlight.wiring import App  # noqa: E402
from pilotlight.world.machines import WorldPool  # noqa: E402
from pilotlight.world.simulation import World  # noqa: E402
from pilotlight.world.world_clock import VirtualClock  # noqa: E402
from pilotlight.world.world_cluster import WorldCluster  # noqa: E402

MINUTES, DOWN = 150, range(20, 80)
EVERY, RUN_S = 10, 300.0
"""A pod of each cluster every ten minutes, which runs for five."""
POLICY = """
version: 1
pools:
  gpu: {instance_type: t4.small, max: 4}
classes:
  batch: {gpu_models: any, idle_timeout: 2m}
"""
CATALOG = """
name: small
as_of: 2026-11-01T00:00:00Z
instance_types:
  t4.small: {cloud: any, gpu_model: T4, gpus: 1, cpu: "4", memory: 16Gi, boot_s: 60,
             prices: {on-demand: {usd_per_hour: 2, source: a bench, date: 2026-11-01}}}
"""


class Waits(NamedTuple):
    """Seconds that the pods of each cluster waited, in the order in which they came."""

    aws: Sequence[float]
    civo: Sequence[float]


def run(*, aws_is_down: bool) -> Waits:
    """Two and a half hours."""
    policy, catalog = read_policy(POLICY.encode(), "policy"), read_catalog(CATALOG.encode(), "catalog")
    clock = VirtualClock(catalog.as_of)
    started: dict[str, dict[str, float]] = {"aws": {}, "civo": {}}
    worlds = {
        name: World(
            catalog,
            [WorldPool.from_policy(n, p) for n, p in policy.pools.items()],
            clock=clock,
            log=_starts(started[name]),
        )
        for name in started
    }
    with ExitStack() as kept:
        aws, sites = kept.enter_context(_sites(worlds))
        settings = Settings(clusters={name: ClusterSettings() for name in worlds}, mode="act")
        app = App(
            settings, state=MemoryState(clock), outbox=MemoryOutbox(), clock=clock, policy=policy, catalog=catalog,
            sites=sites,
        )  # fmt: skip
        for minute in range(MINUTES):
            down = aws_is_down and minute in DOWN
            aws.faults = [civo_server.Fault((503, "<html>")) for _ in range(40)] if down else []
            for name, world in worlds.items():
                world.advance(minute * 60.0)
                if minute % EVERY == 0:
                    _submit(world, f"{name}-{minute:03}")
            app.receive("capacity_reconcile", encode(Tick(cluster="*", identity=str(minute)), id=str(minute)), {})
    return Waits(*(tuple(found[pod] - float(pod[-3:]) * 60 for pod in sorted(found)) for found in started.values()))


@contextmanager
def _sites(worlds: dict[str, World]) -> Iterator[tuple[aws_server.Aws, dict[str, Seams]]]:
    aws, civo = aws_server.Aws(worlds["aws"]), civo_server.Civo(worlds["civo"])
    with aws_server.serving(aws) as environ, civo_server.serving(civo) as url:
        where = f"{aws_server.REGION}/{aws_server.EKS}"
        aws_pools = asg.open_pools(where, CloudAccount(aws.names(), worlds["aws"].clock, lambda: "", environ))
        assert aws_pools is not None
        api = CivoApi(civo_server.TOKEN, civo_server.REGION, url=url, sleep=lambda _: None)
        civo_pools = CivoPools(api, civo_server.CLUSTER, civo.ids(), worlds["civo"].clock)
        yield (
            aws,
            {
                "aws": {"cluster": WorldCluster(worlds["aws"]), "pools": aws_pools},
                "civo": {"cluster": WorldCluster(worlds["civo"]), "pools": civo_pools},
            },
        )


def _starts(into: dict[str, float]):  # type: ignore[no-untyped-def]
    def log(record: dict[str, object]) -> None:
        if record["event"] == "start":
            into.setdefault(str(record["job"]), float(str(record["t"])))

    return log


def _submit(world: World, name: str) -> None:
    made = shape(gpu=GpuRequest(count=1), workload_class="batch")
    world.submit(PodDemand(uid=name, namespace="ml", name=name, shape=made, created_at=world.clock.now()), RUN_S)


def main() -> int:
    """Both runs; 1 where the cluster on Civo waited otherwise."""
    services.QUERY_PAUSES_S = ()  # The clock does not move while a read is tried again.
    well, down = run(aws_is_down=False), run(aws_is_down=True)
    print(f"{'':28}{'pods':>6}{'median wait':>13}{'longest':>9}")
    for name, waits in (("AWS well: on Civo", well.civo), ("AWS down an hour: on Civo", down.civo),
                        ("AWS well: on AWS", well.aws), ("AWS down an hour: on AWS", down.aws)):  # fmt: skip
        print(f"{name:28}{len(waits):6}{median(waits):11.0f} s{max(waits):7.0f} s")
    return int(well.civo != down.civo)


if __name__ == "__main__":
    sys.exit(main())
