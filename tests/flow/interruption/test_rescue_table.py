"""One look at a rescue in many states, as a table has it: what needs room, what is done, how it goes on."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, minutes, states

from pilotlight.errors import Denied, Unavailable
from pilotlight.facts.interruption.interruption import Confirmed, Interruption
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.flow.interruption.drain_one import NodeDrain
from pilotlight.flow.records import brake_records
from pilotlight.state_schema.cluster_records import NODE_MARK
from pilotlight.world.residents import Resident

CHOICES: dict[str, Any] = {
    "kind": ("spot-interruption", "hard-cap", "rebalance", "node-age", "back-to-spot", "state-change", "deadline"),
    "truth": ("verified", "unverified", "disproved"),
    "outcome": ("", "", "gone"),
    "replaced": (False, True),
    "begin": (0, -5, 1),
    "deadline": (2, None, 0.1, 0.16, 0.17, 40, -1),
    "until": (None, 30, 0, -1),
    "mode": ("act", "act", "scale-up", "advise"),
    "paused": (False, False, True),
    "there": (True, True, False),
    "cordoned": (False, True),
    "asked": ((), ("uid-a",)),
    "evicted": ((), ("uid-a",)),
    "confirmed": (None, None, 30),
    "asked cloud": (None, -1, 0),
    "doomed": (2, None, 30),
    "evict": ("", "", "busy", "denied", "silent"),
    "guarded": (None, None, True, False),
}
FAILS = {"busy": Unavailable("a budget"), "denied": Denied("no"), "silent": Unavailable("no answer")}


def _found(state: dict[str, Any], node: str, now: Any) -> Interruption:
    def at(count: float | None) -> Any:
        return None if count is None else now + timedelta(minutes=count)

    confirmed = state["confirmed"]
    return Interruption(
        cluster="c", instance=node if state["there"] else "i-gone", node=node if state["there"] else "", pool="one",
        kind=state["kind"], received_at=at(-1), begin=at(state["begin"]), deadline=at(state["deadline"]),
        until=at(state["until"]), truth=state["truth"], outcome=state["outcome"], replaced=state["replaced"],
        cordoned=state["cordoned"], ours=True, why="why", asked={uid: at(-1) for uid in state["asked"]},
        evicted={uid: at(-1) for uid in state["evicted"]}, asked_cloud_at=at(state["asked cloud"]),
        confirmed=None if confirmed is None else Confirmed(deadline=at(confirmed)),
    )  # fmt: skip


def _stage() -> Stage:
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=4)}, boot_s=60.0)
    stage.event(stage.submit("a", run_s=90_000))
    stage.minutes(3)
    stage.outbox.sent.clear()
    return stage


def _look(state: dict[str, Any]) -> str:
    stage = _stage()
    (node,) = stage.deps.observe().nodes
    now = stage.deps.now()
    stage.world.nodes[node.name].doomed_s = (
        None if state["doomed"] is None else stage.world.now_s + 60 * state["doomed"]
    )
    if state["guarded"] is not None:
        stage.world.residents.put(node.name, Resident("web", "local storage", guarded=state["guarded"], takes_s=5.0))
    rules = ClassPolicy(gpu_models="any", max_runtime=7200, may_move=("hard-cap",), hold=1800)
    policy = Policy(
        version=1,
        pools={"one": PoolPolicy(instance_type="one", max=4, mode=state["mode"])},
        classes={"batch": rules},
    )
    deps = replace(stage.deps, policy=policy)
    if state["paused"]:
        brake_records.pause(deps.state, "c", "one", "a person", now)
    pod = msgspec.structs.replace(node.pods[0], checkpoint_takes_s=20.0)
    others = tuple(each for each in node.pods[1:])
    view = msgspec.structs.replace(
        deps.observe(), nodes=(msgspec.structs.replace(node, pods=(pod, *others), schedulable=not state["cordoned"]),)
    )
    found = _found(state, node.name, now)
    run = NodeDrain(deps, found, view)
    room = f"{run.needs_room()} {run.holds_room}"
    if state["evict"]:
        stage.fail("evict", FAILS[state["evict"]])
    if not found.is_over:
        run.go()
    own = run.found
    marks = [f"{mark.name} {sorted(mark.value.owners)}" for mark in NODE_MARK.scan(deps.state, "c/")]
    flags = "".join(name[0] for name in ("replaced", "cordoned") if getattr(own, name))
    times = "/".join(minutes(each, now) for each in (own.begin, own.deadline, own.until, own.ended_at, run.again))
    return (
        f"room {room}; {own.outcome or 'goes on'} {own.truth} {flags} {times} asked {sorted(own.asked)} evicted "
        f"{sorted(own.evicted)} lost {own.lost_usd:.3f}; did {run.did}; {type(run.failed).__name__}; {marks}; "
        f"{len(stage.world.nodes)} nodes, {stage.world.launches} launches, {len(own.messages)} messages"
    )


def test_what_one_look_does_for_a_rescue_is_that_of_the_table() -> None:
    """By its kind, its truth, its times, its pool's mode and what the cluster lets us do."""
    found = [line(CHOICES, state, _look(state)) for state in states(300, CHOICES)]
    assert differing(Path(__file__).with_name("rescues.txt"), found) == []
