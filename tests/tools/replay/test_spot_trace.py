"""Replays with zones whose spot comes and goes as it was recorded: ours and the peers, under one rule."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import judge_zones
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.facts.policy import Policy
from pilotlight.tools.cli.main import build
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_job import Job, Result

HEADER = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\n"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The replay's five types."""
    path = Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml"
    return read_catalog(path.read_bytes(), path.name)


def flat(name: str, value: int, ticks: int = 100) -> ZoneHistory:
    """A zone that is always so."""
    return ZoneHistory(zone=name, gap_s=600.0, runs=((value, ticks),))


def job(number: int, submit_s: float) -> Job:
    """A job of one T4 for a minute."""
    return Job(job_id=f"j{number}", submit_s=submit_s, duration_s=60.0, gpus=1, gpu_milli=1000, models=("T4",))


@pytest.mark.parametrize("name", ["karpenter-pinned:0", "karpenter", "keda", "s0-loop", "cluster-autoscaler"])
def test_every_peer_falls_to_the_next_zone_at_once(name: str, catalog: Catalog) -> None:
    """A zone that is down costs a peer no time: what it refuses is had in the next one by name."""
    jobs, alone = [job(1, 5.0)], [flat("b", 1)]
    ran = [
        run_peer(name, jobs, catalog, Scenario(capacity_type="spot", zones=tuple(zones))).result.wait_s.max
        for zones in (alone, [flat("a", 0), *alone])
    ]
    assert ran[0] == ran[1] > 0


def ours(jobs: list[Job], zones: list[ZoneHistory], catalog: Catalog, wait: str = "10") -> tuple[Result, list[Any]]:
    """What Pilotlight makes of it on spot, and its log."""
    log: list[dict[str, Any]] = []
    policy = Policy(version=1, value_of_wait=Decimal(wait))
    scenario = Scenario(capacity_type="spot", zones=tuple(zones))
    bound = bounds(jobs, catalog, "spot")
    return run(jobs, catalog, policy, scenario, trace="t", bounds=bound, log=log.append).outcome.result, log


def test_ours_falls_to_the_next_zone_at_once(catalog: Catalog) -> None:
    """Zones that are down cost a job no time, however many come before the one that has room."""
    down = [flat(name, 0) for name in "abcdefg"]
    alone, late = (ours([job(1, 5.0)], zones, catalog)[0] for zones in ([flat("z", 1)], [*down, flat("z", 1)]))
    assert alone.wait_s.max == late.wait_s.max > 0


def test_purchases_move_to_the_zone_whose_nodes_live(catalog: Catalog) -> None:
    """The first by name takes its node within minutes; once that was seen the next jobs are bought the other zone."""
    swings = ZoneHistory(zone="a", gap_s=60.0, runs=((1, 10), (0, 5)))
    long = [msgspec.structs.replace(job(n, n * 30_000.0), duration_s=7200.0) for n in range(6)]
    result, log = ours(long, [swings, flat("b", 1)], catalog)
    zones = [r["zone"] for r in log if r["event"] == "launch"]
    assert (result.jobs_done, zones[0], set(zones[-4:])) == (6, "a", {"b"})


def test_a_zone_that_is_back_is_asked_within_minutes(catalog: Catalog) -> None:
    """After hours in which every zone was down a job starts within a rest, a tick and a boot of the zone's return."""
    zone = ZoneHistory(zone="a", gap_s=60.0, runs=((0, 300), (1, 300)))
    offset_s = judge_zones.offset_s([judge_zones.Zone.of("a", 60.0, zone.runs, 1)], 0)
    falls_s = 36_000 - offset_s
    result, log = ours([job(1, falls_s + 5)], [zone, flat("b", 0, 10)], catalog)
    started_s = next(r["t"] for r in log if r["event"] == "start")
    assert result.jobs_done == 1
    assert 180 <= started_s - (falls_s + 18_000) <= 198 + 60 + 180


def test_what_a_peer_was_refused_rests_for_three_minutes(catalog: Catalog) -> None:
    """A zone that is up again is not asked before its rest is over: the job waits for the first ask after it."""
    history = ZoneHistory(zone="a", gap_s=1.0, runs=((0, 30), (1, 100_000)))
    offset_s = judge_zones.offset_s([judge_zones.Zone.of("a", 1.0, history.runs, 1)], 0)
    falls_s = 100_030 - offset_s  # The next lap's begin.
    log: list[dict[str, Any]] = []
    scenario = Scenario(capacity_type="spot", zones=(history,))
    run_peer("karpenter-pinned:0", [job(1, falls_s + 5)], catalog, scenario, log=log.append)
    launched_s = next(r["t"] for r in log if r["event"] == "launch")
    assert 180 <= launched_s - (falls_s + 5) <= 180 + 20


@pytest.mark.parametrize("falls_back", [False, True], ids=["spot alone waits", "beside on-demand it does not"])
def test_a_peer_falls_back_to_on_demand_only_where_it_may(falls_back: bool, catalog: Catalog) -> None:
    """Where every zone is down for good a job is served on demand, or never: such a run ends and says so."""
    scenario = Scenario(capacity_type="spot", zones=(flat("a", 0),), falls_back=falls_back)
    result = run_peer("karpenter-pinned:0", [job(1, 0.0)], catalog, scenario).result
    assert result.jobs_done == int(falls_back)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A trace of three jobs, a zone that is down and one that comes and goes."""
    jobs = "".join(f"j{n},{n * 4000},2000,1,1000,T4,team,,\n" for n in range(3))
    spells = [[1, 30], [0, 10]]
    told = {
        "trace.csv": HEADER + jobs,
        "down.json": json.dumps({"zone": "a", "nodes": 1, "gap_s": 60, "runs": [[0, 50]]}),
        "swings.json": json.dumps({"zone": "b", "nodes": 1, "gap_s": 100, "runs": spells}),
    }
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in told}


def replay(*words: str) -> tuple[int, str]:
    """Exit code and output of a replay; its own errors are raised."""
    line = ["replay", *words]
    result = CliRunner().invoke(build(line), line, catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("kind", ["spot", "spot+on-demand"])
def test_a_replay_with_zones_obeys_the_recordings(kind: str, files: dict[str, str], tmp_path: Path) -> None:
    """All jobs are done, and a stranger finds each launch and each loss of its log in the files."""
    log = tmp_path / "log.jsonl"
    zones = ["--spot-trace", files["down.json"], "--spot-trace", files["swings.json"]]
    code, shown = replay(files["trace.csv"], "--capacity-type", kind, *zones, "--log", str(log), "--json")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    read = [judge_zones.Zone.read(Path(files[name])) for name in ("down.json", "swings.json")]
    assert (code, json.loads(shown)["jobs_done"], judge_zones.wrong(records, read, 0)) == (0, 3, [])
    assert {r["zone"] for r in records if r["event"] == "launch" and r["capacity_type"] == "spot"} == {"b"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(["--spot-trace", "swings.json"], "add --capacity-type spot", id="what is bought is on demand"),
        pytest.param(
            ["--spot-trace", "swings.json", "--capacity-type", "spot", "--notice-seconds", "30"],
            "120 s of notice",
            id="two rules of notice",
        ),
        pytest.param(
            ["--spot-trace", "down.json", "--capacity-type", "spot"], "never up", id="nothing can ever be had"
        ),
        pytest.param(["--spot-trace", "trace.csv", "--capacity-type", "spot"], "write gap_s", id="no such file at all"),
    ],
)
def test_what_no_run_could_mean_is_refused(words: list[str], told: str, files: dict[str, str]) -> None:
    """It is refused before anything runs, in one line that says what to do."""
    with pytest.raises(BadInput, match=told):
        replay(files["trace.csv"], *(files.get(word, word) for word in words))


def test_a_notice_is_acted_on_before_its_node_goes(catalog: Catalog) -> None:
    """A zone goes down under a job: room is asked for in another ten seconds later, not two minutes."""
    zone = ZoneHistory(zone="a", gap_s=60.0, runs=((1, 100), (0, 100)))
    offset_s = judge_zones.offset_s([judge_zones.Zone.of("a", 60.0, zone.runs, 1)], 0)
    rises_s = 12_000 - offset_s
    long = msgspec.structs.replace(job(1, rises_s + 5), duration_s=9000.0)
    result, log = ours([long], [zone, flat("b", 1, 10)], catalog)
    first, second = [r["t"] for r in log if r["event"] == "launch"][:2]
    falls_s = rises_s + 6000
    assert result.jobs_done == 1
    assert first < falls_s <= second - 10 <= falls_s + 1
