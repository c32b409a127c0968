"""Who could give way to a pod that waits for a cap, a budget or capacity: advice with its figures, in doubt no."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from small_fleet import NOW, T4, node, offering, plan, pod, policy

from pilotlight.decide.interruption.give_way import MOST, WEIGHED, GiveWay, count_unweighed, give_way
from pilotlight.facts.capacity import BoundPod, ClusterView, Node, Taint
from pilotlight.facts.memory import Memory, Ran
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Gang, GpuRequest, PodDemand, Toleration
from pilotlight.tools.advice.run_quantiles import RunLengths
from pilotlight.tools.report.texts.give_way_text import lines, section

HOUR, HOUR_S = timedelta(hours=1), 3600
RULES = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", max=1)}, value_of_wait=Decimal(5))


def running(name: str = "long", of: Any = T4, **fields: Any) -> Node:
    """A T4 with a training pod of team ml that began two hours ago and saved a minute ago."""
    traits = {"gpu": GpuRequest(count=1), "workload_class": "training", "team": "ml", "started_at": NOW - 2 * HOUR}
    traits |= {"checkpoint_s": 600, "checkpointed_at": NOW - timedelta(minutes=1)}
    held = BoundPod(uid=name, namespace="ml", name=name, **{**traits, **fields})
    return node(f"n-{name}", of, used=1, pods=(held,))


def waiting(**fields: Any) -> PodDemand:
    """A training pod of team ml with a priority of ten that ends within ten minutes."""
    return pod("short", **{"workload_class": "training", "team": "ml", "priority": 10, "max_run_s": 600, **fields})


def ran(*hours: float, team: str = "ml") -> RunLengths:
    """Ten runs of each length."""
    known = RunLengths()
    for each in hours:
        for _ in range(10):
            known.learn((f"team {team} 1x1000", f"team {team}", "shape 1x1000", "all"), each * 3600)
    return known


def pairs(
    pod_: PodDemand,
    *nodes: Node,
    known: RunLengths | None = None,
    rules: Any = RULES,
    memory: Memory = Memory(),  # noqa: B008 - frozen
) -> list[GiveWay]:
    """The advice where the pool has all of its nodes."""
    made = plan([pod_], nodes, offerings=(T4,), rules=rules)
    view = ClusterView(pending=(pod_,), nodes=nodes)
    return give_way(made, view, memory, rules, NOW, (known if known is not None else ran(12)).foretold)


def test_a_long_run_could_give_way_to_a_short_one_that_waits_for_a_cap() -> None:
    """With why it waits, both priorities, the time left by recorded runs that lasted longer, and dollars both ways."""
    (found,) = pairs(waiting(), running(), known=ran(1, 12, 14))
    assert (found.pod, found.running, found.node) == ("ml/short", "ml/long", "n-long")
    assert (found.priority, found.running_priority) == (10, 0)
    assert "1 of its 1 node" in found.waits
    assert found.left is not None
    assert (found.left.p50_s, found.left.p90_s) == (12 * 3600, 12 * 3600)
    assert found.left.by == "20 runs of team ml 1x1000 that ran longer"
    assert found.give_way
    assert found.waiting_usd == 60
    assert found.preempting_usd == Decimal("0.03") + Decimal("1.00")
    said = "\n".join(lines([found], 3))
    assert "could: ml/long on n-long (priority 0), ran 2.0 h, has probably 12.0 h left" in said
    assert "waiting costs $60.00, preempting $1.03" in said


def test_without_a_trace_the_runs_that_are_remembered_say_who_has_how_long() -> None:
    """Those of the pod's kind that lasted longer than it has run; of few, the mean of its kind."""
    lengths = tuple(HOUR_S * hours for hours in (*[1] * 5, *[14] * 12))
    many = Memory(ran={"training/ml/1": Ran(ended=17, ended_s=sum(lengths), lengths=lengths)})
    (found,) = pairs(waiting(), running(), known=RunLengths(), memory=many)
    assert found.left is not None
    assert (found.left.p50_s, found.left.p90_s) == (12 * HOUR_S, 12 * HOUR_S)
    assert found.left.by == "12 runs of class training, team ml, 1 GPU that ran longer"
    few = Memory(ran={"training/ml/1": Ran(ended=1, ended_s=HOUR_S, lengths=(HOUR_S,))})
    (found,) = pairs(waiting(), running(), known=RunLengths(), memory=few)
    assert found.left is not None
    assert found.left.by == "the mean of its kind"


NOT = {
    "the same priority": (waiting(), running(priority=10), "has priority 10"),
    "a class that never preempts": (None, running(), "never preempts"),
    "a budget of disruption": (waiting(), running(blocks="PodDisruptionBudget web"), "PodDisruptionBudget web"),
    "a notebook has no end": (waiting(), running(workload_class="notebook"), "nothing says when ml/long ends"),
    "who waits serves": (waiting(workload_class="serving", max_run_s=0), running(), "nothing says when ml/short"),
    "who waits runs long": (waiting(max_run_s=0), running(), "not under 0.3"),
    "all of its work would be lost": (
        waiting(),
        running(checkpoint_s=0, checkpointed_at=None, started_at=NOW - 11.9 * HOUR),
        "not under 0.3",
    ),
}


@pytest.mark.parametrize(("one", "on", "why"), NOT.values(), ids=NOT)
def test_in_doubt_nothing_gives_way(one: PodDemand | None, on: Node, why: str) -> None:
    """And the reason is said."""
    asks = one or msgspec.structs.replace(waiting(), never_preempts=True)
    (found,) = pairs(asks, on)
    assert not found.give_way
    assert why in found.why


def test_one_place_does_not_help_a_gang() -> None:
    """A pod of a gang that waits is told so."""
    member = waiting(gang=Gang(key="g", size=2))
    found = pairs(member, running())
    assert not any(one.give_way for one in found)


def test_a_place_that_comes_free_soon_keeps_a_long_run_from_giving_way() -> None:
    """Another pod ends within minutes, by its deadline: the wait is until then, not until the long run ends."""
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", max=2)}, value_of_wait=Decimal(5))
    soon = running("soon", max_run_s=7320, checkpointed_at=NOW)
    found = {one.running: one for one in pairs(waiting(), running(), soon, rules=rules)}
    assert not found["ml/long"].give_way
    assert found["ml/long"].waiting_usd == Decimal("0.17")


def test_who_waits_already_is_before_whoever_gives_way() -> None:
    """Its turn behind others of its priority is in what preempting costs."""
    other = msgspec.structs.replace(waiting(priority=0, max_run_s=0), uid="other", name="other")
    made = plan([waiting()], [running()], offerings=(T4,), rules=RULES)
    alone, queued = (
        give_way(made, ClusterView(pending=pods, nodes=(running(),)), Memory(), RULES, NOW, ran(12).foretold)[0]
        for pods in ((waiting(),), (waiting(), other))
    )
    assert alone.give_way
    assert not queued.give_way
    assert queued.preempting_usd == (alone.preempting_usd or 0) + 50


def test_only_a_place_that_would_hold_it_is_named() -> None:
    """Not one whose taint it does not bear, nor a node that is cordoned."""
    dear = offering("t4", "T4", 1, "1", instance_type="T4x1", taints=(Taint(key="team", effect="NoSchedule"),))
    cordoned = msgspec.structs.replace(running("c"), schedulable=False)
    assert pairs(waiting(), running("t", dear), cordoned) == []
    bears = waiting(tolerations=(Toleration(operator="Exists"),))
    assert [one.running for one in pairs(bears, running("t", dear), cordoned)] == ["ml/t"]


def test_a_gang_stops_as_a_whole() -> None:
    """Both of its nodes' GPUs are in what is lost, and its least saved pod."""
    first, second = (running(name, gang="g") for name in ("a", "b"))
    alone, *_ = pairs(waiting(), running(), known=ran(12))
    both = pairs(waiting(), first, second, known=ran(12))
    assert {one.running for one in both} == {"ml/a", "ml/b"}
    assert alone.preempting_usd is not None
    for one in both:
        assert one.preempting_usd is not None
        assert one.preempting_usd > alone.preempting_usd


def test_nobody_who_could_be_bought_for_is_weighed() -> None:
    """Where the pool has room the pod is bought for, and nobody gives way."""
    rules = policy([T4], value_of_wait=Decimal(5))
    assert pairs(waiting(), running(), rules=rules) == []


def test_of_many_those_of_the_lowest_priority_are_weighed() -> None:
    """Fifty, those of the lowest priority first; the fleet's size is no matter."""
    nodes = [running(f"p{n:02}", priority=n % 2) for n in range(2 * MOST)]
    rules = policy([T4], pools={"t4": PoolPolicy(instance_type="T4x1", max=2 * MOST)}, value_of_wait=Decimal(5))
    found = pairs(waiting(), *nodes, rules=rules)
    assert len(found) == MOST
    assert {one.running_priority for one in found} == {0}


def test_of_many_that_wait_those_of_the_highest_priority_are_weighed() -> None:
    """A hundred shapes; how many more wait is told."""
    pods = [waiting(cpu_milli=n + 1, priority=10 + n % 2) for n in range(2 * WEIGHED + 2)]
    pods = [replace(one, uid=f"u{n}", name=f"s{n}") for n, one in enumerate(pods)]
    made = plan(pods, [running()], offerings=(T4,), rules=RULES)
    view = ClusterView(pending=tuple(pods), nodes=(running(),))
    found = give_way(made, view, Memory(), RULES, NOW, ran(12).foretold)
    assert {one.priority for one in found} == {11}
    assert (len(found), count_unweighed(made)) == (WEIGHED, WEIGHED + 2)
    assert list(section(found, more=count_unweighed(made)))[-1].startswith(f"  {WEIGHED + 2} pods more")


def test_without_recorded_runs_a_mean_is_taken_and_said() -> None:
    """The typical hour for both: no preemption of one that runs for one that needs as long."""
    (found,) = pairs(waiting(max_run_s=0), running(), known=RunLengths())
    assert found.left is not None
    assert found.left.by == "what is typical: no runs are known"
    assert not found.give_way
