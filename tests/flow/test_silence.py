"""A cluster that does not answer: nothing changes, and people are told once."""

import pytest
from test_brakes import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.messages import Tick
from pilotlight.flow.reconcile import reconcile


def test_ten_silent_minutes_are_told_once_and_change_nothing() -> None:
    """Ticks fail for a quarter of an hour: every one is a retry, one alert goes out, no node comes or goes."""
    stage = Stage()
    stage.pod("a", run_s=30)
    before = (stage.world.launches, stage.world.terminations)
    stage.world._errors = [("observe", Unavailable("the API server does not answer"))] * 15
    for _ in range(15):
        stage.world.advance(stage.world.now_s + 60)
        with pytest.raises(Unavailable):
            reconcile(stage.app.deps, Tick(cluster="local"))
    assert (stage.world.launches, stage.world.terminations) == before
    assert stage.alerts.count("silent") == 1
    stage.pass_(600)
    assert stage.world.terminations == 1
