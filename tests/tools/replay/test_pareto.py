"""`bench/replays/pareto.py`: its judge finds what is wrong in a log, and a sweep is red where a peer is cheaper.

`bench/replays/where_dollars_go.py` beside it: each second of a node is a boot, in use, unused beside work, or idle.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import pareto
import where_dollars_go
from judge import Books, read_jobs, read_types

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"
TYPES = read_types(Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml")
T4 = {"event": "launch", "node": "n1", "type": "g4dn.xlarge", "capacity_type": "on-demand"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two jobs, each a whole T4 for an hour, the second half an hour later."""
    path = tmp_path / "two.csv"
    path.write_text(HEADER + "a,0,3600,1,1000,T4,t,,\nb,1800,3600,1,1000,T4,t,,\n")
    return path


def placed(job: str, t: float, node: str = "n1") -> dict[str, Any]:
    """A job begins on a node."""
    return {
        "t": t,
        "event": "start",
        "job": job,
        "placement": [{"node": node, "gpus": 1, "share": 1000, "devices": [0]}],
    }


def done(job: str, t: float) -> dict[str, Any]:
    """A job is done."""
    return {"t": t, "event": "stop", "job": job, "reason": "done", "saved_s": 0}


GOOD = [
    {"t": 10, **T4},
    {"t": 190, "event": "ready", "node": "n1"},
    placed("a", 190),
    done("a", 3790),
    placed("b", 3790),
    done("b", 7390),
    {"t": 7390, "event": "terminate", "node": "n1", "reason": "idle"},
]


def test_the_judge_works_out_dollars_and_waits(trace: Path) -> None:
    """A node of 7380 s, one job that waits 190 s and one that waits 1990 s."""
    books = Books(read_jobs(trace), TYPES).read(GOOD)
    assert books.wrong == []
    assert books.usd == pytest.approx(0.526 * 7380 / 3600)
    assert books.mean_wait_s == 1090


def test_the_judge_pays_a_disk_for_a_node_that_stands_by(trace: Path) -> None:
    """Stopped, a node costs its disk; woken, it is paid from the request on, a minute at least."""
    log = [
        *GOOD[:4],
        {"t": 3800, "event": "standby", "node": "n1"},
        {"t": 7400, "event": "wake", "node": "n1"},
        {"t": 7460, "event": "ready", "node": "n1"},
        placed("b", 7460),
        done("b", 11060),
        {"t": 11060, "event": "terminate", "node": "n1", "reason": "idle"},
    ]
    books = Books(read_jobs(trace), TYPES).read(log)
    assert books.wrong == []
    assert books.wakes == 1
    assert books.standby_usd == pytest.approx(0.011)
    assert books.usd == pytest.approx(0.526 * (3790 + 3660) / 3600 + 0.011)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        pytest.param([*GOOD[:3], placed("b", 1800)], "over-full", id="two jobs on one device"),
        pytest.param([GOOD[0], placed("a", 20)], "not ready", id="a job on a node that boots"),
        pytest.param(GOOD[:-1], "lit at the end", id="a node that never ends"),
        pytest.param([*GOOD[:4], GOOD[-1]], "b: never done", id="a job that is forgotten"),
        pytest.param([*GOOD[:3], done("a", 200)], "ran 10", id="a job cut short"),
        pytest.param([*GOOD[:3], GOOD[-1]], "ended under a job", id="a node taken from under its job"),
    ],
)
def test_the_judge_tells_what_no_rule_allows(trace: Path, log: list[dict[str, Any]], told: str) -> None:
    """Each kind of wrong log is told."""
    assert told in "\n".join(Books(read_jobs(trace), TYPES).read(log).wrong)


def test_a_sweep_compares_every_run_with_its_log(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours and a peer's runs agree with their logs, and JSON says who is red."""
    code = pareto.main([str(trace), "--values", "3,1000", "--against", "karpenter-pinned:0", "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [r["policy"] for r in shown["runs"]] == ["pilotlight at $3/h", "pilotlight at $1000/h", "karpenter-pinned:0"]
    assert (shown["wrong"], code) == ([], int(bool(shown["red"])))


FOUR = {"four": {"gpus": 4, "prices": {"on-demand": {"usd_per_hour": 36}}}}


def spent(*records: tuple[float, str, dict[str, Any]]) -> where_dollars_go.Spent:
    """The dollars of a log of one node of 4 GPUs at a cent a second."""
    return where_dollars_go.Spent(FOUR).read({"t": t, "event": event, **more} for t, event, more in records)


def whole(name: str, gpus: int) -> dict[str, Any]:
    """A job's whole devices on the node."""
    return {"job": name, "placement": [{"node": "n", "gpus": gpus, "share": 1000}]}


BOUGHT: tuple[float, str, dict[str, Any]] = (0, "launch", {"node": "n", "type": "four", "capacity_type": "on-demand"})
NODE = {"node": "n"}


def test_each_second_of_a_node_counts_once_by_what_it_did() -> None:
    """While work runs there the price is split between the GPUs in use and those beside them."""
    got = spent(
        BOUGHT,
        (100, "ready", NODE),
        (110, "start", whole("a", 1)),
        (210, "start", whole("b", 3)),
        (310, "stop", {"job": "a"}),
        (410, "stop", {"job": "b"}),
        (430, "terminate", NODE),
    )
    assert dict(got.usd) == pytest.approx(
        {"boot": 1.0, "idle": 0.1 + 0.2, "in use": 0.25 + 1.0 + 0.75, "unused beside work": 0.75 + 0.25}
    )
    assert (got.launches, got.never_used) == (1, 0)


def test_a_stopped_node_costs_nothing_until_it_wakes_to_boot_again() -> None:
    """Its disk is another price, which the replay's own figures name."""
    got = spent(
        BOUGHT,
        (100, "ready", NODE),
        (200, "standby", NODE),
        (900, "wake", NODE),
        (950, "ready", NODE),
        (960, "terminate", NODE),
    )
    assert dict(got.usd) == pytest.approx({"boot": 1.0 + 0.5, "idle": 1.0 + 0.1})
    assert got.never_used == 1
