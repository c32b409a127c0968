"""Which type a job is narrowed to at its submit, and what samples of a run come to."""

from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.measure import idle_hours
from pilotlight.tools.replay.placement_shaping import Affinity
from pilotlight.tools.replay.traces.trace_job import Job, Point


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The replay's five types."""
    path = Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml"
    return read_catalog(path.read_bytes(), path.name)


ANY = ("T4", "A10G", "V100", "A100")
NARROWED: dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]] = {
    "one GPU of any model": (1, 1000, ANY, ("g4dn.xlarge",)),
    "one GPU of no named model": (1, 1000, (), ("g4dn.xlarge",)),
    "a share of a V100: both of its types cost the same a GPU": (1, 250, ("V100",), ("p3.2xlarge", "p3.8xlarge")),
    "one A100: no smaller node has it": (1, 1000, ("A100",), ("p4d.24xlarge",)),
    "two GPUs of any model": (2, 1000, ANY, ("p3.8xlarge",)),
    "eight GPUs": (8, 1000, ANY, ("p4d.24xlarge",)),
    "a gang of sixteen": (16, 1000, ANY, ("p4d.24xlarge",)),
    "a model that no type has": (1, 1000, ("B200",), ()),
    "eight GPUs of a model of small nodes": (8, 1000, ("T4",), ()),
}


@pytest.mark.parametrize(("gpus", "milli", "models", "chosen"), NARROWED.values(), ids=NARROWED.keys())
def test_a_job_is_narrowed_to_its_cheapest_node(
    gpus: int, milli: int, models: tuple[str, ...], chosen: tuple[str, ...], catalog: Catalog
) -> None:
    """By what is known at submit alone: the type on which a node for this job costs least, and its equals."""
    job = Job(job_id="j", submit_s=0, duration_s=1, gpus=gpus, gpu_milli=milli, models=models)
    assert Affinity(catalog, "on-demand").types_of(job) == chosen


def test_how_long_a_job_runs_is_not_looked_at(catalog: Catalog) -> None:
    """Jobs that differ in their run time alone are narrowed alike."""
    jobs = [Job(job_id=f"j{d}", submit_s=0, duration_s=d, gpus=1, models=("V100", "A100")) for d in (1.0, 1e6)]
    assert len({Affinity(catalog, "on-demand").types_of(job) for job in jobs}) == 1


def test_idle_hours_are_the_dearest_first() -> None:
    """Dollars of an hour go to its idle GPUs by their share of those paid for."""
    paid = [(8.0, 8.0), (8.0, 2.0), (8.0, 6.0)]
    points = [
        Point(t=3600.0 * n, gpus_paid=p, gpus_used=u, usd=Decimal(32 * n), waiting=0)
        for n, (p, u) in enumerate([*paid, (0.0, 0.0)])
    ]
    hours = idle_hours(points)
    assert [(h.start, h.usd, h.gpus) for h in hours] == [
        (3600.0, Decimal(24), 6.0),
        (7200.0, Decimal(8), 2.0),
        (0.0, Decimal(0), 0.0),
    ]
    assert idle_hours(points, most=1) == hours[:1]
