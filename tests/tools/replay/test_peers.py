"""The peers: what each does on small traces, and that they agree with the figures published for the real ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.peers.names import check_peer, peer
from pilotlight.tools.replay.peers.peer_run import drive, pools_of, run_peer, scoring_of
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import read_trace
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.world.simulation import World

LOOPS = (
    *("cluster-autoscaler", "cluster-autoscaler-pinned", "cluster-autoscaler-priority:60"),
    *("karpenter", "karpenter-pinned:60", "karpenter-when-empty:60", "keda", "s0-loop"),
)
ALL = ("always-on", *LOOPS)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The five types of the published figures."""
    path = Path(__file__).resolve().parents[3] / "data/catalogs/replay.yaml"
    return read_catalog(path.read_text(), path.name)


def job(
    number: int, submit_s: float, duration_s: float = 100.0, gpus: int = 1, milli: int = 1000, **fields: object
) -> Job:
    """A job of a small trace."""
    return Job(job_id=f"j{number}", submit_s=submit_s, duration_s=duration_s, gpus=gpus, gpu_milli=milli, **fields)  # type: ignore[arg-type]


def played(name: str, jobs: Sequence[Job], catalog: Catalog) -> list[dict[str, object]]:
    """The log of a peer's run."""
    records: list[dict[str, object]] = []
    policy = peer(name)
    scoring = scoring_of(policy, "most-allocated")
    drive(World(catalog, pools_of(catalog, "on-demand"), scoring=scoring, log=records.append), policy, jobs, catalog)
    return records


def moments(records: list[dict[str, object]], event: str, key: str = "type") -> list[tuple[object, object]]:
    """When an event happened, and to what."""
    return [(r["t"], r[key]) for r in records if r["event"] == event]


@pytest.mark.parametrize(
    ("name", "launched_s", "released_s"),
    [
        ("cluster-autoscaler", 10, 10 + 180 + 100 + 600),
        ("cluster-autoscaler-priority:60", 5, 5 + 180 + 100 + 60),
        ("karpenter-pinned:60", 6, 6 + 180 + 100 + 60),
        ("karpenter-when-empty:60", 6, 6 + 180 + 100 + 60),
        ("keda", 30, 30 + 180 + 100 + 320),
        ("s0-loop", 5, 5 + 180 + 100),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_when_one_job_is_served(name: str, launched_s: float, released_s: float, catalog: Catalog) -> None:
    """A lone job at 5 s gets one T4 at the peer's next look, which goes after the peer's idle time."""
    records = played(name, [job(1, 5, models=("T4",))], catalog)
    assert moments(records, "launch") == [(launched_s, "g4dn.xlarge")]
    assert moments(records, "terminate", "reason") == [(released_s, "idle")]


@pytest.mark.parametrize("name", LOOPS)
def test_a_pod_is_bought_for_once_however_long_the_boot(name: str, catalog: Catalog) -> None:
    """While the node for a job boots, no peer buys another one."""
    assert len(moments(played(name, [job(1, 5)], catalog), "launch")) == 1


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("karpenter", {"p3.8xlarge": 1}),
        ("karpenter-pinned:60", {"p3.2xlarge": 4}),
        ("karpenter-when-empty:60", {"p3.8xlarge": 1}),
        ("cluster-autoscaler-priority:60", {"p3.2xlarge": 4}),
        ("keda", {"p3.2xlarge": 4}),
        ("s0-loop", {"p3.2xlarge": 4}),
    ],
)
def test_what_is_bought_for_a_burst(name: str, types: dict[str, int], catalog: Catalog) -> None:
    """For four jobs of one V100 at once, Karpenter buys one large node, the others one small node a job."""
    launched = [
        kind for _, kind in moments(played(name, [job(n, 5, models=("V100",)) for n in range(4)], catalog), "launch")
    ]
    assert {kind: launched.count(kind) for kind in launched} == types


@pytest.mark.parametrize("name", ALL)
def test_a_gang_gets_its_whole_nodes(name: str, catalog: Catalog) -> None:
    """A job of sixteen GPUs runs on two p4d and ends."""
    result = run_peer(name, [job(1, 5, gpus=16)], catalog).result
    assert (result.launches, result.jobs_done) == (2, 1)


def test_karpenter_replaces_a_node_that_has_become_too_large(catalog: Catalog) -> None:
    """One job left on a four-GPU node moves, once a cheaper node is ready, and runs on from its checkpoint there."""
    short = [job(n, 0, 100, models=("V100",)) for n in range(3)]
    records = played("karpenter", [*short, job(3, 0, 10_000, models=("V100",))], catalog)
    assert [kind for _, kind in moments(records, "launch")] == ["p3.8xlarge", "p3.2xlarge"]
    (evicted,) = [r for r in records if r.get("reason") == "evicted"]
    (_, ready_s), (_, ready_again_s) = [(n, t) for t, n in moments(records, "ready", "node")]
    assert (evicted["job"], evicted["t"], evicted["saved_s"]) == ("j3", ready_again_s, 0)
    assert moments(records, "start", "job")[-1] == (ready_again_s, "j3")
    assert records[-1]["reason"] == "idle"
    assert ready_s == 181


def test_always_on_keeps_the_largest_fleet(catalog: Catalog) -> None:
    """Two V100 jobs at once and one later need two nodes, paid from the first second to the last job's end."""
    jobs = [job(1, 0, 3600, models=("V100",)), job(2, 10, 100, models=("V100",)), job(3, 7100, 100, models=("V100",))]
    outcome = run_peer("always-on", jobs, catalog, Scenario(sample_s=600))
    assert float(outcome.result.cost_usd) == pytest.approx(2 * 3.06 * 2)
    assert outcome.result.wait_s.max == 0
    assert [p.gpus_used for p in outcome.points[:2]] == [1, 1]


@pytest.mark.parametrize("name", LOOPS)
def test_every_job_ends_in_bad_times_too(name: str, catalog: Catalog) -> None:
    """On spot, with half of all hours dry, every job still ends and the same seed gives the same run."""
    jobs = [job(n, n * 400.0, 5000, gpus=(1, 2, 8, 16)[n % 4]) for n in range(40)]
    dry = Scenario(capacity_type="spot", shortage=0.5, seed=3)
    runs = [run_peer(name, jobs, catalog, dry) for _ in range(2)]
    assert runs[0].result.jobs_done == len(jobs)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", LOOPS)
def test_sampling_changes_nothing(name: str, catalog: Catalog) -> None:
    """A run that is sampled gives the same result, its points go on in time and dollars, and waits are kept."""
    jobs = [job(n, n * 50.0, 700) for n in range(20)]
    plain, sampled = run_peer(name, jobs, catalog), run_peer(name, jobs, catalog, Scenario(sample_s=60))
    assert plain.result == sampled.result
    assert [p.t for p in sampled.points] == [60.0 * n for n in range(len(sampled.points))]
    assert [p.usd for p in sampled.points] == sorted(p.usd for p in sampled.points)
    assert len(sampled.waits) == len(jobs)


@pytest.mark.parametrize(
    "name", ["", "carpenter", "karpenter-pinned", "karpenter-pinned:-1", "keda:3", "karpenter-pinned:1e9"]
)
def test_a_name_that_is_no_peer_is_refused(name: str) -> None:
    """An unknown peer is refused in one line that lists those there are."""
    with pytest.raises(BadInput, match=r"choose from always-on, cluster-autoscaler, .*s0-loop"):
        check_peer(name)


PUBLISHED = {
    "openb_dev": {
        "always-on": (7.37, 0, 0.25),
        "cluster-autoscaler-pinned": (1.154, 78, 0.05),
        "karpenter-pinned:0": (1.065, 133, 0.05),
        "karpenter-pinned:900": (1.159, 70, 0.05),
        "karpenter-pinned:3600": (1.388, 33, 0.05),
    },
    "philly_dev": {
        "always-on": (7.11, 0, 0.25),
        "cluster-autoscaler": (1.229, 89, 0.10),
        "karpenter": (1.116, 115, 0.05),
        "karpenter-pinned:0": (1.083, 123, 0.05),
        "karpenter-pinned:900": (1.132, 102, 0.05),
        "keda": (1.109, 101, 0.05),
        "s0-loop": (1.075, 99, 0.05),
    },
}
"""Multiple of the integral bound, mean wait, and how far dollars may be off.

Not here: the peers that are not pinned, on openb_dev. There one p4d.24xlarge, bought for a single A100 job on day 3,
either empties before three jobs of 264 to 310 hours come on day 5, or is held by them for 13 days, which alone costs
1.37 x the bound. Which of the two happens hangs on details that the rules leave open: what "fullest" means between two
nodes moves keda from 2.30x to 1.51x. So no such figure is a property of the policy.
"""
PACKED = Scenario(scoring="most-allocated")
"""The scoring of the published figures: the fullest node first."""
CASES = [(trace, name, *figures) for trace, rows in PUBLISHED.items() for name, figures in rows.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "name", "times", "wait_s", "off"), CASES, ids=[f"{t}: {n}" for t, n, *_ in CASES])
def test_peers_agree_with_the_published_figures(
    trace: str, name: str, times: float, wait_s: float, off: float, catalog: Catalog, shelf: Path
) -> None:
    """On the real traces dollars are within 5 % (10 % where ties are random) and mean waits within 15 s."""
    outcome = run_peer(name, read_trace(shelf / "traces" / f"{trace}.csv.gz"), catalog, PACKED)
    assert _times(outcome) == pytest.approx(times, rel=off)
    assert outcome.result.wait_s.mean == pytest.approx(wait_s, abs=15)


def _times(outcome: Outcome) -> float:
    return float(outcome.result.cost_usd / outcome.result.bound_usd.integral)
