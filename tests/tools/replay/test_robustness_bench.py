"""`bench/replays/ablation.py`, `robustness.py` and `bench_replay.py`: what they switch, compare and refuse."""

from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

import ablation
import bench_replay
import robustness
from by_hour import Hours
from pilotlight.decide.nodes.spares import spare_nodes
from pilotlight.errors import BadInput
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import write_trace
from pilotlight.tools.replay.traces.trace_job import Bounds, Job, Result, Spread
from pilotlight.units import HOUR

HOURLY = tuple(
    Job(job_id=f"j{at:02}", submit_s=at * 700.0, duration_s=300.0, gpus=1, models=("T4",)) for at in range(8)
)
NONE = Spread(mean=0.0, p50=0.0, p95=0.0, p99=0.0, max=0.0)
RESULT = Result(
    policy="pilotlight",
    trace="t",
    jobs=10,
    jobs_done=10,
    cost_usd=Decimal(110),
    gpu_hours=1.0,
    gpu_hours_paid=2.0,
    wait_s=replace(NONE, mean=36.0),
    delay_s=NONE,
    launches=1,
    terminations=1,
    interruptions=0,
    lost_gpu_hours=0.0,
    bound_usd=Bounds(fluid=Decimal(100), integral=Decimal(100)),
)


def cost(usd: int, wait_s: float) -> Result:
    """A run of so many dollars and so long a wait."""
    return replace(RESULT, cost_usd=Decimal(usd), wait_s=replace(NONE, mean=wait_s))


@pytest.mark.parametrize("idea", ablation.PATCHES)
def test_each_idea_is_off_only_while_it_is_tried(idea: str) -> None:
    """What an idea is made of is another thing inside, and the same as before afterwards."""
    patches = ablation.PATCHES[idea]
    before = [getattr(where, name) for where, name, _ in patches]
    with ablation.without(idea):
        assert [getattr(where, name) for where, name, _ in patches] == [instead for *_, instead in patches]
    assert [getattr(where, name) for where, name, _ in patches] == before


def test_hours_say_nothing_before_two_cycles_and_then_how_busy_each_is() -> None:
    """A pool asked for at nine every day: nine is busier than the mean after two days, and every hour is 1 before."""
    hours = Hours(24)
    hours.began_s, hours.counts[9] = 0.0, 5.0
    assert hours.busy(9 * HOUR, 47 * HOUR) == hours.busy(3 * HOUR, 47 * HOUR) == 1.0
    assert hours.busy(9 * HOUR, 48 * HOUR) > 10 > 1 > hours.busy(3 * HOUR, 48 * HOUR) > 0
    assert hours.factors(72 * HOUR + 8 * HOUR, 72 * HOUR + 9 * HOUR)[-1] == pytest.approx(
        hours.busy(9 * HOUR, 80 * HOUR)
    )


def test_rates_by_the_hour_are_on_only_while_they_are_tried() -> None:
    """The replay of an idea tried on top has other spares, and the product's own afterwards."""
    with ablation.without("with rates by the hour of the day"):
        assert spare_nodes.Spares.__name__ == "ByHour"
    assert spare_nodes.Spares.__name__ == "Spares"


def test_without_spares_every_pod_that_comes_late_waits() -> None:
    """The ideas change runs: pods that come regularly find a spare, and find none where it is switched off."""
    scenario = Scenario(placement="affinity")
    late = tuple(replace(job, duration_s=900.0) for job in HOURLY)
    on, off = (
        ablation.one(idea, late, 300.0, scenario) for idea in (ablation.ALL_ON, "buying ahead: spares are only kept")
    )
    assert on.jobs_done == off.jobs_done == len(HOURLY)
    assert on.cost_usd > off.cost_usd


def test_a_regular_job_keeps_the_node_that_it_had() -> None:
    """Jobs one after another, each idle before the next: a few nodes are launched while that is learned, then none."""
    jobs = tuple(replace(HOURLY[0], job_id=f"j{at:02}", submit_s=at * 700.0) for at in range(31))
    result = ablation.one(ablation.ALL_ON, jobs, 6.0, Scenario(placement="affinity"))
    assert (result.jobs_done, result.launches <= 4) == (31, True)


def test_what_an_idea_is_worth_counts_dollars_and_waits() -> None:
    """Ten jobs that wait 36 s at $100/h are $10: with $110 that is 1.2 of a bound of $100."""
    assert ablation.objective(RESULT, 100.0) == pytest.approx(1.2)
    row = ablation.row("an idea", "t", replace(RESULT, cost_usd=Decimal(122)), RESULT, 100.0)
    assert row["lost"] == pytest.approx(0.1)


def test_ideas_are_named_by_how_they_begin() -> None:
    """All on is run in any case; a word that begins no idea is refused with those there are."""
    assert ablation.chosen(["a burst"]) == [ablation.ALL_ON, "a burst foretold by earlier ones"]
    with pytest.raises(BadInput, match="no idea begins with 'magic': they are spares"):
        ablation.chosen(["magic"])


def test_one_job_in_ten_is_drawn_out_by_a_fixed_seed() -> None:
    """The same jobs run ten times as long in every run, about one in ten."""
    many = tuple(replace(HOURLY[0], job_id=f"j{at}") for at in range(1000))
    long = [job.job_id for job in robustness.drawn_out(many) if job.duration_s == 3000]
    assert 70 <= len(long) <= 130
    assert long == [job.job_id for job in robustness.drawn_out(many) if job.duration_s == 3000]


def test_bursts_come_after_the_steady_days() -> None:
    """The second trace begins where the first one's days end, its jobs under names of their own."""
    both = robustness.after(HOURLY, HOURLY, 2)
    assert [both[8].submit_s, both[9].submit_s] == [2 * 86_400, 2 * 86_400 + 700]
    assert len({job.job_id for job in both}) == 16


def test_ours_stands_beside_the_best_timeout_at_its_wait() -> None:
    """Between two timeouts their dollars are linear; dominated ones do not count; over 1.1 times is red."""
    timeouts = [cost(100, 100), cost(200, 0), cost(300, 50)]
    rows = robustness.rows_of("a case", [Decimal(3), Decimal(9)], [cost(150, 50), cost(200, 50)], timeouts)
    assert [(row["over_the_best"], row["red"]) for row in rows] == [(1.0, False), (pytest.approx(4 / 3), True)]


def test_days_without_jobs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A window in which nothing came says which days it looked at, and the exit code is 2."""
    trace = tmp_path / "one.csv"
    trace.write_text("job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\na,0,60,1,1000,T4,t,,\n")
    assert ablation.main([str(trace), "--days", "3", "4"]) == 2
    assert robustness.main([str(trace), str(trace), "--from-day", "3"]) == 2
    assert "one.csv: no job on days 3 to 4; say others with --days" in capsys.readouterr().err


@pytest.mark.parametrize(("most_s", "said"), [(bench_replay.MOST_S, "both are met"), (0.001, "MISSED")])
def test_a_replays_time_is_held_to_its_limit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    most_s: float,
    said: str,
) -> None:
    """A trace and its first tenth are replayed; the exit code says whether the limits are met."""
    write_trace([replace(HOURLY[0], job_id=f"j{n}", submit_s=n * 10.0) for n in range(20)], tmp_path / "t.csv")
    monkeypatch.setattr(bench_replay, "MOST_S", most_s)
    monkeypatch.setattr("sys.argv", ["bench_replay", str(tmp_path / "t.csv")])
    assert bench_replay.main() == (said == "MISSED")
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" jobs")[0].strip() for row in rows[1:3]] == ["2", "20"]
    assert rows[-1] == said
