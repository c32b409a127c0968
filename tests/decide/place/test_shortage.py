"""What a shortage does: pods wait for the cheapest type, or are bought the next, by the one price of waiting."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import A100, NOW, T4, bought, gang, offering, plan, pod, policy, verdict

from pilotlight.errors import Forbidden, NoCapacity
from pilotlight.facts.capacity import Offering
from pilotlight.facts.memory import Backoff, Memory, Ran
from pilotlight.facts.policy import ClassPolicy, PoolPolicy
from pilotlight.flow.records.memory_updates import note_refusal

V100 = offering("v100", "V100", 1, "3")
BOTH = (T4, V100)


def short(of: Offering = T4, *, for_s: float = 60, left_s: float = 60, **fields: Any) -> Memory:
    """The cloud has refused an offering for want of capacity for so long, and is asked again in so long."""
    since, until = NOW - timedelta(seconds=for_s), NOW + timedelta(seconds=left_s)
    backoff = Backoff(offering=of.name, until=until, why="out of stock", tries=2, short_since=since)
    return Memory(backoffs=(backoff,), **fields)


CASES: dict[str, tuple[str, float, dict[str, int]]] = {
    "a minute more at $30 an hour is cheaper than an hour of V100": ("30", 60, {}),
    "at $300 an hour it is not": ("300", 60, {"v100": 1}),
    "nor after an hour of shortage at $30": ("30", 3600, {"v100": 1}),
    "where waiting has no price the next is bought": ("0", 60, {"v100": 1}),
}


@pytest.mark.parametrize(("value", "for_s", "nodes"), CASES.values(), ids=CASES.keys())
def test_the_price_of_waiting_picks(value: str, for_s: float, nodes: dict[str, int]) -> None:
    """A V100 costs $2 an hour more than the T4 that is short."""
    rules = policy(BOTH, value_of_wait=Decimal(value))
    assert bought(plan([pod("p")], offerings=BOTH, rules=rules, memory=short(for_s=for_s))) == nodes


def test_who_waits_is_told_the_sum_and_looked_at_when_the_rest_ends() -> None:
    """The sum of both sides is there, with what is short and what would be bought."""
    wanted = pod("p")
    rules = policy(BOTH, value_of_wait=Decimal(30))
    made = plan([wanted], offerings=BOTH, rules=rules, memory=short())
    assert verdict(made, wanted) == (
        "waiting",
        f"{T4.name} is short: waiting 2 min longer for it costs $1.00 at $30.00/h, {V100.name} $2.10 more for 1.0 h "
        "of running",
    )
    assert made.look_again_at == NOW + timedelta(seconds=60)
    assert {r.offering: r.code for r in made.pods[0].rejected} == {T4.name: "backoff", V100.name: "dearer"}


def test_long_runs_wait_longer() -> None:
    """Pods like it ran ten hours: the dearer type costs ten times as much more."""
    runs = {"batch//1": Ran(ended=50, ended_s=50 * 36_000)}
    rules = policy(BOTH, value_of_wait=Decimal(60))
    assert bought(plan([pod("p")], offerings=BOTH, rules=rules, memory=short(for_s=240))) == {"v100": 1}
    assert not plan([pod("p")], offerings=BOTH, rules=rules, memory=short(for_s=240, ran=runs)).buys


def test_a_gang_waits_as_one_job() -> None:
    """Two pods of a gang are worth one wait: they wait where two single pods would not."""
    big = offering("h100", "H100", 8, "48")
    fleet = (A100, big)
    rules = policy(fleet, value_of_wait=Decimal(400))
    speeds = {"batch": {"A100": 1.0, "H100": 1.0}}
    given_: dict[str, Any] = {
        "offerings": fleet,
        "rules": rules,
        "memory": short(A100, for_s=120),
        "throughput": speeds,
    }
    assert bought(plan([pod("p", 8), pod("q", 8)], **given_)) == {"h100": 2}
    made = plan(gang("g", 2), **given_)
    assert (made.buys, made.pods[0].code) == ((), "backoff")
    assert "is short" in made.pods[0].why


def test_another_size_of_the_same_price_a_gpu_is_bought_at_once() -> None:
    """Four V100 for four times the price are not the next type: other pods will use them."""
    four = offering("v100x4", "V100", 4, "12")
    rules = policy((V100, four), value_of_wait=Decimal(30))
    assert bought(plan([pod("p")], offerings=(V100, four), rules=rules, memory=short(V100))) == {"v100x4": 1}


def test_nothing_waits_for_a_pool_that_is_full() -> None:
    """Where a cap leaves no node of what is short the next type is bought."""
    rules = policy(BOTH, value_of_wait=Decimal(30), pools={"t4": PoolPolicy(instance_type="T4x1", max=0)})
    assert bought(plan([pod("p")], offerings=BOTH, rules=rules, memory=short())) == {"v100": 1}


def test_a_fall_back_from_spot_is_its_owners_word() -> None:
    """A class that may fall back to on-demand does, whatever the price of waiting."""
    spot = offering("t4-spot", "T4", 1, "0.3", capacity_type="spot")
    rules = policy(
        (spot, T4),
        value_of_wait=Decimal(1),
        classes={"batch": ClassPolicy(capacity_types=("spot",), fallback="allow", gpu_models="any")},
    )
    made = plan([pod("p", checkpoint_s=600)], offerings=(spot, T4), rules=rules, memory=short(spot))
    assert bought(made) == {"t4": 1}


def test_only_want_of_capacity_is_waited_for() -> None:
    """What may not be bought at all is not waited for; a shortage counts from its first refusal in a row."""
    later = NOW + timedelta(seconds=65)
    once = note_refusal(Memory(), T4.name, NoCapacity("out of stock"), NOW)
    twice = note_refusal(once, T4.name, NoCapacity("out of stock"), later)
    assert [b.short_since for b in (*once.backoffs, *twice.backoffs)] == [NOW, NOW]
    other = note_refusal(twice, T4.name, Forbidden("no permission"), later)
    assert other.backoffs[0].short_since is None
    rules = policy(BOTH, value_of_wait=Decimal(30))
    assert bought(plan([pod("p")], offerings=BOTH, rules=rules, memory=other, now=later)) == {"v100": 1}


@given(st.integers(1, 1000), st.floats(0.01, 200))
def test_waiting_is_never_worth_more_than_what_it_saves(value: int, hours: float) -> None:
    """However long a shortage goes on and pods run: who was there from its beginning has by the purchase of the next
    type, with doubling rests, waited for no more dollars than that type costs more."""
    rules = policy(BOTH, value_of_wait=Decimal(value))
    runs = {"batch//1": Ran(ended=1e6, ended_s=1e6 * hours * 3600)}
    memory, now = Memory(ran=runs), NOW
    for _ in range(10_000):
        memory = note_refusal(memory, T4.name, NoCapacity("out of stock"), now)
        if bought(plan([pod("p")], offerings=BOTH, rules=rules, memory=memory, now=now)):
            break
        now = memory.backoffs[0].until
    waited_usd = value * (now - NOW).total_seconds() / 3600
    assert waited_usd <= 2 * (max(hours, 1) + 0.05) * 1.001 + value * 66 / 3600
