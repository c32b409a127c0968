"""Nodes whose release was lost and that no meter saw: their books have what they cost."""

from dataclasses import replace
from decimal import Decimal

import pytest
from stage import Stage
from test_call_steps import Cloud

from pilotlight.errors import Retry
from pilotlight.flow.billing import meter_nodes

CENT = Decimal("0.01")


@pytest.mark.parametrize("after_s", [10, 3600], ids=["settled at once", "settled an hour later"])
def test_a_node_that_no_meter_saw_is_paid_for_though_the_answer_to_its_release_was_lost(after_s: int) -> None:
    """The next look finds it gone: its life ended by when the call can have landed, however late that look is."""
    stage = Stage()
    cloud = Cloud(stage, made=True)
    stage.deps = replace(stage.deps, pools=cloud)
    meter_nodes.count(stage.deps)
    stage.event(stage.submit("a", run_s=600))
    cloud.releases = 1
    with pytest.raises(Retry):
        stage.minutes(25)
    stage.wait(after_s)
    stage.tick()
    assert stage.world.nodes == {}
    counted = meter_nodes.count(stage.deps)
    assert sum((line.usd for line in counted.lines), Decimal(0)) == pytest.approx(stage.world.cost(), abs=CENT)
    assert stage.world.cost() > 0
