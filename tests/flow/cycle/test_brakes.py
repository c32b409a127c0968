"""The brakes: a pause, limits of ten minutes, approval of large purchases, and the breaker of flapping pools."""

import re
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import PodPending, Tick
from pilotlight.facts.money.money_policy import ApproveOver, Caps, Limits
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.flow.cycle.planning import dry_run
from pilotlight.flow.provision import provision
from pilotlight.flow.reconcile import reconcile
from pilotlight.flow.records import brake_records, ledger
from pilotlight.settings import Settings
from pilotlight.tools.replay.run import catalog_pools
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.wiring import App
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

CATALOG = read_catalog((Path(__file__).parents[3] / "data/catalogs/replay.yaml").read_bytes(), "replay.yaml")
T4 = "g4dn.xlarge"


class Stage:
    """A world with one-GPU T4 pods, and the app of a policy before it."""

    def __init__(self, faults: Faults | None = None, **rules: object) -> None:
        pools = catalog_pools(CATALOG, "on-demand")
        classes = {"batch": ClassPolicy(gpu_models="any", idle_timeout=120)}
        policy = msgspec.structs.replace(Policy(version=1, pools=pools, classes=classes), **rules)  # type: ignore[arg-type]
        self.world = World(CATALOG, [WorldPool(name=n, instance_type=n) for n in pools], faults=faults)
        self.app = App(
            Settings(mode="act"),
            cluster=WorldCluster(self.world),
            pools=WorldPools(self.world),
            state=MemoryState(self.world.clock),
            outbox=MemoryOutbox(),
            clock=self.world.clock,
            policy=policy,
            catalog=CATALOG,
        )

    def pod(self, name: str, run_s: float = 60.0) -> None:
        """A pod comes that fits nothing, and its event arrives."""
        job = Job(job_id=name, submit_s=self.world.now_s, duration_s=run_s, gpus=1, models=("T4",))
        self.world.submit(demands_of(job, CATALOG), run_s, job=name)
        self.answer = provision(self.app.deps, PodPending(cluster="local", namespace="default", name=name, uid=name))

    def pass_(self, seconds: float) -> None:
        """Time passes, and a tick arrives each minute."""
        end = self.world.now_s + seconds
        while self.world.now_s < end:
            self.world.advance(self.world.now_s + 60)
            self.answer = reconcile(self.app.deps, Tick(cluster="local"))

    @property
    def said(self) -> list[str]:
        """Why, of the alerts that went out."""
        sent = self.app.outbox.sent  # type: ignore[attr-defined]
        return [msgspec.json.decode(m.data)["why"] for m in sent if m.topic == "alerts"]

    @property
    def alerts(self) -> list[str]:
        """Kinds of the alerts that went out."""
        sent = self.app.outbox.sent  # type: ignore[attr-defined]
        return [msgspec.json.decode(m.data)["kind"] for m in sent if m.topic == "alerts"]


def test_a_pause_stops_buying_and_resume_lets_the_next_tick_buy() -> None:
    """While paused nothing is bought, the alert says why once; after resume the waiting pod gets its node."""
    stage = Stage()
    brake_records.pause(stage.app.state, "local", "", "price check", stage.app.clock.now())
    stage.pod("a")
    stage.pass_(300)
    assert stage.world.launches == 0
    assert stage.alerts == ["capacity-stopped"]
    assert brake_records.resume(stage.app.state, "local", "")
    stage.pass_(60)
    assert stage.world.launches == 1


def test_a_pause_of_one_pool_leaves_the_others_alone() -> None:
    """A paused pool is not released from, and nothing else is stopped."""
    stage = Stage()
    stage.pod("a")
    brake_records.pause(stage.app.state, "local", "p4d.24xlarge", "maintenance", stage.app.clock.now())
    stage.pass_(900)
    assert (stage.world.launches, stage.world.terminations) == (1, 1)


def test_a_paused_pool_keeps_its_idle_nodes() -> None:
    """Nothing is put out while paused, however long it idles."""
    stage = Stage()
    stage.pod("a")
    brake_records.pause(stage.app.state, "local", T4, "debugging", stage.app.clock.now())
    stage.pass_(3600)
    assert stage.world.terminations == 0


@pytest.mark.parametrize(
    ("limits", "pods", "launched"),
    [
        pytest.param(Limits(nodes_added=2), 3, 2, id="no more nodes than the limit within ten minutes"),
        pytest.param(Limits(usd_per_hour_added=Decimal("0.60")), 3, 1, id="no more dollars an hour than the limit"),
    ],
)
def test_limits_hold_for_ten_minutes(limits: Limits, pods: int, launched: int) -> None:
    """What is over a limit waits until the window has moved on."""
    stage = Stage(caps=Caps(ten_minutes=limits))
    for n in range(pods):
        stage.pod(f"p{n}", run_s=7200)
    stage.pass_(300)
    assert stage.world.launches == launched
    stage.pass_(1500)
    assert stage.world.launches == pods


def test_no_more_nodes_go_than_the_limit_within_ten_minutes() -> None:
    """Releases over the limit wait."""
    stage = Stage(caps=Caps(ten_minutes=Limits(nodes_removed=1)))
    stage.pod("a")
    stage.pod("b")
    stage.pass_(480)
    assert stage.world.terminations == 1
    stage.pass_(600)
    assert stage.world.terminations == 2


def _waiting(stage: Stage) -> Record:
    return ledger.filed_records(stage.app.state, "local")[-1]


def test_a_purchase_over_the_threshold_waits_for_a_person() -> None:
    """Approval lets exactly the waiting purchase through; the next one asks again, and people are told how."""
    stage = Stage(caps=Caps(approve_over=ApproveOver(nodes=1)))
    stage.pod("a", run_s=7200)
    stage.pod("b", run_s=7200)
    stage.pass_(120)
    assert stage.world.launches == 1
    record = _waiting(stage)
    (held,) = record.plan.held
    assert (held.code, held.count) == ("approval", 1)
    assert "2 nodes would be lit, over 1" in held.why
    assert any(f"pilotlight approve {record.id}" in said for said in stage.said)
    now = stage.app.clock.now()
    brake_records.approve(stage.app.state, "local", record.id, {T4: 1}, now, "ann")
    stage.pass_(60)
    assert stage.world.launches == 2
    stage.pod("c", run_s=7200)
    stage.pass_(60)
    assert stage.world.launches == 2
    (again,) = {r.id for r in ledger.filed_records(stage.app.state, "local") if r.plan.held} - {record.id}
    assert any(f"pilotlight approve {again}" in said for said in stage.said)
    with pytest.raises(BadInput, match="already by ann, and decision"):
        brake_records.approve(stage.app.state, "local", record.id, {T4: 1}, now)


def test_an_approval_that_is_not_used_within_the_hour_allows_nothing() -> None:
    """What a person allowed an hour ago is asked again, at once and once."""
    stage = Stage(caps=Caps(approve_over=ApproveOver(nodes=1)))
    stage.pod("a", run_s=7200)
    stage.pod("b", run_s=7200)
    brake_records.approve(stage.app.state, "local", _waiting(stage).id, {T4: 1}, stage.app.clock.now())
    stage.world.advance(stage.world.now_s + 3601)
    stage.pass_(60)
    assert stage.world.launches == 1
    stage.pass_(60)
    assert len(_asked(stage)) == 2


def test_another_count_is_asked_for_at_once() -> None:
    """The approval of one node does not let two through, so people hear that it takes another."""
    stage = Stage(caps=Caps(approve_over=ApproveOver(nodes=1)))
    stage.pod("a", run_s=7200)
    stage.pod("b", run_s=7200)
    (one,) = _asked(stage)
    stage.pod("c", run_s=7200)
    brake_records.approve(stage.app.state, "local", one, {T4: 1}, stage.app.clock.now())
    stage.pass_(60)
    assert stage.world.launches == 1
    (two,) = set(_asked(stage)) - {one}
    brake_records.approve(stage.app.state, "local", two, {T4: 2}, stage.app.clock.now())
    stage.pass_(60)
    assert stage.world.launches == 3


def _asked(stage: Stage) -> list[str]:
    """The decisions that people were asked to approve."""
    return re.findall(r"pilotlight approve (\S+)", "\n".join(stage.said))


def test_a_dry_run_on_a_paused_cluster_buys_nothing_and_says_why() -> None:
    """Decide decides all of it: what a pause holds is neither in the plan's purchases nor called bought."""
    stage = Stage()
    brake_records.pause(stage.app.state, "local", "", "price check", stage.app.clock.now())
    stage.pod("a")
    answer = dry_run(stage.app.deps, releases=False)
    assert answer.plan is not None
    assert (answer.plan.buys, [held.code for held in answer.plan.held]) == ((), ["paused"])
    assert [group.verdict for group in answer.plan.pods] == ["waiting"]
    assert answer.why.startswith("dry run: buys nothing: paused since")
    assert stage.answer.outcome == "done"
    assert "buys 1" not in stage.answer.why


def _flap(stage: Stage, times: int, gap_s: float) -> None:
    for n in range(times):
        stage.pod(f"f{n}", run_s=30)
        while stage.world.terminations <= n:
            stage.pass_(60)
        stage.pass_(gap_s)


@pytest.mark.parametrize(
    ("gap_s", "flapping"),
    [
        pytest.param(60, True, id="bought again sooner than it may idle, three times in an hour"),
        pytest.param(300, False, id="bought again after longer than it may idle"),
    ],
)
def test_the_breaker_trips_on_flapping_alone(gap_s: float, flapping: bool) -> None:
    """A flapping pool is told once and idles for longer; buying never stops for it."""
    stage = Stage()
    _flap(stage, 5, gap_s)
    assert ("flapping" in stage.alerts) is flapping
    assert stage.world.launches == 5


def test_the_owner_of_a_refused_pod_is_told_once() -> None:
    """A pod over a cap gets an Event with the figures, at the first look and not at every tick."""
    stage = Stage(caps=Caps(nodes=1))
    stage.pod("a", run_s=3600)
    stage.pod("b", run_s=3600)
    stage.pass_(300)
    told = stage.app.deps.cluster.told  # type: ignore[attr-defined]
    assert [(pod, reason) for _, pod, reason, _ in told] == [("default/a", "GpuNodeBought"), ("default/b", "NoGpuNode")]
    assert "1 of 1 node lit" in told[1][3]
