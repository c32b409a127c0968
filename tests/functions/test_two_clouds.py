"""Two clusters on two clouds in one deployment: one cloud's outage is not the other's."""

import pytest

from pilotlight.adapters.aws_api import services
from two_clouds import run


@pytest.mark.slow
def test_an_hour_without_one_cloud_costs_the_other_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pod on Civo waits exactly as long as with AWS well; those on AWS get their nodes once it answers again."""
    monkeypatch.setattr(services, "QUERY_PAUSES_S", ())
    well, down = run(aws_is_down=False), run(aws_is_down=True)
    assert down.civo == well.civo
    assert len(down.aws) == len(well.aws) == len(well.civo)
    assert max(down.aws) > 3000 > max(well.aws)
