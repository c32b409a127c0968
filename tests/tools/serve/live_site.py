"""A cluster for the live page in which everything that it shows happens, with names that try to be more than names."""

from collections.abc import Sequence
from decimal import Decimal

from stage import Stage

from pilotlight.facts.memory import Backoff, Memory
from pilotlight.facts.messages import Tick
from pilotlight.facts.money.money_policy import ApproveOver, Budget, BudgetScope, Caps
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import brake_records
from pilotlight.ports.state import State
from pilotlight.settings import Settings
from pilotlight.state_schema.decision_records import MEMORY

HOSTILE = "<img src=x onerror=alert(1)>"


class Site:
    """What looks need of one cluster's deployment."""

    def __init__(self, deps: Deps, speed: float = 60.0) -> None:
        self.deps, self.alerts, self.speed, self.settings = deps, deps.state, speed, Settings(api="in-cluster")

    alerts: State


class App:
    """What the page needs of a deployment of these clusters."""

    def __init__(self, *sites: Site) -> None:
        self._sites = {site.deps.name: site for site in sites}

    @property
    def clusters(self) -> Sequence[str]:
        """Their names."""
        return tuple(self._sites)

    def for_cluster(self, cluster: str) -> Site:
        """One of them."""
        return self._sites[cluster]


def stage() -> Stage:
    """Two hours of a small cluster: some pods run, one waits for a boot, one for a person, one for ever."""
    pools = {
        "one": PoolPolicy(instance_type="one", max=20),
        "eight": PoolPolicy(instance_type="eight", max=4),
        "spot": PoolPolicy(instance_type="one", capacity_type="spot", max=3),
    }
    budgets = (
        Budget(name="all", usd=Decimal(3000)),
        Budget(name="research", usd=Decimal(150), period="day", scope=BudgetScope(team="research")),
    )
    on = Stage(pools=pools, budgets=budgets, caps=Caps(approve_over=ApproveOver(usd_per_hour=Decimal(50))))
    for n in range(4):
        on.event(on.submit(f"sweep-{n}", run_s=9000, team="research"))
    on.event(on.submit("finetune", gpus=6, gpu_models=("A100",), run_s=9000, team="vision"))
    for _ in range(24):
        on.minutes(5)
        billing(on.deps, Tick(cluster="c", what="billing"))
    on.event(on.submit(HOSTILE, gpus=1, gpu_models=("T4",), team="research"))
    on.event(on.submit("wide", gpus=8, gpu_models=("A100",), team="vision"))
    on.event(on.submit("odd", gpus=16, gpu_models=("A100",)))
    on.minutes(1)
    billing(on.deps, Tick(cluster="c", what="billing"))
    return on


def busy() -> Site:
    """The same with a pause, and an offering that rests."""
    on = stage()
    at = on.world.clock.now()
    brake_records.pause(on.deps.state, "c", "spot", f"price check {HOSTILE}", at, "ada")
    rest = Backoff(offering="spot/one/spot", until=at.replace(hour=23), why="no capacity in the zone")

    def rests(was: Memory | None) -> Memory:
        return Memory(backoffs=(rest,), idle_since=was.idle_since if was else {})

    MEMORY.change(on.deps.state, "c", rests)
    return Site(on.deps)
