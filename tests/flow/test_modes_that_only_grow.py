"""In mode scale-up more is bought and nothing is taken: not at a cap, not at a notice, by whichever way it would go."""

from dataclasses import replace
from decimal import Decimal

import pytest
from stage import Stage
from test_interrupt import SAVES, SPOT, Doomed

from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.budgets import interruption_records
from pilotlight.units import HOUR


def test_no_stop_is_begun_at_a_cap() -> None:
    """The overrun is told as such; no interruption of the node is begun, or told to its pods' owners."""
    stops = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=24 * HOUR, may_move=("hard-cap",))
    pools = {"one": PoolPolicy(instance_type="one", mode="scale-up")}
    on = Stage(budgets=(Budget(name="all", usd=Decimal(2), period="day"),), classes={"batch": stops}, pools=pools)
    on.event(on.submit("a", run_s=20 * HOUR))
    on.minutes(3 * 60)
    assert list(interruption_records.every(on.deps.state, "c")) == []
    assert [a for a in on.alerts if a.kind == "interruption"] == []
    assert list(on.world.running) == ["uid-a"]


@pytest.mark.parametrize(
    ("pods", "works"),
    [([SAVES], True), ([{}], True), ([{}], False)],
    ids=["it saves", "it cannot save", "nothing runs"],
)
def test_a_notice_evicts_nobody_and_ends_no_node(pods: list[dict[str, object]], works: bool) -> None:
    """Room is asked for where pods will need it; they run on until the cloud takes their node, and no sooner."""
    stage = Doomed(SPOT, pods=pods)
    if not works:
        stage.world.finish(next(iter(stage.world.running)))
    stage.log.clear()
    stage.deps = replace(stage.deps, mode="scale-up")
    taken = stage.world.now_s + 120
    stage.notice()
    stage.until(180)
    assert [t for t, _ in stage.of("stop")] == [taken] * works
    assert [(r["t"], r["node"]) for r in stage.events("terminate")] == [(taken, "n1")]
    assert len(stage.events("launch")) == works
    assert "capacity-advised" not in [a.kind for a in stage.alerts], "nobody is advised to end what its cloud takes"
