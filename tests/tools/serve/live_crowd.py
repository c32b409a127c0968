"""A busy cluster for the live page: 60 nodes, 80 pods that wait, five teams, three budgets, and a day of decisions."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
from live_site import Site

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Record
from pilotlight.facts.memory import Memory, Tally
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import call_steps, ledger
from pilotlight.state_schema.decision_records import MEMORY
from pilotlight.units import MILLI_PER_GPU
from pilotlight.world.world_clock import VirtualClock

NOW = datetime(2026, 11, 20, 16, 0, tzinfo=UTC)
NODES, WAITING = 60, 80
ROOM = 5
"""So many more pods wait that will be bound to nodes that are idle."""
MODELS = {"T4": "0.526", "L4": "0.80", "A100": "4.10", "H100": "12.29"}
TEAMS = ("research", "vision", "search", "speech", "platform")


class Still:
    """A cluster and a cloud that are as they were made."""

    def __init__(self, nodes: Sequence[Node], pending: Sequence[PodDemand]) -> None:
        self.view = ClusterView(nodes=tuple(nodes), pending=tuple(pending))

    def observe(self) -> ClusterView:
        """The same every time."""
        return self.view

    def describe(self) -> Sequence[PoolState]:
        """The pools' sizes."""
        return [PoolState(name=name.lower(), desired=NODES // len(MODELS)) for name in MODELS]


def crowd() -> Site:
    """The cluster, in mode ``advise``."""
    clock = VirtualClock(NOW)
    catalog = Catalog(name="crowd", as_of=NOW, instance_types={name: _type(name, usd) for name, usd in MODELS.items()})
    policy = Policy(
        version=1,
        pools={name.lower(): PoolPolicy(instance_type=name, max=30) for name in MODELS},
        classes={"batch": ClassPolicy(gpu_models="any")},
        budgets=(
            Budget(name="all", usd=Decimal(400_000), hard=False),
            Budget(name="research", usd=Decimal(2_000), period="day", scope=BudgetScope(team="research"), hard=False),
            Budget(name="vision", usd=Decimal(90_000), scope=BudgetScope(team="vision"), hard=False),
        ),
    )
    still = Still([_node(n) for n in range(NODES)], [_waits(n) for n in range(WAITING + ROOM)])
    deps = Deps(
        name="prod-eu-1",
        cluster=still,  # type: ignore[arg-type]
        pools=still,  # type: ignore[arg-type]
        state=MemoryState(clock),
        outbox=MemoryOutbox(),
        clock=clock,
        policy=policy,
        offerings=offerings(policy, catalog)[0],
        throughput={"batch": dict.fromkeys(MODELS, 1.0)},
        mode="advise",
    )
    _past(deps, clock)
    return Site(deps, speed=1.0)


def _type(name: str, usd: str) -> InstanceType:
    price = Price(usd_per_hour=Decimal(usd) * 8, source="test", date="2026-11-01")
    return InstanceType(cloud="world", gpu_model=name, gpus=8, prices={"on-demand": price})


def _node(n: int) -> Node:
    model = list(MODELS)[n % len(MODELS)]
    used = 0 if n % 12 == 0 else 8 if n % 3 else 5
    team = TEAMS[n % len(TEAMS)]
    pods = [
        BoundPod(uid=f"u{n}-{i}", namespace=team, name=f"train-{n:03}-{i}", gpu=GpuRequest(count=1), team=team)
        for i in range(used)
    ]
    return Node(
        name=f"ip-10-0-0-{n}.ec2.internal",
        pool=model.lower(),
        instance_type=model,
        capacity_type="on-demand",
        zone=f"us-east-1{'abc'[n % 3]}",
        created_at=NOW - timedelta(hours=2),
        ready=n % 15 != 14,
        devices=(0,) * used + (MILLI_PER_GPU,) * (8 - used),
        pods=tuple(pods),
        idle_since=None if used else NOW - timedelta(minutes=1),
    )


def _waits(n: int) -> PodDemand:
    """Of each team some that fit nowhere, and some for which there is a pool."""
    team = TEAMS[n % len(TEAMS)]
    wants = shape(gpu=GpuRequest(count=16 if n % 10 == 0 else 8), workload_class="batch", team=team)
    since = NOW - timedelta(seconds=10 * n)
    return PodDemand(uid=f"w{n}", namespace=team, name=f"wait-{n}", shape=wants, created_at=since)


def _past(deps: Deps, clock: VirtualClock) -> None:
    """Metered days, waits that were counted, and a day of decisions."""
    for back in range(1, 20):
        day = (NOW - timedelta(days=back)).date()
        meter_nodes.close_day(deps.state, deps.name, MeterDay(day=day, until=NOW, lines=tuple(_lines(back))))
    for _ in range(2):
        billing(deps, Tick(cluster=deps.name, what="billing"))
        clock.advance(clock.elapsed_s() + 1800.0)
    tally = Tally(day=clock.now().date())
    for n in range(40):
        tally = (
            tally.count_duration("detect", 4)
            .count_duration("boot", 90 + 2 * n)
            .count_duration("bind", 3)
            .count_bound(97 + 2 * n)
        )
    MEMORY.put(deps.state, deps.name, Memory(tally=tally))
    plan = preview(deps, releases=True)[1]
    done = [msgspec.structs.replace(one, state="done") for one in call_steps.of_plan(plan, dict.fromkeys(MODELS, 0))]
    for n in range(30):
        at = clock.now() - timedelta(minutes=43 * n)
        rate = plan.usd_per_hour_before * (40 + n % 20) / 60
        then = msgspec.structs.replace(plan, usd_per_hour_before=rate, usd_per_hour_after=rate * Decimal("1.1"))
        record = Record(
            id=ledger.new_id(at, str(n)), cluster=deps.name, flow="provision", trigger="pod-pending", at=at,
            status="closed", plan=then, steps=tuple(done),
        )  # fmt: skip
        ledger.close(deps.state, record)


def _lines(back: int) -> Iterator[CostLine]:
    plain = {"pool": "a100", "node": "", "instance_type": "A100", "capacity_type": "on-demand"}
    for n, team in enumerate(TEAMS):
        usd = Decimal(1000 + 300 * n + 17 * back)
        yield CostLine(kind="used", team=team, project=team, gpu_hours=usd / 4, usd=usd, **plain)  # type: ignore[arg-type]
    for kind in ("idle", "shared"):
        yield CostLine(kind=kind, gpu_hours=Decimal(90), usd=Decimal(370), **plain)  # type: ignore[arg-type]
