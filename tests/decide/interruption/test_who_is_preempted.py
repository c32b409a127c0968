"""Law of preemption by consent: never for the same or a higher priority, without consent, or without a checkpoint."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import NOW, T4, node, plan, pod, policy

from pilotlight.decide.interruption.give_way import GiveWay, give_way
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.policy import ClassPolicy, MoveReason, PoolPolicy
from pilotlight.facts.workload import GpuRequest

TEN_HOURS = Ran(ended=12, ended_s=432_000, lengths=(36_000,) * 12)
MEMORY = Memory(ran={f"{name}//1": TEN_HOURS for name in ("training", "batch")})
REASONS: tuple[MoveReason, ...] = ("hard-cap", "max-age", "sick-gpu", "off-hours", "preempt")

runs = st.fixed_dictionaries(
    {
        "workload_class": st.sampled_from(("training", "batch", "serving", "notebook")),
        "priority": st.integers(0, 3),
        "checkpoint_takes_s": st.sampled_from((0, 20, 4000)),
        "gang": st.sampled_from(("", "", "g")),
        "blocks": st.sampled_from(("", "", "PodDisruptionBudget web")),
        "max_run_s": st.sampled_from((0, 600, 90_000)),
    }
)
says = st.dictionaries(
    st.sampled_from(("training", "batch", "serving", "notebook")), st.lists(st.sampled_from(REASONS), max_size=4)
)


def _on(n: int, fields: dict[str, Any]) -> Node:
    held = BoundPod(uid=f"r{n}", namespace="ml", name=f"r{n}", gpu=GpuRequest(count=1), started_at=NOW, **fields)
    return node(f"n{n}", T4, used=1, pods=(held,))


def _pairs(
    fields: list[dict[str, Any]], said: dict[Any, list[MoveReason]], priority: int, never: bool, run_s: int
) -> tuple[list[GiveWay], dict[str, BoundPod]]:
    classes: dict[Any, ClassPolicy] = {
        name: ClassPolicy(gpu_models="any", may_move=tuple(may)) for name, may in said.items()
    }
    pools = {"t4": PoolPolicy(instance_type="T4x1", max=len(fields))}
    rules = policy([T4], pools=pools, classes=classes, value_of_wait=Decimal(5))
    nodes = [_on(n, each) for n, each in enumerate(fields)]
    waits = replace(pod("short", workload_class="batch", priority=priority, max_run_s=run_s), never_preempts=never)
    made = plan([waits], nodes, offerings=(T4,), rules=rules)
    view = ClusterView(pending=(waits,), nodes=tuple(nodes))
    pairs = give_way(made, view, MEMORY, rules, NOW, consenting=True)
    return pairs, {each.uid: each for one in nodes for each in one.gpu_pods}


@given(
    st.lists(runs, min_size=1, max_size=4), says, st.integers(0, 3), st.booleans(), st.sampled_from((0, 600, 40_000))
)
def test_only_who_consents_and_can_save_gives_way_and_only_to_a_higher_priority(
    fields: list[dict[str, Any]], said: dict[Any, list[MoveReason]], priority: int, never: bool, run_s: int
) -> None:
    """Whatever runs and waits: by class, priority, checkpoint, gang and disruption budget."""
    pairs, by_uid = _pairs(fields, said, priority, never, run_s)
    for way in (pair for pair in pairs if pair.acts):
        one = by_uid[way.running_uid]
        assert one.priority < priority
        assert "preempt" in said[one.workload_class]
        assert one.checkpoint_takes_s > 0
        assert (one.gang, one.blocks, never) == ("", "", False)
        assert way.waiting_usd is not None
        assert way.preempting_usd is not None
        assert way.preempting_usd < way.waiting_usd


LONG: dict[str, Any] = {"workload_class": "training", "priority": 0, "checkpoint_takes_s": 20}


def _acts(said: dict[Any, list[MoveReason]], run_s: int = 600, **fields: Any) -> bool:
    pairs, _ = _pairs([{**LONG, **fields}], said, 3, False, run_s)
    return any(pair.acts for pair in pairs)


def test_a_long_run_that_consents_and_saves_gives_way() -> None:
    """The same without either does not."""
    assert _acts({"training": ["preempt"]})
    assert not _acts({"training": ["max-age", "sick-gpu", "off-hours", "hard-cap"]})
    assert not _acts({"training": ["preempt"]}, checkpoint_takes_s=0)


def test_a_serving_pod_that_cannot_save_does_not_give_way() -> None:
    """Other moves take it, for its replacement is ready before: here nothing replaces it."""
    assert not _acts({"serving": ["preempt"]}, workload_class="serving", checkpoint_takes_s=0, max_run_s=90_000)


def test_for_a_run_of_unknown_length_nobody_gives_way() -> None:
    """One that waits, names no longest run and is of no known kind; with runs of its kind it is weighed by these."""
    pools = {"t4": PoolPolicy(instance_type="T4x1", max=1)}
    classes: dict[Any, ClassPolicy] = {"training": ClassPolicy(gpu_models="any", may_move=("preempt",))}
    rules = policy([T4], pools=pools, classes=classes, value_of_wait=Decimal(5))
    on, waits = _on(0, LONG), pod("short", workload_class="batch", priority=3)
    made = plan([waits], [on], offerings=(T4,), rules=rules)
    view = ClusterView(pending=(waits,), nodes=(on,))
    short = Ran(ended=12, ended_s=7200, lengths=(600,) * 12)
    for memory, acts in (
        (Memory(ran={"training//1": TEN_HOURS}), False),
        (Memory(ran={"training//1": TEN_HOURS, "batch//1": short}), True),
    ):
        pairs = give_way(made, view, memory, rules, NOW, consenting=True)
        assert [pair.acts for pair in pairs] == [acts]
