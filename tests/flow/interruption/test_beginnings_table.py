"""Moves off nodes whose GPUs are not well, and off old ones, in many states, as a table has them: which are begun."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, minutes, states

from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.facts.money.budgets import NO_BUDGETS
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy, RenewPolicy
from pilotlight.flow.cycle import gpu_health as doors
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption import own_moves
from pilotlight.flow.observe.snapshot import look
from pilotlight.flow.records import brake_records, node_marks
from pilotlight.state_schema.cluster_records import NODE_MARK, NodeMark, Ownership
from pilotlight.state_schema.instance_records import INTERRUPTION, RESCUE
from pilotlight.world.world_cluster import WorldCluster

CHOICES: dict[str, Any] = {
    "sick": (("n1",), ("n1",), ("n1", "n2"), (), ("n3",)),
    "closed": (("n1", "n2"), (), ("n1",), ("n3",), ("n2", "gone")),
    "busy": (("n1", "n2", "n3"), ("n2",), ("n1", "n2")),
    "says": ("move", "move", "keep"),
    "mode": ("act", "act", "act", "scale-up"),
    "handled by": ("pilotlight", "pilotlight", "pilotlight", "nth"),
    "paused": (False, False, False, True),
    "leaving": ((), ("n1",), ("n2",)),
    "others": ((), (), ("one",)),
    "tried": (None, -60, -1439, -1440, -3000),
    "tried kind": ("sick-gpu", "node-age", "rebalance"),
    "going": ("", "", "one", "else"),
    "age": (90, 30, 60, 61),
    "sold": (True, True, False),
}


class Showing(WorldCluster):
    """A cluster that shows what it is told to."""

    view = ClusterView()

    def observe(self) -> ClusterView:
        """That."""
        return self.view


def _stage() -> tuple[Stage, Showing]:
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=5)})
    for name in ("a", "b", "c"):
        stage.event(stage.submit(name, run_s=90_000, checkpoint_s=600.0))
    stage.minutes(5)
    return stage, Showing(stage.world)


def _deps(stage: Stage, cluster: Showing, state: dict[str, Any]) -> Deps:
    rules = ClassPolicy(gpu_models="any", may_move=("sick-gpu", "max-age") if state["says"] == "move" else ())
    pool = PoolPolicy(
        instance_type="one", max=5, renew=RenewPolicy(max_age=3600), mode=state["mode"], handled_by=state["handled by"]
    )
    policy = Policy(version=1, pools={"one": pool}, classes={"batch": rules})
    offerings = stage.deps.offerings if state["sold"] else ()
    return replace(stage.deps, policy=policy, offerings=offerings, cluster=cluster)


def _view(real: ClusterView, state: dict[str, Any], now: Any) -> ClusterView:
    nodes: list[Node] = []
    for node in reversed(real.nodes):
        pods = tuple(msgspec.structs.replace(pod, checkpoint_takes_s=20.0) for pod in node.pods)
        nodes.append(
            msgspec.structs.replace(
                node,
                pods=pods if node.name in state["busy"] else (),
                sick="XID 79" if node.name in state["sick"] else "",
                created_at=now - timedelta(minutes=state["age"]),
                ready_since=None,
            )
        )
    return ClusterView(nodes=tuple(nodes))


def _records(stage: Stage, state: dict[str, Any], now: Any) -> None:
    for table in (RESCUE, INTERRUPTION, NODE_MARK):
        for entry in list(table.scan(stage.deps.state, "c/")):
            table.delete(stage.deps.state, entry.name)  # type: ignore[attr-defined]
    for name in state["closed"]:
        owners: Any = {"sick": Ownership(why="XID 79", since=now - timedelta(minutes=5))}
        NODE_MARK.put(stage.deps.state, f"c/{name}", NodeMark(node=name, owners=owners))
    if state["tried"] is not None:
        at = now + timedelta(minutes=state["tried"])
        last = Interruption(
            cluster="c", instance="n1", node="n1", kind=state["tried kind"], received_at=at, begin=at, outcome="stayed"
        )
        INTERRUPTION.put(stage.deps.state, f"c/n1/{at:%Y%m%dT%H%M%S}", last)
    if state["going"]:
        other = Interruption(
            cluster="c", instance="i-x", kind="rebalance", pool=state["going"], received_at=now, begin=now
        )
        RESCUE.put(stage.deps.state, "c/i-x", other)
    (brake_records.pause if state["paused"] else _resume)(stage.deps.state, "c", "one", "a person", now)


def _resume(state: Any, cluster: str, pool: str, *_: object) -> None:
    brake_records.resume(state, cluster, pool)


def test_which_moves_of_our_own_are_begun_is_that_of_the_table() -> None:
    """By what monitoring says, ages, classes, modes, pauses, and what is on its way out: one a pool, and none twice."""
    stage, cluster = _stage()
    real, found = stage.deps.observe(), []
    for state in states(300, CHOICES):
        now = stage.deps.now()
        deps, cluster.view = _deps(stage, cluster, state), _view(real, state, now)
        _records(stage, state, now)
        seen = look(deps)
        leaving, others = dict.fromkeys(state["leaving"], "d"), dict.fromkeys(state["others"], "another")
        doors.tend(deps, msgspec.structs.replace(seen, leaving=leaving, others=others), Plan(), NO_BUDGETS)
        marks = [f"{mark.node} {sorted(mark.owners)}" for mark in node_marks.every(deps)]
        told = []
        for begin in (own_moves.begin_off_sick, own_moves.begin_off_old):
            begin(deps)
            told.append(
                [
                    f"{one.instance} {one.kind} {minutes(one.until, now)} {len(one.lost)}"
                    for one in (entry.value for entry in RESCUE.scan(stage.deps.state, "c/"))
                ]
            )
            for entry in list(RESCUE.scan(stage.deps.state, "c/")):
                if entry.name != "c/i-x":
                    RESCUE.delete(stage.deps.state, entry.name)
        found.append(line(CHOICES, state, f"{marks} sick {told[0]} old {told[1]}"))
    assert differing(Path(__file__).with_name("beginnings.txt"), found) == []
