"""A pool of mode canary acts until it passes a bound; then it advises by itself, and people are told."""

import pytest
from stage import Stage

from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadPolicy
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import CanaryPolicy, PoolPolicy
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.records import brake_records


@pytest.fixture
def stage() -> Stage:
    """A canary that boots for longer than is allowed, beside a control that is advised on."""
    pools = {
        "one": PoolPolicy(
            instance_type="one", max=5, mode="canary", canary=CanaryPolicy(control="eight", max_wait=300)
        ),
        "eight": PoolPolicy(instance_type="eight", max=5, mode="advise"),
    }
    return Stage(pools=pools, boot_s=800)


def test_it_acts_until_a_bound_is_passed(stage: Stage) -> None:
    """What it buys is late: it is paused by itself, told once, and buys no more until a person resumes it."""
    stage.event(stage.submit("a"))
    stage.minutes(4, lambda: billing(stage.deps, Tick(cluster="c")))
    assert (stage.nodes("one"), brake_records.pause_reason(stage.deps.state, "c", "one")) == (1, "")
    stage.minutes(3, lambda: billing(stage.deps, Tick(cluster="c")))
    assert "canary: a purchase is on its way for" in brake_records.pause_reason(stage.deps.state, "c", "one")
    [told] = [alert for alert in stage.alerts if alert.kind == "canary-over"]
    assert told.how == "pilotlight shadow canary, then pilotlight resume --pool one"
    stopped = stage.event(stage.submit("b"))
    assert ("canary: a purchase is on its way" in stopped.why, stage.nodes("one")) == (True, 1)
    brake_records.resume(stage.deps.state, "c", "one")
    stage.event(stage.submit("c"))
    assert stage.nodes("one") == 3


def test_within_its_bounds_nothing_is_told(stage: Stage) -> None:
    """A canary that is not asked for anything goes on."""
    stage.minutes(20, lambda: billing(stage.deps, Tick(cluster="c")))
    assert (brake_records.pause_reason(stage.deps.state, "c", "one"), stage.alerts) == ("", [])


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        pytest.param("mode: canary", "canary goes with canary: {control: POOL}", id="without its bounds"),
        pytest.param("canary: {control: b}", "canary goes with canary: {control: POOL}", id="bounds of no canary"),
        pytest.param("mode: canary, canary: {control: a}", "'a' is no other pool: there are b", id="its own control"),
        pytest.param("mode: canary, canary: {control: z}", "'z' is no other pool: there are b", id="no such pool"),
    ],
)
def test_a_canary_without_a_control_is_refused(pool: str, said: str) -> None:
    """By the policy's path, with what to write."""
    text = f"version: 1\npools:\n  a: {{instance_type: x, {pool}}}\n  b: {{instance_type: x}}\n"
    with pytest.raises(BadPolicy) as refused:
        read_policy(text.encode(), "policy")
    assert said in str(refused.value)
