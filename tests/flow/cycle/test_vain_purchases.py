"""Purchases whose pods all ended while they boot: taken back by name while nothing else needs them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage import MINUTE, Stage

from pilotlight.errors import Unsure
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, SparePolicy
from pilotlight.flow.budgets import budget_accounts, budget_holds
from pilotlight.state_schema.flight_records import IN_FLIGHT
from pilotlight.units import HOUR

BOOT_S = 600.0


def stage(**options: object) -> Stage:
    """One-GPU nodes at $1 an hour that boot for ten minutes."""
    pools = {"one": PoolPolicy(instance_type="one", max=20, **options)}  # type: ignore[arg-type]
    return Stage(pools=pools, boot_s=BOOT_S)


def bought(on: Stage, *names: str) -> None:
    """Each of these pods has its node on its way."""
    for name in names:
        on.event(on.submit(name))
    assert on.nodes("one") == len(names)


def delete(on: Stage, *names: str) -> None:
    """A person deletes these pods while they wait."""
    for name in names:
        on.world.delete(on.world.pending[f"uid-{name}"])


def test_it_is_taken_back_by_the_second_look_that_finds_its_pod_gone() -> None:
    """The instance ends before it is a node, its entry in flight with it; people are told, and nothing rests."""
    on = stage()
    bought(on, "a")
    on.minutes(1)
    delete(on, "a")
    on.minutes(1)
    assert on.nodes("one") == 1
    on.minutes(1)
    assert (on.nodes("one"), on.world.launches, on.world.terminations) == (0, 1, 1)
    assert list(IN_FLIGHT.scan(on.deps.state, "c/")) == []
    (told,) = [alert for alert in on.alerts if alert.kind == "capacity-release"]
    assert (told.severity, told.why) == ("info", "all that it was bought for ended; $0.05 wasted")
    on.event(on.submit("b"))
    assert on.world.launches == 2


def test_it_stays_for_the_pod_that_comes_in_place() -> None:
    """A controller's next pod, or any other that fits, has the node that boots."""
    on = stage()
    bought(on, "a")
    delete(on, "a")
    on.minutes(1)
    on.submit("next")
    on.minutes(12)
    assert (on.world.launches, len(on.world.running)) == (1, 1)


def test_one_of_two_waits_on() -> None:
    """Of a purchase of two nodes whose pods are not all gone nothing goes: whose is whose nobody can tell."""
    on = stage()
    on.submit("a")
    on.submit("b")
    on.minutes(1)
    assert on.nodes("one") == 2
    delete(on, "a")
    on.minutes(4)
    assert on.nodes("one") == 2
    delete(on, "b")
    on.minutes(3)
    assert on.nodes("one") == 0


def test_of_two_purchases_the_one_in_vain_goes() -> None:
    """The other's pod has its node when it was promised."""
    on = stage()
    bought(on, "a")
    on.minutes(3)
    on.event(on.submit("b"))
    assert on.nodes("one") == 2
    delete(on, "b")
    on.minutes(3)
    assert on.nodes("one") == 1
    on.minutes(12)
    assert (on.world.launches, list(on.world.running)) == (2, ["uid-a"])


@pytest.mark.parametrize(
    ("keeps", "lit"), [({"spares": SparePolicy(warm=1)}, 2), ({"min": 1}, 1)], ids=["warm", "least"]
)
def test_a_spare_that_the_policy_keeps_is_not_given_back(keeps: dict[str, Any], lit: int) -> None:
    """Of what boots for a pod and as a spare one is left, whichever it was bought for."""
    on = stage(**keeps)
    on.event(on.submit("a"))
    on.minutes(1)
    assert on.nodes("one") == lit
    delete(on, "a")
    on.minutes(6)
    assert (on.nodes("one"), on.world.terminations) == (1, lit - 1)


def test_what_is_paid_for_an_hour_boots_on() -> None:
    """Where the cloud bills by the hour, going earlier saves nothing."""
    on = stage()
    offerings = tuple(msgspec.structs.replace(one, minimum_s=3600, increment_s=3600) for one in on.deps.offerings)
    on.deps = replace(on.deps, offerings=offerings)
    bought(on, "a")
    on.minutes(1)
    delete(on, "a")
    on.minutes(12)
    assert (on.nodes("one"), on.world.terminations) == (1, 0)


def test_its_hold_ends_at_what_it_cost() -> None:
    """The dollars that were held are free again but for the minutes of its boot."""
    budget = Budget(name="b", usd=Decimal("2.50"), period="day")
    batch = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=HOUR)
    pools = {"one": PoolPolicy(instance_type="one", max=9)}
    on = Stage(pools=pools, boot_s=BOOT_S, budgets=(budget,), classes={"batch": batch})
    bought(on, "a")
    assert held(on) > 1
    delete(on, "a")
    on.minutes(4)
    assert on.nodes("one") == 0
    assert on.world.cost() <= held(on) <= Decimal("0.10")
    assert [e.value for e in budget_accounts.every_hold(on.deps) if e.value.ended_at is None] == []
    bought(on, "b")


def held(on: Stage) -> Decimal:
    """Settled and held against the budget's day."""
    return budget_holds.balances(on.deps, on.deps.state.now()).balances[0].total


def test_an_answer_that_is_lost_takes_back_nothing_else() -> None:
    """The call may have landed: the same instance is asked for again, and the pod that comes has a node of its own."""
    on = stage()
    bought(on, "a")
    on.minutes(1)
    delete(on, "a")
    on.minutes(1)
    on.fail("release", Unsure("no answer"))
    on.wait(MINUTE)
    with pytest.raises(Unsure):
        on.tick()
    on.submit("b")
    on.minutes(16)
    assert list(on.world.running) == ["uid-b"]
    assert on.nodes("one") == 1


STORY = st.lists(st.tuples(st.integers(0, 14), st.integers(1, 12) | st.none(), st.booleans()), min_size=1, max_size=7)
"""Pods: in which minute each comes, how many minutes later it is deleted, whether an event tells of it."""


@given(story=STORY)
@settings(max_examples=40, deadline=None)
def test_whoever_stays_is_served_in_time_and_nothing_is_left(story: list[tuple[int, int | None, bool]]) -> None:
    """Whatever comes and goes: each pod that stays runs within a boot and three looks, and in the end no node is lit
    or in flight."""
    on = Stage(pools={"one": PoolPolicy(instance_type="one", max=20)}, boot_s=BOOT_S)
    for minute in range(30):
        for n, (at, after, told) in enumerate(story):
            name = f"p{n}"
            if at == minute:
                pod = on.submit(name, run_s=900)
                if told:
                    on.event(pod)
            if after is not None and at + after == minute and f"uid-{name}" in on.world.pending:
                delete(on, name)
        on.minutes(1)
        late = [job for job in on.world.pending.values() if on.world.now_s - job.submit_s > BOOT_S + 3 * MINUTE]
        assert late == []
    on.minutes(40)
    stay = {f"uid-p{n}" for n, (_, after, __) in enumerate(story) if after is None}
    assert stay <= {job.id for job in on.world.finished}
    assert (on.nodes("one"), list(IN_FLIGHT.scan(on.deps.state, "c/"))) == (0, [])
