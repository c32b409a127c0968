"""The meter of a served deployment: several workers tick, some die, and its dollars stay those of the cloud."""

from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from fleet import Fleet, fleet, until
from pilotlight.flow.billing import meter


def metered(here: Fleet) -> Decimal:
    """All dollars that the meter counted."""
    now = here.world.report().now.date()
    found = meter.days(here.state, "local", now.replace(day=1), now)
    return sum((line.usd for day in found for line in day.lines), Decimal(0))


@pytest.mark.slow
def test_killed_workers_meter_what_the_cloud_charged(tmp_path: Path) -> None:
    """What dies between a release and its note costs a tick's time, no more."""
    with fleet(tmp_path, workers=2, clock="x300") as here:
        pods = here.create(8, run_s=150)
        with here.load(pods):
            for _ in range(3):
                here.kill_one(Random(7))
        until(lambda: here.world.report().pods["finished"] == 8 and here.world.report().nodes == 0)
        cost = here.world.report().cost_usd
        until(lambda: abs(metered(here) / cost - 1) < Decimal("0.03"))
        assert cost > 0
