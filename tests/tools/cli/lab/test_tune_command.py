"""`pilotlight tune`: what it tries, what it recommends, and what it refuses."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from pilotlight.errors import BadInput, Failed
from pilotlight.tools.cli.lab.tune_command import advise
from pilotlight.tools.cli.main import build
from pilotlight.tools.replay.resampled_days import check_finished
from pilotlight.tools.replay.traces.trace_job import Bounds, Result, Spread
from pilotlight.tools.replay.wait_price_sweep import Setting
from pilotlight.tools.report.pages.tune_chart import Dot, chart, text_chart

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A job of five minutes every seven, for hours."""
    path = tmp_path / "many.csv"
    path.write_text(HEADER + "".join(f"j{n},{420 * n},300,1,1000,T4,t,,\n" for n in range(30)))
    return str(path)


def tune(*words: str) -> str:
    """What a tune prints; its own errors are raised."""
    line = ["tune", *words]
    result = CliRunner().invoke(build(line), line, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def setting(value: int, usd: int, wait_s: float) -> Setting:
    """A run that came to this."""
    spread = replace(Spread.of_waits([wait_s]), mean=wait_s)
    result = Result(
        policy="pilotlight",
        trace="t",
        jobs=1,
        jobs_done=1,
        cost_usd=Decimal(usd),
        gpu_hours=1,
        gpu_hours_paid=1,
        wait_s=spread,
        delay_s=spread,
        launches=1,
        terminations=1,
        interruptions=0,
        lost_gpu_hours=0,
        bound_usd=Bounds(fluid=Decimal(1), integral=Decimal(1)),
    )
    return Setting(value_of_wait=Decimal(value), result=result)


OURS = [setting(3, 110, 200), setting(10, 120, 100), setting(30, 150, 30), setting(300, 300, 10)]


@pytest.mark.parametrize(
    ("within", "value"),
    [
        pytest.param(None, 30, id="nobody says how long: the knee"),
        pytest.param(150.0, 10, id="the cheapest that waits no longer"),
        pytest.param(10.0, 300, id="as quick as the quickest"),
    ],
)
def test_a_price_of_waiting_is_recommended(within: float | None, value: int) -> None:
    """By the longest mean wait where it is given, else where the curve bends most."""
    assert advise(OURS, within).setting.value_of_wait == value


def test_a_wait_that_nothing_reaches_fails() -> None:
    """What was tried and the least wait are told."""
    with pytest.raises(Failed, match=r"no value waits 5 s or less: the least is 10\.0 s"):
        advise(OURS, 5)


def test_a_sweep_is_told_as_json_and_on_a_page(trace: str, tmp_path: Path) -> None:
    """Ours by value, the peers, what is recommended with the policy's line; the page needs no network."""
    page = tmp_path / "tune.html"
    words = ("--values", "300,3", "--against", "keda", "--report", str(page), "--json")
    shown = json.loads(tune(trace, *words))
    assert [one["value_of_wait"] for one in shown["ours"]] == [3, 300]
    assert [one["policy"] for one in shown["peers"]] == ["keda"]
    value = shown["recommended"]["value_of_wait"]
    assert Decimal(shown["recommended"]["policy"].removeprefix("value_of_wait: ")) == value
    html = page.read_text()
    assert shown["recommended"]["policy"] in html
    assert "<script" not in html
    assert "src=" not in html


@pytest.fixture
def days(tmp_path: Path) -> str:
    """Four days, each with other jobs: many short ones, or a few long."""
    path = tmp_path / "days.csv"
    rows = [(d, n) for d, many in enumerate((20, 3, 12, 1)) for n in range(many)]
    lines = (f"d{d}n{n},{86400 * d + 900 * n},{600 if d % 2 else 200},1,1000,T4,t,,\n" for d, n in rows)
    path.write_text(HEADER + "".join(lines))
    return str(path)


def test_a_recommendation_is_asked_again_on_days_drawn_anew(days: str, tmp_path: Path) -> None:
    """Figures by trace, each from a run of its own, as the JSON, the text and the page tell them."""
    page = tmp_path / "tune.html"
    words = (days, "--values", "3,300", "--against", "keda", "--resamples", "3", "--seed", "7")
    shown = json.loads(tune(*words, "--json", "--report", str(page)))
    holds, value = shown["holds"], shown["recommended"]["value_of_wait"]
    assert holds["seeds"] == [7, 8, 9]
    assert holds["same"] == holds["recommended"].count(value)
    assert len(holds["wait_s"]) == len(holds["x_own"]) == 3
    assert holds["wait_s"] == sorted(holds["wait_s"])
    told = f"On 3 traces of days drawn anew (seeds 7 to 9) it is recommended in {holds['same']}"
    assert told in page.read_text()
    assert told in " ".join(tune(*words).split())


def test_a_resampled_run_that_leaves_jobs_undone_is_no_figure() -> None:
    """The seed, the value and the jobs are told; runs that end all count."""
    half = replace(OURS[1], result=replace(OURS[1].result, jobs=8, jobs_done=6))
    check_finished([4, 5], [OURS, OURS])
    with pytest.raises(Failed, match=r"\$10/h, days drawn by seed 5: 2 of 8 jobs did not finish; .*--resamples 0"):
        check_finished([4, 5], [OURS, [OURS[0], half]])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param((), True, id="it has one day"),
        pytest.param(("--resamples", "0"), False, id="nobody asked"),
    ],
)
def test_a_trace_of_one_day_says_nothing_of_others(trace: str, words: tuple[str, ...], told: bool) -> None:
    """That is said where it was asked for."""
    shown = " ".join(tune(trace, "--values", "3,300", "--against", "keda", *words).split())
    assert ("fewer than 3 days with jobs" in shown) is told
    assert json.loads(tune(trace, "--values", "3,300", "--against", "keda", *words, "--json"))["holds"] is None


@pytest.mark.parametrize("values", ["", "3,x", "-1", "nan", "1e12"])
def test_values_that_are_no_prices_are_refused(trace: str, values: str) -> None:
    """Before anything runs, by the option's name."""
    with pytest.raises(BadInput, match="--values"):
        tune(trace, "--values", values)


def test_a_peer_that_pays_far_more_leaves_the_frame() -> None:
    """Drawn to scale it would press all others together: it is marked, in text and on the chart."""
    dots = [Dot("us 3", 100, 10, True), Dot("us 30", 50, 12, True), Dot("far", 10, 1000, False)]
    assert "a far (far above)" in text_chart(dots, 80)
    assert "far $1,000, 10 s ↑" in chart(dots)
    assert text_chart(dots, 80).count("o") >= 2
