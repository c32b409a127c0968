"""A small run of two policies, made by hand, that every report test draws from."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from pilotlight.facts.trace import Bounds, Point, Result, Spread


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
        "wait_s": Spread.of([0.0, 0.0, 190.0, 190.0]),
        "delay_s": Spread.of([0.0, 0.0, 190.0, 190.0]),
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
