"""What goes wrong on the way to a node: calls that fail, nodes that never come, gangs that stay incomplete."""

from datetime import timedelta

import msgspec
import pytest
from test_brakes import CATALOG, Stage

from pilotlight.errors import Forbidden, NoCapacity, PilotlightError, Unsure
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import PodPending
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.provision import LOOKED, provision
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.world_jobs import demands_of
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool

GANG = "p4d.24xlarge"


def event(name: str, **fields: object) -> PodPending:
    """A pod-pending event."""
    return PodPending(cluster="local", namespace="default", name=name, uid=name, **fields)  # type: ignore[arg-type]


def records(stage: Stage) -> list[Record]:
    """Decisions that were filed, oldest first."""
    page = stage.app.state.scan("decision/local/")
    return [msgspec.json.decode(stored.value, type=Record) for _, stored in page.items]


def fail(stage: Stage, *errors: tuple[str, PilotlightError]) -> None:
    """Let the next calls of these names fail."""
    stage.world._errors = list(errors)


def test_a_call_whose_outcome_is_unknown_is_settled_by_reading_the_cloud() -> None:
    """The cloud times out: the record stays open, the next look finds nothing came, and buys once."""
    stage = Stage()
    fail(stage, ("grow", Unsure("timeout")))
    with pytest.raises(Unsure):
        stage.pod("a", run_s=600)
    assert stage.app.state.scan("open/local/").items
    stage.pass_(120)
    assert not stage.app.state.scan("open/local/").items
    assert stage.world.launches == 1
    assert [s.state for r in records(stage) for s in r.steps] == ["unknown", "done"]


@pytest.mark.parametrize(
    ("error", "minutes"),
    [
        pytest.param(NoCapacity("none left"), 2, id="no capacity is asked again after a minute"),
        pytest.param(
            Forbidden("no rights"), 31, id="missing rights are asked again after half an hour at the earliest"
        ),
    ],
)
def test_a_refusal_rests_by_its_kind(error: PilotlightError, minutes: int) -> None:
    """A refused offering is left alone for as long as its kind of refusal is likely to last, and people are told."""
    stage = Stage()
    fail(stage, ("grow", error))
    stage.pod("a", run_s=60)
    assert stage.alerts == ["capacity-denied"]
    stage.pass_((minutes - 2) * 60)
    assert stage.world.launches == 0
    stage.pass_(360)
    assert stage.world.launches == 1


def test_a_node_whose_gpu_never_comes_is_replaced_on_another_offering() -> None:
    """After gpu_ready_deadline it is given back with the dollars it wasted, and its offering rests."""
    stage = Stage(faults=Faults(gpu_lag_s=100_000))
    job = Job(job_id="a", submit_s=0, duration_s=60, gpus=1, models=("T4", "A10G"))
    stage.world.submit(demands_of(job, CATALOG), 60, job="a")
    provision(stage.app.deps, event("a"))
    first = next(iter(stage.world.nodes.values())).instance_type
    stage.pass_(1020)
    assert stage.world.launches == 2
    assert first not in [n.instance_type for n in stage.world.nodes.values()]
    (failed,) = [n for r in records(stage) for n in r.plan.releases]
    assert failed.failed
    assert "wasted" in failed.why
    assert failed.spent_usd


@pytest.mark.parametrize(("obtainable", "kept"), [pytest.param(7, 0, id="7 of 8"), pytest.param(8, 8, id="8 of 8")])
def test_a_gang_keeps_all_its_nodes_or_none(obtainable: int, kept: int) -> None:
    """Seven of eight nodes to be had: none is kept, at once; eight: all."""
    stage = Stage()
    pools = [
        WorldPool(name=p.name, instance_type=p.instance_type, max=obtainable) for p in stage.world.fleet.pools.values()
    ]
    stage.world.fleet.pools = {p.name: p for p in pools}
    job = Job(job_id="g", submit_s=0, duration_s=60, gpus=64, models=("A100",))
    stage.world.submit(demands_of(job, CATALOG), 60, job="g")
    provision(stage.app.deps, event("g-0"))
    assert len(stage.world.nodes) == kept


def test_events_too_old_to_trust_cost_one_look_a_minute() -> None:
    """A backlog of old events is a hint: the first leads to a look, the others of that minute to none."""
    stage = Stage()
    stage.world.advance(7200)
    job = Job(job_id="a", submit_s=0, duration_s=60, gpus=1, models=("T4",))
    stage.world.submit(demands_of(job, CATALOG), 60, job="a")
    old = stage.app.clock.now() - timedelta(hours=1)
    answers = [provision(stage.app.deps, event(f"p{n}", at=old, identity=f"i{n}")) for n in range(20)]
    assert answers[0].did
    seen = "the cluster was looked at for old events within this minute"
    assert all(a.why.endswith(seen) and not a.did for a in answers[1:])


def test_an_old_event_is_answered_about_its_own_pod() -> None:
    """A pod that the minute's look decided on is told its verdict; one that came later waits for the next look."""
    stage = Stage()
    stage.world.advance(7200)
    for name, gpus in (("a", 1), ("b", 99)):
        made = shape(gpu=GpuRequest(count=gpus))
        now = stage.app.clock.now()
        stage.world.submit(PodDemand(uid=name, namespace="default", name=name, shape=made, created_at=now), 60)
    old = stage.app.clock.now() - timedelta(hours=1)
    first, second, other = (
        provision(stage.app.deps, event(name, at=old, identity=name)) for name in ("a", "nobody", "b")
    )
    assert first.did
    assert (second.decision, second.why) == ("", f"default/nobody is decided on at the next look: {LOOKED}")
    assert other.decision == first.decision
    assert other.why.startswith("default/b: finding, ")
