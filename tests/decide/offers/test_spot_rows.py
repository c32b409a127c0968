"""The table of spot: a zone's record first, then what was lived through, then the catalogue; sums made by hand."""

from decimal import Decimal
from math import expm1, log

import pytest

from pilotlight.facts.capacity import Offering
from pilotlight.facts.offers.cloud_shop import SpotPrices
from pilotlight.facts.offers.spot_history import HOURS_A_DAY, Lives
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.tools.advice.spot_table_rows import SpotJob, SpotRow, spot_rows
from pilotlight.units import HOUR

JOB = SpotJob(run_s=24 * HOUR, checkpoint_s=HOUR, takes_s=60)


def _offering(zone: str = "", pool: str = "cheap") -> Offering:
    return Offering(
        pool=pool,
        instance_type="one",
        capacity_type="spot",
        gpu_model="V100",
        gpus=1,
        usd_per_hour=Decimal("0.90"),
        on_demand_usd_per_hour=Decimal("3.06"),
        zone=zone,
        boot_s=180,
        interruptions_per_hour=0.05,
    )


def _one(zone: str = "", **given: object) -> SpotRow:
    fields = {"lives": {}, "records": (), "prices": {}, "job": JOB, **given}
    [row] = spot_rows([_offering(zone)], **fields)  # type: ignore[arg-type]
    return row


def test_where_nothing_is_known_the_catalogue_speaks() -> None:
    """Its rate is the life and the sum: Daly's hours for each useful one, with a boot at each new start."""
    row = _one()
    factor = expm1(0.05 * (1 + 60 / HOUR)) / 0.05 * 2.718281828459045 ** (0.05 * 0.05)
    assert (row.up, row.sample, row.source, row.zone) == (None, 0, "the catalogue", "")
    assert row.life_h == pytest.approx(log(2) / 0.05)
    assert float(row.usd_per_useful_hour or 0) == pytest.approx(0.90 * factor)
    assert row.safe


def test_a_zones_record_says_how_often_it_is_up_and_how_long() -> None:
    """Of its last seven days; a spell cut off by an end has no length. The median of 2, 6 and 4 h is 4."""
    runs = ((1, 3), (0, 5), (1, 2), (0, 4), (1, 6), (0, 2), (1, 4), (0, 1), (1, 1))
    record = ZoneHistory(zone="a", gap_s=HOUR, runs=runs)
    row = _one("a", records=[record])
    assert row.up == pytest.approx(16 / 28)
    assert (row.life_h, row.sample, row.source) == (4.0, 3, "its record")
    old = ZoneHistory(zone="a", gap_s=HOUR, runs=((0, 1000), (1, 168)))
    assert _one("a", records=[old]).up == 1.0


def test_what_the_cluster_lived_through_counts_where_no_record_is() -> None:
    """Its losses, in its hours, with the share of its asks that were served."""
    hours, lost = [0.0] * HOURS_A_DAY, [0.0] * HOURS_A_DAY
    hours[3], lost[3] = 100.0, 20.0
    lives = {"one/a": Lives(at=0.0, hours=tuple(hours), lost=tuple(lost), asked=10, refused=4)}
    row = _one("a", lives=lives)
    assert row.up == pytest.approx(0.6)
    assert (row.sample, row.source) == (20, "lived through here")
    assert row.life_h < log(2) / 0.05


def test_a_pool_of_no_zone_has_a_row_for_each_that_something_is_told_of() -> None:
    """Those with a price or a record, the cheapest useful hour first, at the price of its zone."""
    prices = {
        "one/a": SpotPrices(now=Decimal("1.10"), least=Decimal("0.80"), most=Decimal("1.20")),
        "one/b": SpotPrices(now=Decimal("0.70"), least=Decimal("0.70"), most=Decimal("0.75")),
        "other/c": SpotPrices(now=Decimal("0.10"), least=Decimal("0.10"), most=Decimal("0.10")),
    }
    rows = spot_rows([_offering()], {}, (), prices, JOB)
    assert [(row.zone, row.usd_per_hour, row.least) for row in rows] == [
        ("b", Decimal("0.70"), Decimal("0.70")),
        ("a", Decimal("1.10"), Decimal("0.80")),
    ]


@pytest.mark.parametrize(
    ("job", "safe"),
    [
        (SpotJob(run_s=24 * HOUR, checkpoint_s=HOUR), True),
        (SpotJob(run_s=2 * HOUR), True),
        (SpotJob(run_s=400 * HOUR), False),
    ],
    ids=["one that saves", "a short one that does not", "a long one that does not"],
)
def test_the_verdict_is_the_jobs(job: SpotJob, safe: bool) -> None:
    """With the sum that it rests on."""
    row = _one(job=job)
    assert (row.safe, bool(row.why)) == (safe, True)


def test_a_job_that_would_never_end_costs_no_figure() -> None:
    """At the end of the table, without a price of a useful hour."""
    away = ZoneHistory(zone="a", gap_s=60, runs=((1, 1), (0, 1)) * 200)
    row = _one("a", records=[away], job=SpotJob(run_s=5000 * HOUR))
    assert row.usd_per_useful_hour is None
    assert not row.safe
