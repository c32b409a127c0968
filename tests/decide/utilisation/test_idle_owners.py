"""Who of the idle is told, waits, rests or is left alone; what is not known is never put to rest."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import nan
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.decide.utilisation.idle_owners import idle, reclaim, working
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.policy import ReclaimPolicy
from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner, Reclaim, ReclaimStep, SilentPod
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.facts.workload import GpuRequest

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
RULES = {"notebook": ReclaimPolicy(idle=1800, grace=600, who="all")}
OWNER = PodOwner(kind="Notebook", namespace="ml", name="ada")
STEP_S, SAMPLES = 60.0, 121


def node(**traits: Any) -> Node:
    """A node of one GPU with the notebook's pod."""
    pod = BoundPod(
        uid="u",
        namespace="ml",
        name="ada-0",
        gpu=traits.pop("gpu", GpuRequest(count=1)),
        workload_class=traits.pop("workload_class", "notebook"),
        team="vision",
        started_at=traits.pop("started_at", NOW - timedelta(hours=3)),
    )
    return Node(
        name="n1",
        pool="a100",
        instance_type="one",
        capacity_type="on-demand",
        created_at=NOW - timedelta(hours=3),
        ready=True,
        devices=(0,),
        pods=(pod,),
    )


def telemetry(*activity: Sequence[float], end: datetime = NOW, devices: Sequence[str] = ("d0", "d1")) -> Telemetry:
    """One series a device, on a grid that ends then."""
    samples = max(map(len, activity), default=0)
    start = end - timedelta(seconds=(samples - 1) * STEP_S)
    series = tuple(
        GpuSeries(pod="ml/ada-0", device=name, activity=values, memory=[nan] * len(values))
        for name, values in zip(devices, activity, strict=False)
    )
    return Telemetry(start_s=start.timestamp(), step_s=STEP_S, metric="DCGM_FI_DEV_GPU_UTIL", series=series)


SILENT = [0.0] * SAMPLES


def found(read: Telemetry, **traits: Any) -> list[SilentPod]:
    """The idle pods of one node at $2 an hour."""
    return idle(read, [node(**traits)], RULES, {"n1": Decimal(2)}, NOW)


def test_a_pod_that_was_silent_all_along_is_idle_with_its_evidence() -> None:
    """How long, by which metric, and what it costs."""
    [pod] = found(telemetry(SILENT))
    assert (pod.full_name, pod.silent_s, pod.usd_per_hour) == ("ml/ada-0", 7200, Decimal(2))
    assert pod.evidence == (
        "1 GPU idle for 2.0 h by DCGM_FI_DEV_GPU_UTIL "
        "(0 of 0 such silences ended within 4 h, 0 of 0 of its own; "
        "work at these hours on 0 of 0 days, its own on 0 of 0)"
    )


@pytest.mark.parametrize(
    ("read", "traits"),
    [
        pytest.param(telemetry(), {}, id="telemetry is absent"),
        pytest.param(telemetry(SILENT, end=NOW - timedelta(minutes=10)), {}, id="the grid ended ten minutes ago"),
        pytest.param(telemetry(SILENT, end=NOW + timedelta(minutes=10)), {}, id="the grid ends in the future"),
        pytest.param(telemetry([*SILENT[:-1], nan]), {}, id="the last sample is missing"),
        pytest.param(telemetry([*SILENT[:-9], nan, *SILENT[:8]]), {}, id="a sample within the time is missing"),
        pytest.param(telemetry([*SILENT[:-9], -0.5, *SILENT[:8]]), {}, id="a sample is negative"),
        pytest.param(telemetry([*SILENT[:-9], 0.9, *SILENT[:8]]), {}, id="it worked a moment ago"),
        pytest.param(telemetry([0.9] * 100 + [0.0] * 21), {}, id="it is silent for less than its time"),
        pytest.param(telemetry(SILENT, SILENT, devices=("d0", "d0")), {}, id="one device has two series"),
        pytest.param(telemetry(SILENT), {"gpu": GpuRequest(count=2)}, id="one of its two GPUs has no series"),
        pytest.param(telemetry(SILENT, SILENT), {}, id="there is a series more than it has GPUs"),
        pytest.param(telemetry(SILENT, SILENT[:50]), {"gpu": GpuRequest(count=2)}, id="a series is cut short"),
        pytest.param(telemetry(SILENT), {"started_at": NOW - timedelta(minutes=5)}, id="it has just started"),
        pytest.param(telemetry(SILENT), {"started_at": None}, id="nobody knows when it started"),
        pytest.param(telemetry(SILENT), {"workload_class": "serving"}, id="its class has no rule"),
    ],
)
def test_what_is_not_known_to_be_idle_is_not(read: Telemetry, traits: dict[str, Any]) -> None:
    """Each of these alone keeps a pod."""
    assert not found(read, **traits)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(allow_nan=True, allow_infinity=True)), min_size=1, max_size=70),
    st.sampled_from([(), ("d0",), ("d0", "d0"), ("d0", "d1"), ("d1", "d0", "d2")]),
    st.integers(-3600, 3600),
)
def test_no_odd_series_leads_to_an_idle_pod(values: list[float], devices: tuple[str, ...], late_s: int) -> None:
    """Only whole silence up to now of every device once: nothing missing, stale, doubled, reset or negative."""
    read = telemetry(*[values] * len(devices), devices=devices, end=NOW - timedelta(seconds=late_s))
    known = devices == ("d0",) and -60 <= late_s <= 300
    quiet = len(values) > 30 and all(0 <= value < 0.05 for value in values[-31:])
    if found(read):
        assert known
        assert quiet


def state(count: int = 1, *, opted: bool | None = True, **traits: Any) -> OwnerState:
    """The notebook as it is, which asked for it by its annotation."""
    return OwnerState(owner=OWNER, count=count, opted=opted, **traits)


def pod(silent_s: float = 7200) -> SilentPod:
    """Its idle pod."""
    [made] = found(telemetry(SILENT))
    return msgspec.structs.replace(made, silent_s=silent_s)


def step(was: Reclaim | None, now_state: OwnerState | None, at: datetime = NOW, **traits: Any) -> ReclaimStep | None:
    """The one step for the notebook."""
    shown = traits.get("pods", [pod()] if now_state else [])
    return next(
        iter(
            reclaim(
                [(one, now_state) for one in shown if now_state],
                {OWNER.key: was} if was else {},
                {OWNER.key: now_state},
                traits.get("rules", RULES),
                traits.get("acted_on", {"a100"}),
                traits.get("working", ()),
                at,
            )
        ),
        None,
    )


def noticed() -> Reclaim:
    """It was told ten minutes ago."""
    made = step(None, state(), NOW - timedelta(seconds=600), pods=[pod(7200 - 600)])
    assert made is not None
    assert made.do == "notice"
    assert made.became is not None
    return made.became


def test_an_idle_owner_is_told_first_and_rests_after_its_grace() -> None:
    """Not a second before."""
    was = noticed()
    assert step(was, state(), NOW - timedelta(seconds=1)) is None
    made = step(was, state())
    assert made is not None
    assert (made.do, made.became and (made.became.stage, made.became.count)) == ("rest", ("going", 1))


@pytest.mark.parametrize(
    ("now_state", "traits", "does"),
    [
        pytest.param(state(), {"working": {"ml/ada-0"}}, "drop", id="it works again"),
        pytest.param(None, {}, "drop", id="it is gone"),
        pytest.param(state(0), {}, "drop", id="somebody scaled it to zero"),
        pytest.param(state(opted=False), {}, "drop", id="its annotation says false"),
        pytest.param(state(), {"rules": {}}, "drop", id="its class has no rule any more"),
        pytest.param(state(), {"pods": []}, None, id="telemetry is away"),
        pytest.param(state(3), {}, None, id="two of its three pods are not idle"),
        pytest.param(state(), {"acted_on": ()}, None, id="its pool is not acted on"),
        pytest.param(state(), {"pods": [pod(300)]}, "drop", id="its silence began after it was told"),
        pytest.param(state(snoozed_until=NOW + timedelta(hours=1)), {}, "snooze", id="its annotation snoozes it"),
    ],
)
def test_after_the_notice_it_is_left_alone(
    now_state: OwnerState | None, traits: dict[str, Any], does: str | None
) -> None:
    """Whatever of these holds when its grace is over."""
    made = step(noticed(), now_state, **traits)
    assert (made.do if made else None) == does


def test_a_snooze_by_command_holds_to_its_end() -> None:
    """And after it the owner rests."""
    was = msgspec.structs.replace(noticed(), snoozed_until=NOW + timedelta(hours=1))
    assert step(was, state()) is None
    made = step(was, state(), NOW + timedelta(hours=1), pods=[pod(7200 + 3600)])
    assert made is not None
    assert made.do == "rest"


@pytest.mark.parametrize(
    ("who", "opted", "told"),
    [("annotated", None, False), ("annotated", True, True), ("all", None, True), ("all", False, False)],
)
def test_only_who_opted_in_is_told(who: Any, opted: bool | None, told: bool) -> None:
    """By the class for all, or each by its annotation."""
    rules = {"notebook": msgspec.structs.replace(RULES["notebook"], who=who)}
    sure = msgspec.structs.replace(pod(), called=True)
    assert (step(None, state(opted=opted), rules=rules, pods=[sure]) is not None) == told


@pytest.mark.parametrize(("opted", "told"), [(None, False), (True, True)])
def test_without_evidence_only_who_asked_for_it_itself_is_told(opted: bool | None, told: bool) -> None:
    """No silence was seen before, so nobody knows what this one means: the policy's time alone puts none to rest."""
    assert (step(None, state(opted=opted), pods=[pod()]) is not None) == told


def test_a_week_without_work_in_these_hours_is_evidence() -> None:
    """An owner that said nothing is told where the evidence calls its pod idle, as ``waste`` does."""
    week = GpuSeries(pod="ml/ada-0", device="d0", activity=[0.0] * 169, memory=())
    past = Telemetry(start_s=NOW.timestamp() - 168 * 3600, step_s=3600, metric="m", series=(week,))
    [sure] = found(msgspec.structs.replace(telemetry(SILENT), past=past))
    assert sure.called
    assert step(None, state(opted=None), pods=[sure]) is not None


def test_what_rests_stays_until_it_is_woken() -> None:
    """By whomever: then it has no record any more, and what is idle later is told anew."""
    was = msgspec.structs.replace(noticed(), stage="resting")
    assert step(was, state(0), pods=[]) is None
    made = step(was, state(1), pods=[])
    assert made is not None
    assert made.do == "drop"


def test_where_nothing_is_acted_on_it_is_advice() -> None:
    """And the notice comes first once its pool is acted on."""
    made = step(None, state(), acted_on=())
    assert made is not None
    assert made.became is not None
    assert (made.do, made.became.stage) == ("advise", "advised")
    later = step(made.became, state(), NOW + timedelta(seconds=600), pods=[pod(7800)])
    assert later is not None
    assert later.do == "notice"


def test_a_pod_that_worked_within_its_time_is_working() -> None:
    """What was never measured is not."""
    assert working(telemetry([*SILENT[:-9], 0.9, *SILENT[:8]]), RULES, [node()], NOW) == {"ml/ada-0"}
    assert working(telemetry([nan] * 60), RULES, [node()], NOW) == set()


@pytest.mark.parametrize(("siblings", "idle_now"), [(0.0, True), (0.9, False)])
def test_an_owners_other_pods_say_what_such_a_silence_means(siblings: float, idle_now: bool) -> None:
    """A pod without a past of its own is left alone where its siblings' silences were followed by work, as by waste."""
    turns = ([0.9] * 60 + [0.0] * 60) * 10 if siblings else [0.9] * 60 + [0.0] * 1140
    alone = telemetry([nan] * 1079 + [0.0] * 121)
    others = tuple(
        GpuSeries(pod=f"ml/ada-{n}", device=f"e{n}", activity=turns, memory=[nan] * 1200) for n in range(1, 4)
    )
    read = msgspec.structs.replace(alone, series=(*alone.series, *others))
    assert bool(found(read)) == idle_now
