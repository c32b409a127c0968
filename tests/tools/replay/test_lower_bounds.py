"""The lower bounds: golden values of the recorded traces, and exactness against brute force."""

from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.errors import BadInput
from pilotlight.tools.replay.cover import Cover, Machine
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.traces.trace_file import read_trace
from pilotlight.tools.replay.traces.trace_job import Job

CATALOG_FILE = Path(__file__).parents[3] / "data" / "catalogs" / "replay.yaml"
CATALOG = read_catalog(CATALOG_FILE.read_bytes(), CATALOG_FILE.name)
HOUR = 3600.0

MACHINES = st.lists(st.builds(Machine, st.sampled_from([1, 2, 4, 8]), st.integers(1, 20)), min_size=1, max_size=3)


def job(gpus: int, *models: str, hours: float = 1, start: float = 0, milli: int = 1000) -> Job:
    """A job of so many hours."""
    return Job(job_id="j", submit_s=start * HOUR, duration_s=hours * HOUR, gpus=gpus, gpu_milli=milli, models=models)


@pytest.mark.parametrize(
    ("trace", "fluid", "integral"),
    [
        ("openb_dev", "6109.41", "8074.39"),
        ("philly_small_dev", "37527.61", "38869.54"),
        ("philly_short_dev", "33253.37", "33253.37"),
        ("dlrm_dev", "209801.88", "209801.88"),
    ],
)
def test_the_recorded_traces_have_their_golden_bounds(shelf: Path, trace: str, fluid: str, integral: str) -> None:
    """Fluid and integral bound agree to the cent with the reference's."""
    got = bounds(read_trace(shelf / "traces" / f"{trace}.csv.gz"), CATALOG)
    assert (round(got.fluid, 2), round(got.integral, 2)) == (Decimal(fluid), Decimal(integral))


def test_the_long_recorded_trace_has_its_golden_bound(shelf: Path) -> None:
    """Four weeks of Philly cost at least $335,692 in whole nodes."""
    assert round(bounds(read_trace(shelf / "traces" / "philly_dev.csv.gz"), CATALOG).integral) == 335_692


@pytest.mark.parametrize(
    ("jobs", "fluid", "integral"),
    [
        pytest.param([job(1, "T4")], "0.526", "0.526", id="one GPU for an hour costs its node for an hour"),
        pytest.param([job(1, "T4", milli=250)], "0.1315", "0.526", id="a quarter of a GPU needs a whole node"),
        pytest.param([job(1, "T4", milli=500)] * 2, "0.526", "0.526", id="two halves share one node"),
        pytest.param([job(1, "T4"), job(1, "T4", start=1)], "1.052", "1.052", id="one after the other"),
        pytest.param([job(16, "A100")], "65.54", "65.54", id="a gang needs its whole nodes"),
        pytest.param([job(2, "V100")], "6.12", "12.24", id="two V100 come as a node of four"),
        pytest.param([job(2, "V100"), job(1, "V100"), job(1, "V100")], "12.24", "12.24", id="small ones fill it up"),
        pytest.param([job(1, "A100"), job(1, "T4", "A100")], "4.62225", "32.77", id="a node's free GPU is free"),
    ],
)
def test_small_traces_have_the_bounds_of_pencil_and_paper(jobs: list[Job], fluid: str, integral: str) -> None:
    """Each bound is what a person works out."""
    got = bounds(jobs, CATALOG)
    assert (got.fluid, got.integral) == (Decimal(fluid), Decimal(integral))


def test_spot_has_its_own_bounds() -> None:
    """The bound is in the prices of what is bought, with that at on-demand prices beside it."""
    got = bounds([job(1, "A10G")], CATALOG, "spot")
    assert (got.integral, got.on_demand) == (Decimal("0.35"), Decimal("1.01"))


def test_a_job_that_no_type_holds_is_bad_input() -> None:
    """A model that the catalogue does not have is told by the job's name."""
    with pytest.raises(BadInput, match="job j: 1 GPU of H100: no priced type of catalogue replay"):
        bounds([job(1, "H100")], CATALOG)


@given(machines=MACHINES, data=st.data())
def test_a_cover_is_as_cheap_as_the_best_of_all_covers(machines: list[Machine], data: st.DataObject) -> None:
    """For any machines and demand, brute force over every count of nodes finds nothing cheaper."""
    masks = st.integers(1, (1 << len(machines)) - 1)
    demand = data.draw(st.dictionaries(masks, st.integers(0, 9000), max_size=3))
    most = [-(-sum(demand.values()) // 1000 // machine.gpus) + 1 for machine in machines]
    prices = (
        sum(n * machine.price for n, machine in zip(counts, machines, strict=True))
        for counts in product(*(range(n + 1) for n in most))
        if _serves(counts, machines, demand)
    )
    assert Cover(tuple(machines)).price(demand) == min(prices)


def _serves(counts: tuple[int, ...], machines: list[Machine], demand: dict[int, int]) -> bool:
    """Whether nodes serve a demand: the condition for every set of types, as the rules of the replay state it."""
    for chosen in range(1 << len(machines)):
        have = sum(n * m.gpus for i, (n, m) in enumerate(zip(counts, machines, strict=True)) if chosen >> i & 1)
        need = sum(milli for mask, milli in demand.items() if mask & ~chosen == 0)
        if have * 1000 < need:
            return False
    return True
