"""Marks of nodes set against what looks show, in many states, as a table has it: what opens, closes and rests."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from stage import Stage
from state_tables import differing, line, minutes, states

from pilotlight.errors import PilotlightError, Unavailable
from pilotlight.facts.decisions import CallStep, Plan, Record
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.flow.records import node_marks
from pilotlight.state_schema.cluster_records import NODE_MARK, NodeMark, Ownership
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.state_schema.instance_records import RESCUE

OWNER: tuple[Any, ...] = (None, -1, -0.4, -0.5, -20)
CHOICES: dict[str, Any] = {
    "release": OWNER,
    "release until": (None, 0, 1, -1),
    "given back": (False, True),
    "born": (-60, -0.9, -1, 0),
    "budget": OWNER,
    "rescue": OWNER,
    "rescued": (True, False),
    "doubted": (False, True),
    "sick": (None, None, -1),
    "person": (None, -1),
    "person until": (1, 0, -1, None),
    "shown": (True, False),
    "noted": (True, False),
    "there": (True, True, True, False),
    "leaving": (False, True),
    "by": ("d2", "d1", "d3", ""),
    "down": (False, False, True),
}


def _owners(state: dict[str, Any], now: Any) -> dict[Any, Ownership]:
    out: dict[Any, Ownership] = {}
    for name in ("release", "budget", "rescue", "sick", "person"):
        if state[name] is None:
            continue
        until = state.get(f"{name} until")
        out[name] = Ownership(
            why=f"for {name}",
            by="d2" if name == "release" else "",
            since=now + timedelta(minutes=state[name]),
            until=None if until is None else now + timedelta(minutes=until),
            given_back=name == "release" and state["given back"],
            doubted=name == "rescue" and state["doubted"],
        )
    return out


def _after(stage: Stage, node: str, now: Any) -> str:
    marks = [
        f"{name} {minutes(o.since, now)} to {minutes(o.until, now)}{' back' if o.given_back else ''}"
        for mark in node_marks.every(stage.deps)
        for name, o in mark.owners.items()
    ]
    there = stage.world.nodes[node].cordoned
    return f"{'closed' if there else 'open'} {marks}"


def test_what_becomes_of_marks_is_that_of_the_table() -> None:
    """By who holds a node and since when, what its cluster shows, and whether it may go at any moment."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=60))
    stage.minutes(6)
    (node,) = stage.world.nodes
    found = []
    step = CallStep(n=0, call="release", pool="one", target=node)
    for state in states(420, CHOICES):
        now = stage.deps.now()
        record = Record(
            id="d2", cluster="c", flow="reconcile", trigger="t", at=now, status="closed", plan=Plan(), steps=(step,)
        )
        DECISION.put(stage.deps.state, "c/d2", record)
        mark = NodeMark(node=node, owners=_owners(state, now))
        if mark.owners:
            NODE_MARK.put(stage.deps.state, f"c/{node}", mark)
        else:
            NODE_MARK.delete(stage.deps.state, f"c/{node}")
        RESCUE.delete(stage.deps.state, f"c/{node}")
        if state["rescued"]:
            own = Interruption(cluster="c", instance=node, node=node, kind="lifecycle", received_at=now, begin=now)
            RESCUE.put(stage.deps.state, f"c/{node}", own)
        stage.world.cordon(node, on=False)
        stage.world.forget_opened(node)
        stage.world.cordon(node, by="d2" if state["noted"] else "")
        if not state["shown"]:
            stage.world.open_by_hand(node)
        seen = [each for each in stage.deps.cluster.observe().nodes if state["there"]]
        fields = {name: getattr(each, name) for each in seen for name in each.__struct_fields__}
        nodes = [type(each)(**fields | {"created_at": now + timedelta(minutes=state["born"])}) for each in seen]
        back = sorted(node_marks.released_nodes([mark], nodes, now))
        doubts = sorted(node_marks.in_doubt([mark]))
        rests, told = node_marks.settle(stage.deps, nodes, [node] if state["leaving"] else [], now)
        settled = _after(stage, node, now)
        try:
            node_marks.hold(stage.deps, node, "release", "idle", by=state["by"], until=now + timedelta(minutes=5))
            held = _after(stage, node, now)
        except PilotlightError as error:
            held = type(error).__name__
        node_marks.lift(stage.deps, node, "release", by=state["by"])
        lifted = _after(stage, node, now)
        if state["down"]:
            stage.fail("cordon", Unavailable("it does not answer"))
        node_marks.mark_released(stage.deps, node, "idle", by=state["by"])
        answer = (
            f"back {back} doubt {doubts} rests {[minutes(at, now) for at in rests.values()]} {len(told)}: {settled}; "
            f"held {held}; lifted {lifted}; back {_after(stage, node, now)}"
        )
        found.append(line(CHOICES, state, answer))
    assert differing(Path(__file__).with_name("marks.txt"), found) == []
