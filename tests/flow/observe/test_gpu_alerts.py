"""What monitoring says of GPUs: an alert on DCGM's figures closes a node as its own condition would."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from stage import Stage

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import decode
from pilotlight.codec.events.envelope import Delivery
from pilotlight.facts.messages import Alert
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.observe.gpu_health import keep
from pilotlight.settings import Settings
from pilotlight.state_schema.cluster_records import AILMENT
from pilotlight.units import HOUR
from pilotlight.wiring import app
from pilotlight.world.world_clock import VirtualClock


def posted(at: datetime, name: str = "GpuXid", *, over: bool = False, **labels: str) -> bytes:
    """What Alertmanager posts of one alert; by itself of GPU 0 of node n1."""
    labels = {"Hostname": "n1", "gpu": "0", **labels, "alertname": name, "severity": "critical", "cluster": "c"}
    notes = {"summary": "GPU 0 of n1 reported XID 79", "description": "a fault of the hardware"}
    times = {"startsAt": at.isoformat(), "endsAt": at.isoformat() if over else "0001-01-01T00:00:00Z"}
    one = {"labels": labels, "annotations": notes, "fingerprint": "9f1c", "status": "resolved" if over else "firing"}
    return json.dumps({"version": "4", "receiver": "pilotlight", "alerts": [{**one, **times}]}).encode()


class Told(Stage):
    """A node of one GPU on which a job works for five hours, and that monitoring speaks of."""

    def __init__(self, moves: bool = False, saves_s: float = 20.0, gang: Gang | None = None, **pool: Any) -> None:
        batch = ClassPolicy(gpu_models="any", idle_timeout=300, may_move=("sick-gpu",) if moves else ())
        super().__init__(pools={"one": PoolPolicy(instance_type="one", **{"max": 3, **pool})}, classes={"batch": batch})
        made = shape(gpu=GpuRequest(count=1), workload_class="batch", checkpoint_s=600.0, gang=gang)
        pod = PodDemand(
            uid="u", namespace="ml", name="j", shape=made, created_at=self.world.clock.now(), grace_s=20.0,
            checkpoint_takes_s=saves_s,
        )  # fmt: skip
        self.world.submit(pod, 5 * HOUR)
        self.event(pod)
        self.hours(0.5)

    def hears(self, name: str = "GpuXid", *, ago_s: float = 0, over: bool = False, **labels: str) -> None:
        """Alertmanager posts an alert that began, or ended, so long ago."""
        [one] = decode(posted(self.deps.now() - timedelta(seconds=ago_s), name, over=over, **labels), {}, cluster="c")
        assert isinstance(one, Delivery)
        assert isinstance(one.message, Alert)
        keep(self.deps.state, one.message)

    @property
    def closed(self) -> list[str]:
        """The nodes that take no new pods."""
        return [node.name for node in self.deps.cluster.observe().nodes if node.marked]


def test_an_xid_closes_its_node_is_told_and_the_node_goes_when_its_pod_is_done() -> None:
    """Its pod works on to its end; what comes next is bought beside it."""
    stage = Told()
    stage.hears()
    stage.hours(0.1)
    assert (stage.closed, list(stage.world.nodes)) == (["n1"], ["n1"])
    [told] = [alert for alert in stage.alerts if alert.kind == "finding-sick-gpu"]
    assert "alert GpuXid: GPU 0 of n1 reported XID 79" in told.why
    stage.event(stage.submit("next"))
    stage.hours(0.1)
    assert sorted(stage.world.nodes) == ["n1", "n2"]
    stage.hours(4.5)
    assert "n1" not in stage.world.nodes
    assert not [event for event in stage.events("stop") if event.get("reason") == "evicted"]


NOTHING: dict[str, dict[str, Any]] = {
    "an XID that a program causes": {"err_code": "31"},
    "another alert": {"name": "GpuHot"},
    "a node that is not there": {"Hostname": "n7"},
    "no node's name": {"Hostname": "../n1"},
    "a fault of the instance that had the name before": {"ago_s": 3 * HOUR},
}


@pytest.mark.parametrize("said", NOTHING.values(), ids=NOTHING)
def test_nothing_is_closed_for(said: dict[str, Any]) -> None:
    """An alert is a hint, and this one says nothing of the node's GPUs."""
    stage = Told()
    stage.hears(**said)
    stage.hours(0.1)
    assert stage.closed == []


def test_a_node_whose_alert_is_over_opens_and_old_news_do_not_close_it_again() -> None:
    """What began before its end was told comes late; what begins after it counts."""
    stage = Told()
    stage.hears("GpuMemoryFails")
    stage.hours(0.1)
    assert stage.closed == ["n1"]
    stage.hears("GpuMemoryFails", over=True)
    stage.hears("GpuMemoryFails", ago_s=300)
    stage.hours(0.1)
    assert stage.closed == []
    stage.hears("GpuMemoryFails")
    stage.hours(0.1)
    assert stage.closed == ["n1"]


def test_a_class_that_says_so_has_its_pod_saved_and_moved() -> None:
    """Another node first, then the checkpoint and the eviction; the sick one is given back."""
    stage = Told(moves=True)
    stage.hears()
    stage.hours(0.5)
    assert (list(stage.world.nodes), len(stage.world.running)) == (["n2"], 1)
    assert next(a.what for a in stage.alerts if a.kind == "interruption").startswith("sick-gpu of n1 of pool one")
    (ready,) = [event["t"] for event in stage.events("ready") if event["node"] == "n2"]
    (left,) = [event["t"] for event in stage.events("stop")]
    assert left >= ready


STAYS: dict[str, dict[str, Any]] = {
    "its class does not say so": {"moves": False},
    "it cannot save when it is asked": {"saves_s": 0.0},
    "it is one of a gang": {"gang": Gang(key="g", size=1)},
    "there is no second node to be had": {"max": 1},
    "its pool only buys": {"mode": "scale-up"},
}


@pytest.mark.parametrize("rules", STAYS.values(), ids=STAYS)
def test_a_pod_works_on_where(rules: dict[str, Any]) -> None:
    """Nobody is evicted for a GPU that may be another's."""
    stage = Told(**{"moves": True, **rules})
    stage.hears()
    stage.hours(2)
    assert (list(stage.world.nodes), stage.events("stop")) == (["n1"], [])


def test_the_web_hook_of_alertmanager_is_kept_beside_the_alerts(clock: VirtualClock) -> None:
    """Told to people as ever, and kept for the tick; again while it goes on, though it is told once."""
    alerts = MemoryState(clock)
    house = app(
        Settings(),
        policy=Policy(version=1),
        state=MemoryState(clock),
        alerts=alerts,
        outbox=MemoryOutbox(),
        clock=clock,
    )
    body = posted(clock.now())
    for _ in range(2):
        assert house.receive("alert_fanout", body, {}).status == 200
        [kept] = AILMENT.scan(alerts)
        assert (kept.name, kept.value.over) == ("c/n1/9f1c", False)
        AILMENT.delete(alerts, kept.name)
    house.receive("alert_fanout", body, {}, dryrun=True)
    assert not list(AILMENT.scan(alerts))
