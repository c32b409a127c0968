"""Article 003's fleet at quota: 40 GPU nodes, $50K a month, in use for 30 to 40 %, and a queue of two to three hours.

Usage: python bench/replays/fleet_at_quota.py [--seed 0] [--json]

A week of 10 notebooks, 8 replicas of a service and 116 training jobs a working day, on at most 40 nodes of one GPU at
$1.71. Each row adds one lever to the row above. What cannot be played by a replay is played by the jobs: a
notebook that is reclaimed ends an hour after its last use; four notebooks that share a GPU ask for a quarter each; a
service that follows its load has half its replicas at night. Waits are of training jobs. A month is 730 h.

Then 20 urgent runs of 10 to 30 minutes are added to each working day: once they only have a higher priority, once the
class of what trains consents to give way (`may_move: [preempt]`) and saves within a minute when asked. `late` is by how
much training jobs ended later than on a fleet without limits: what preemption costs its victims is in it.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_job import Job, Spread
from pilotlight.units import HOUR, Seconds

NODES, PRICE, DAYS = 40, Decimal("1.71"), 7
MONTH_H, TRAININGS = Decimal(730), 116
URGENTS, URGENT = 20, "urgent"
NOTEBOOKS, REPLICAS, BUSY = 10, 8, {"notebook": 0.1, "serving": 0.25, "training": 0.85, URGENT: 0.85}
"""How busy each class keeps its GPU, of REQUIREMENTS W2: notebooks 5-15 %, inference 10-30 %, training 80-95 %."""
DAY_S: Seconds = 24 * HOUR

CATALOG = Catalog(
    name="fleet",
    as_of=datetime(2026, 11, 2, tzinfo=UTC),
    instance_types={
        "node": InstanceType(
            cloud="world",
            gpu_model="T4",
            gpus=1,
            boot_s=180,
            prices={"on-demand": Price(usd_per_hour=PRICE, source="article 003: $50K, 40 nodes", date="2026-11-01")},
        )
    },
)


class Row(NamedTuple):
    """What became of the fleet."""

    lever: str
    usd_a_month: Decimal
    wait_h: float
    p95_h: float
    busy: float
    late_h: float = 0.0
    urgent_h: float | None = None
    preempted: int = 0


def notebooks(reclaimed: bool, shared: bool) -> Iterator[Job]:
    """A session a notebook for the whole week, or one a working day of nine hours and an hour until it is reclaimed."""
    milli = 250 if shared else 1000
    spans = [(day * DAY_S + 9 * HOUR, 10 * HOUR) for day in range(5)] if reclaimed else [(0.0, DAYS * DAY_S)]
    for n in range(NOTEBOOKS):
        for at, (submit_s, run_s) in enumerate(spans):
            name = f"notebook-{n}-{at}"
            yield Job(job_id=name, submit_s=submit_s, duration_s=run_s, gpus=1, gpu_milli=milli, team="notebook")


def serving(follows: bool) -> Iterator[Job]:
    """All replicas for the week; or half of them, and the rest by day."""
    for n in range(REPLICAS):
        if not follows or n < REPLICAS // 2:
            yield Job(job_id=f"serving-{n}", submit_s=0.0, duration_s=DAYS * DAY_S, gpus=1, team="serving")
        else:
            for day in range(DAYS):
                at_s = day * DAY_S + 8 * HOUR
                yield Job(job_id=f"serving-{n}-{day}", submit_s=at_s, duration_s=12 * HOUR, gpus=1, team="serving")


def training(seed: int) -> Iterator[Job]:
    """Jobs of one to seven hours that come from eight to ten at night on working days."""
    draw = random.Random(seed)
    for day in range(5):
        for n in range(TRAININGS):
            submit_s = day * DAY_S + (8 + 14 * draw.random()) * HOUR
            run_s = (1 + 6 * draw.random()) * HOUR
            yield Job(job_id=f"training-{day}-{n}", submit_s=submit_s, duration_s=run_s, gpus=1, team="training")


def urgent(seed: int) -> Iterator[Job]:
    """Short runs of a higher priority, from eight to ten at night on working days."""
    draw = random.Random(seed + 1)
    for day in range(5):
        for n in range(URGENTS):
            submit_s = day * DAY_S + (8 + 14 * draw.random()) * HOUR
            name, run_s = f"{URGENT}-{day}-{n}", (10 + 20 * draw.random()) * 60
            yield Job(job_id=name, submit_s=submit_s, duration_s=run_s, gpus=1, team=URGENT, class_priority=1000)


def with_urgent(seed: int, jobs: list[Job]) -> list[Job]:
    """The jobs, of which what trains saves within a minute when asked, and the urgent ones."""
    able = [msgspec.structs.replace(job, saves_s=60.0) if job.team == "training" else job for job in jobs]
    return sorted([*able, *urgent(seed)], key=lambda job: job.submit_s)


def played(seed: int, *, reclaimed: bool = False, shared: bool = False, follows: bool = False) -> list[Job]:
    """The week's jobs."""
    jobs = [*notebooks(reclaimed, shared), *serving(follows), *training(seed)]
    return sorted(jobs, key=lambda job: job.submit_s)


def row_of(lever: str, jobs: list[Job], *, always_on: bool = False, preempts: bool = False) -> Row:
    """One week under Pilotlight; ``always_on``: all nodes are paid for, whatever runs; ``preempts``: training consents
    to give way."""
    classes: dict[WorkloadClass, ClassPolicy] = {"batch": ClassPolicy(may_move=("preempt",))} if preempts else {}
    pools = {"gpu": PoolPolicy(instance_type="node", max=NODES)}
    policy = Policy(version=1, pools=pools, value_of_wait=Decimal(5), classes=classes)
    began: dict[str, Seconds] = {}
    ended: dict[str, Seconds] = {}
    preempted: Counter[str] = Counter()

    def note(told: dict[str, object]) -> None:
        if told["event"] == "start":
            began.setdefault(str(told["job"]), float(str(told["t"])))
        elif told["event"] == "stop" and told["reason"] == "done":
            ended[str(told["job"])] = float(str(told["t"]))
        elif told["event"] == "stop":
            preempted[str(told["job"])] += 1

    limits = bounds(jobs, CATALOG, "on-demand")
    outcome = run(jobs, CATALOG, policy, Scenario(placement="none"), trace="fleet", bounds=limits, log=note).outcome
    hours = DAYS * DAY_S / HOUR
    usd = PRICE * NODES * Decimal(hours) if always_on else outcome.result.cost_usd
    paid_h = NODES * hours if always_on else outcome.result.gpu_hours_paid
    waits = Spread.of_waits([began[job.job_id] - job.submit_s for job in jobs if job.team == "training"])
    used_h = sum(BUSY[job.team] * job.duration_s / HOUR for job in _as_used(jobs))
    late = [ended[job.job_id] - job.submit_s - job.duration_s for job in jobs if job.team == "training"]
    short = [began[job.job_id] - job.submit_s for job in jobs if job.team == URGENT]
    return Row(
        lever,
        usd / Decimal(hours) * MONTH_H,
        waits.mean / HOUR,
        waits.p95 / HOUR,
        used_h / paid_h,
        Spread.of_waits(late).mean / HOUR,
        Spread.of_waits(short).mean / HOUR if short else None,
        preempted.total(),
    )


def _as_used(jobs: list[Job]) -> Iterator[Job]:
    """The jobs as long as they are used: a notebook's nine hours a working day, however long it holds its GPU."""
    yield from (job for job in jobs if job.team != "notebook")
    for n in range(NOTEBOOKS * 5):
        yield Job(job_id=f"used-{n}", submit_s=0.0, duration_s=9 * HOUR, gpus=1, team="notebook")


def rows(seed: int) -> Iterator[Row]:
    """Each row adds a lever."""
    levers: list[tuple[str, Callable[[], Row]]] = [
        ("always on, as the article", lambda: row_of("", played(seed), always_on=True)),
        ("nodes lit for jobs alone", lambda: row_of("", played(seed))),
        ("+ idle notebooks reclaimed", lambda: row_of("", played(seed, reclaimed=True))),
        ("+ four notebooks share a GPU", lambda: row_of("", played(seed, reclaimed=True, shared=True))),
        ("+ serving follows its load", lambda: row_of("", played(seed, reclaimed=True, shared=True, follows=True))),
    ]
    lit = with_urgent(seed, played(seed))
    all_levers = with_urgent(seed, played(seed, reclaimed=True, shared=True, follows=True))
    levers += [
        ("lit for jobs alone, and urgent runs", lambda: row_of("", lit)),
        ("the same, training consents", lambda: row_of("", lit, preempts=True)),
        ("every lever, and urgent runs", lambda: row_of("", all_levers)),
        ("the same, training consents", lambda: row_of("", all_levers, preempts=True)),
    ]
    for name, play in levers:
        yield play()._replace(lever=name)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = list(rows(asked.seed))
    if asked.json:
        print(json.dumps([{**row._asdict(), "usd_a_month": float(row.usd_a_month)} for row in found], indent=1))
        return 0
    print("| fleet | a month | mean wait | P95 | GPUs busy | late | urgent waits | preempted |")
    print("|---|---|---|---|---|---|---|---|")
    for row in found:
        waits = f"{row.usd_a_month:,.0f} | {row.wait_h:.2f} h | {row.p95_h:.1f} h | {row.busy:.0%} | {row.late_h:.2f} h"
        short = "-" if row.urgent_h is None else f"{row.urgent_h:.2f} h"
        print(f"| {row.lever} | ${waits} | {short} | {row.preempted} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
