"""Replays in which dear nodes are born closed, and those in which nodes join apart."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.capacity import Taint
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.run import Run, born_closed, policy_for, run
from pilotlight.tools.replay.scenario import REGISTERED_S, Scenario
from pilotlight.tools.replay.traces.trace_job import Job

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The replay's five types."""
    path = ROOT / "data" / "catalogs" / "replay.yaml"
    return read_catalog(path.read_bytes(), path.name)


def example_policy() -> Policy:
    """The example policy, with a pool for each type of the catalogue."""
    path = ROOT / "examples" / "policy.yaml"
    return msgspec.structs.replace(read_policy(path.read_text(), path.name), pools={}, rules=(), caps=Caps())


def replayed(jobs: list[Job], catalog: Catalog, scenario: Scenario, log: list[dict[str, Any]] | None = None) -> Run:
    """One replay under the example policy with a pool for each type."""
    write = None if log is None else log.append
    return run(jobs, catalog, example_policy(), scenario, trace="t", bounds=bounds(jobs, catalog), log=write)


@pytest.mark.parametrize(
    ("gpus", "homed"),
    [((1,), {"g5.xlarge", "p3.2xlarge", "p3.8xlarge", "p4d.24xlarge"}), ((8,), set())],
    ids=["small jobs may use all and cost least on one", "large jobs fit one alone"],
)
def test_dear_pools_are_born_closed(catalog: Catalog, gpus: tuple[int, ...], homed: set[str]) -> None:
    """Nodes of each type that some job of the trace may use and costs less elsewhere are born with a home."""
    jobs = [Job(job_id=f"j{n}", submit_s=0, duration_s=100, gpus=n) for n in gpus]
    policy = policy_for(example_policy(), catalog, Scenario(placement="homes"))
    closed = born_closed(policy, catalog, jobs).pools
    assert {name for name, pool in closed.items() if BIRTH_TAINT in pool.taints} == homed


def test_the_cheapest_type_needs_no_home(catalog: Catalog) -> None:
    """A job that a T4 holds waits for its detection and one boot, and nothing else."""
    jobs = [Job(job_id="j1", submit_s=5, duration_s=1000, gpus=1)]
    assert replayed(jobs, catalog, Scenario(placement="homes")).outcome.waits == (190,)


def test_a_node_that_registers_is_looked_at(catalog: Catalog) -> None:
    """With homes there is a look after a node registers, in time for its home to be there when it is ready."""
    jobs = [Job(job_id="j1", submit_s=5, duration_s=1000, gpus=1)]
    ticks = {p: replayed(jobs, catalog, Scenario(placement=p)).ticks for p in ("none", "homes")}
    assert ticks["homes"] == ticks["none"] + 1
    assert Scenario().detect_s < REGISTERED_S


def test_nodes_join_within_the_spread(catalog: Catalog) -> None:
    """Nodes that are bought at once are ready some seconds apart, at most so many as the scenario says."""
    jobs = [Job(job_id=f"j{n}", submit_s=0, duration_s=1000, gpus=8) for n in range(6)]
    log: list[dict[str, Any]] = []
    replayed(jobs, catalog, Scenario(join_spread_s=40), log)
    first = [r["t"] for r in log if r["event"] == "ready"][:6]
    assert len(set(first)) == 6
    assert 190 <= min(first) < max(first) < 230


def test_pools_with_taints_of_their_own_are_born_closed_too(catalog: Catalog) -> None:
    """The jobs of a trace tolerate the pools' own taints: those keep no pool from being homed."""
    own = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")
    policy = policy_for(example_policy(), catalog, Scenario(placement="homes"))
    tainted = {name: msgspec.structs.replace(pool, taints=(own,)) for name, pool in policy.pools.items()}
    jobs = [Job(job_id="j", submit_s=0, duration_s=100, gpus=1)]
    closed = born_closed(msgspec.structs.replace(policy, pools=tainted), catalog, jobs).pools
    assert {name for name, pool in closed.items() if pool.taints == (own, BIRTH_TAINT)} == {
        "g5.xlarge",
        "p3.2xlarge",
        "p3.8xlarge",
        "p4d.24xlarge",
    }
