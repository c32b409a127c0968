"""Waste as billing_tick finds it: once a day, by owner and dollars, and never from what was not measured."""

from dataclasses import replace
from math import nan
from typing import Any

import msgspec
import pytest
from stage import Stage

from pilotlight.decide.utilisation.idle_pods import silence
from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Alert, Tick
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.billing.waste_alert import STEPS_S, on_its_grid
from pilotlight.state_schema.marks import NOTICED
from pilotlight.units import HOUR
from pilotlight.world.world_cluster import WorldCluster

NAMES = ("ada-0", "bob-0")


class Site(Stage):
    """Notebooks that work for five minutes and then hold a GPU each, a night and more later."""

    def __init__(self, names: tuple[str, ...] = NAMES, pools: dict[str, PoolPolicy] | None = None) -> None:
        either = ClassPolicy(gpu_models="any", capacity_types=("on-demand", "spot"))
        super().__init__(classes={"notebook": either}, pools=pools)
        assert isinstance(self.deps.cluster, WorldCluster)
        self.read: Any = self.deps.cluster.telemetry
        self.deps = replace(self.deps, telemetry=self)
        pods = [self.submit(name, workload_class="notebook", run_s=30 * 86_400) for name in names]
        for job in self.world.pending.values():
            job.busy_s = 300.0
        for pod in pods:
            self.event(pod)
        self.wait(25 * HOUR)

    def past(self, end_s: float) -> Telemetry:
        """As ``read`` gives it, by ten minutes."""
        found: Telemetry = self.read(end_s - 7 * 24 * HOUR, end_s, 600.0)
        return found

    def bill(self) -> list[str]:
        """What one billing tick says of it."""
        return [line for line in billing(self.deps, Tick(cluster="c")).did if line.startswith("waste")]

    @property
    def told(self) -> list[Alert]:
        """What people were told of it."""
        return [alert for alert in self.alerts if alert.kind == "waste"]


def test_waste_is_told_by_owner_and_dollars_with_its_evidence() -> None:
    """Two notebooks of $1 each that did nothing for hours."""
    site = Site()
    lines = site.bill()
    evidence = (
        "1 of 1 GPUs, $1.00/h: 1 idle for 24.0 h or more (0 of 21 such silences ended within 4 h, "
        "0 of 2 of its own; work at these hours on 0 of 1 days, its own on 0 of 1)"
    )
    assert lines == [f"waste: ml/{owner}: {evidence}" for owner in ("ada", "bob")]
    [alert] = site.told
    assert alert.what == "2 GPUs of 2 owners are held and not used: $2.00/h"
    assert alert.why == f"by the world's activity: ml/ada: {evidence} | ml/bob: {evidence}"
    assert (alert.usd_per_hour, alert.severity, alert.fingerprint) == ("2.00", "info", "waste/2026-11-21")


def test_it_is_told_once_a_day_however_often_the_tick_comes() -> None:
    """Again on the next day; a tick that died before its mark tells the same day's fingerprint again, which is once."""
    site = Site()
    for _ in range(3):
        site.bill()
        site.wait(4 * HOUR)
    assert len(site.told) == 1
    site.wait(10 * HOUR)
    site.bill()
    assert [alert.fingerprint for alert in site.told] == ["waste/2026-11-21", "waste/2026-11-22"]
    again = Site()
    for name in ("waste-looked", "waste/2026-11-21"):
        again.bill()
        NOTICED.delete(again.deps.state, f"c/{name}")
    assert {alert.fingerprint for alert in again.told} == {"waste/2026-11-21"}


def test_less_than_a_dollar_is_said_and_nobody_is_bothered() -> None:
    """A notebook on a spot node of $0.25."""
    site = Site(("ada-0",), {"one": PoolPolicy(instance_type="one", capacity_type="spot", max=20)})
    assert ["$0.25/h" in line for line in site.bill()] == [True]
    assert site.told == []


def _down(*grid: float) -> Telemetry:
    raise Unavailable("prometheus does not answer")


def _spoilt(how: str, one: GpuSeries) -> tuple[GpuSeries, ...]:
    if how == "doubled":
        return one, one
    values = list(one.activity)
    values = [-1.0 for _ in values] if how == "negative" else [*values[:-60], *[nan] * 60]
    return (msgspec.structs.replace(one, activity=values),)


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        pytest.param(_down, "waste: telemetry: absent: prometheus does not answer", id="it does not answer"),
        pytest.param(lambda s, e, step: Telemetry(start_s=s, step_s=step), "2 GPU pods", id="it has no series"),
        pytest.param("negative", "2 GPU pods", id="every value is negative"),
        pytest.param("doubled", "2 GPU pods", id="every series is there twice"),
        pytest.param("late", "2 GPU pods", id="it ended an hour ago"),
    ],
)
def test_what_was_not_measured_is_said_to_be_absent_and_claimed_of_nobody(odd: Any, says: str) -> None:
    """Once an outage is over the next look tells."""
    site = Site()
    good = site.read

    def spoilt(*grid: float) -> Telemetry:
        read: Telemetry = good(*grid)
        return msgspec.structs.replace(read, series=tuple(new for one in read.series for new in _spoilt(odd, one)))

    site.read = odd if callable(odd) else spoilt
    [line] = site.bill()
    assert "telemetry: absent" in line
    assert says in line
    assert site.told == []
    site.read = good
    site.wait(6 * HOUR + 1)
    site.bill()
    assert len(site.told) == 1


def test_without_telemetry_the_tick_says_nothing_of_waste() -> None:
    """Nothing is set up, and nothing is written."""
    site = Site()
    site.deps = replace(site.deps, telemetry=None)
    assert site.bill() == []
    assert not list(NOTICED.scan(site.deps.state, "c/waste"))


class Scraped:
    """A GPU without work, scraped every so many seconds."""

    def __init__(self, every_s: float) -> None:
        self.every_s, self.asked = every_s, 0

    def past(self, end_s: float) -> Telemetry:
        """Nothing is kept for longer."""
        return Telemetry(start_s=end_s, step_s=HOUR)

    def read(self, start_s: float, end_s: float, step_s: float) -> Telemetry:
        """A step without a scrape in it has no sample."""
        self.asked += 1
        moments = [start_s + n * step_s for n in range(int((end_s - start_s) / step_s) + 1)]
        activity = [0.0 if at // self.every_s > (at - step_s) // self.every_s else nan for at in moments]
        return Telemetry(
            start_s=start_s, step_s=step_s, series=(GpuSeries(pod="ml/a", activity=activity, memory=activity),)
        )


@pytest.mark.parametrize(
    ("every_s", "step_s", "asked"),
    [
        pytest.param(15.0, 60.0, 1, id="every 15 seconds: by the minute, asked once"),
        pytest.param(120.0, 120.0, 2, id="every two minutes: by two minutes"),
        pytest.param(300.0, 300.0, 3, id="every five minutes: by five"),
        pytest.param(1800.0, 60.0, 4, id="twice an hour: what is missing stays missing"),
    ],
)
def test_a_grid_is_no_finer_than_what_is_scraped(every_s: float, step_s: float, asked: int) -> None:
    """Or each step in between would end every silence, and nothing were ever idle."""
    scraped = Scraped(every_s)
    read = on_its_grid(scraped, 0.0, 2 * HOUR)
    assert (read.step_s, scraped.asked) == (step_s, asked)
    whole = silence(read.series[0].activity) >= read.samples - 1
    assert whole == (every_s < 1800)


def test_a_step_that_no_sample_meets_is_not_taken_for_the_grid() -> None:
    """One minute of three has a figure, and coarser steps meet only those that have none."""

    class OneOfThree:
        """A GPU whose last sample of each coarser step is none."""

        def read(self, start_s: float, end_s: float, step_s: float) -> Telemetry:
            row = [0.6, nan, nan] * 3 + [0.6]
            series = (GpuSeries(pod="ml/ada-0", activity=row, memory=[nan] * 10),) if step_s == STEPS_S[0] else ()
            return Telemetry(start_s=start_s, step_s=step_s, series=series)

        def past(self, end_s: float) -> Telemetry:
            return self.read(end_s - HOUR, end_s, HOUR)

    read = on_its_grid(OneOfThree(), 0, 540)
    assert (read.step_s, len(read.series)) == (STEPS_S[0], 1)
