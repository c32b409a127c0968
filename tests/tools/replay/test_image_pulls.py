"""Replays in which jobs pull images: who waits for a pull, what is learned of it, and files that say no images."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import Policy
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.peer_run import run_peer
from pilotlight.tools.replay.run import Run, run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.image_pulls import read_images, with_images
from pilotlight.tools.replay.traces.trace_job import Job

CATALOG = Catalog(
    name="small",
    as_of=datetime(2026, 11, 1, tzinfo=UTC),
    instance_types={
        "t4": InstanceType(
            cloud="world",
            gpu_model="T4",
            gpus=1,
            cpu="4",
            memory="16Gi",
            boot_s=100,
            prices={"on-demand": Price(usd_per_hour=Decimal(1), source="a test", date="2026-11-01")},
        )
    },
)
JOBS = tuple(Job(job_id=f"j{at}", submit_s=at * 1500.0, duration_s=300.0, gpus=1, image="big") for at in range(8))
PULLS = Scenario(pulls=(("big", 120.0),), placement="none")


def _run(scenario: Scenario, **policy: object) -> Run:
    rules = Policy(version=1, **policy)  # type: ignore[arg-type]
    return run(JOBS, CATALOG, rules, scenario, trace="t", bounds=bounds(JOBS, CATALOG, "on-demand"))


def test_a_job_waits_for_its_image_on_a_new_node() -> None:
    """The wait is to useful work: a boot and a pull on a node of its own, and the dollars are of both."""
    with_, without = (_run(scenario).outcome.result for scenario in (PULLS, replace(PULLS, pulls=())))
    assert with_.wait_s.max == without.wait_s.max + 120
    assert with_.cost_usd > without.cost_usd
    assert with_.jobs_done == len(JOBS)


def test_a_peer_waits_for_images_too() -> None:
    """The same jobs under a peer pull the same images."""
    waits = [
        run_peer("karpenter", JOBS, CATALOG, scenario, trace="t").result.wait_s.max
        for scenario in (PULLS, replace(PULLS, pulls=()))
    ]
    assert waits[0] == waits[1] + 120


def test_what_was_learned_of_a_pull_keeps_a_node_that_has_the_image() -> None:
    """At a price of waiting the pull makes relighting dearer: nodes stay longer, and later jobs wait less."""
    price = Decimal(10)
    learned = _run(replace(PULLS, pulls=(("big", 1200.0),)), value_of_wait=price).outcome
    blind = _run(replace(PULLS, pulls=()), value_of_wait=price).outcome
    assert learned.result.launches < blind.result.launches
    assert min(learned.waits) < 100


FILE = "image,seconds,share,team\nbig,120,1,nlp\nsmall,5,3,\nother,9,1,\n"


def test_images_are_drawn_by_share_and_team(tmp_path: Path) -> None:
    """A team's own rows go before those of nobody; a group uses one image; a seed draws the same again."""
    path = tmp_path / "pulls.csv"
    path.write_text(FILE)
    rows = read_images(path)
    jobs = [Job(job_id=f"j{at}", submit_s=0.0, duration_s=1.0, gpus=1, group=f"g{at // 2}") for at in range(400)]
    drawn = with_images(jobs, rows, 0)
    small = sum(job.image == "small" for job in drawn)
    assert 240 < small < 360
    assert {one.image == two.image for one, two in zip(drawn[::2], drawn[1::2], strict=True)} == {True}
    assert drawn == with_images(jobs, rows, 0)
    assert {
        job.image for job in with_images([Job(job_id="n", submit_s=0, duration_s=1, gpus=1, team="nlp")], rows, 0)
    } == {"big"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: write the header"),
        ("image,seconds\na,1\n", "line 1: write the header"),
        ("image,seconds,share\n", "has 0 images"),
        ("image,seconds,share\na,1\n", "line 2: 2 fields where the header has 3"),
        ("image,seconds,share\n,1,1\n", "line 2: image is empty"),
        ("image,seconds,share\na,soon,1\n", "line 2: seconds is 'soon': not a number"),
        ("image,seconds,share\na,1,0\n", "line 2: share is '0': must be from"),
        ("image,seconds,share\na,1e9,1\n", "line 2: seconds is '1e9': must be from 0 to 86400"),
        ("image,seconds,share\na,nan,1\n", "line 2: seconds is 'nan'"),
        ("image,seconds,share,team\na,1,1,x\na,2,1,y\n", "a has two pull times"),
    ],
    ids=[
        "empty",
        "a column short",
        "no rows",
        "a field short",
        "no image",
        "words",
        "no share",
        "eleven days",
        "nan",
        "two",
    ],
)
def test_a_file_that_says_no_images(tmp_path: Path, text: str, words: str) -> None:
    """One line says where, and what to write."""
    path = tmp_path / "pulls.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=words):
        read_images(path)


def test_the_example_is_read() -> None:
    """The sample that the documentation names."""
    assert len(read_images(Path(__file__).parents[3] / "examples" / "replay" / "pulls.csv")) == 3
