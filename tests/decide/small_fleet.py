"""A fleet with round prices, and the words to ask for one plan over it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import Balance, Money
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.nodes.pool_state import InFlight, PoolState
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SAME_SPEED = {name: {"T4": 1.0, "V100": 1.0, "A100": 1.0} for name in ("training", "serving", "batch", "notebook")}


def offering(pool: str, model: str, gpus: int, usd: str, **fields: Any) -> Offering:
    """What a pool sells; its nodes carry the well-known labels and those of ``labels``."""
    kind = fields.setdefault("instance_type", f"{model}x{gpus}")
    labels = {GPU_MODEL: model, POOL: pool, INSTANCE_TYPE: kind, **fields.pop("labels", {})}
    fields = {"capacity_type": "on-demand", "boot_s": 180.0, **fields}
    return Offering(pool=pool, gpu_model=model, gpus=gpus, usd_per_hour=Decimal(usd), labels=labels, **fields)


T4 = offering("t4", "T4", 1, "1")
V100X4 = offering("v100x4", "V100", 4, "12")
A100 = offering("a100", "A100", 8, "32")
FLEET = (T4, V100X4, A100)


def policy(offerings: Sequence[Offering] = FLEET, **fields: Any) -> Policy:
    """A policy with a pool of up to 20 nodes for each offering; any class may use any GPU."""
    pools = {
        o.pool: PoolPolicy(instance_type=o.instance_type, capacity_type=o.capacity_type, max=20) for o in offerings
    }
    pools |= fields.pop("pools", {})
    classes = {"training": ClassPolicy(gpu_models="any"), "serving": ClassPolicy(gpu_models="any")}
    return Policy(version=1, pools=pools, classes=classes | fields.pop("classes", {}), **fields)


def pod(name: str, gpus: int = 1, milli: int = 1000, **traits: Any) -> PodDemand:
    """A pod that began to wait now."""
    made = shape(**{"gpu": GpuRequest(count=gpus, milli=milli), **traits})
    return PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=made, created_at=NOW)


def pods(count: int, gpus: int = 1, milli: int = 1000, **traits: Any) -> tuple[PodDemand, ...]:
    """Pods of one shape."""
    return tuple(pod(f"p{n}", gpus, milli, **traits) for n in range(count))


def gang(key: str, size: int, here: int | None = None, gpus: int = 8, **traits: Any) -> tuple[PodDemand, ...]:
    """The pods of a gang of ``size``, of which ``here`` exist already."""
    count = size if here is None else here
    return tuple(pod(f"{key}-{n}", gpus, gang=Gang(key=key, size=size), **traits) for n in range(count))


def node(name: str, of: Offering = T4, *, used: int = 0, idle_s: float = 0, **fields: Any) -> Node:
    """A ready node, an hour old, with ``used`` whole GPUs taken by one pod, else idle for ``idle_s``."""
    running = BoundPod(uid=f"uid-on-{name}", namespace="ml", name=f"on-{name}", gpu=GpuRequest(count=used))
    given = {
        "created_at": NOW - timedelta(hours=1),
        "ready": True,
        "devices": (0,) * used + (1000,) * (of.gpus - used),
        "pods": (running,) if used else (),
        "idle_since": None if used else NOW - timedelta(seconds=idle_s),
        "instance": f"i-{name}",
        "taints": of.taints,
        "labels": of.labels,
    }
    return Node(
        name=name,
        pool=of.pool,
        instance_type=of.instance_type,
        capacity_type=of.capacity_type,
        **{**given, **fields},
    )


def in_flight(of: Offering, demands: Sequence[PodDemand], count: int = 1, asked: datetime = NOW) -> InFlight:
    """Nodes asked for on behalf of pods."""
    return InFlight(
        decision="d1",
        offering=of.name,
        pool=of.pool,
        count=count,
        requested_at=asked,
        ready_by=asked + timedelta(seconds=of.boot_s),
        demands=tuple(d.uid for d in demands),
    )


def plan(
    pending: Sequence[PodDemand] = (),
    nodes: Sequence[Node] = (),
    *,
    offerings: Sequence[Offering] = FLEET,
    rules: Policy | None = None,
    booting: dict[str, int] | None = None,
    memory: Memory | None = None,
    now: datetime = NOW,
    **options: Any,
) -> Plan:
    """One plan, after looks that saw idle nodes become so. ``booting`` counts, by pool, instances without a node."""
    idle = {each.name: each.idle_since for each in nodes if each.idle_since}
    known = memory or Memory()
    lit = {o.pool: sum(n.pool == o.pool for n in nodes) for o in offerings}
    states = [PoolState(name=name, desired=have + (booting or {}).get(name, 0)) for name, have in lit.items()]
    return plan_cluster(
        Look(
            ClusterView(pending=tuple(pending), nodes=tuple(nodes)),
            states,
            offerings,
            rules or policy(offerings),
            replace(known, idle_since=idle | known.idle_since),
            now,
            throughput=options.pop("throughput", SAME_SPEED),
            **options,
        )
    )


def bought(made: Plan) -> dict[str, int]:
    """Nodes bought, by pool."""
    return {b.pool: b.count for b in made.buys}


def verdict(made: Plan, wanted: PodDemand) -> tuple[str, str]:
    """What becomes of a pod, and why."""
    (group,) = [g for g in made.pods if wanted.uid in g.uids]
    return group.verdict, group.why


def fate(made: Plan, name: str) -> tuple[str, str]:
    """What becomes of a node, and why."""
    (found,) = [n for n in made.nodes if n.node == name]
    return found.verdict, found.why


def unused_balances(budgets: Sequence[Budget], now: datetime) -> Money:
    """The balances of budgets that nothing counts against yet."""
    return Money(balances=tuple(Balance(meter=meter, total=Decimal(0)) for meter in meters(budgets, now)))
