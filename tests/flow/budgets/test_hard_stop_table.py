"""Stops at a cap in many states, as a table has them: what is begun, over what, by when, and what is taken over."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, minutes, states

from pilotlight.decide.money.node_end import Ending
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.flow.budgets import budget_stops
from pilotlight.state_schema.instance_records import INTERRUPTION, RESCUE

CHOICES: dict[str, Any] = {
    "known": ("", "open", "open", "over", "filed"),
    "kind": ("spot-interruption", "hard-cap", "max-runtime", "rebalance", "node-age"),
    "truth": ("verified", "unverified"),
    "deadline": (10, 50, 60, 57.6, 57.7, None),
    "ends": (60, 0, 5),
    "stop": (300, 30),
    "least": (200, 0, 140, 141),
    "calls": (0, 20, 400),
    "why": ("hard-cap", "max-runtime"),
    "blockers": (0, 1, 5, 7),
    "instance": (True, False),
}


def test_which_stops_are_begun_at_a_cap_is_that_of_the_table() -> None:
    """A cloud that takes the node sooner for certain goes first; whatever else is known gives way, with what it did."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=90_000))
    stage.minutes(5)
    (real,) = stage.deps.observe().nodes
    found = []
    for state in states(300, CHOICES):
        now, store = stage.deps.now(), stage.deps.state
        for table in (RESCUE, INTERRUPTION):
            for entry in list(table.scan(store, "c/")):
                table.delete(store, entry.name)
        cpu = tuple(
            BoundPod(uid=f"w{n}", namespace="web", name=f"w{n}", blocks="local storage")
            for n in range(state["blockers"])
        )
        instance = real.name if state["instance"] else ""
        node = msgspec.structs.replace(real, instance=instance, pods=(*real.pods, *cpu))
        deadline = None if state["deadline"] is None else now + timedelta(minutes=state["deadline"])
        known = Interruption(
            cluster="c", instance=real.name, kind=state["kind"], received_at=now, begin=now, truth=state["truth"],
            deadline=deadline, outcome="" if state["known"] == "open" else "uncordoned", asked={"u": now},
            evicted={"v": now}, cordoned=True,
        )  # fmt: skip
        if state["known"] in ("open", "over"):
            RESCUE.put(store, f"c/{real.name}", known)
        elif state["known"] == "filed":
            INTERRUPTION.put(store, f"c/{real.name}/{now:%Y%m%dT%H%M%S}", known)
        end = Ending(now + timedelta(minutes=state["ends"]), True, state["why"], state["stop"], state["least"])
        begun = budget_stops.begin_stop(stage.deps, node, end, Decimal(2), "no room", now, state["calls"])
        told = [
            f"{one.kind} to {minutes(one.deadline, now)} asked {sorted(one.asked)} evicted {sorted(one.evicted)} "
            f"{one.cordoned} {one.replaced} {len(one.messages)} lost {one.lost_usd:.2f} {one.why}"
            for one in (entry.value for entry in RESCUE.scan(store, "c/"))
        ]
        filed = [f"{entry.value.kind} {entry.value.outcome}" for entry in INTERRUPTION.scan(store, "c/")]
        again = budget_stops.begin_stop(stage.deps, node, end, Decimal(2), "no room", now, 0)
        found.append(line(CHOICES, state, f"{begun} {told} filed {filed} again {again}"))
    assert differing(Path(__file__).with_name("hard_stops.txt"), found) == []
