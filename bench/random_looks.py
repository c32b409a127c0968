"""Random clusters by seed, for plans: every feature on in some and off in others, two at once in each.

A look is given by the names of its fields, so that plans of another commit can be made of the same.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from msgspec.structs import replace

from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.nodes.spares.demand_rates import add_demand
from pilotlight.facts.capacity import BoundPod, ClusterView, Daemon, Node, Offering, Taint
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.demand.worker_queues import NodesAhead
from pilotlight.facts.labels import GPU_MODEL, INSTANCE_TYPE, POOL
from pilotlight.facts.limits.brakes import Brakes
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleTime, RuleWaiting, RuleWhen
from pilotlight.facts.memory import Backoff, FitMismatch, Memory, Quarantine, Turn
from pilotlight.facts.money.budgets import Balance, Money, StepInForce
from pilotlight.facts.money.money_policy import ApproveOver, Budget, BudgetScope, Limits
from pilotlight.facts.nodes.pool_state import Booting, InFlight, PoolState
from pilotlight.facts.offers.paid_capacity import Paid
from pilotlight.facts.offers.pool_quota import Quota
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy, SparePolicy, TeamPolicy
from pilotlight.facts.workload import Due, Gang, GpuRequest, PodDemand, Toleration, shape
from pilotlight.units import clock_seconds

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CLASSES: tuple[Any, ...] = ("training", "serving", "notebook", "batch")
SPEEDS = {"T4": 1.0, "V100": 2.5, "A100": 6.0}
GIB = 1 << 30

Parts = dict[str, Any]


def look_of(seed: int) -> Parts:
    """Fields of the look of a seed, and under ``features`` the names of what is on in it."""
    draw = Random(seed)
    parts = _plain(draw)
    names = set(draw.sample(sorted(FEATURES), 2)) | {name for name in FEATURES if draw.random() < 0.07}
    for name in sorted(names):
        FEATURES[name](draw, parts)
    return parts | {"features": sorted(names)}


def _plain(draw: Any) -> Parts:
    offerings = tuple(_offering(*one) for one in (("t4", "T4", 1, 1), ("v100", "V100", 4, 12), ("a100", "A100", 8, 32)))
    pools = {o.pool: PoolPolicy(instance_type=o.instance_type, max=draw.randint(0, 8)) for o in offerings}
    pending = [_pod(draw, f"p{n}") for n in range(draw.randint(0, 8))]
    nodes = [_node(draw, f"n{n}", draw.choice(offerings)) for n in range(draw.randint(0, 6))]
    states = [
        PoolState(name=o.pool, desired=sum(n.pool == o.pool for n in nodes) + draw.choice((0, 0, 1))) for o in offerings
    ]
    classes = {name: ClassPolicy(gpu_models="any") for name in CLASSES}
    return {
        "view": ClusterView(pending=tuple(pending), nodes=tuple(nodes)),
        "pools": tuple(states),
        "offerings": offerings,
        "policy": Policy(version=1, pools=pools, classes=classes, value_of_wait=Decimal(draw.choice((0, 3, 30, 300)))),
        "memory": Memory(idle_since={n.name: n.idle_since for n in nodes if n.idle_since}),
        "now": NOW,
        "throughput": dict.fromkeys(CLASSES, SPEEDS),
        "releases": draw.random() < 0.8,
        "explain": draw.random() < 0.8,
    }


def _offering(pool: str, model: str, gpus: int, usd: int, **more: Any) -> Offering:
    kind = more.setdefault("instance_type", f"{model}x{gpus}")
    labels = {GPU_MODEL: model, POOL: pool, INSTANCE_TYPE: kind}
    fields: Parts = {
        "capacity_type": "on-demand",
        "boot_s": 180.0,
        "gpu_memory_gib": {"T4": 16, "V100": 16, "A100": 40}[model],
    }
    return Offering(pool=pool, gpu_model=model, gpus=gpus, usd_per_hour=Decimal(usd), labels=labels, **(fields | more))


def _pod(draw: Any, name: str, **traits: Any) -> PodDemand:
    gpus = draw.choice((1, 1, 1, 2, 4, 8, 16))
    made = {
        "gpu": GpuRequest(count=gpus, milli=1000 if gpus > 1 else draw.choice((1000, 1000, 500, 250))),
        "priority": draw.choice((0, 0, 10)),
        "workload_class": draw.choice(CLASSES),
        "team": draw.choice(("", "red", "blue")),
        "max_run_s": draw.choice((0.0, 600.0, 7200.0)),
        "memory": draw.choice((0, GIB)),
    }
    created = NOW - timedelta(seconds=draw.choice((0, 20, 400)))
    return PodDemand(uid=f"uid-{name}", namespace="ml", name=name, shape=shape(**(made | traits)), created_at=created)


def _node(draw: Any, name: str, of: Offering) -> Node:
    used = draw.choice((0, 0, draw.randint(0, of.gpus)))
    running = BoundPod(
        uid=f"uid-on-{name}",
        namespace="ml",
        name=f"on-{name}",
        gpu=GpuRequest(count=used or 1),
        workload_class=draw.choice(CLASSES),
        team=draw.choice(("", "red")),
        started_at=NOW - timedelta(minutes=30),
    )
    resident = BoundPod(
        uid=f"uid-cpu-{name}", namespace="web", name=f"cpu-{name}", blocks=draw.choice(("", "emptyDir"))
    )
    return Node(
        name=name,
        pool=of.pool,
        instance_type=of.instance_type,
        capacity_type=of.capacity_type,
        created_at=NOW - timedelta(minutes=draw.choice((2, 60, 3000))),
        ready=draw.random() < 0.85,
        schedulable=draw.random() < 0.85,
        devices=(0,) * used + (1000,) * (of.gpus - used),
        pods=((running,) if used else ()) + ((resident,) if draw.random() < 0.2 else ()),
        idle_since=None if used else NOW - timedelta(seconds=draw.choice((0, 100, 1000, 10_000))),
        instance=f"i-{name}",
        labels=of.labels,
        home=f"h-{name}" if draw.random() < 0.1 else "",
    )


def _policy(parts: Parts, **changes: Any) -> None:
    parts["policy"] = replace(parts["policy"], **changes)


def _memory(parts: Parts, **changes: Any) -> None:
    parts["memory"] = replace(parts["memory"], **changes)


def _each_pool(parts: Parts, change: Callable[[PoolPolicy], PoolPolicy]) -> None:
    _policy(parts, pools={name: change(pool) for name, pool in parts["policy"].pools.items()})


def _pods(parts: Parts, more: list[PodDemand]) -> None:
    parts["view"] = replace(parts["view"], pending=(*parts["view"].pending, *more))


def _schedule(draw: Any, parts: Parts) -> None:
    when = RuleWhen(time=RuleTime(start="08:00", end="18:00"))
    day = Rule(name="day", when=when, does=RuleSet(warm={"t4": 2}, max={"a100": 1}))
    pools = {
        name: replace(pool, renew=replace(pool.renew, during=("day",))) if name in ("t4", "v100") else pool
        for name, pool in parts["policy"].pools.items()
    }
    _policy(parts, pools=pools, rules=(*parts["policy"].rules, day))


def _ahead(draw: Any, parts: Parts) -> None:
    parts["ahead"] = {draw.choice(("t4", "v100")): NodesAhead(nodes=draw.randint(1, 3), why="messages wait")}


def _rules(draw: Any, parts: Parts) -> None:
    when = draw.choice((RuleWhen(time=RuleTime(start="08:00", end="18:00")), RuleWhen(waiting=RuleWaiting(pods=1))))
    does = draw.choice(("grow", "keep", "release", "move"))
    classes: Any = ("batch", "training")
    if does == "move" and when.waiting:
        when = RuleWhen(waiting=RuleWaiting(pods=1, classes=classes))
    sets: Parts = {
        "grow": {"warm": {"t4": 1, "a100": 1}},
        "keep": {"idle": {"t4": "keep", "a100": "keep"}},
        "release": {"idle": {"t4": "release", "a100": "release"}},
        "move": {"avoid": {"t4": classes, "a100": classes}},
    }
    _policy(parts, rules=(Rule(name="r", when=when, does=RuleSet(**sets[does])), *parts["policy"].rules))


def _homes(draw: Any, parts: Parts) -> None:
    pools = parts["policy"].pools
    dear = {name: replace(pools[name], taints=(BIRTH_TAINT,)) for name in ("v100", "a100")}
    _policy(parts, pools={**pools, **dear})


def _reserved(draw: Any, parts: Parts) -> None:
    more = _offering("own", "A100", 8, 0, capacity_type="reserved", instance_type="A100x8r")
    parts["offerings"] = (*parts["offerings"], more)
    parts["pools"] = (
        *parts["pools"],
        PoolState(name="own", desired=0, paid=(Paid(name="block", count=3, free=draw.randint(0, 3)),)),
    )
    pool = PoolPolicy(instance_type="A100x8r", capacity_type="reserved", max=3)
    _policy(parts, pools={**parts["policy"].pools, "own": pool})


def _spot(draw: Any, parts: Parts) -> None:
    more = [
        _offering("spot", "V100", 4, 4, capacity_type="spot", zone=zone, interruptions_per_hour=rate,
                  on_demand_usd_per_hour=Decimal(12))
        for zone, rate in (("z1", 0.05), ("z2", 0.5))
    ]  # fmt: skip
    parts["offerings"] = (*parts["offerings"], *more)
    parts["pools"] = (*parts["pools"], PoolState(name="spot", desired=0))
    pool = PoolPolicy(instance_type="V100x4", capacity_type="spot", max=5, zones=("z1", "z2"))
    both = {name: ClassPolicy(gpu_models="any", capacity_types=("spot", "on-demand")) for name in ("batch", "training")}
    _policy(parts, pools={**parts["policy"].pools, "spot": pool}, classes={**parts["policy"].classes, **both})


def _spot_share(draw: Any, parts: Parts) -> None:
    _policy(parts, teams={"red": TeamPolicy(max_spot_share=Decimal("0.5"))})


def _daemons(draw: Any, parts: Parts) -> None:
    takes = shape(gpu=GpuRequest(count=0), memory=GIB, tolerations=(Toleration(operator="Exists"),))
    parts["view"] = replace(parts["view"], daemons=(Daemon(name="agent", takes=takes),))


def _gangs(draw: Any, parts: Parts) -> None:
    made = []
    for number in range(2):
        size = draw.randint(2, 4)
        member = Gang(key=f"g{number}", size=size)
        made += [_pod(draw, f"g{number}-{n}", gang=member) for n in range(draw.randint(1, size))]
    _pods(parts, made)


def _deadlines(draw: Any, parts: Parts) -> None:
    hours = draw.choice((0.1, 2, 20))
    due = [Due(job=f"j{n}", by=NOW + timedelta(hours=hours), work_s=3600.0) for n in range(2)]
    _pods(parts, [_pod(draw, f"d{n}", due=one) for n, one in enumerate(due)])


def _history(draw: Any, parts: Parts) -> None:
    hits = dict[str, Any]()
    for offering in parts["offerings"]:
        known, at = None, clock_seconds(NOW) - 40_000
        for _ in range(draw.randint(0, 60)):
            at += draw.randint(30, 1200)
            if at < clock_seconds(NOW):
                known = add_demand(known, draw.randint(1, 3), 1.0, at, offering.boot_s + 10)
        if known is not None:
            hits[offering.pool] = known
    _memory(parts, hits=hits)


def _warm(draw: Any, parts: Parts) -> None:
    _each_pool(parts, lambda pool: replace(pool, spares=SparePolicy(warm=draw.randint(0, 2)), min=draw.randint(0, 1)))


def _standby(draw: Any, parts: Parts) -> None:
    parts["pools"] = tuple(replace(one, stops=True, standby=draw.randint(0, 2)) for one in parts["pools"])
    parts["offerings"] = tuple(
        replace(one, wake_s=60.0, standby_usd_per_hour=Decimal("0.05")) for one in parts["offerings"]
    )


def _ages(draw: Any, parts: Parts) -> None:
    _each_pool(parts, lambda pool: replace(pool, renew=replace(pool.renew, max_age=3600.0, drifted=True)))
    names = tuple(node.instance for node in parts["view"].nodes)
    parts["pools"] = tuple(replace(one, drifted=names[:1]) for one in parts["pools"])


def _goes(draw: Any, parts: Parts) -> None:
    parts["gives"] = tuple(
        NodeVerdict(node=n.name, pool=n.pool, instance=n.instance, verdict="release", why="told", usd_per_hour=None)
        for n in parts["view"].nodes[:1]
    )


def _leaving(draw: Any, parts: Parts) -> None:
    parts["leaving"] = [node.name for node in parts["view"].nodes[:2]]


def _unsettled(draw: Any, parts: Parts) -> None:
    parts["unsettled"] = {draw.choice(("t4", "a100")): "an earlier call may still land"}


def _budgets(draw: Any, parts: Parts) -> None:
    budgets = (
        Budget(name="all", usd=Decimal(draw.choice((20, 400))), period="day", hard=draw.random() < 0.6),
        Budget(name="red", scope=BudgetScope(team="red"), usd=Decimal(90), period="week"),
        Budget(name="red-rate", scope=BudgetScope(team="red"), usd=Decimal(40), period="hour"),
    )
    if draw.random() < 0.5:
        stops = {name: replace(rules, may_move=("hard-cap",)) for name, rules in parts["policy"].classes.items()}
        _policy(parts, classes=stops)
    _policy(parts, budgets=budgets, default_team="red")
    used = [Balance(meter=m, total=m.limit * draw.choice((0, 1, 3)) / 4) for m in meters(budgets, NOW)]
    frozen = {node.name: not node.gpu_pods for node in parts["view"].nodes[:1]}
    parts["money"] = Money(balances=tuple(used), lit=len(parts["view"].nodes), frozen=frozen)


def _ladder(draw: Any, parts: Parts) -> None:
    does = draw.choice(("spot-only", "no-new-buys"))
    step = StepInForce(budget="all", scope="all", do=does, why="80 % spent", until=NOW + timedelta(hours=3))
    parts["money"] = replace(parts.get("money", Money()), steps=(step,))


def _brakes(draw: Any, parts: Parts) -> None:
    parts["brakes"] = Brakes(
        modes={"t4": draw.choice(("act", "advise", "scale-up"))},
        paused={"a100": "by a person"} if draw.random() < 0.5 else {},
        turns=(Turn(at=NOW - timedelta(minutes=2), added=1, usd_per_hour=Decimal(1)),),
    )


def _limits(draw: Any, parts: Parts) -> None:
    limits = Limits(nodes_added=draw.randint(0, 3), nodes_removed=draw.randint(0, 2))
    _policy(parts, caps=replace(parts["policy"].caps, ten_minutes=limits))


def _approval(draw: Any, parts: Parts) -> None:
    _policy(parts, caps=replace(parts["policy"].caps, approve_over=ApproveOver(nodes=draw.randint(0, 2))))


def _caps(draw: Any, parts: Parts) -> None:
    most: Parts = {"nodes": draw.randint(0, 9), "gpus": draw.randint(0, 60), "usd_per_hour": Decimal(150)}
    _policy(parts, caps=replace(parts["policy"].caps, **most))


def _quotas(draw: Any, parts: Parts) -> None:
    parts["quotas"] = {"v100": Quota(name="P", limit=16, used=draw.randint(0, 16), takes=8)}


def _refusals(draw: Any, parts: Parts) -> None:
    resting = draw.sample([o.name for o in parts["offerings"]], 2)
    until = NOW + timedelta(minutes=5)
    _memory(parts, backoffs=tuple(Backoff(offering=name, until=until, why="no capacity") for name in resting))


def _misfits(draw: Any, parts: Parts) -> None:
    until, pending, nodes = NOW + timedelta(hours=1), parts["view"].pending[:2], parts["view"].nodes[:2]
    shapes = [pod.shape.key for pod in pending]
    _memory(
        parts,
        believing=True,
        quarantines=tuple(Quarantine(shape=key, pool="t4", until=until, why="not bound") for key in shapes),
        misfits=tuple(
            FitMismatch(shape=key, node=node.name, pool=node.pool, until=until, why="w")
            for key in shapes
            for node in nodes
        ),
    )


def _failed(draw: Any, parts: Parts) -> None:
    lost = Booting(instance="i-lost", requested_at=NOW - timedelta(hours=1), doubt=draw.choice(("", "no provider id")))
    parts["pools"] = tuple(
        replace(one, booting=(lost,), desired=one.desired + 1) if one.name == "t4" else one for one in parts["pools"]
    )


def _sick(draw: Any, parts: Parts) -> None:
    nodes = [replace(node, sick="XID 79") if n == 0 else node for n, node in enumerate(parts["view"].nodes)]
    parts["view"] = replace(parts["view"], nodes=tuple(nodes))


def _flights(draw: Any, parts: Parts) -> None:
    offering, pods = draw.choice(parts["offerings"]), parts["view"].pending[:2]
    flight = InFlight(
        decision="d1",
        offering=offering.name,
        pool=offering.pool,
        count=draw.randint(1, 2),
        requested_at=NOW - timedelta(seconds=60),
        ready_by=NOW + timedelta(seconds=120),
        demands=tuple(pod.uid for pod in pods),
    )
    parts["pools"] = tuple(
        replace(one, desired=one.desired + flight.count) if one.name == flight.pool else one for one in parts["pools"]
    )
    _memory(parts, in_flight=(flight,))


def _wakes(draw: Any, parts: Parts) -> None:
    _memory(parts, wakes={"t4": (40.0, 55.0, 61.0, 48.0, 52.0, 50.0)})


def _tainted(draw: Any, parts: Parts) -> None:
    taint = Taint(key="team", value="red", effect="NoSchedule")
    parts["offerings"] = tuple(
        replace(one, taints=(taint,)) if one.pool == "a100" else one for one in parts["offerings"]
    )


def _old_prices(draw: Any, parts: Parts) -> None:
    old = NOW - timedelta(days=draw.choice((10, 200, 900)))
    parts["offerings"] = tuple(replace(one, priced_at=old) for one in parts["offerings"])


FEATURES: dict[str, Callable[[Any, Parts], None]] = {
    "schedule": _schedule,
    "ahead": _ahead,
    "rules": _rules,
    "taint of homes": _homes,
    "reserved": _reserved,
    "spot": _spot,
    "spot share": _spot_share,
    "daemons": _daemons,
    "gangs": _gangs,
    "deadlines": _deadlines,
    "history": _history,
    "warm": _warm,
    "standby": _standby,
    "ages": _ages,
    "goes": _goes,
    "leaving": _leaving,
    "unsettled": _unsettled,
    "budgets": _budgets,
    "ladder": _ladder,
    "brakes": _brakes,
    "limits": _limits,
    "approval": _approval,
    "caps": _caps,
    "quotas": _quotas,
    "refusals": _refusals,
    "misfits": _misfits,
    "failed": _failed,
    "sick": _sick,
    "flights": _flights,
    "wakes": _wakes,
    "tainted": _tainted,
    "old prices": _old_prices,
}
"""Features that may be on, by name."""
