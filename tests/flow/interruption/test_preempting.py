"""Preemption by consent: a pod saves and leaves for one of a higher priority that waits; told, and at most once."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from full_pool import Full

from pilotlight.decide.offers.offerings import offerings
from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.budgets.budget_stops import begin_leave
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.interruption.drain_all import carry_on
from pilotlight.flow.interruption.interrupt import news
from pilotlight.tools.glance.drained_nodes import with_drains
from pilotlight.tools.report.texts.interruption_text import is_about, lines
from pilotlight.units import HOUR


def test_a_pod_that_consents_saves_and_leaves_for_an_urgent_one_and_comes_back() -> None:
    """Asked, evicted once, the urgent one runs at once, the victim returns and ends; the pool never passes its cap."""
    stage = Full()
    stage.urgent()
    assert stage.most(4) == 1
    assert (stage.cluster.evicted, stage.running) == (["long"], ["short"])
    assert [about for _, about, reason, _ in stage.cluster.told if reason == CHECKPOINT_NOW] == ["ml/long"]
    assert stage.most(12) == 1
    assert stage.running == ["long-r1"]
    assert stage.most(600) == 1
    assert (stage.running, stage.cluster.evicted, stage.world.launches) == ([], ["long"], 1)
    assert [job.demands[0].name for job in stage.world.finished] == ["short", "long-r1"]


def test_it_is_told_with_both_pods_both_priorities_and_dollars_both_ways() -> None:
    """Once as it begins and once as it is over; `why` of either pod has it."""
    stage = Full()
    stage.urgent()
    stage.most(15)
    opening, closing = stage.said
    assert opening.what == "preemption: 1 GPU pod leaves n1 of pool one, which stays"
    for part in (
        "ml/long (priority 0)",
        "ml/short (priority 10)",
        "1 of its 1 node",
        "waiting costs $",
        "preempting $",
    ):
        assert part in opening.why
    assert closing.resolved
    assert "it has left, and the node stays" in closing.why
    (found,) = interruption_records.past(stage.deps, "n1")
    assert is_about(found, "ml/long")
    assert is_about(found, "short")
    assert "room for its pods" not in "\n".join(lines(found))


def test_status_says_for_whom_a_pod_gives_way_while_it_saves() -> None:
    """And never that its node goes."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    snapshot, plan = preview(stage.deps, releases=True)
    (node,) = with_drains(stage.deps, snapshot, plan).nodes
    assert node.verdict == "keep"
    assert "preemption: ml/long (priority 0) gives way to ml/short (priority 10)" in node.why
    assert stage.cluster.evicted == []


STAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "its class does not consent": ({"may_move": ("max-age", "sick-gpu", "off-hours", "hard-cap")}, {}),
    "it cannot be asked to save": ({"takes_s": 0.0}, {}),
    "it has the same priority": ({"priority": 10}, {}),
    "it has a higher priority": ({"priority": 11}, {}),
    "its pool only buys": ({"pool": {"mode": "scale-up"}}, {}),
    "its interruptions are another's": ({"pool": {"handled_by": "karpenter"}}, {}),
    "the one that waits is no shorter": ({}, {"run_s": 8 * HOUR}),
}


@pytest.mark.parametrize(("runs", "waits"), STAYS.values(), ids=STAYS)
def test_a_pod_works_on(runs: dict[str, Any], waits: dict[str, Any]) -> None:
    """Nothing is told, and nobody is evicted."""
    stage = Full(**runs)
    stage.urgent(**waits)
    stage.most(60)
    assert (stage.said, stage.cluster.evicted, stage.running) == ([], [], ["long"])


def test_nobody_leaves_where_there_is_room_for_another_node() -> None:
    """It is bought."""
    stage = Full(pool={"max": 2})
    stage.urgent()
    assert stage.most(10) == 2
    assert (stage.said, stage.cluster.evicted) == ([], [])


def test_a_pod_is_not_asked_twice_in_a_day() -> None:
    """Neither it nor what its owner makes in its place; a day later it is."""
    stage = Full()
    stage.urgent()
    stage.most(30)
    assert (stage.cluster.evicted, stage.running) == (["long"], ["long-r1"])
    stage.urgent("again")
    stage.most(60)
    assert (stage.cluster.evicted, stage.running) == (["long"], ["long-r1"])


def test_owners_are_asked_once_a_day_whatever_the_node() -> None:
    """A Job's new pod on a node from which nothing was moved is left alone."""
    stage = Full(pool={"max": 2})
    stage.add("other", 10 * HOUR, workload_class="training", takes_s=20.0)
    stage.minutes(10)
    assert sorted(stage.running) == ["long", "other"]
    stage.cluster.owner = "Job/train"
    stage.urgent()
    stage.most(15)
    stage.urgent("again")
    stage.most(60)
    assert len(stage.cluster.evicted) == 1


def test_it_is_called_off_where_the_one_that_waits_is_gone_before_the_checkpoint_is_safe() -> None:
    """Nobody is evicted, and that is told."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    assert len(stage.said) == 1
    (short,) = [job for job in stage.world.pending.values() if job.demands[0].name == "short"]
    stage.world.delete(short)
    stage.most(15)
    assert (stage.cluster.evicted, stage.running) == ([], ["long"])
    assert "called off: ml/short waits no more" in stage.said[-1].why
    assert stage.said[-1].resolved


def test_it_is_called_off_where_a_node_is_bought_for_the_one_that_waits() -> None:
    """A person raises the cap meanwhile."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    pools = {"one": msgspec.structs.replace(stage.deps.policy.pools["one"], max=2)}
    policy = msgspec.structs.replace(stage.deps.policy, pools=pools)
    stage.deps = replace(stage.deps, policy=policy, offerings=offerings(policy, stage.catalog)[0])
    stage.most(8)
    assert (stage.cluster.evicted, sorted(stage.running)) == ([], ["long", "short"])
    assert "called off: a node comes for ml/short" in stage.said[-1].why


def test_it_is_called_off_where_consent_is_withdrawn() -> None:
    """Who takes `preempt` out of the policy keeps the pod that was asked."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    stage.deps = replace(stage.deps, policy=msgspec.structs.replace(stage.deps.policy, classes={}))
    carry_on(stage.deps)
    stage.most(15)
    assert (stage.cluster.evicted, stage.running) == ([], ["long"])
    assert "called off: its class does not consent any more" in stage.said[-1].why


def test_a_disruption_budget_that_appears_keeps_its_pod() -> None:
    """It was asked, its eviction is refused, and half an hour later it is called off: it is never deleted."""
    stage = Full()
    stage.world.evictions.disruptions["ml"] = 0
    stage.urgent()
    stage.most(60)
    assert stage.running == ["long"]
    assert "called off: it has not left within half an hour" in stage.said[-1].why


def test_after_an_outage_nobody_leaves_on_an_old_checkpoint() -> None:
    """Ticks stop once it was asked; when they come back the half hour is over, and the pod works on."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    stage.wait(2 * HOUR)
    stage.most(5)
    assert (stage.cluster.evicted, stage.running) == ([], ["long"])


def test_in_a_homed_pool_the_urgent_one_is_let_in_and_the_victim_waits() -> None:
    """There no scheduler preempts, for a pod that waits tolerates no node: the freed one becomes the urgent one's."""
    stage = Full(pool={"taints": (BIRTH_TAINT,)}, placement="homes")
    stage.urgent()
    assert stage.most(6) == 1
    assert (stage.cluster.evicted, stage.running) == (["long"], ["short"])
    assert stage.most(15) == 1
    assert (stage.running, stage.world.launches) == (["long-r1"], 1)


def test_a_budget_without_room_goes_before_the_one_that_waits() -> None:
    """Its pods leave by their budget's rule at once; that the preemption is over is told."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    now, (node,) = stage.deps.now(), stage.deps.observe().nodes
    by = now + timedelta(minutes=5)
    begin_leave(stage.deps, node, node.gpu_pods, Decimal(1), "no room", now, by)
    (kept,) = interruption_records.open_interruptions(stage.deps)
    assert kept.found.kind == "out-of-budget"
    assert [over.outcome for over in interruption_records.past(stage.deps, "n1")] == ["stopped first"]
    carry_on(stage.deps)
    assert [alert.what.partition(" of ")[0] for alert in stage.said if alert.resolved] == ["preemption"]


def test_a_cloud_that_takes_the_node_goes_before_the_one_that_waits() -> None:
    """The notice is news: the node is emptied as after any."""
    stage = Full(takes_s=300.0)
    stage.urgent()
    stage.most(2)
    now = stage.deps.now()
    notice = InterruptionNotice(
        cluster="c", instance="n1", kind="spot-interruption", cloud="world", at=now, deadline=now + timedelta(minutes=2)
    )
    (kept,) = interruption_records.open_interruptions(stage.deps)
    assert kept.found.kind == "preemption"
    assert news(kept.found, notice)
