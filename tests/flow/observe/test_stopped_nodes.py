"""Node objects of stopped instances, as a look and the meter see them."""

from datetime import UTC, datetime, timedelta

from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.flow.observe.known_instances import without_stopped

MADE = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def node(name: str) -> Node:
    """A node object."""
    return Node(
        name=name, pool="p", instance_type="t", capacity_type="on-demand", created_at=MADE, ready=False, instance=name
    )  # fmt: skip


def test_a_stopped_node_is_none_and_a_started_one_is_as_young_as_its_start() -> None:
    """What stands by is apart; one that was begun again since is new; one that was launched before it joined is as
    old as its object."""
    again = MADE + timedelta(hours=5)
    booting = (
        Booting(instance="began-again", requested_at=again),
        Booting(instance="works", requested_at=MADE - timedelta(seconds=90)),
    )
    pool = PoolState(name="p", desired=2, stops=True, stopped=("stands",), booting=booting)
    view, standing = without_stopped(
        ClusterView(nodes=(node("stands"), node("began-again"), node("works"))), [pool]
    )  # fmt: skip
    assert [(one.name, one.created_at) for one in view.nodes] == [("began-again", again), ("works", MADE)]
    assert [one.name for one in standing] == ["stands"]
