"""A device that several pods hold costs once: its price is split among them, and all totals add up."""

from decimal import Decimal
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.utilisation.gpu_waste import Waste, waste
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.tools.advice.weeks_of_use import total, weeks

PRICE = Decimal(3)
STEP = 600


def series(pod: str, device: str, *activity: float) -> GpuSeries:
    """A pod on a device, or on a share of one ("GPU-1/vgpu0")."""
    return GpuSeries(pod=pod, device=device, part="/" in device, activity=activity, memory=[1000.0 for _ in activity])


def found(*given_: GpuSeries) -> list[Waste]:
    """Each pod its own owner."""
    telemetry = Telemetry(start_s=0, step_s=STEP, series=given_)
    return sorted(waste(telemetry, PRICE, 240, owner=lambda pod: pod), key=lambda row: row.owner)


def test_pods_that_share_a_device_split_its_price() -> None:
    """Two by time-slicing and one alone: two devices, not three pods, are paid for."""
    day = (0.5,) * 144
    a, b, c = found(series("a", "GPU-1/vgpu0", *day), series("b", "GPU-1/vgpu1", *day), series("c", "GPU-2", *day))
    assert (a.usd_per_hour, b.usd_per_hour, c.usd_per_hour) == (Decimal("1.5"), Decimal("1.5"), PRICE)
    assert (a.held, c.held) == (0.5, 1)
    assert a.slices == ()


def test_a_pod_that_is_left_alone_has_the_whole_device_from_then_on() -> None:
    """Its part is by the moment: half while both were there, all since the other has gone."""
    a, b = (series("a", "GPU-1/vgpu0", *(0.5,) * 12), series("b", "GPU-1/vgpu1", *(0.5,) * 6, *(nan,) * 6))
    (row,) = found(a, b)
    assert (row.owner, row.usd_per_hour) == ("a", PRICE)
    hours = total(weeks(Telemetry(start_s=0, step_s=STEP, series=(a, b))))
    assert (hours.held, hours.working) == pytest.approx((2.0, 1.0))


def test_an_idle_pod_wastes_its_part_alone() -> None:
    """Three silent pods on one device waste one device's price together."""
    quiet = (0.0,) * 144
    rows = found(*(series(f"p{n}", f"GPU-1/vgpu{n}", *quiet) for n in range(3)))
    assert [len(row.idle) for row in rows] == [1, 1, 1]
    assert sum(row.idle_usd for row in rows) == pytest.approx(PRICE)
    assert all(row.rest_usd == 0 for row in rows)


PODS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["GPU-1", "GPU-1/1", "GPU-1/2", "GPU-2", "n1/0", ""]),
        st.lists(st.sampled_from([0.0, 0.4, 1.0, nan]), min_size=12, max_size=12),
    ),
    max_size=7,
)


@given(PODS)
def test_totals_are_of_devices_however_they_are_shared(given_: list[tuple[str, str, list[float]]]) -> None:
    """At the end each device that was measured costs once, in parts that add up; and so does each of its hours."""
    made = [
        GpuSeries(
            pod=f"{pod}-{n}", device=device, part="GPU" in device and "/" in device, activity=values, memory=values
        )
        for n, (pod, device, values) in enumerate(given_)
    ]
    telemetry = Telemetry(start_s=0, step_s=STEP, series=tuple(made))
    rows = waste(telemetry, PRICE, 240, owner=lambda pod: pod[0])
    names = [
        device.partition("/")[0] if "GPU" in device else device or f"#{n}" for n, (_, device, _) in enumerate(given_)
    ]

    def lit(at: int) -> int:
        return len({name for name, one in zip(names, made, strict=True) if not isnan(one.activity[at])})

    assert sum(row.usd_per_hour for row in rows) == pytest.approx(PRICE * lit(-1) if made else 0)
    for row in rows:
        assert row.idle_usd + row.beyond_usd + row.spare_usd <= row.usd_per_hour + Decimal("1e-9")
        assert float(PRICE) * row.held == pytest.approx(float(row.usd_per_hour))
    hours = sum(lit(at) for at in range(12)) / 6 if made else 0
    assert total(weeks(telemetry)).held == pytest.approx(hours)
