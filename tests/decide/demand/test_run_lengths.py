"""How long pods will run, learned from looks at those that run."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, node, pod

from pilotlight.decide.demand.run_lengths import (
    ENOUGH,
    LEANS,
    LEAST,
    MOST,
    MOST_LENGTHS,
    REMEMBERED,
    WATCHED,
    expected_run_s,
    median_run_s,
    run_quantiles,
    with_runs,
)
from pilotlight.decide.money.economics import TYPICAL_RUN_S
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.workload import GpuRequest

HOUR_S = 3600
KIND = "batch/ml/1"


def running(begun_h: Mapping[str, float | None], team: str = "ml", workload_class: str = "batch") -> Node:
    """A node with pods that began so many hours from now; None where one has not started."""
    pods = tuple(
        BoundPod(
            uid=uid,
            namespace=team,
            name=uid,
            gpu=GpuRequest(count=1),
            workload_class=workload_class,
            team=team,
            started_at=None if at is None else NOW + timedelta(hours=at),
        )
        for uid, at in begun_h.items()
    )
    return node("n", pods=pods)


def looked(
    memory: Memory, begun_h: Mapping[str, float | None], at_h: float, team: str = "ml", workload_class: str = "batch"
) -> Memory:
    """The memory after a look at pods that began so many hours from now."""
    return with_runs(memory, [running(begun_h, team, workload_class)], NOW + timedelta(hours=at_h))


def one_by_one(lengths_h: Sequence[float], team: str = "ml", memory: Memory | None = None) -> Memory:
    """The memory of pods that ran one after the other."""
    memory, ends = memory or Memory(), [0.0]
    for n, length in enumerate(lengths_h):
        memory = looked(memory, {f"p{n}": ends[-1]}, ends[-1], team)
        ends.append(ends[-1] + length)
    return looked(memory, {}, ends[-1], team)


def expected_h(memory: Memory, at_h: float, team: str = "ml", **traits: Any) -> float:
    """What a pod of a team is expected to run, in hours."""
    return expected_run_s(memory, pod("p", team=team, **traits).shape, NOW + timedelta(hours=at_h)) / HOUR_S


def test_mean_median_and_quantiles_are_of_one_record() -> None:
    """Ten runs seen once are what all three statistics tell of; without that record none of them knows anything."""
    memory, shape = one_by_one([2.0] * 9 + [9.0]), pod("p", team="ml").shape
    assert memory == Memory(ran=memory.ran)
    ran = memory.ran[KIND]
    assert ran == Ran(ended=10, ended_s=27 * HOUR_S, lengths=(*[2 * HOUR_S] * 9, 9 * HOUR_S))
    assert expected_h(memory, 27) == pytest.approx((27 + LEANS * 28 / 11) / (10 + LEANS))
    assert median_run_s(memory) == {"batch": 2 * HOUR_S}
    found = run_quantiles(memory, shape)
    assert found is not None
    assert (found.lengths_s, found.runs) == ((2 * HOUR_S, 9 * HOUR_S), 10)
    assert found.group == "class batch, team ml, 1 GPU"
    assert (expected_h(Memory(), 27), median_run_s(Memory()), run_quantiles(Memory(), shape)) == (1.0, {}, None)


def test_who_knows_nothing_expects_the_typical_run() -> None:
    """Without a history it is an hour, and never longer than the pod may run."""
    assert expected_h(Memory(), 0) == TYPICAL_RUN_S / HOUR_S
    assert expected_h(Memory(), 0, max_run_s=60.0) == 60 / HOUR_S


def test_runs_that_ended_are_learned() -> None:
    """Forty pods that ran five hours each, one after the other, foretell five; another team's lean on them."""
    memory = one_by_one([5.0] * 40)
    assert memory.ran[KIND].ended == 40
    assert expected_h(memory, 200) == pytest.approx(5, rel=0.02)
    assert expected_h(memory, 200, "other") == pytest.approx(5, rel=0.03)


def test_short_runs_are_not_believed() -> None:
    """Forty pods that ran a minute each do not say that the next will: the rare long one costs most."""
    assert expected_h(one_by_one([1 / 60] * 40), 1) == TYPICAL_RUN_S / HOUR_S


def test_what_still_runs_counts() -> None:
    """Of four pods three ended at once; the fourth still runs after 97 hours: the mean is not an hour."""
    memory = looked(Memory(), dict.fromkeys("abcd", 0.0), 1)
    memory = looked(memory, {"d": 0}, 1)
    assert expected_h(memory, 97) == pytest.approx((100 + LEANS * 101 / 4) / (3 + LEANS))


def test_what_still_runs_counts_in_full_beside_much_that_ended() -> None:
    """Once what has ended counts half, a run that goes on still counts for all of its time."""
    memory = Memory(ran={KIND: Ran(began=(int(NOW.timestamp()),), ended=REMEMBERED - 1, ended_s=0.0)})
    memory = looked(memory, {"long": 0, "short": 999}, 999)
    memory = looked(memory, {"long": 0}, 1000)
    ran = memory.ran[KIND]
    assert (ran.ended, ran.ended_s) == (REMEMBERED / 2, HOUR_S / 2)
    assert ran.began == (int(NOW.timestamp()),)


def test_a_quiet_look_changes_nothing() -> None:
    """Where no pod began or ended there is nothing to write."""
    memory = looked(Memory(), {"a": 0}, 1)
    assert looked(memory, {"a": 0}, 2) is memory


def test_a_run_counts_from_its_start() -> None:
    """A pod that has not started does not run yet; one seen late has run since it began."""
    waits = looked(Memory(), {"a": None}, 1)
    assert waits.ran == {}
    memory = looked(looked(waits, {"a": -2}, 1), {}, 2)
    assert memory.ran[KIND].lengths == (4 * HOUR_S,)


def test_a_pod_in_the_place_of_another_is_an_end_and_a_beginning() -> None:
    """As many run as before, but one of them began since."""
    memory = looked(looked(Memory(), {"a": 0}, 1), {"b": 1.5}, 2)
    assert (len(memory.ran[KIND].began), memory.ran[KIND].ended) == (1, 1)


def test_pods_that_began_at_once_are_counted_one_by_one() -> None:
    """Of a gang of three that began together two have ended."""
    memory = looked(looked(Memory(), dict.fromkeys("abc", 0), 1), {"b": 0}, 2)
    ran = memory.ran[KIND]
    assert (len(ran.began), ran.ended, ran.lengths) == (1, 2, (2 * HOUR_S, 2 * HOUR_S))


def test_a_class_has_a_median_from_five_runs_of_any_team() -> None:
    """Four runs make none; a fifth, of another team, does."""
    memory = one_by_one([1.0] * (LEAST - 1))
    assert median_run_s(memory) == {}
    assert median_run_s(one_by_one([3.0], "other", memory)) == {"batch": HOUR_S}


def test_quantiles_are_of_the_class_where_a_kind_has_too_few_runs() -> None:
    """And of those that lasted longer than the pod has run already."""
    memory = one_by_one([1.0] * ENOUGH + [4.0] * ENOUGH, "other")
    shape = pod("p", team="ml").shape
    found = run_quantiles(memory, shape, 2.0 * HOUR_S)
    assert found is not None
    assert (found.group, found.runs, found.lengths_s) == ("class batch", ENOUGH, (4 * HOUR_S, 4 * HOUR_S))
    assert run_quantiles(memory, shape, 5.0 * HOUR_S) is None
    assert run_quantiles(memory, pod("p", team="ml", workload_class="training").shape) is None


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.floats(-5, 0)), max_size=20))
def test_what_is_expected_stays_a_time(seen: list[dict[str, float | None]]) -> None:
    """Whatever was seen, it is above nothing and finite."""
    memory = Memory()
    for hour, begun in enumerate(seen):
        memory = looked(memory, begun, hour, f"team{hour % 3}")
    assert 0 < expected_h(memory, 31) < 1000


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(-5, 0)), max_size=20))
def test_every_run_that_was_seen_is_running_or_has_ended(seen: list[dict[str, float | None]]) -> None:
    """No pod is counted twice or lost, whatever the order of looks and pods."""
    memory = Memory()
    for hour, begun in enumerate(seen):
        memory = looked(memory, begun, hour)
        assert memory == looked(memory, dict(reversed(begun.items())), hour)
    starts = [list(begun.values()) for begun in ({}, *seen)]
    began = sum(sum(max(0, now.count(at) - was.count(at)) for at in set(now)) for was, now in pairwise(starts))
    ran = memory.ran.get(KIND, Ran())
    assert len(ran.began) + ran.ended == began


def test_the_record_is_bounded() -> None:
    """So many kinds, running pods and lengths are kept; of more teams those of which the least is known go first."""
    many: dict[str, float | None] = {f"p{n}": n / 100 for n in range(2 * WATCHED)}
    nodes, memory = [running(many, f"many{team}") for team in range(MOST + 9)], Memory()
    for hour, seen in enumerate((nodes, [], nodes), 30):
        memory = with_runs(memory, seen, NOW + timedelta(hours=hour))
    assert len(memory.ran) == MOST
    assert {(len(ran.began), len(ran.lengths)) for ran in memory.ran.values()} == {(WATCHED, MOST_LENGTHS)}
    assert len(msgspec.json.encode(memory.ran)) < 150_000


def test_of_too_many_the_watched_ones_stay_watched() -> None:
    """A pod that was passed over comes in for one that ended, the latest begun first."""
    many: dict[str, float | None] = {f"p{n:03}": n / 100 for n in range(WATCHED + 2)}
    memory = looked(Memory(), many, 30)
    watched = memory.ran[KIND].began
    assert looked(memory, many, 31) is memory
    del many[f"p{WATCHED + 1:03}"]
    after = looked(memory, many, 31).ran[KIND]
    assert after.ended == 1
    assert set(watched) - set(after.began) == {max(watched)}
    assert set(after.began) - set(watched) == {min(watched) - HOUR_S // 100}
