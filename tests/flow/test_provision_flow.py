"""A pod-pending event: capacity is asked for once, whatever is repeated, late or refused."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from stage import MINUTE, Stage

from pilotlight.errors import (
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Retry,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.facts.messages import CapacityChanged
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.ports.clouds import OPEN, Gate
from pilotlight.world.faults import Faults
from pilotlight.world.world_pools import WorldPools


@pytest.mark.parametrize("boot_min", [3, 15, 30], ids=lambda m: f"a boot of {m} min")
def test_one_pending_pod_is_one_scale_up(boot_min: int) -> None:
    """An event every 5 s and a tick every minute until the node is ready: one launch (U2; S0's loop made 60)."""
    stage = Stage(boot_s=boot_min * MINUTE, gpu_ready_deadline=45 * MINUTE)
    pod = stage.submit("p")
    for second in range(0, int(boot_min * MINUTE), 5):
        if second % 60 == 0:
            stage.tick()
        stage.event(pod)
        stage.wait(5)
    assert (stage.world.launches, stage.world.pending, list(stage.world.running)) == (1, {}, ["uid-p"])
    stage.minutes(10)
    assert (stage.world.launches, stage.world.terminations) == (1, 0)


def test_a_boot_as_long_as_the_deadline_is_one_scale_up() -> None:
    """With the policy's own gpu_ready_deadline a 15-minute boot is still one scale-up and no release."""
    stage = Stage(boot_s=15 * MINUTE)
    pod = stage.submit("p")
    stage.event(pod)
    stage.minutes(30, lambda: stage.event(pod))
    assert (stage.world.launches, stage.world.terminations, list(stage.world.running)) == (1, 0, ["uid-p"])


def test_from_submit_to_scale_down() -> None:
    """A labelled job is submitted, detected, scaled up for, runs, ends: 1 up, 1 down, 2 alerts, no repeats (D5)."""
    stage = Stage()
    pod = stage.submit("gpu-test", run_s=10 * MINUTE)
    stage.wait(10)
    stage.event(pod)
    stage.event(pod)
    stage.minutes(60)
    assert [len(stage.events(name)) for name in ("launch", "start", "stop", "terminate")] == [1, 1, 1, 1]
    assert [a.kind for a in stage.alerts] == ["capacity-grow", "capacity-release"]
    assert len({a.fingerprint for a in stage.alerts}) == len({m.id for m in stage.outbox.sent}) / 2 == 2
    assert not stage.world.nodes


def test_the_answer_says_what_was_done_and_why() -> None:
    """The first event is answered with a decision; a repeat with the one that has the matter in hand."""
    stage = Stage()
    pod = stage.submit("p")
    first = stage.event(pod)
    assert first.decision
    assert len(first.did) == 1
    assert "one/one/on-demand" in first.did[0]
    again = stage.event(pod)
    assert (again.decision, again.did) == (first.decision, ())
    assert "capacity for ml/p is on its way: one/one/on-demand" in again.why


def test_a_second_delivery_of_one_event_is_answered_as_the_first() -> None:
    """The same identity twice: one decision, one purchase, and the second answer names it."""
    stage = Stage()
    pod = stage.submit("p")
    first, second = stage.event(pod, "uid-p/7"), stage.event(pod, "uid-p/7")
    assert (second.decision, second.did) == (first.decision, ())
    assert stage.world.launches == 1


def test_a_dry_run_changes_nothing() -> None:
    """It answers with the whole plan; no node, record, message or mark comes of it."""
    stage = Stage()
    pod = stage.submit("p")
    answer = stage.event(pod, dry_run=True)
    assert answer.plan is not None
    assert [b.pool for b in answer.plan.buys] == ["one"]
    assert (stage.world.launches, stage.outbox.sent, stage.deps.state.scan("").items) == (0, [], [])


def test_a_later_pod_gets_a_node_of_its_own() -> None:
    """Capacity on its way for one pod is not promised to the next."""
    stage = Stage()
    stage.event(stage.submit("a"))
    stage.wait(30)
    stage.event(stage.submit("b"))
    assert stage.world.launches == 2


def test_an_event_of_a_pod_that_is_gone_buys_nothing() -> None:
    """Events are hints: what is true is read from the cluster."""
    stage = Stage()
    gone = stage.submit("p", run_s=0)
    stage.event(gone)
    stage.wait(600)
    assert not stage.world.pending
    answer = stage.event(gone)
    assert (answer.decision, stage.world.launches) == ("", 1)


@pytest.mark.parametrize(
    "cap", [Caps(gpus=4), Caps(nodes=4), Caps(usd_per_hour=Decimal(4))], ids=["GPUs", "nodes", "$/h"]
)
def test_ten_events_at_once_never_pass_a_cap(cap: Caps) -> None:
    """Ten pods, ten deliveries in parallel, a cap of 4: never more than 4 GPUs are requested (U6)."""
    stage = Stage(caps=cap, pools={"one": PoolPolicy(instance_type="one", max=20)})
    pods = [stage.submit(f"p{n}") for n in range(10)]
    with ThreadPoolExecutor(10) as threads:
        list(threads.map(stage.event, pods))
    assert stage.world.launches == 4
    stage.minutes(5)
    assert stage.world.launches == 4
    assert len(stage.world.running) == 4
    refused = [a for a in stage.alerts if a.kind == "refused"]
    assert refused
    assert all("4" in a.why for a in refused)


def test_a_refusal_is_told_once() -> None:
    """A demand that a cap refuses is one alert, however often it is looked at."""
    stage = Stage(caps=Caps(nodes=0))
    stage.event(stage.submit("p"))
    stage.minutes(30)
    assert [a.kind for a in stage.alerts] == ["refused"]


FAULTS: dict[str, tuple[str, PilotlightError, bool]] = {
    "the API server is away": ("observe", Unavailable("API server"), False),
    "the cloud does not describe": ("describe", Unavailable("cloud"), False),
    "the cloud throttles the resize": ("grow", Throttled("slow down", 30), False),
    "the cloud is away at the resize": ("grow", Unavailable("cloud"), False),
    "no capacity": ("grow", NoCapacity("none left"), True),
    "the quota is reached": ("grow", QuotaExceeded("quota is 0"), True),
    "credentials are missing": ("grow", Forbidden("no rights"), True),
}


@pytest.mark.parametrize(("call", "error", "answered"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_end_in_a_retry_or_a_refusal(call: str, error: PilotlightError, answered: bool) -> None:
    """Each failure is asked again later or told to people; the pod gets one node in the end, never two (D6)."""
    stage = Stage(faults=Faults(api_errors=((call, error),)), pools={"one": PoolPolicy(instance_type="one", max=20)})
    pod = stage.submit("p", run_s=10 * 3600)
    if answered:
        stage.event(pod)
        (alert,) = stage.alerts
        assert alert.severity == "warning"
        assert str(error) in alert.why
    else:
        with pytest.raises(Retry):
            stage.event(pod)
        assert stage.alerts == []
    stage.minutes(60)
    assert stage.world.launches == 1
    assert list(stage.world.running) == ["uid-p"]


SPOT_POOLS = {
    "spot": PoolPolicy(instance_type="one", capacity_type="spot"),
    "od": PoolPolicy(instance_type="one"),
}


def test_spot_is_out_and_the_fallback_is_deny() -> None:
    """The pod waits for spot, its owner's people are told, and on-demand is not bought (I6)."""
    rules = ClassPolicy(capacity_types=("spot",), gpu_models="any")
    out = Faults(api_errors=(("grow", NoCapacity("no spot")),), reclaim=False)
    stage = Stage(pools=SPOT_POOLS, classes={"batch": rules}, faults=out)
    stage.event(stage.submit("p"))
    assert stage.world.launches == 0
    assert "no spot" in stage.alerts[0].why
    stage.minutes(5)
    assert [r["capacity_type"] for r in stage.events("launch")] == ["spot"]


def test_spot_is_out_and_the_fallback_is_allow() -> None:
    """On-demand is bought instead, and its dollars an hour are recorded (I6)."""
    rules = ClassPolicy(capacity_types=("spot",), fallback="allow", gpu_models="any")
    out = Faults(api_errors=(("grow", NoCapacity("no spot")),), reclaim=False)
    stage = Stage(pools=SPOT_POOLS, classes={"batch": rules}, faults=out)
    stage.event(stage.submit("p"))
    stage.minutes(1)
    assert [r["capacity_type"] for r in stage.events("launch")] == ["on-demand"]
    assert [a.usd_per_hour for a in stage.alerts if a.kind == "capacity-grow"] == ["1"]


def test_a_gang_is_bought_once_and_runs_together() -> None:
    """Four pods of eight GPUs: one purchase of four nodes, whichever of their events come."""
    stage = Stage(boot_s=10 * MINUTE)
    pods = stage.submit_gang("g", 4)
    for pod in pods:
        stage.event(pod)
    stage.minutes(12, lambda: stage.event(pods[0]))
    assert [r["type"] for r in stage.events("launch")] == ["eight"] * 4
    assert list(stage.world.running) == ["g"]


def test_seven_of_eight_nodes_are_none() -> None:
    """Where the cloud has room for seven of a gang's eight nodes, none is kept (D7)."""
    stage = Stage(faults=Faults(quota_nodes=7))
    pods = stage.submit_gang("g", 8)
    stage.event(pods[0])
    stage.minutes(20)
    assert stage.nodes("eight") == 0
    assert "g" in stage.world.pending


class LosesAnswer(WorldPools):
    """A cloud whose answer to one release is lost: the node is gone and nobody is told."""

    def __init__(self, pools: WorldPools, after: int) -> None:
        super().__init__(pools._world)
        self.left = after

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Give the node back; the answer to the one that ``after`` counts to is lost."""
        super().release(pool, instance, gate=gate)
        self.left -= 1
        if self.left == 0:
            raise Unsure("release timed out")


@pytest.mark.parametrize("after", [1, 3, 7], ids=["the first", "one in the middle", "the last"])
def test_a_roll_back_that_is_cut_short_tells_of_the_nodes_that_stayed(after: int) -> None:
    """A release of a gang's roll-back is lost: messages tell of the nodes the pool kept, and then that they went."""
    stage = Stage(faults=Faults(quota_nodes=7))
    stage.deps = replace(stage.deps, pools=LosesAnswer(stage.deps.pools, after))  # type: ignore[arg-type]
    pods = stage.submit_gang("g", 8)
    with pytest.raises(Unavailable):
        stage.event(pods[0])
    for minute in range(40):
        stage.minutes(1)
        assert minute == 0 or told(stage) == stage.nodes("eight")
    assert stage.nodes("eight") == 0


def told(stage: Stage) -> int:
    """The nodes that readers of the capacity messages count."""
    changes = [msgspec.json.decode(m.data, type=CapacityChanged) for m in stage.outbox.sent if m.topic == "capacity"]
    return sum(c.nodes if c.change == "grow" else -c.nodes for c in changes)


ATOMIC = {"eight": PoolPolicy(instance_type="eight", max=20, atomic=True)}


@pytest.mark.parametrize(("quota", "launched"), [(7, 0), (8, 8)], ids=["room for seven of eight", "room for all"])
def test_an_atomic_pool_is_asked_once_for_a_whole_gang(quota: int, launched: int) -> None:
    """The cloud grants all of a gang's nodes or none: nothing is ever bought that has to be given back."""
    stage = Stage(pools=ATOMIC, on_cloud={"atomic": True}, faults=Faults(quota_nodes=quota))
    answer = stage.event(stage.submit_gang("g", 8)[0])
    assert len(answer.did) == 1
    assert (stage.world.launches, stage.world.terminations) == (launched, 0)
    stage.minutes(10)
    assert (stage.world.launches, stage.world.terminations) == (launched, 0)
    assert list(stage.world.running) == (["g"] if launched else [])


class NoneToSpare(WorldPools):
    """A cloud that is out of the nodes of one pool."""

    def grow(self, pool: str, *args: Any, **options: Any) -> Any:
        """Refused for those."""
        if pool == "spare":
            raise NoCapacity("none to spare")
        return super().grow(pool, *args, **options)


def test_what_others_wait_for_stays_when_a_gang_lacks_a_part() -> None:
    """A node bought for some of a gang's pods and for another stays, though the gang's other node cannot be had."""
    stage = Stage(pools={name: PoolPolicy(instance_type="eight", max=1) for name in ("eight", "spare")})
    stage.deps = replace(stage.deps, pools=NoneToSpare(stage.world))
    stage.submit_gang("g", 3, gpus=3)
    stage.event(stage.submit("alone", gpus=2))
    stage.minutes(10)
    assert (stage.world.launches, stage.world.terminations) == (1, 0)
    assert list(stage.world.running) == ["uid-alone"]
