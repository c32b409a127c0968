"""What a seed decides of a run: what happens, the pool, its zones and disruption budget, and pods that save or not."""

from datetime import datetime
from random import Random

from harness.scene import CATALOG
from pilotlight.facts.messages import NoticeKind
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

KINDS: tuple[NoticeKind, ...] = (
    *("spot-interruption",) * 5, "capacity-reservation", "lifecycle", "scheduled-change", "preempted", "preempted",
    *("rebalance",) * 2,
)  # fmt: skip
"""As often as each stands here."""
ZONES = ("a", "b", "c")


def notice_s(rng: Random, kind: NoticeKind) -> Seconds:
    """How long before the cloud says so."""
    if kind == "preempted":
        return 0.0
    return rng.choice((300.0, 1200.0)) if kind == "scheduled-change" else 120.0


def zones_of(seed: int) -> tuple[str, ...]:
    """Every third seed has a pool of three zones, of which one may be taken whole; its own draws change no other's."""
    return ZONES if Random(f"{seed}/zones").random() < 1 / 3 else ()


def setting(rng: Random, seed: int) -> tuple[Policy, World]:
    """One spot pool, with a disruption budget on its pods in most seeds."""
    zones = zones_of(seed)
    name, relaunches = rng.choice(("one", "four", "eight")), rng.random() < 0.5
    rules = ClassPolicy(
        gpu_models="any", capacity_types=("spot",), idle_timeout=rng.choice((300.0, 600.0)), max_runtime=7200
    )
    policy = Policy(
        version=1,
        pools={"p": PoolPolicy(instance_type=name, capacity_type="spot", max=20, relaunches=relaunches, zones=zones)},
        classes={"batch": rules, "training": rules},
    )
    first = zones[0] if zones else ""
    pool = WorldPool(name="p", instance_type=name, capacity_type="spot", relaunches=relaunches, zone=first)
    faults = Faults(reclaim=False, boot_s=rng.choice((60.0, 150.0, 300.0)), checkpoint_s=1e9, restore_s=30.0)
    world = World(CATALOG, (pool,), seed=seed, faults=faults)
    most = rng.choice((None, None, 0, 1, 2))
    if most is not None:
        world.evictions.disruptions["default"] = most
    return policy, world


def job(rng: Random, n: int, now: datetime, gpus: int) -> list[PodDemand]:
    """Pods that save when asked, by themselves, or never; alone or as a gang of whole nodes."""
    size = rng.choice((1, 1, 1, 2, 3))
    count = gpus if size > 1 else rng.choice([g for g in (1, 2, 4, 8) if g <= gpus])
    made = shape(
        gpu=GpuRequest(count=count),
        gang=Gang(key=f"gang{n}", size=size) if size > 1 else None,
        workload_class="training" if size > 1 else "batch",
        checkpoint_s=rng.choice((0.0, 600.0, 7200.0)),
    )
    takes_s, grace_s = rng.choice((0.0, 5.0, 20.0, 45.0, 80.0)), rng.choice((5.0, 30.0, 60.0))
    return [
        PodDemand(
            uid=f"p{n}-{i}",
            namespace="default",
            name=f"p{n}-{i}",
            shape=made,
            created_at=now,
            grace_s=grace_s,
            checkpoint_takes_s=takes_s,
        )
        for i in range(size)
    ]
