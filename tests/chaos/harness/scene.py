"""What a seed decides of a run's setting: pools and caps small enough to bind, pods, and the cloud's habits."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from pilotlight.facts.alerts.channel_policy import Alerts, Channel
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.money.money_policy import Budget, BudgetScope, Caps
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, PodShape, WorkloadClass, shape
from pilotlight.units import HOUR, Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool

START = datetime(2026, 11, 20, 12, 50, tzinfo=UTC)

BOOT_S: Seconds = 150
IDLE_S: tuple[Seconds | None, ...] = (None, 120.0, 300.0)
RESTORE_S: Seconds = 60
TAIL_S: Seconds = 300 + 2 * 60
"""A budget holds a node for its boot, its run and one idle timeout or stop: the longest of those, and two ticks."""

SKEW_S: Seconds = 600.0
"""A worker's clock may be so wrong."""
APART_S: Seconds = 2.0
"""The store's clock, the cluster's and the cloud's may be so wrong each."""

SCOPES: tuple[Callable[[str], BudgetScope] | None, ...] = (
    None,
    lambda pool: BudgetScope(pool=pool),
    lambda _: BudgetScope(team="red"),
    lambda _: BudgetScope(workload_class="training"),
)
CHANNEL = "people"
ALERTS = Alerts(channels={CHANNEL: Channel(kind="console")}, group_after=0)
"""One channel, so that a worker makes one call at a time; each alert is told by itself, so that each can be counted."""

MIDNIGHT = "Australia/Lord_Howe"
"""Where a day begins ten minutes after ``START``: while things still break."""

_DATE = "2026-11-20"
_PRICES: dict[str, tuple[str, int, str]] = {
    "one": ("T4", 1, "1"),
    "four": ("A100", 4, "12"),
    "eight": ("A100", 8, "24"),
}


def _type(model: str, gpus: int, usd: str) -> InstanceType:
    prices: dict[CapacityType, Price] = {
        "on-demand": Price(usd_per_hour=Decimal(usd), source="made up", date=_DATE),
        "spot": Price(usd_per_hour=Decimal(usd) / 4, source="made up", date=_DATE),
    }
    return InstanceType(
        cloud="world", gpu_model=model, gpus=gpus, prices=prices, boot_s=BOOT_S, interruptions_per_hour=0.4
    )


CATALOG = Catalog(
    name="chaos",
    as_of=START,
    instance_types={name: _type(*kind) for name, kind in _PRICES.items()},
    throughput={"batch": {"T4": 1.0, "A100": 3.0}, "training": {"T4": 1.0, "A100": 3.0}},
)

_KINDS: tuple[tuple[CapacityType, ...], ...] = (("on-demand",), ("spot",), ("on-demand", "spot"))


class Job(NamedTuple):
    """Pods that are created together.

    ``servable``: some pool alone can hold them all within every cap, and within every budget of a fresh day.
    """

    at_s: Seconds
    demands: tuple[PodDemand, ...]
    run_s: Seconds
    servable: bool


class Skew(NamedTuple):
    """How wrong a clock is, and by how much more from some second of the world on."""

    by_s: Seconds
    jumps_at_s: Seconds = 0.0
    jump_s: Seconds = 0.0


class Scene(NamedTuple):
    """The setting of one run. ``skews`` are of its workers' clocks; the store's, the cluster's and the cloud's are
    a few seconds apart."""

    policy: Policy
    pools: tuple[WorldPool, ...]
    faults: Faults
    jobs: tuple[Job, ...]
    skews: tuple[Skew, ...]
    store_s: Seconds = 0.0
    cluster_s: Seconds = 0.0
    cloud_s: Seconds = 0.0


def draw(rng: Random, jobs: int, over_s: Seconds) -> Scene:
    """A setting with so many jobs, created over so many seconds. One worker for each clock skew."""
    policy = _policy(rng)
    # A budget that a node's boot alone uses up serves nobody: with budgets the catalogue's boot is true.
    boot_s = rng.choice((60.0, 105.0) if policy.budgets else (60.0, 150.0, 300.0))
    lag_s = rng.choice((0.0, 0.0, 45.0))
    pools = tuple(WorldPool.from_policy(name, pool) for name, pool in policy.pools.items())
    faults = Faults(
        boot_s=boot_s,
        gpu_lag_s=lag_s,
        shortage=rng.choice((0.0, 0.0, 0.3)),
        checkpoint_s=120.0,
        restore_s=RESTORE_S,
        replace_lost=rng.random() < 0.5,
    )
    drawn = (_likely(rng, policy, n, rng.uniform(0, over_s)) for n in range(jobs))
    made = sorted(drawn, key=lambda job: job.at_s)
    skews = tuple(_skew(rng, over_s) for _ in range(rng.randint(2, 4)))
    store_s, cluster_s, cloud_s = (rng.uniform(-APART_S, APART_S) for _ in range(3))
    return Scene(policy, pools, faults, tuple(made), skews, store_s, cluster_s, cloud_s)


def _skew(rng: Random, over_s: Seconds) -> Skew:
    """A worker's clock: nearly right, minutes off, or set anew meanwhile."""
    by_s = rng.choice((rng.uniform(-2, 2), rng.uniform(-SKEW_S, SKEW_S)))
    jump_s = rng.choice((0.0, 0.0, 0.0, rng.uniform(-SKEW_S, SKEW_S)))
    return Skew(by_s, rng.uniform(0, over_s), jump_s)


def pool_name(instance_type: str, capacity_type: CapacityType) -> str:
    """What the pool of a type is called."""
    return f"{instance_type}-{capacity_type}"


def _policy(rng: Random) -> Policy:
    pools = {}
    for name in rng.sample(sorted(_PRICES), rng.randint(1, 3)):
        for kind in rng.choice(_KINDS):
            most, atomic = rng.randint(1, 4), rng.random() < 0.25
            pools[pool_name(name, kind)] = PoolPolicy(instance_type=name, capacity_type=kind, max=most, atomic=atomic)
    caps = Caps(
        nodes=rng.choice((None, 1, 2, 4)),
        gpus=rng.choice((None, 8, 12, 16)),
        usd_per_hour=rng.choice((None, Decimal(24), Decimal(36))),
    )
    idle_s = rng.choice(IDLE_S)
    # Where a hard cap may stop a class it is held for by the hour, else for its whole run.
    stops = rng.random() < 0.5
    either = ClassPolicy(
        capacity_types=("on-demand", "spot"),
        gpu_models="any",
        idle_timeout=idle_s,
        max_runtime=4 * 3600,
        may_move=("hard-cap",) if stops else (),
        hold=rng.choice((1800.0, 3600.0)),
    )
    classes: dict[WorkloadClass, ClassPolicy] = {"batch": either, "training": either}
    budgets = _budgets(rng, list(pools))
    return Policy(version=1, pools=pools, caps=caps, classes=classes, budgets=budgets, alerts=ALERTS)


def _budgets(rng: Random, pools: list[str]) -> tuple[Budget, ...]:
    """None for half of the seeds; else one or two, of every scope and measure, that a few jobs use up.

    Where one is of a team the other team has one too, as large as any: nothing is bought for a team without.
    """
    found = [_budget(rng, f"budget{n}", rng.choice(pools)) for n in range(rng.choice((0, 0, 1, 2)))]
    if any(isinstance(budget.scope, BudgetScope) and budget.scope.team for budget in found):
        found.append(Budget(name="others", scope=BudgetScope(team="blue"), usd=Decimal(10**6), period="day"))
    return tuple(found)


def _budget(rng: Random, name: str, pool: str) -> Budget:
    scope = rng.choice(SCOPES)
    limits: dict[str, Any] = rng.choice(
        (
            {"usd": rng.choice((Decimal(3), Decimal(15), Decimal(60)))},
            {"gpu_hours": rng.choice((Decimal(2), Decimal(12), Decimal(50)))},
            {"usd": rng.choice((Decimal(3), Decimal(24), Decimal(48))), "period": "hour"},
        )
    )
    zone = rng.choice(("UTC", MIDNIGHT))
    limits["ladder_dry_run"] = rng.random() < 0.5
    return Budget(name=name, scope=scope(pool) if scope else "all", timezone=zone, **{"period": "day", **limits})


def _likely(rng: Random, policy: Policy, n: int, at_s: Seconds) -> Job:
    """Few jobs are such that no pool could ever hold them."""
    drawn = [_job(rng, policy, n, at_s) for _ in range(4)]
    return next((job for job in drawn if job.servable), drawn[0])


def _job(rng: Random, policy: Policy, n: int, at_s: Seconds) -> Job:
    run_s = rng.choice((rng.uniform(20, 120), rng.uniform(60, 900), rng.uniform(600, 4000)))
    kind = rng.random()
    if kind < 0.25:
        size, gpu = rng.randint(2, 4), GpuRequest(count=rng.choice((1, 4, 8)))
        traits: dict[str, Any] = {"gang": Gang(key=f"gang{n}", size=size), "workload_class": "training"}
    elif kind < 0.45:
        size, gpu, traits = 1, GpuRequest(count=1, milli=rng.choice((250, 500))), {}
    else:
        size, gpu, traits = 1, GpuRequest(count=rng.choice((1, 1, 1, 2, 4, 8))), {}
    made = shape(
        gpu=gpu,
        max_run_s=run_s + RESTORE_S,
        priority=rng.choice((0, 0, 0, 10)),
        team=rng.choice(("red", "blue")),
        **traits,
    )
    demands = tuple(
        PodDemand(uid=f"p{n}-{i}", namespace="default", name=f"p{n}-{i}", shape=made, created_at=START)
        for i in range(size)
    )
    return Job(at_s, demands, run_s, any(holds(policy, pool, made, size) for pool in policy.pools))


def holds(policy: Policy, name: str, pod: PodShape, size: int) -> bool:
    """Whether a pool can hold so many such pods at once, within every cap and budget."""
    pool = policy.pools[name]
    machine = CATALOG.instance_types[pool.instance_type]
    each = machine.gpus * 1000 // pod.gpu.total_milli
    if not each:
        return False
    nodes, caps = -(-size // each), policy.caps
    price = machine.prices[pool.capacity_type].usd_per_hour
    return (
        nodes <= pool.max
        and (caps.nodes is None or nodes <= caps.nodes)
        and (caps.gpus is None or nodes * machine.gpus <= caps.gpus)
        and (caps.usd_per_hour is None or nodes * price <= caps.usd_per_hour)
        and all(_pays(b, name, pod, nodes * price, nodes * machine.gpus) for b in policy.budgets)
    )


def _pays(budget: Budget, pool: str, pod: PodShape, usd_per_hour: Decimal, gpus: int) -> bool:
    """Whether a budget nothing counts against yet can hold so much for as long as such a pod may run."""
    if not counts(budget, pool, pod.team, pod.workload_class):
        return True
    hours = Decimal((BOOT_S + pod.max_run_s + TAIL_S) / HOUR)
    if budget.period == "hour":
        return usd_per_hour <= (budget.usd or 0)
    return (budget.usd is None or usd_per_hour * hours <= budget.usd) and (
        budget.gpu_hours is None or gpus * hours <= budget.gpu_hours
    )


def counts(budget: Budget, pool: str, team: str, workload_class: str) -> bool:
    """Whether a node of a pool, bought for a team and class, counts against a budget."""
    scope = budget.scope
    return not isinstance(scope, BudgetScope) or (
        scope.pool in (None, pool) and scope.team in (None, team) and scope.workload_class in (None, workload_class)
    )
