"""Looks settled in many states, as a table has them: what came, what is idle since when, what rests, what is told."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, minutes, states

from pilotlight.decide.nodes.spares.demand_rates import add_demand
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.memory import Backoff, Memory, Quarantine
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.observe.settle import foreseen, settle
from pilotlight.flow.observe.snapshot import look
from pilotlight.flow.records import flight_log, ledger
from pilotlight.state_schema.decision_records import IDLE, MEMORY
from pilotlight.state_schema.flight_records import IN_FLIGHT
from pilotlight.units import clock_seconds

CHOICES: dict[str, Any] = {
    "quarantine": (60, None, 0, 1, 365, 366, -1),
    "backoff": (5, None, -59, -60, -61, 35, 65, 66),
    "was": ((None, None), (-10, -10), (-1, None), (-40, -5), (-2, -2), (-1.9, -2.1)),
    "pods": ((), ("u1",), ("u9",), ("u1", "u9")),
    "class": ("", "serving", "training"),
    "shown": (-20, -5, None, 0),
    "born": (-90, -21, -3, -2.5),
    "last": (None, -1, -9, 0),
    "going": (False, False, True),
    "hits": (True, False),
    "flight": (True, True, False),
    "asked": (-30, -2, -15, -18.9, -19, -19.1),
    "ready": (-30, -2, -1.9, -2.1, 0),
    "gangs": ((), ("g",)),
    "broken": (False, True),
    "pending": (True, False),
    "live": (False, False, True),
    "unresolved": (False, False, True),
    "woken": (False, True),
    "size": (2, 1, 5, None),
    "desired": (2, 1, 3),
}


def _at(now: Any, count: float | None) -> Any:
    return None if count is None else now + timedelta(minutes=count)


def _memory(state: dict[str, Any], now: Any, boot_s: float) -> Memory:
    hits, at = None, clock_seconds(now) - 7200
    for _ in range(8):
        at += 600
        hits = add_demand(hits, 1, 1.0, at, boot_s + 10)
    idle = {f"n{n}": _at(now, each) for n, each in enumerate(state["was"], 1) if each is not None}
    quarantine = Quarantine(shape="s", pool="one", until=_at(now, state["quarantine"] or 0), why="w")
    backoff = Backoff(offering="o", until=_at(now, state["backoff"] or 0), why="w")
    return Memory(
        quarantines=() if state["quarantine"] is None else (quarantine,),
        backoffs=() if state["backoff"] is None else (backoff,),
        idle_since=idle,
        hits={"one": hits} if state["hits"] else {},  # type: ignore[dict-item]
        sizes={} if state["size"] is None else {"one": state["size"], "eight": 0},
    )


def _entry(state: dict[str, Any], now: Any) -> InFlight:
    return InFlight(
        decision="d1", offering="one/one/on-demand", pool="one", count=1, requested_at=_at(now, state["asked"]),
        ready_by=now, demands=("u1",), gangs=state["gangs"], broken=state["broken"], woken=state["woken"],
    )  # fmt: skip


def _shown(memory: Memory, now: Any) -> str:
    idle = {name: minutes(at, now) for name, at in memory.idle_since.items()}
    hits = {name: f"{one.count} {one.out} {one.spells} {one.worth:.2f}" for name, one in memory.hits.items()}
    rests = [f"{b.offering} {minutes(b.until, now)}" for b in memory.backoffs]
    away = [f"{q.pool} {minutes(q.until, now)} {q.why}" for q in memory.quarantines]
    took = {name: sum(one.counts) for name, one in memory.tally.durations.items()}
    came = [one.decision for one in memory.came]
    return f"idle {idle} hits {hits} rests {rests} away {away} took {took} came {came} sizes {memory.sizes}"


def test_how_a_look_is_settled_is_that_of_the_table() -> None:
    """By what was asked for and came, what nodes show, what is remembered, and how long ago that was."""
    stage = Stage()
    for name in ("a", "b"):
        stage.event(stage.submit(name, run_s=90_000))
    stage.minutes(5)
    bare, store, found = look(stage.deps), stage.deps.state, []
    made = shape(gpu=GpuRequest(count=1))
    for state in states(420, CHOICES):
        now = stage.deps.now()
        for table in (IN_FLIGHT, MEMORY, IDLE.table):
            for entry in list(table.scan(store, "c")):
                table.delete(store, entry.name)  # type: ignore[attr-defined]
        memory, flight = _memory(state, now, 180.0), _entry(state, now)
        if state["flight"]:
            flight_log.write_flight(store, "c/d1.0", flight)
        bound = tuple(
            BoundPod(uid=uid, namespace="ml", name=uid, gpu=GpuRequest(count=1), workload_class=state["class"],
                     started_at=_at(now, -1))
            for uid in state["pods"]
        )  # fmt: skip
        fields: Any = {"idle_since": _at(now, state["shown"]), "ready_since": _at(now, state["ready"])}
        nodes = [
            msgspec.structs.replace(
                node, pods=bound if n == 0 else (), created_at=_at(now, state["born"]), marked=False, **fields
            )
            for n, node in enumerate(bare.view.nodes)
        ]
        pod = PodDemand(uid="u1", namespace="ml", name="p", shape=made, created_at=now, said="no node")
        view = msgspec.structs.replace(
            bare.view, nodes=tuple(nodes[: 1 if state["going"] else 2]), pending=(pod,) if state["pending"] else ()
        )
        pools = tuple(
            msgspec.structs.replace(pool, desired=state["desired"] if pool.name == "one" else 0) for pool in bare.pools
        )
        snapshot = msgspec.structs.replace(
            bare,
            view=view,
            pools=pools,
            memory=msgspec.structs.replace(memory, in_flight=(flight,) if state["live"] else ()),
            was=ledger.recall(store, "c"),
            flights=(("c/d1.0", flight),) if state["flight"] else (),
            going=tuple(nodes[1:]) if state["going"] else (),
            unresolved=frozenset({"d1"}) if state["unresolved"] else frozenset(),
            now=now,
        )
        ahead = foreseen(stage.deps, snapshot)
        seen = settle(stage.deps, snapshot, _at(now, state["last"]))
        left = [name for name, _ in flight_log.in_flight(store, "c")]
        told = [f"{one.subject} {one.code} {one.message}" for one in seen.findings]
        foresaw = {name: minutes(at, now) for name, at in ahead.memory.idle_since.items()}
        found.append(line(CHOICES, state, f"{_shown(seen.memory, now)} left {left} {told} foresaw {foresaw}"))
    assert differing(Path(__file__).with_name("settled.txt"), found) == []
