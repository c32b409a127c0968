"""How long pods will run, learned from looks at those that run."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, node, pod

from pilotlight.decide.demand.run_lengths import LEANS, MOST, expected_run_s, with_runs
from pilotlight.decide.money.economics import TYPICAL_RUN_S
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.memory import Memory
from pilotlight.facts.workload import GpuRequest

HOUR_S = 3600.0


def running(begun_h: Mapping[str, float], team: str = "ml") -> Node:
    """A node with pods that began so many hours from now."""
    pods = tuple(
        BoundPod(
            uid=uid,
            namespace=team,
            name=uid,
            gpu=GpuRequest(count=1),
            workload_class="batch",
            team=team,
            started_at=NOW + timedelta(hours=at),
        )
        for uid, at in begun_h.items()
    )
    return node("n", pods=pods)


def looked(memory: Memory, begun_h: Mapping[str, float], at_h: float, team: str = "ml") -> Memory:
    """The memory after a look at pods that began so many hours from now."""
    return with_runs(memory, [running(begun_h, team)], NOW + timedelta(hours=at_h))


def expected_h(memory: Memory, at_h: float, team: str = "ml", **traits: Any) -> float:
    """What a pod of a team is expected to run, in hours."""
    return expected_run_s(memory, pod("p", team=team, **traits).shape, NOW + timedelta(hours=at_h)) / HOUR_S


def test_who_knows_nothing_expects_the_typical_run() -> None:
    """Without a history it is an hour, and never longer than the pod may run."""
    assert expected_h(Memory(), 0) == TYPICAL_RUN_S / HOUR_S
    assert expected_h(Memory(), 0, max_run_s=60.0) == 60 / HOUR_S


def test_runs_that_ended_are_learned() -> None:
    """Forty pods that ran five hours each, one after the other, foretell five; another team's lean on them."""
    memory = Memory()
    for n in range(40):
        memory = looked(memory, {f"p{n}": 5 * n}, 5 * n)
    memory = looked(memory, {}, 200)
    assert memory.ran["batch/ml/1"].ended == 40
    assert expected_h(memory, 200) == pytest.approx(5, rel=0.02)
    assert expected_h(memory, 200, "other") == pytest.approx(5, rel=0.03)


def test_short_runs_are_not_believed() -> None:
    """Forty pods that ran a minute each do not say that the next will: the rare long one costs most."""
    memory = Memory()
    for n in range(40):
        memory = looked(memory, {f"p{n}": n / 60}, n / 60)
    assert expected_h(memory, 1) == TYPICAL_RUN_S / HOUR_S


def test_what_still_runs_counts() -> None:
    """Of four pods three ended at once; the fourth still runs after 97 hours: the mean is not an hour."""
    memory = looked(Memory(), dict.fromkeys("abcd", 0.0), 1)
    memory = looked(memory, {"d": 0}, 1)
    assert expected_h(memory, 97) == pytest.approx((100 + LEANS * 101 / 4) / (3 + LEANS))


def test_a_quiet_look_changes_nothing() -> None:
    """Where no pod began or ended there is nothing to write."""
    memory = looked(Memory(), {"a": 0}, 1)
    assert looked(memory, {"a": 0}, 2) is memory


def test_a_pod_in_the_place_of_another_is_an_end_and_a_beginning() -> None:
    """As many run as before, but one of them began since."""
    memory = looked(looked(Memory(), {"a": 0}, 1), {"b": 1.5}, 2)
    assert (memory.ran["batch/ml/1"].running, memory.ran["batch/ml/1"].ended) == (1, 1)


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), st.floats(-5, 0)), max_size=20))
def test_what_is_expected_stays_a_time(seen: list[dict[str, float]]) -> None:
    """Whatever was seen, it is above nothing and finite."""
    memory = Memory()
    for hour, begun in enumerate(seen):
        memory = looked(memory, begun, hour, f"team{hour % 3}")
    assert 0 < expected_h(memory, 31) < 1000


def test_so_many_kinds_are_kept() -> None:
    """Of more teams those are forgotten of which the least is known."""
    memory = Memory()
    for team in range(MOST + 9):
        memory = looked(memory, {"a": 0}, 30, f"many{team}")
    assert len(memory.ran) == MOST
