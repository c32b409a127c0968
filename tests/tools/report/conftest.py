"""A small run of two policies, made by hand, that every report test draws from."""

from collections.abc import Callable
from decimal import Decimal
from math import sin

import msgspec
import pytest

from pilotlight.tools.replay.traces.trace_job import Bounds, IdleHour, Point, Result, Spread
from pilotlight.tools.report.pages.replay_page import page


@pytest.fixture
def result() -> Callable[..., Result]:
    """A maker of results that differ from the usual one in what is named."""
    return _result


def _result(policy: str = "pilotlight", **changes: object) -> Result:
    """A replay's result: $120 for 40 GPU-hours on 50 paid, against a bound of $100."""
    fields: dict[str, object] = {
        "policy": policy,
        "trace": "openb_dev",
        "jobs": 4,
        "jobs_done": 4,
        "cost_usd": Decimal("120.00"),
        "gpu_hours": 40.0,
        "gpu_hours_paid": 50.0,
        "wait_s": Spread.of_waits([0.0, 0.0, 190.0, 190.0]),
        "delay_s": Spread.of_waits([0.0, 0.0, 190.0, 190.0]),
        "launches": 7,
        "terminations": 7,
        "interruptions": 0,
        "lost_gpu_hours": 0.0,
        "bound_usd": Bounds(fluid=Decimal("80.5"), integral=Decimal(100)),
    }
    return Result(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def run() -> list[Point]:
    """Three days: 8 GPUs paid and 6 in use, then 16 and 16, then nothing."""
    return [
        Point(t=0.0, gpus_paid=8, gpus_used=6, usd=Decimal(0), waiting=0),
        Point(t=86_400.0, gpus_paid=16, gpus_used=16, usd=Decimal(40), waiting=2),
        Point(t=172_800.0, gpus_paid=0, gpus_used=0, usd=Decimal(120), waiting=0),
        Point(t=259_200.0, gpus_paid=0, gpus_used=0, usd=Decimal(120), waiting=0),
    ]


PEERS = ("always-on", "cluster-autoscaler", "karpenter", "karpenter-pinned-to-one-zone", "keda", "s0-loop")


@pytest.fixture(scope="session")
def week_page() -> str:
    """The page of a week with peers that are much alike, one that is far dearer, and two jobs of a fortnight more."""
    runs = {name: _week(n) for n, name in enumerate(("pilotlight", *PEERS))}
    paid = {name: points[-1].usd for name, points in runs.items()}
    bound = Bounds(fluid=Decimal(30_000), integral=Decimal(41_744))
    results = [_result(name, cost_usd=usd, bound_usd=bound, launches=9267, jobs=10374) for name, usd in paid.items()]
    results[0] = msgspec.structs.replace(results[0], interruptions=12)
    waits = {name: [0.0] * (60 - 5 * n) + [190.0 * (1 + n)] * 40 for n, name in enumerate(runs)}
    idle = [IdleHour(start=3600.0 * n, usd=Decimal(f"{165.54 / (n + 1):.2f}"), gpus=16 * (n + 1)) for n in range(8)]
    note = "10,374 jobs: a week drawn by hand."
    return page(results, runs, waits, idle, title="Pilotlight replay", trace_note=note, notes=["Boots: 180 s."])


def _week(policy: int) -> list[Point]:
    """Three weeks of hours: a busy one, then two GPUs; each policy pays for a little more, at times of its own."""
    points, usd = [], 0.0
    for hour in range(21 * 24):
        used = max(2.0, 160 + 120 * sin(hour / 3.82) + 40 * sin(hour * 1.7)) if hour < 7 * 24 else 2.0
        idle = 600 - used if policy == 1 else used * (0.06 + 0.05 * abs(sin(hour * (policy + 1) / 7)))
        usd += 1.6 * (used + idle)
        points.append(
            Point(t=hour * 3600.0, gpus_paid=used + idle, gpus_used=used, usd=Decimal(f"{usd:.2f}"), waiting=3)
        )
    return points
