"""A node joins: one look sees all that joined before it, and what nobody waits for needs none."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from stage import Stage

from pilotlight.facts.messages import NodeJoined
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.flow.answer import Answer
from pilotlight.flow.deps import Deps
from pilotlight.flow.provision import provision
from pilotlight.flow.records import lease
from pilotlight.units import Seconds


def joined(stage: Stage, name: str, ago_s: Seconds = 0.0, identity: str = "", *, dry_run: bool = False) -> Answer:
    """The event of a node that joined so long ago."""
    at = stage.deps.now() - timedelta(seconds=ago_s)
    message = NodeJoined(cluster="c", name=name, uid=f"uid-{name}", identity=identity or f"{name}/1", at=at)
    return provision(stage.deps, message, dry_run=dry_run)


def bought() -> Stage:
    """A pod whose node was bought three minutes ago and has joined just now."""
    stage = Stage()
    stage.event(stage.submit("p"))
    stage.wait(181)
    return stage


def last_look(stage: Stage) -> object:
    """When the last look began."""
    return lease.last_look(stage.deps.state, "c")


def test_a_node_that_was_bought_leads_to_a_look() -> None:
    """It is no event of a pod whose capacity is on its way: the cluster is looked at, and nothing is bought again."""
    stage = bought()
    before = last_look(stage)
    answer = joined(stage, "n1")
    assert last_look(stage) == stage.deps.now() != before
    assert (answer.outcome != "known", stage.world.launches) == (True, 1)


def test_a_burst_of_nodes_is_one_look() -> None:
    """A node that joined before the last look began was seen by it; one that joined since asks for another."""
    stage = bought()
    joined(stage, "n1")
    looked = last_look(stage)
    stage.wait(5)
    answers = [joined(stage, f"n{n}", ago_s=8) for n in range(2, 20)]
    assert {answer.outcome for answer in answers} == {"known"}
    assert "after node n2 joined" in answers[0].why
    assert last_look(stage) == looked
    joined(stage, "n20", ago_s=6)
    assert last_look(stage) == stage.deps.now(), "a second of an event is a whole one: it may have joined since"


def test_a_node_that_nobody_waits_for_needs_no_look() -> None:
    """Where nothing is bought and no node is kept for pods, nodes of others come and go without us."""
    stage = Stage()
    assert joined(stage, "cpu-1").outcome == "known"
    assert last_look(stage) is None


def test_where_nodes_are_kept_each_node_that_joined_is_looked_at() -> None:
    """It may be one that was born closed, by whoever's hand it came."""
    stage = Stage()
    pool = msgspec.structs.replace(stage.deps.policy.pools["eight"], taints=(BIRTH_TAINT,))
    stage.deps = with_rules(stage, pools={**stage.deps.policy.pools, "eight": pool})
    joined(stage, "n1")
    assert last_look(stage) == stage.deps.now()


def with_rules(stage: Stage, **rules: object) -> Deps:
    """Ports with a changed policy."""
    return replace(stage.deps, policy=msgspec.structs.replace(stage.deps.policy, **rules))


def test_it_releases_nothing() -> None:
    """A node that idles for hours stays: only a tick gives back."""
    stage = bought()
    stage.wait(3600 + 4000)
    nodes = len(stage.deps.cluster.observe().nodes)
    joined(stage, "n2")
    assert len(stage.deps.cluster.observe().nodes) == nodes


def test_a_dry_run_changes_nothing() -> None:
    """It answers with the plan, whoever waits."""
    stage = Stage()
    assert joined(stage, "n1", dry_run=True).plan is not None
    assert stage.deps.state.scan("").items == []


@pytest.mark.parametrize("ago_s", [0.0, 86_400.0], ids=["now", "a day ago"])
def test_a_second_delivery_is_answered_as_the_first(ago_s: Seconds) -> None:
    """Doubled or late, it leads to at most one look."""
    stage = bought()
    joined(stage, "n1", ago_s)
    looked = last_look(stage)
    stage.wait(1)
    joined(stage, "n1", ago_s)
    assert last_look(stage) == looked
