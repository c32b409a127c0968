"""One replay of Pilotlight: a world of the policy's pools, its ports, and the driver that takes a trace through."""

import gc
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import RoomyState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import Toleration, WorkloadClass
from pilotlight.ports.cluster import Cluster
from pilotlight.ports.state import State
from pilotlight.settings import Settings
from pilotlight.tools.checkup.pool_homes import homed_pools
from pilotlight.tools.replay.detection import SeenCluster
from pilotlight.tools.replay.driver import Driver
from pilotlight.tools.replay.measure import Outcome, Sampler, result_of
from pilotlight.tools.replay.peers.peer_run import BESIDE
from pilotlight.tools.replay.placement_shaping import Affinity
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.scheduling_gates import GatedCluster
from pilotlight.tools.replay.traces.trace_job import Bounds, Job
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_pools import WorldPools

NO_LIMIT = 100_000
"""More nodes than any trace needs: a replay without a policy has no pool limits."""

FOREVER_DAYS = 100_000
"""A replay's prices hold for as long as its trace."""

COLLECTED = (2000, 10, 1000)
"""Of the garbage of a run the young is looked for often, while it is in the processor's cache, and the old seldom."""

CLASSES: tuple[WorkloadClass, ...] = ("training", "serving", "notebook", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Outcome of a replay, and how many events and ticks it took."""

    outcome: Outcome
    events: int
    ticks: int


def catalog_pools(catalog: Catalog, capacity_type: CapacityType) -> dict[str, PoolPolicy]:
    """One pool without limits for every type that is sold so: a replay without a policy uses these."""
    return {
        name: PoolPolicy(instance_type=name, capacity_type=capacity_type, max=NO_LIMIT)
        for name, machine in catalog.instance_types.items()
        if capacity_type in machine.prices
    }


def policy_for(policy: Policy, catalog: Catalog, scenario: Scenario) -> Policy:
    """The policy as a replay runs it: every pool and class of the scenario's capacity type, acting, prices never stale.

    A policy without pools gets one for each type of the catalogue.
    """
    ct, replace = scenario.capacity_type, msgspec.structs.replace
    zones = tuple(sorted(zone.zone for zone in scenario.zones))
    said = policy.pools or catalog_pools(catalog, ct)
    pools = {n: replace(p, capacity_type=ct, mode="act", zones=zones or p.zones) for n, p in said.items()}
    if scenario.falls_back:
        beside = {f"{n}{BESIDE}": replace(p, capacity_type="on-demand") for n, p in pools.items()}
        pools |= {n: replace(p, zones=p.zones[:1]) for n, p in beside.items()}
    fallback = "allow" if scenario.falls_back else "deny"
    return replace(
        policy,
        pools=pools,
        classes={
            c: replace(policy.of_class(c), capacity_types=(ct,), gpu_models="any", fallback=fallback) for c in CLASSES
        },
        require_label=False,
        placement="homes" if scenario.placement == "homes" else "none",
        prices=replace(policy.prices, max_age_days=FOREVER_DAYS),
    )


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Walk all objects seldom: each of a run's looks makes thousands, and leaves few in cycles."""
    usual = gc.get_threshold()
    gc.set_threshold(*COLLECTED)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@_rarely_collected()
def run(
    jobs: Sequence[Job],
    catalog: Catalog,
    policy: Policy,
    scenario: Scenario,
    *,
    trace: str,
    bounds: Bounds,
    log: Callable[[dict[str, object]], None] | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Run:
    """Replay a trace under a policy. Deterministic by the scenario's seed."""
    catalog = _booting(catalog, scenario)
    policy = policy_for(policy, catalog, scenario)
    if scenario.placement == "homes":
        policy = born_closed(policy, catalog, jobs)
    pools = _world_pools(policy)
    world = World(
        catalog,
        pools,
        seed=scenario.seed,
        zones=scenario.zones,
        faults=scenario.faults(),
        scoring=scenario.scoring,
        log=log,
    )
    with tempfile.TemporaryDirectory(prefix="pilotlight-") as folder:
        app = App(
            Settings(mode="act"),
            cluster=_cluster(world, scenario),
            pools=WorldPools(world),
            state=_state(world, scenario, Path(folder)),
            outbox=MemoryOutbox(),
            clock=world.clock,
            policy=policy,
            catalog=catalog,
        )
        sampler = Sampler(world, scenario.sample_s) if scenario.sample_s else None
        affinity = Affinity(catalog, scenario.capacity_type, {pool.instance_type for pool in pools})
        driver = Driver(world, app, jobs, scenario, affinity=affinity, sampler=sampler, on_progress=on_progress)
        driver.run()
    return Run(
        outcome=Outcome(
            result=result_of(world, jobs, policy="pilotlight", trace=trace, bound=bounds, why=driver.why),
            waits=tuple(job.wait_s for job in world.finished),
            points=tuple(driver.points()),
        ),
        events=driver.events,
        ticks=driver.ticks,
    )


def born_closed(policy: Policy, catalog: Catalog, jobs: Sequence[Job]) -> Policy:
    """The policy with the birth taint at the pools that some job may use and costs less elsewhere."""
    seen = {(job.gpus, job.gpu_milli, job.models): job for job in jobs}.values()
    keys = sorted({taint.key for pool in policy.pools.values() for taint in pool.taints})
    bear = tuple(Toleration(key=key, operator="Exists") for key in keys)
    shapes = (demand.shape for job in seen for demand in demands_of(job, catalog, tolerations=bear)[:1])
    sold = offerings(policy, catalog)[0]
    speeds = {str(name): models for name, models in catalog.throughput.items()}
    homed = homed_pools(shapes, sold, policy, speeds, catalog.as_of)
    replace, pools = msgspec.structs.replace, policy.pools
    tainted = {name: replace(pools[name], taints=(*pools[name].taints, BIRTH_TAINT)) for name in homed}
    return replace(policy, pools=pools | tainted)


def _world_pools(policy: Policy) -> list[WorldPool]:
    """The policy's pools as a world has them."""
    return [
        WorldPool(
            name=name,
            instance_type=pool.instance_type,
            capacity_type=pool.capacity_type,
            labels=pool.labels,
            taints=pool.taints,
            zone=pool.zones[0] if pool.zones else "",
            slices=pool.slices,
        )
        for name, pool in policy.pools.items()
    ]


def _booting(catalog: Catalog, scenario: Scenario) -> Catalog:
    """The catalogue with the scenario's boot, and with its standby in the place of the catalogue's own."""
    disk = None if scenario.standby_boot_s is None else scenario.standby_usd_per_hour
    changes: dict[str, object] = {"wake_s": scenario.standby_boot_s, "standby_usd_per_hour": disk}
    if scenario.boot_s is not None:
        changes["boot_s"] = scenario.boot_s
    types = {n: msgspec.structs.replace(t, **changes) for n, t in catalog.instance_types.items()}
    return msgspec.structs.replace(catalog, instance_types=types)


def _cluster(world: World, scenario: Scenario) -> Cluster:
    cluster = SeenCluster(world, scenario.detect_s)
    return GatedCluster(cluster) if scenario.placement == "gated" else cluster


def _state(world: World, scenario: Scenario, folder: Path) -> State:
    if scenario.state == "sqlite":
        return SqliteState(folder / "state.db", world.clock)
    return RoomyState(world.clock)
