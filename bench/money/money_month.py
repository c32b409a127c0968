"""A month of money: three clusters, five teams, a bill that comes 24 h late with corrections, in two currencies.

Usage: python bench/money/money_month.py [FOLDER] [DAYS] (a temporary folder, 30). Plays it on the built-in world,
writes what happened (raw.json), what the cloud charged (charges.json) and what this product says (told.json), and has
``bench/money/recount.py``, which knows nothing of the product, work every line out again. Exit code 1 where a cent
differs.
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.reconciliation import compare_with_bill, corrections
from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.messages import BillExported, PodPending, Tick
from pilotlight.facts.money.money_policy import BillScope, Budget, BudgetScope, CurrencyRate
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.billing import billed_days, meter_nodes
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.flow.billing.billing_tick import billing, budget_standings
from pilotlight.flow.deps import Deps
from pilotlight.flow.provision import provision
from pilotlight.flow.reconcile import reconcile
from pilotlight.tools.cli.records.bill_command import awaited_bills
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LOOK_S = 1800.0
TEAMS = ("blue", "green", "grey", "red", "white")
TYPES = {"one": ("T4", 1, Decimal(1)), "eight": ("A100", 8, Decimal(32))}
SHARES = {"east": Decimal("0.5"), "west": Decimal("0.3"), "eu": Decimal("0.2")}
"""Each cluster with its part of what carries no tag."""
RATES = (("2026-11-01", "1.10"), ("2026-11-15", "1.05"))
TAG = "eks:cluster-name"
LATE, CORRECTED = DAY, 3 * DAY


class Cluster:
    """One cluster with its world, whose log is the truth."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.rng = name, random.Random(seed)
        types = {
            kind: InstanceType(
                cloud="world", gpu_model=model, gpus=gpus, boot_s=180.0,
                prices={"on-demand": Price(usd_per_hour=usd, source="test", date="2026-11-01")},
            )
            for kind, (model, gpus, usd) in TYPES.items()
        }  # fmt: skip
        speeds: Any = {kind: {"T4": 1.0, "A100": 1.0} for kind in ("training", "serving", "notebook", "batch")}
        catalog = Catalog(name="month", as_of=START, instance_types=types, throughput=speeds)
        pools = {kind: PoolPolicy(instance_type=kind, max=20) for kind in types}
        budgets = (
            Budget(name="all", usd=Decimal(10**6), hard=False),
            Budget(name="pool", usd=Decimal(10**6), hard=False, scope=BudgetScope(pool="eight")),
            *(Budget(name=team, usd=Decimal(10**6), hard=False, scope=BudgetScope(team=team)) for team in TEAMS),
        )
        policy = Policy(
            version=1, pools=pools, budgets=budgets,
            classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=600)},
            bill=BillScope(tags={TAG: "{cluster}"}, shared=SHARES[name]),
        )  # fmt: skip
        self.log: list[dict[str, Any]] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.looks: list[float] = []
        real = [WorldPool(name=kind, instance_type=kind, capacity_type="on-demand") for kind in types]
        self.world = World(catalog, real, log=self.log.append)
        self.deps = Deps(
            name=name, cluster=WorldCluster(self.world), pools=WorldPools(self.world),
            state=MemoryState(self.world.clock), outbox=MemoryOutbox(), clock=self.world.clock, policy=policy,
            offerings=offerings(policy, catalog)[0], throughput=speeds, mode="act",
        )  # fmt: skip

    def submit(self) -> None:
        """A pod of some team comes, for one GPU or a few of eight; never at the moment of a look."""
        self.world.advance(self.world.now_s + 0.25)
        uid, gpus = f"{self.name}-{len(self.jobs)}", self.rng.choice((1, 1, 1, 2, 4, 8))
        team = self.rng.choice(TEAMS)
        self.jobs[uid] = {"team": team, "gpus": gpus}
        made = shape(gpu=GpuRequest(count=gpus), team=team, workload_class="batch")
        pod = PodDemand(uid=uid, namespace="ml", name=uid, shape=made, created_at=self.world.clock.now())
        self.world.submit(pod, self.rng.uniform(300, 30_000))
        provision(self.deps, PodPending(cluster=self.name, namespace="ml", name=uid, uid=uid, identity=uid))

    def hours(self, hours: int) -> None:
        """Time passes, with ticks every ten minutes, now and then a pod, and a look at money every half hour or so."""
        for step in range(hours * 6):
            if self.rng.random() < 0.04:
                self.submit()
            self.world.advance(self.world.now_s + 600.0)
            reconcile(self.deps, Tick(cluster=self.name))
            if step % int(LOOK_S / 600) == 0:
                self.world.advance(self.world.now_s + self.rng.choice((0.0, 7.5, 61.0)))
                self.looks.append(self.world.now_s)
                billing(self.deps, Tick(cluster=self.name, what="billing"))

    def read(self, pattern: str) -> None:
        """The bill is read now."""
        rates = [CurrencyRate(currency="EUR", usd=Decimal(usd), date=day, source="test") for day, usd in RATES]
        rules = Rules(self.name, self.deps.policy.bill, rates, {kind: kind for kind in TYPES})
        deps = replace(self.deps, bills=FocusBills(pattern, rules))
        billing_import(deps, BillExported(cluster=self.name, uri=pattern, identity=str(self.world.now_s)))

    def told(self) -> dict[str, Any]:
        """The product's own figures of the month."""
        state, first, last = self.deps.state, START.date(), self.world.clock.now().date()
        metered: dict[str, Decimal] = {}
        for day in meter_nodes.days(state, self.name, first, last):
            for line in day.lines:
                key = f"{day.day} {line.pool} {line.kind} {line.team}"
                metered[key] = metered.get(key, Decimal(0)) + line.usd
        billed = {
            f"{day.day} {row.service} {row.pool}": row.usd
            for day in billed_days.days(state, self.name, first, last)
            for row in day.rows
        }
        budgets = {
            s.meter.budget.name: (s.billed, s.metered) for s in budget_standings(self.deps, self.world.clock.now())
        }
        return {"metered": metered, "billed": billed, "budgets": budgets, **self._reconciled(first, last)}

    def _reconciled(self, first: date, last: date) -> dict[str, Any]:
        """Bill beside meter by day and pool, what is learnt of it, and what metered days will come to."""
        state = self.deps.state
        known = counted_days(
            meter_nodes.days(state, self.name, first, last), billed_days.days(state, self.name, first, last)
        )
        days = compare_with_bill(known.metered, known.billed)
        learnt = corrections(days)
        only = [day for on, day in known.metered.items() if on not in known.billed]
        return {
            "more": {f"{one.day} {one.pool}": one.more for one in days},
            "learnt": {one.pool: one.factor for one in learnt},
            "awaited": {pool: coming for pool, _, coming in awaited_bills(only, learnt)},
        }


def charges(clusters: list[Cluster], upto: date) -> Iterator[dict[str, Any]]:
    """The lines of a bill for the days before ``upto``; a few are a dollar too high until they are corrected."""
    day = START.date()
    while day < upto:
        for cluster in clusters:
            for node, since, until in _lives(cluster):
                yield from _of_node(cluster, node, since, until, day, wrong=upto - day < CORRECTED)
        yield _line(day, "24.50", "RDS", account="9", resource="db")
        yield _line(day, "100", "EC2", account="8", resource="i-web", tags={TAG: "web"})
        day += DAY


def _lives(cluster: Cluster) -> Iterator[tuple[str, float, float]]:
    ends = {e["node"]: e["t"] for e in cluster.log if e["event"] == "terminate"}
    for event in cluster.log:
        if event["event"] == "launch":
            yield event["node"], event["t"], ends.get(event["node"], cluster.world.now_s)


def _of_node(
    cluster: Cluster, node: str, since: float, until: float, day: date, *, wrong: bool
) -> Iterator[dict[str, Any]]:
    begin = (day - START.date()).total_seconds()
    seconds = min(until, begin + 86_400) - max(since, begin)
    if seconds <= 0:
        return
    kind = next(e["type"] for e in cluster.log if e["event"] == "launch" and e["node"] == node)
    usd = (Decimal(str(seconds)) / 3600 * TYPES[kind][2] * Decimal("1.03")).quantize(Decimal("1e-6"))
    if wrong and (int(node[1:]) + day.day) % 7 == 0:
        usd += 1
    tags = {TAG: cluster.name, "eks:nodegroup-name": kind}
    currency = "EUR" if cluster.name == "eu" else "USD"
    yield _line(day, str(usd), "EC2", cluster.name, f"{cluster.name}-{node}", currency, tags)


def _line(
    day: date, cost: str, service: str, account: str, resource: str, currency: str = "USD", tags: Any = None
) -> dict[str, Any]:
    return {
        "BilledCost": cost, "BillingCurrency": currency, "ChargeCategory": "Usage", "ServiceName": service,
        "SubAccountId": account, "ResourceId": resource, "ChargePeriodStart": f"{day}T00:00:00Z",
        "ChargePeriodEnd": f"{day + DAY}T00:00:00Z", "Tags": json.dumps(tags) if tags else "",
    }  # fmt: skip


def simulate(folder: Path, days: int, *, read_every: int = 1) -> None:
    """Play the days, and write what happened and what is said of it."""
    clusters = [Cluster(name, seed) for seed, name in enumerate(SHARES)]
    last = START.date()
    for number in range(1, days + 1):
        for cluster in clusters:
            cluster.hours(24)
        last = START.date() + number * DAY - LATE
        _export(folder / f"focus-{last}.csv", list(charges(clusters, last)))
        if last > START.date() and (number % read_every == 0 or number == days):
            for cluster in clusters:
                cluster.read(str(folder / "focus-*.csv"))
    raw = {
        c.name: {"looks": c.looks, "log": c.log, "jobs": c.jobs, "now": c.world.now_s, "share": str(SHARES[c.name])}
        for c in clusters
    }
    types = {kind: {"gpus": gpus, "usd": str(usd)} for kind, (_, gpus, usd) in TYPES.items()}
    _write(folder / "raw.json", {"start": str(START), "types": types, "rates": RATES, "teams": TEAMS, "clusters": raw})
    _write(folder / "charges.json", list(charges(clusters, last)))
    _write(folder / "told.json", {cluster.name: cluster.told() for cluster in clusters})


def _export(file: Path, lines: list[dict[str, Any]]) -> None:
    if lines:
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)


def _write(file: Path, what: object) -> None:
    file.write_text(json.dumps(what, default=str))


def main() -> None:
    """Play the month and have it worked out again."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        simulate(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
        sys.exit(subprocess.run([sys.executable, str(Path(__file__).parent / "recount.py"), str(folder)]).returncode)


if __name__ == "__main__":
    main()
