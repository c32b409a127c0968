"""Pilotlight over a trace: figures that a stranger recomputes from the log, and the rules of a replay."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from log_audit import Books

import judge
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.money.money_policy import Budget, Caps
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.policy import Policy, PoolPolicy, SparePolicy
from pilotlight.tools.replay import run as replay_run
from pilotlight.tools.replay.driver import Driver
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.run import Run, run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.drawn_trace import synthesise
from pilotlight.tools.replay.traces.trace_file import read_trace, window, write_trace
from pilotlight.tools.replay.traces.trace_job import Job, Result
from pilotlight.tools.replay.traces.trace_stats import read_stats

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "policy.yaml"
SCENARIOS = {
    "on-demand, taint": Scenario(),
    "on-demand, affinity": Scenario(placement="affinity"),
    "on-demand, no placement": Scenario(placement="none"),
    "on-demand, gated": Scenario(placement="gated"),
    "spot": Scenario(capacity_type="spot", seed=4),
    "spot in short supply, with notice": Scenario(capacity_type="spot", shortage=0.3, notice_s=120, seed=2),
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The replay's five types."""
    path = ROOT / "data" / "catalogs" / "replay.yaml"
    return read_catalog(path.read_bytes(), path.name)


@pytest.fixture(scope="module")
def day() -> tuple[Job, ...]:
    """A busy day of the built-in week."""
    stats = ROOT / "data" / "philly_week.stats.json"
    return window(synthesise(read_stats(stats.read_bytes(), stats.name), seed=5), 2, 2.4)


Told = tuple[Result, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def told(day: tuple[Job, ...], catalog: Catalog) -> Callable[[Scenario], Told]:
    """The day's figures and its log under a scenario, replayed once."""

    @cache
    def one(scenario: Scenario) -> Told:
        log: list[dict[str, Any]] = []
        return replayed(day, catalog, scenario, log=log).outcome.result, log

    return one


def default_policy() -> Policy:
    """The example policy as a replay without --policy takes it."""
    return msgspec.structs.replace(read_policy(EXAMPLE.read_text(), EXAMPLE.name), pools={}, rules=(), caps=Caps())


def with_pools(**pools: PoolPolicy) -> Policy:
    """The default policy with these pools."""
    return msgspec.structs.replace(default_policy(), pools=pools)


def replayed(
    jobs: Sequence[Job],
    catalog: Catalog,
    scenario: Scenario | None = None,
    policy: Policy | None = None,
    log: list[dict[str, Any]] | None = None,
) -> Run:
    """One replay of Pilotlight."""
    scenario = scenario or Scenario()
    bound = bounds(jobs, catalog, scenario.capacity_type)
    write = None if log is None else log.append
    return run(jobs, catalog, policy or default_policy(), scenario, trace="t", bounds=bound, log=write)


def job(number: int, submit_s: float, duration_s: float = 1000.0, gpus: int = 1, models: tuple[str, ...] = ()) -> Job:
    """One job of a trace."""
    return Job(job_id=f"j{number}", submit_s=submit_s, duration_s=duration_s, gpus=gpus, models=models)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_stranger_recomputes_every_figure(
    name: str, day: tuple[Job, ...], told: Callable[[Scenario], Told], catalog: Catalog
) -> None:
    """Dollars, waits, delays, launches, interruptions and lost hours follow from log, trace and catalogue."""
    result, log = told(SCENARIOS[name])
    books = Books(catalog, day).read(log)
    assert float(result.cost_usd) == pytest.approx(float(books.cost), abs=1e-4)
    assert result.gpu_hours_paid * 3600 == pytest.approx(books.gpu_seconds_paid)
    assert (result.launches, result.terminations) == (books.launches, books.launches)
    assert result.interruptions == books.interruptions
    assert result.lost_gpu_hours * 3600 == pytest.approx(books.lost_gpu_s, abs=1e-3)
    assert result.jobs_done == len(day) == len(books.ends)
    assert result.wait_s.mean == pytest.approx(sum(books.waits.values()) / len(day))
    assert result.wait_s.max == pytest.approx(max(books.waits.values()))
    delays = [books.ends[j.job_id] - j.submit_s - j.duration_s for j in day]
    assert result.delay_s.mean == pytest.approx(sum(delays) / len(day), abs=1e-6)


@pytest.mark.parametrize("kind", ["on-demand", "spot"])
def test_memory_and_sqlite_give_the_same_run(kind: Any, day: tuple[Job, ...], catalog: Catalog) -> None:
    """Where the state is kept changes no record of the log and no figure."""
    logs: dict[str, list[dict[str, Any]]] = {"memory": [], "sqlite": []}
    results = [
        replayed(day[:150], catalog, Scenario(state=state, capacity_type=kind), log=log).outcome  # type: ignore[arg-type]
        for state, log in logs.items()
    ]
    assert logs["memory"] == logs["sqlite"]
    assert results[0] == results[1]


@pytest.mark.parametrize("vanish", [0.5, 1.0], ids=["half of them", "all"])
@pytest.mark.parametrize("name", ["on-demand, taint", "on-demand, gated"])
def test_pods_that_are_deleted_at_their_end_cost_what_finished_ones_do(
    name: str, vanish: float, day: tuple[Job, ...], told: Callable[[Scenario], Told], catalog: Catalog
) -> None:
    """Packed, dollars differ by three thousandths at most from those of pods that stay, waits by three hundredths."""
    packed = replace(SCENARIOS[name], scoring="most-allocated")
    finished, _ = told(packed)
    log: list[dict[str, Any]] = []
    deleted = replayed(day, catalog, replace(packed, vanish=vanish), log=log).outcome.result
    books = Books(catalog, day).read(log)
    assert float(deleted.cost_usd) == pytest.approx(float(books.cost), abs=1e-4)
    assert float(books.cost) == pytest.approx(float(finished.cost_usd), rel=0.003)
    assert deleted.jobs_done == finished.jobs_done
    assert books.launches == pytest.approx(finished.launches, rel=0.02)
    assert deleted.wait_s.mean == pytest.approx(finished.wait_s.mean, rel=0.03)


def test_a_seed_is_a_run(day: tuple[Job, ...], catalog: Catalog) -> None:
    """The same seed gives the same run on spot, another seed another."""
    spot = (Scenario(capacity_type="spot", seed=seed) for seed in (1, 1, 2))
    first, again, other = (replayed(day[:150], catalog, scenario).outcome for scenario in spot)
    assert first == again
    assert first.result.cost_usd != other.result.cost_usd


class EveryTenSeconds(Driver):
    """A driver that looks all the time, but where something happened that is looked at soon."""

    looked_s = 0.0

    def _tick_due_s(self) -> float:
        due_s = super()._tick_due_s()
        return due_s if min(self._stirred_s, self._after_s) < math.inf else min(due_s, self.looked_s + 10)

    def _look(self) -> None:
        self.looked_s = self.world.now_s
        super()._look()


def test_skipped_looks_would_have_changed_nothing(
    day: tuple[Job, ...], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a look every ten seconds no job starts at another time, over many more looks."""
    some: list[dict[str, Any]] = []
    every: list[dict[str, Any]] = []
    few = replayed(day[:100], catalog, log=some)
    monkeypatch.setattr(replay_run, "Driver", EveryTenSeconds)
    many = replayed(day[:100], catalog, log=every)
    assert [e for e in some if e["event"] == "start"] == [e for e in every if e["event"] == "start"]
    assert many.ticks > few.ticks


COLD = {
    "as published": (Scenario(), 190),
    "with a reaction of one second": (Scenario(detect_s=1), 181),
    "with a boot of a minute": (Scenario(boot_s=60), 70),
    "behind a gate": (Scenario(placement="gated"), 190),
}


@pytest.mark.parametrize(("scenario", "wait_s"), COLD.values(), ids=COLD.keys())
def test_the_first_job_waits_for_reaction_and_boot(scenario: Scenario, wait_s: float, catalog: Catalog) -> None:
    """On a cold cluster a job waits for its detection and one boot."""
    assert replayed([job(1, 5)], catalog, scenario).outcome.waits == (wait_s,)


@pytest.mark.parametrize(("placement", "wait_s"), [("none", 0), ("affinity", 0), ("gated", 10)])
def test_a_free_node_is_taken_at_once_but_from_behind_a_gate(placement: Any, wait_s: float, catalog: Catalog) -> None:
    """A job that fits a node left idle starts at its submit; a gated one pays the reaction even then."""
    jobs = [job(1, 0, 600), job(2, 830, 600)]
    assert replayed(jobs, catalog, Scenario(placement=placement)).outcome.waits == (190, wait_s)


def test_a_gated_gang_starts_on_nodes_that_are_lit(catalog: Catalog) -> None:
    """A gang behind a gate takes the idle nodes of the one before it: its pods are not all sent to one of them."""
    gangs = [job(1, 0, 600, gpus=24), job(2, 800, 600, gpus=24)]
    ran = replayed(gangs, catalog, Scenario(placement="gated")).outcome
    assert (ran.waits, ran.result.launches) == ((190, 10), 3)


def test_gates_cost_the_reaction_and_little_else(told: Callable[[Scenario], Told]) -> None:
    """Gated jobs are narrowed as affine ones are: dollars within 2 %, waits longer by at most the reaction."""
    affine, gated = (told(Scenario(placement=p))[0] for p in ("affinity", "gated"))
    assert float(gated.cost_usd / affine.cost_usd) == pytest.approx(1, abs=0.02)
    assert affine.wait_s.mean <= gated.wait_s.mean <= affine.wait_s.mean + 10


def test_a_gang_starts_on_all_its_nodes_at_once(catalog: Catalog) -> None:
    """A job of 24 GPUs holds three whole 8-GPU nodes from one moment."""
    log: list[dict[str, Any]] = []
    replayed([job(1, 0, gpus=24)], catalog, log=log)
    (start,) = [r for r in log if r["event"] == "start"]
    assert len({part["node"] for part in start["placement"]}) == 3
    assert start["t"] == 190


def test_a_job_that_nothing_can_hold_is_left(catalog: Catalog) -> None:
    """A job whose model no pool of the policy has never starts and is told with its reason; the rest run."""
    policy = with_pools(t4=PoolPolicy(instance_type="g4dn.xlarge"))
    result = replayed([job(1, 0, models=("V100",)), job(2, 0)], catalog, policy=policy).outcome.result
    assert (result.jobs_done, result.finished) == (1, False)
    (left,) = result.unfinished
    assert left.jobs == 1
    assert "no pool" in left.why


def test_a_limit_that_keeps_a_job_from_ever_running_is_its_reason(catalog: Catalog) -> None:
    """A cap that a gang can never fit ends the run, with every node it lit given back in the log."""
    policy = msgspec.structs.replace(with_pools(big=PoolPolicy(instance_type="p4d.24xlarge")), caps=Caps(gpus=8))
    log: list[dict[str, Any]] = []
    result = replayed([job(1, 0, gpus=16), job(2, 0, gpus=8)], catalog, policy=policy, log=log).outcome.result
    assert [(u.jobs, "GPUs" in u.why) for u in result.unfinished] == [(1, True)]
    assert [r["node"] for r in log if r["event"] == "launch"] == [r["node"] for r in log if r["event"] == "terminate"]


def test_a_budget_that_never_suffices_ends_the_run(catalog: Catalog) -> None:
    """A daily budget smaller than any job is no reason to wait for ever for a better day."""
    budget = Budget(name="tiny", usd=Decimal("0.01"), period="day")
    policy = msgspec.structs.replace(default_policy(), budgets=(budget,))
    result = replayed([job(1, 0)], catalog, policy=policy).outcome.result
    assert [(u.jobs, "tiny" in u.why) for u in result.unfinished] == [(1, True)]


@pytest.mark.parametrize("name", ["policies/cost", "policies/balanced", "policies/performance", "examples/policy"])
def test_the_policies_that_are_shipped_serve_every_job(name: str, day: tuple[Job, ...], catalog: Catalog) -> None:
    """The pods of a replay bear the taints of the policy's pools, as those of a cluster with such pools do."""
    path = ROOT / f"{name}.yaml"
    log: list[dict[str, Any]] = []
    result = replayed(day[:300], catalog, policy=read_policy(path.read_text(), path.name), log=log).outcome.result
    assert result.jobs_done == 300
    assert result.terminations == result.launches == sum(r["event"] == "terminate" for r in log)


def test_the_preset_for_cost_is_worth_its_name(shelf: Path, catalog: Catalog) -> None:
    """On four days of openb it pays less than the balanced one and waits at most four times as long."""
    jobs = window(read_trace(shelf / "traces" / "openb_dev.csv.gz"), 0, 4)
    policies = (ROOT / "policies" / f"{name}.yaml" for name in ("cost", "balanced"))
    cost, balanced = (
        replayed(jobs, catalog, policy=read_policy(p.read_text(), p.name)).outcome.result for p in policies
    )
    assert cost.cost_usd <= balanced.cost_usd
    assert cost.wait_s.mean <= 4 * balanced.wait_s.mean


def test_a_job_is_narrowed_to_a_type_that_the_policy_has(catalog: Catalog) -> None:
    """Where the cheapest type has no pool, the cheapest of those that have one is meant."""
    policy = with_pools(v100=PoolPolicy(instance_type="p3.2xlarge"))
    assert replayed([job(1, 0, models=("T4", "V100"))], catalog, policy=policy).outcome.result.finished


@pytest.mark.parametrize("placement", ["affinity", "homes"])
def test_nodes_that_stand_by_are_judged_from_the_log(
    placement: Any, day: tuple[Job, ...], told: Callable[[Scenario], Told], tmp_path: Path
) -> None:
    """Stopped nodes shorten waits and cost no more; a stranger's books of the log agree to the cent."""
    path = tmp_path / "day.csv"
    write_trace(day, path)
    without, _ = told(Scenario(placement=placement))
    stopping, log = told(Scenario(placement=placement, standby_boot_s=60))
    books = judge.Books(judge.read_jobs(path), judge.read_types(ROOT / "data" / "catalogs" / "replay.yaml")).read(log)
    assert books.wrong == []
    assert books.usd == pytest.approx(float(stopping.cost_usd), abs=1e-3)
    assert books.standby_usd == pytest.approx(float(stopping.standby_usd), abs=1e-6)
    assert (books.wakes, books.launches) == (stopping.wakes, stopping.launches)
    assert books.mean_wait_s == pytest.approx(stopping.wait_s.mean)
    assert stopping.wakes > 0
    assert stopping.wait_s.mean < without.wait_s.mean


def test_the_run_ends_a_day_after_the_last_job(catalog: Catalog) -> None:
    """A policy that keeps a node warm for ever is paid for 24 hours more, and no longer."""
    policy = with_pools(t4=PoolPolicy(instance_type="g4dn.xlarge", spares=SparePolicy(warm=1), max=9))
    log: list[dict[str, Any]] = []
    result = replayed([job(1, 0)], catalog, policy=policy, log=log).outcome.result
    done_s = next(r["t"] for r in log if r["event"] == "stop")
    paid_from = [r["t"] for r in log if r["event"] == "launch"]
    assert result.gpu_hours_paid * 3600 == pytest.approx(
        done_s + 86_400 - min(paid_from), abs=86_400 * (len(paid_from) - 1)
    )
    assert log[-1]["event"] == "terminate"
    assert log[-1]["t"] == done_s + 86_400


def test_a_policys_own_pools_are_what_is_bought(catalog: Catalog) -> None:
    """With pools in the policy only those are lit, under its caps."""
    pools = {"big": PoolPolicy(instance_type="p4d.24xlarge", max=1)}
    policy = msgspec.structs.replace(default_policy(), pools=pools)
    log: list[dict[str, Any]] = []
    jobs = [job(n, 0, gpus=8) for n in range(3)]
    replayed(jobs, catalog, Scenario(placement="none"), policy, log)
    assert [r["type"] for r in log if r["event"] == "launch"] == ["p4d.24xlarge"]


def test_openb_is_cheap_and_quick(shelf: Path, catalog: Catalog) -> None:
    """openb_dev under the default policy: at most 1.20x the integral bound, mean wait 80 s, no peer cheaper."""
    jobs = read_trace(shelf / "traces" / "openb_dev.csv.gz")
    log: list[dict[str, Any]] = []
    ours = replayed(jobs, catalog, log=log).outcome.result
    assert ours.jobs_done == len(jobs) == 2852
    assert ours.x_integral is not None
    assert ours.x_integral <= 1.20
    assert ours.wait_s.mean <= 80
    assert float(Books(catalog, jobs).read(log).cost) == pytest.approx(float(ours.cost_usd), abs=1e-3)
    for name in ("cluster-autoscaler", "karpenter"):
        assert ours.cost_usd <= run_peer(name, jobs, catalog).result.cost_usd


def test_gates_on_openb(shelf: Path, catalog: Catalog) -> None:
    """Days of openb, with shares and GPUs that jobs name: behind gates all are served, for what affinity costs."""
    jobs = window(read_trace(shelf / "traces" / "openb_dev.csv.gz"), 0, 3)
    affine, gated = (replayed(jobs, catalog, Scenario(placement=p)).outcome.result for p in ("affinity", "gated"))
    assert gated.jobs_done == len(jobs)
    assert gated.cost_usd <= affine.cost_usd * Decimal("1.02")
    assert gated.wait_s.mean <= affine.wait_s.mean + 10
