"""How long pods run, learned from looks at a cluster."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from small_fleet import NOW, node

from pilotlight.decide.demand.run_lengths import LEAST, MOST_LENGTHS, learn_run_times, typical
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.money.budgets import Runs
from pilotlight.facts.workload import GpuRequest


def running(*uids: str) -> list[BoundPod]:
    """Pods of class batch on a node."""
    gpu = GpuRequest(count=1)
    return [BoundPod(uid=uid, namespace="ml", name=uid, gpu=gpu, workload_class="batch") for uid in uids]


def looks(*seen: tuple[str, ...]) -> Runs:
    """What is learned from looks a minute apart at pods that run."""
    runs = Runs()
    for minute, uids in enumerate(seen):
        runs = learn_run_times(runs, [node("n", pods=tuple(running(*uids)))], NOW + timedelta(minutes=minute))
    return runs


def test_a_run_lasts_from_its_first_look_to_the_first_without_it() -> None:
    """A pod seen in two looks and gone in the third ran two minutes; one that is still there is not counted."""
    runs = looks(("a", "b"), ("a", "b"), ("b",))
    assert runs.lengths == {"batch": (120.0,)}
    assert set(runs.begun) == {"b"}


def test_few_runs_make_no_median() -> None:
    """A median counts from five runs on."""
    names = [str(n) for n in range(LEAST)]
    assert typical(looks(tuple(names[1:]), ())) == {}
    assert typical(looks(tuple(names), (), ())) == {"batch": 60.0}


@given(st.lists(st.frozensets(st.sampled_from("abcdefgh")), max_size=30))
def test_what_is_kept_is_bounded(seen: list[frozenset[str]]) -> None:
    """Only pods that run are remembered by name, and no more than the last runs of a class."""
    runs = looks(*(tuple(uids) for uids in seen), *[("x",), ()] * 60)
    assert runs.begun == {}
    assert len(runs.lengths["batch"]) <= MOST_LENGTHS
