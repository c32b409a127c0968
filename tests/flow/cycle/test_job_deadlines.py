"""Jobs with a deadline in the world: moved between spot, on-demand and waiting, in time, and cheaper than on-demand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import MINUTE, START, Stage

from pilotlight.decide.job_deadlines.job_deadlines import choose_for_job, job_standing, narrow_to_deadline
from pilotlight.decide.offers.selection import Candidate, Eligible
from pilotlight.errors import NoCapacity
from pilotlight.facts.capacity import CapacityType, Offering
from pilotlight.facts.memory import DueJob, Memory
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.offers.spot_history import Lives
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Due, GpuRequest, PodDemand, PodShape, shape
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.units import HOUR
from pilotlight.world.world_pools import WorldPools

RULES = ClassPolicy(gpu_models="any", capacity_types=("on-demand", "spot"), idle_timeout=120)
POOLS = {
    "od": PoolPolicy(instance_type="one", max=4),
    "cheap": PoolPolicy(instance_type="one", max=4, capacity_type="spot"),
}
POLICY = Policy(version=1, pools={kind: PoolPolicy(instance_type="one", max=4) for kind in ("on-demand", "spot")})
TICK_MINUTES = 10


class SpotCloud(WorldPools):
    """A cloud whose spot is out of stock while ``up`` is False, and that has nothing at all while ``empty``."""

    up, empty = True, False

    def grow(self, pool: str, *args: Any, **options: Any) -> Any:
        """Refused while spot is down."""
        if self.empty or (pool == "cheap" and not self.up):
            raise NoCapacity("no spot now")
        return super().grow(pool, *args, **options)


class Course:
    """A stage on which spot comes and goes by ``ups``, ten minutes each; what is taken is told two minutes ahead."""

    def __init__(self, ups: Sequence[bool], **rules: Any) -> None:
        self.stage = Stage(**{"pools": POOLS, "classes": {"batch": RULES}, **rules})
        self.cloud = SpotCloud(self.stage.world)
        self.stage.deps = replace(self.stage.deps, pools=self.cloud)
        self.ups = ups

    def job(self, work_h: float, in_h: float, name: str = "train", **traits: Any) -> PodDemand:
        """A job that saves every ten minutes is submitted, and its event arrives."""
        by = self.stage.world.clock.now() + timedelta(hours=in_h)
        due = Due(job=f"ml/{name}", by=by, work_s=work_h * HOUR)
        pod = self.stage.submit(name, run_s=work_h * HOUR, checkpoint_s=600, due=due, **traits)
        self.stage.event(pod)
        return pod

    def play(self) -> None:
        """A tick a minute, for as long as the course says when spot is up."""
        for up in self.ups:
            self.cloud.up = up
            for _ in range(TICK_MINUTES):
                for node in [n for n in self.stage.world.nodes.values() if n.pool == "cheap" and not up]:
                    self._take(node.id)
                self.stage.wait(MINUTE)
                go_on(self.stage.deps)
                self.stage.tick()
            if not self.stage.world.running and not self.stage.world.pending:
                return

    def _take(self, node: str) -> None:
        world = self.stage.world
        if world.nodes[node].doomed_s is None:
            at = world.moment(world.interrupt(node, 120.0))
            notice = InterruptionNotice(
                cluster="c", instance=node, kind="spot-interruption", cloud="world", at=world.clock.now(), deadline=at
            )
            interrupt(self.stage.deps, notice)

    @property
    def late_s(self) -> float:
        """How long after its deadline the only job ended."""
        [job] = self.stage.world.finished
        due = job.demands[0].shape.due
        assert due is not None
        assert job.finish_s is not None
        return (self.stage.world.moment(job.finish_s) - due.by).total_seconds()


def drawn(seed: int, hours: float) -> list[bool]:
    """Spot that stays for about two hours and is away for about one."""
    rng, up, row = Random(seed), bool(seed % 2), []
    for _ in range(int(hours * 60 / TICK_MINUTES)):
        row.append(up)
        up = not up if rng.random() < (1 / 12 if up else 1 / 6) else up
    return row


COURSES = {
    "up all the time": [True] * 48,
    "down all the time": [False] * 48,
    "gone when it had begun": [True] * 4 + [False] * 44,
    "up and down each ten minutes": [True, False] * 24,
    "drawn": drawn(1, 8),
    "drawn, down at first": drawn(2, 8),
}


@pytest.mark.parametrize("ups", COURSES.values(), ids=COURSES)
def test_a_job_with_a_deadline_is_not_late_whatever_spot_does(ups: list[bool]) -> None:
    """It ends in time and costs no more than on-demand alone with one start, and the starts on spot that were lost."""
    course = Course(ups)
    course.job(3.0, 4.5)
    course.play()
    assert course.late_s <= 0
    spot = sum(r["event"] == "launch" and r["capacity_type"] == "spot" for r in course.stage.log)
    assert float(course.stage.world.cost()) <= (3.0 + 0.25) * 1.0 + spot * 0.25 * 0.5


@pytest.mark.parametrize("ups", [COURSES["down all the time"], COURSES["drawn"]], ids=["spot down", "spot drawn"])
def test_a_gang_with_a_deadline_is_not_late(ups: list[bool]) -> None:
    """All of it is on one kind of capacity at a time, and it ends in time."""
    course = Course(ups)
    due = Due(job="ml/wide", by=course.stage.world.clock.now() + timedelta(hours=3.5), work_s=2 * HOUR)
    course.stage.submit_gang("wide", 3, 2 * HOUR, gpus=1, checkpoint_s=600, due=due)
    course.play()
    assert course.late_s <= 0
    starts = [{p["node"] for p in r["placement"]} for r in course.stage.events("start")]
    kinds = {r["node"]: r["capacity_type"] for r in course.stage.events("launch")}
    assert all(len({kinds[node] for node in nodes}) == 1 for nodes in starts)


def test_a_gang_that_spot_can_never_hold_does_not_wait_for_it() -> None:
    """Where the spot pools' caps are below its size it gets on-demand at once: waiting would save nothing."""
    course = Course([True], pools={**POOLS, "cheap": msgspec.structs.replace(POOLS["cheap"], max=2)})
    due = Due(job="ml/wide", by=course.stage.world.clock.now() + timedelta(hours=12), work_s=HOUR)
    course.stage.submit_gang("wide", 4, HOUR, gpus=1, checkpoint_s=600, due=due)
    course.stage.tick()
    assert {r["capacity_type"] for r in course.stage.log if r["event"] == "launch"} == {"on-demand"}


def test_a_deadline_that_cannot_be_met_is_refused_with_the_earliest_that_can() -> None:
    """An Event on the pod, an alert and a finding; nothing is bought. One that fits is taken on, and never refused."""
    course = Course([True])
    course.job(3.0, 3.05)
    told = [(about, reason, why) for _, about, reason, why in course.stage.deps.cluster.told]  # type: ignore[attr-defined]
    assert [(about, reason) for about, reason, _ in told] == [("ml/train", "NoGpuNode")]
    assert "end at 2026-11-20T15:10Z at the earliest" in told[0][2]
    assert not course.stage.world.nodes
    assert [alert.kind for alert in course.stage.alerts] == ["finding-deadline"]


def test_a_job_that_was_taken_on_goes_on_when_it_will_be_late() -> None:
    """It is bought on-demand at once, whatever it costs: a deadline that has passed loses no job."""
    course = Course([])
    course.cloud.empty = True
    course.job(1.0, 1.5)
    course.stage.wait(2 * HOUR)
    course.cloud.empty = False
    course.stage.tick()
    assert course.stage.nodes("od") == 1


def test_waiting_for_spot_is_told_once_with_its_figures() -> None:
    """As an Event and in the record that ``why`` reads: what it is expected to cost, and when on-demand begins."""
    course = Course([])
    course.cloud.up = False
    course.job(3.0, 9.0)
    course.stage.minutes(5)
    told = [why for _, _, reason, why in course.stage.deps.cluster.told if reason == "WaitsForSpot"]  # type: ignore[attr-defined]
    assert len(told) == 1
    assert "waiting for spot costs least; $" in told[0]
    assert "on-demand at 11-20 17:51 at the latest" in told[0]


def test_work_that_keeps_nothing_on_spot_is_moved_to_on_demand_in_time() -> None:
    """A job whose checkpoints do not come: room is bought, it leaves when that is ready, and its spot node goes."""
    course = Course([])
    course.job(2.0, 3.2)
    stage = course.stage
    stage.minutes(6)
    [job] = stage.world.running.values()
    job.demands = tuple(msgspec.structs.replace(d, shape=_saves_by_the_day(d)) for d in job.demands)
    job.placement = [placed._replace(demand=job.demands[0]) for placed in job.placement]
    [node] = stage.world.nodes.values()
    node.update_room()
    stage.minutes(85, meanwhile=lambda: go_on(stage.deps))
    assert [node.pool for node in stage.world.nodes.values()] == ["od"]
    assert any("on spot it may be late" in alert.why for alert in stage.alerts)
    assert list(stage.world.running)


def test_a_pool_that_only_grows_is_left_for_no_deadline() -> None:
    """In mode scale-up people move their work: nobody begins to, however late it will be."""
    course = Course([])
    course.job(2.0, 3.2)
    stage = course.stage
    stage.minutes(6)
    [job] = stage.world.running.values()
    job.demands = tuple(msgspec.structs.replace(d, shape=_saves_by_the_day(d)) for d in job.demands)
    job.placement = [placed._replace(demand=job.demands[0]) for placed in job.placement]
    [node] = stage.world.nodes.values()
    node.update_room()
    stage.deps = replace(stage.deps, mode="scale-up")
    stage.minutes(60, meanwhile=lambda: go_on(stage.deps))
    assert list(interruption_records.every(stage.deps.state, "c")) == []
    assert interruption_records.open_interruptions(stage.deps) == []
    assert list(stage.world.running) == ["uid-train"]


def _saves_by_the_day(demand: PodDemand) -> PodShape:
    fields = {name: getattr(demand.shape, name) for name in PodShape.__struct_fields__}
    return shape(**{**fields, "checkpoint_s": 86_400.0, "key": ""})


def test_a_budget_that_has_no_room_is_not_passed_for_a_deadline() -> None:
    """On-demand is refused and told as for any pod; nothing is bought beyond the budget."""
    budget = Budget(name="small", scope="all", usd=Decimal("0.50"), period="day")
    rules = msgspec.structs.replace(RULES, max_runtime=4 * HOUR)
    course = Course([False] * 12, classes={"batch": rules}, budgets=(budget,))
    course.cloud.up = False
    course.job(1.0, 2.0)
    course.play()
    assert not course.stage.events("launch")
    assert any(alert.kind == "refused" and "budget small" in alert.why for alert in course.stage.alerts)


@given(
    work_h=st.floats(0.1, 200),
    spare_h=st.floats(0, 400),
    saved=st.floats(0, 1),
    boot_s=st.floats(0, 3600),
    pull_s=st.floats(0, 3600),
    rate=st.floats(0, 3),
    up=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_no_choice_leaves_on_demand_too_little_time(
    work_h: float, spare_h: float, saved: float, boot_s: float, pull_s: float, rate: float, up: bool
) -> None:
    """Whoever waits or takes spot could still, two looks later, start on on-demand, pull its image and do all that is
    not saved.
    """
    due = Due(job="j", by=START + timedelta(hours=work_h + spare_h), work_s=work_h * HOUR)
    memory = Memory(due={"j": DueJob(at=0.0, saved_s=saved * work_h * HOUR)})
    sold = (msgspec.structs.replace(_offering(kind, boot_s, rate), pull_s=pull_s) for kind in ("on-demand", "spot"))
    sure, spot = (Candidate(one, 1, 1.0) for one in sold)
    stands = job_standing(due, [sure], memory, 60.0)
    choice = choose_for_job(due, stands, [spot] if up else [], [] if up else [spot], [sure], 600.0, START)
    left_s = (1 - saved) * work_h * HOUR
    if choice.capacity != "on-demand":
        assert START + timedelta(seconds=2 * MINUTE + boot_s + pull_s + 60 + left_s) <= due.by + timedelta(seconds=1)


def _offering(kind: CapacityType, boot_s: float, rate: float) -> Offering:
    return Offering(
        pool=kind,
        instance_type="one",
        capacity_type=kind,
        gpu_model="T4",
        gpus=1,
        usd_per_hour=Decimal("0.3") if kind == "spot" else Decimal(1),
        boot_s=boot_s,
        interruptions_per_hour=rate,
    )


@pytest.mark.parametrize(("away_h", "waits"), [(0.5, True), (60.0, False)], ids=["back soon", "away for days"])
def test_how_long_spot_is_away_is_what_its_zone_lived_through(away_h: float, waits: bool) -> None:
    """Where spells without it were short a job is expected to pay less for waiting than where they were long."""
    due = Due(job="j", by=START + timedelta(hours=16), work_s=8 * HOUR)
    lives = {"one/a": Lives(at=0.0, away=20.0, away_h=20 * away_h)}
    od = Candidate(_offering("on-demand", 180, 0.05), 1, 1.0)
    spot = Candidate(msgspec.structs.replace(_offering("spot", 180, 0.05), zone="a"), 1, 1.0)
    made = shape(gpu=GpuRequest(count=1), due=due, checkpoint_s=600)
    held = Eligible((od,), (), held=((spot, "backoff", "just refused"),))
    found, prior = (narrow_to_deadline(held, made, POLICY, Memory(lives=known), START) for known in (lives, {}))
    assert found.candidates == prior.candidates == ()
    assert (_expected(found.why) < _expected(prior.why)) is waits


def _expected(why: str) -> float:
    """The dollars that a choice says it is expected to cost."""
    return float(why.partition("; $")[2].partition(" ")[0])


def on_demand_with_time(ups: list[bool], takes_s: float) -> Course:
    """A job that had no time but for on-demand, whose owner has then moved its deadline six hours away."""
    course = Course(ups)
    course.cloud.up = False
    course.job(3.0, 3.4)
    stage = course.stage
    stage.minutes(20)
    assert [node.pool for node in stage.world.nodes.values()] == ["od"]
    [job] = stage.world.running.values()
    later = stage.world.clock.now() + timedelta(hours=9)
    moved = [msgspec.structs.replace(d, shape=_due_by(d, later), checkpoint_takes_s=takes_s) for d in job.demands]
    job.demands = job.original = tuple(moved)
    job.placement = [placed._replace(demand=job.demands[0]) for placed in job.placement]
    [node] = stage.world.nodes.values()
    node.update_room()
    return course


def _due_by(demand: PodDemand, by: datetime) -> PodShape:
    fields = {name: getattr(demand.shape, name) for name in PodShape.__struct_fields__}
    due = msgspec.structs.replace(fields["due"], by=by)
    return shape(**{**fields, "due": due, "key": ""})


def test_a_job_on_demand_goes_back_to_spot_where_its_slack_allows() -> None:
    """Room on spot is ready before it leaves; it saves, moves, ends in time, and its node on demand goes."""
    course = on_demand_with_time([True] * 40, 20.0)
    course.play()
    stage = course.stage
    assert course.late_s <= 0
    launched = [r["capacity_type"] for r in stage.log if r["event"] == "launch"]
    assert launched == ["on-demand", "spot"]
    [ready] = [r["t"] for r in stage.events("ready")][1:]
    [left] = [r["t"] for r in stage.events("stop") if r["reason"] != "done"]
    assert left >= ready
    assert float(stage.world.cost()) < 1.0 + 3.0 * 0.5
    assert any("back-to-spot" in alert.what for alert in stage.alerts)


STAYS_ON_DEMAND = {"spot is refused": ([False] * 30, 20.0), "it cannot save when it is asked": ([True] * 30, 0.0)}


@pytest.mark.parametrize(("ups", "takes_s"), STAYS_ON_DEMAND.values(), ids=STAYS_ON_DEMAND)
def test_a_job_stays_on_demand(ups: list[bool], takes_s: float) -> None:
    """It is not stopped, and nothing else is bought on demand for it."""
    course = on_demand_with_time(ups, takes_s)
    course.play()
    assert [r["capacity_type"] for r in course.stage.log if r["event"] == "launch"] == ["on-demand"]
    assert [r["reason"] for r in course.stage.events("stop")] == ["done"]
    told = [reason for _, _, reason, _ in course.stage.deps.cluster.told]  # type: ignore[attr-defined]
    assert "CheckpointNow" not in told
    assert "Cordoned" not in told
    assert not any("back-to-spot" in alert.what for alert in course.stage.alerts)
