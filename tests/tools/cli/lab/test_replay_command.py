"""`pilotlight replay` as a person types it, with what is wrong and what goes wrong."""

import json
import logging
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.adapters.logs import LOGGER
from pilotlight.errors import BadInput, Failed
from pilotlight.tools.cli.main import build

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """One job of one GPU and one minute."""
    path = tmp_path / "one.csv"
    path.write_text(HEADER + "a,0,60,1,1000,,team,,\n")
    return str(path)


def replay(*words: str) -> tuple[int, str]:
    """Exit code and output of a replay; its own errors are raised."""
    line = ["replay", *words]
    result = CliRunner().invoke(build(line), line, catch_exceptions=False)
    return result.exit_code, result.stdout or re.sub(r"\x1b\[[\d;]*m", "", result.output)


def test_a_trace_of_one_job_costs_one_node(trace: str) -> None:
    """One job launches one node, which goes out again."""
    code, shown = replay(trace, "--json")
    result = json.loads(shown)
    assert (code, result["launches"], result["terminations"]) == (0, 1, 1)


def test_a_boot_and_a_detection_of_nothing_make_no_wait(trace: str) -> None:
    """A node that boots at once for a pod that is seen at once is there at once."""
    code, shown = replay(trace, "--boot-seconds", "0", "--detect-seconds", "0", "--json")
    assert (code, json.loads(shown)["wait_s"]["max"]) == (0, 0)


def test_the_price_of_waiting_decides_how_long_a_node_idles(trace: str) -> None:
    """A pool without history keeps its node for longer, and pays for it, where an hour's wait is worth more."""
    cheap, dear = (json.loads(replay(trace, "--value-of-wait", v, "--json")[1])["cost_usd"] for v in ("0", "1"))
    assert cheap < dear


def test_a_job_that_waits_days_for_stock_is_served_in_the_end(trace: str) -> None:
    """Refusals in a row stretch the rest between two tries to its longest, not beyond, and the job gets its node."""
    code, shown = replay(trace, "--shortage", "0.95", "--seed", "3", "--json")
    result = json.loads(shown)
    assert code == 0
    assert (result["launches"], result["wait_s"]["max"] > 3600) == (1, True)


def test_a_run_that_leaves_a_job_fails_and_says_why(trace: str, tmp_path: Path) -> None:
    """A policy under which a job never gets a node fails the replay, after its figures are told."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npools: {t4: {instance_type: g4dn.xlarge}}\ncaps: {usd_per_hour: 0.1}\n")
    with pytest.raises(Failed, match=r"1 of 1 jobs did not finish \(1 of them: .*\$0.1"):
        replay(trace, "--policy", str(policy), "--json")


@pytest.mark.parametrize("command", ["replay", "tune"])
def test_a_type_that_the_catalogue_has_not_is_refused_before_the_run(command: str, trace: str, tmp_path: Path) -> None:
    """One line names the type, its pool, the catalogue and the option that helps."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npools: {t4: {instance_type: g4dn.xlarge}, far: {instance_type: p6.huge}}\n")
    line = [command, trace, "--policy", str(policy)]
    with pytest.raises(BadInput, match=r"^p6\.huge of pool far is not in the catalogue \S+: give --catalog"):
        CliRunner().invoke(build(line), line, catch_exceptions=False)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        pytest.param("--boot-seconds", "inf", id="a boot without end"),
        pytest.param("--boot-seconds", "nan", id="a boot of NaN"),
        pytest.param("--boot-seconds", "-1", id="a boot back in time"),
        pytest.param("--standby-boot-seconds", "nan", id="a start of NaN"),
        pytest.param("--standby-usd-per-hour", "-1", id="a disk that pays"),
        pytest.param("--detect-seconds", "1e300", id="a detection after the end of time"),
        pytest.param("--notice-seconds", "inf", id="a notice without end"),
        pytest.param("--shortage", "1", id="no stock ever, so no end"),
        pytest.param("--shortage", "nan", id="a share of NaN"),
        pytest.param("--placement", "magic", id="a placement nobody knows"),
    ],
)
def test_an_impossible_option_is_refused_by_name(trace: str, option: str, value: str) -> None:
    """What no run could mean is bad input, told by the option's name."""
    code, said = replay(trace, option, value)
    assert code == 2
    assert option in said


@pytest.mark.parametrize(
    ("rows", "refusal"),
    [
        pytest.param("", "holds no jobs", id="no job"),
        pytest.param("a,0,60,1,1000,NOSUCH,t,,\n", "job a: 1 GPU of NOSUCH", id="a job that fits no type"),
        pytest.param("a,0,60,1,1000,,t,,\nb,1,60,x,1000,,t,,\n", "line 3: gpus is 'x'", id="a row that is wrong"),
    ],
)
def test_a_trace_that_cannot_run_is_refused(tmp_path: Path, rows: str, refusal: str) -> None:
    """A trace is refused before anything runs, by line or by job."""
    path = tmp_path / "t.csv"
    path.write_text(HEADER + rows)
    with pytest.raises(BadInput, match=refusal):
        replay(str(path))


def test_a_week_of_a_trace_that_is_not_there_is_refused() -> None:
    """Who names a trace means it: only where none is named is the built-in week drawn."""
    words = ["week", "--trace", "/nowhere/t.csv.gz"]
    with pytest.raises(BadInput, match=r"/nowhere/t.csv.gz"):
        CliRunner().invoke(build(words), words, catch_exceptions=False)


def test_a_week_of_ones_own_trace_is_called_by_its_name(tmp_path: Path) -> None:
    """Not by that of another; and dollars below ten have their cents."""
    (tmp_path / "mine.csv").write_text(HEADER + "a,700000,600,1,1000,,team,,\n")
    words = ["week", "--trace", str(tmp_path / "mine.csv"), "--report", str(tmp_path / "week.html")]
    said = CliRunner().invoke(build(words), words, catch_exceptions=False).stdout
    assert said.startswith("1 job: days 7 to 14 of mine.csv\n")
    assert "Philly" not in said.title()
    assert re.search(r"pilotlight +\$\d\d?\.\d\d ", said)


def test_a_command_keeps_the_log_to_itself(capfd: pytest.CaptureFixture[str]) -> None:
    """Without --debug nothing of the log, and no traceback in it, reaches a person's terminal."""
    logger = logging.getLogger(LOGGER)
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
    logger.error("failed", exc_info=ValueError("x"))
    assert "Traceback" not in capfd.readouterr().err
