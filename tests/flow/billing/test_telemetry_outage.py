"""What becomes of telemetry moves no release: nodes come and go to the minute as they do without it."""

from dataclasses import replace
from math import nan
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import ClassPolicy, ReclaimPolicy
from pilotlight.facts.utilisation.telemetry import GpuSeries, Telemetry
from pilotlight.flow.billing.billing_tick import billing

RULE = ReclaimPolicy(idle=1200, grace=600, who="all")


class Broken:
    """Telemetry that goes from one state to the next at each look."""

    def __init__(self, states: list[str]) -> None:
        self._states, self._looks = states, 0

    def past(self, end_s: float) -> Telemetry:
        """Nothing is kept for longer."""
        return Telemetry(start_s=end_s, step_s=60)

    def read(self, start_s: float, end_s: float, step_s: float) -> Telemetry:
        """Nothing, nobody, missing, negative or stale figures."""
        state = self._states[self._looks % len(self._states)]
        self._looks += 1
        if state == "outage":
            raise Unavailable("prometheus does not answer")
        count = int((end_s - start_s) / step_s) + 1
        values: dict[str, list[float]] = {
            "missing": [nan] * count,
            "negative": [-0.5] * count,
            "ended": [0.0] * (count - 30) + [nan] * 30,
        }
        series = tuple(
            GpuSeries(pod=f"ml/p{n}", device=f"GPU-{n}", activity=values[state], memory=values["missing"])
            for n in range(3)
            if state in values
        )
        return Telemetry(start_s=start_s, step_s=step_s, metric="DCGM_FI_DEV_GPU_UTIL", series=series)


def lives(runs_s: list[int], telemetry: Any) -> list[tuple[int, int, int]]:
    """Live nodes by pool, and pods that run, at each minute of three quarters of an hour."""
    stage = Stage(classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=300, reclaim=RULE)})
    stage.deps = replace(stage.deps, telemetry=telemetry)
    seen = []
    for n, run_s in enumerate(runs_s):
        stage.event(stage.submit(f"p{n}", run_s=float(run_s), workload_class="batch"))
    for _ in range(45):
        stage.minutes(1, lambda: billing(stage.deps, Tick(cluster="c")))
        seen.append((stage.nodes("one"), stage.nodes("eight"), len(stage.world.running)))
    return seen


@settings(max_examples=3, deadline=None)
@given(
    st.lists(st.sampled_from([300, 1500, 4000]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["outage", "absent", "missing", "negative", "ended"]), min_size=1, max_size=4),
)
def test_no_state_of_telemetry_moves_a_release(runs_s: list[int], states: list[str]) -> None:
    """Neither earlier nor later nor another node, though idle owners would be put to rest if they were known."""
    assert lives(runs_s, Broken(states)) == lives(runs_s, None)
