"""Holds that are set apart in many states, as a table has them: what stays, what is stopped, what is held anew."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
from stage import Stage
from state_tables import differing, line, measured, minutes, states

from pilotlight.decide.money.budget_limits import meters, terms
from pilotlight.decide.money.holds import Lit
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.limits.isolated_objects import SetApart
from pilotlight.facts.money.budgets import Hold
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.flow.budgets import holds_apart
from pilotlight.flow.observe.snapshot import look
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.state_schema.instance_records import RESCUE

CHOICES: dict[str, Any] = {
    "apart": (("h0",), (), ("h0", "h1"), ("seen.n1", "seen.n2"), ("h1",)),
    "instances": (("n1", ""), ("", ""), ("n1", "n2"), ("gone", "n1")),
    "ended": (-1, 0, 1),
    "since": ((-60, -30), (-30, -60), (-9, -3), (-10, -10.1)),
    "until": (6, 0, 5, 20, 45, 300),
    "born": ((-60, -30), (-5, -15), (-14, -15.2), (-3000, -1)),
    "pods": (1, 0, 2),
    "class": ("batch", "serving", "training", "other"),
    "hold class": ("batch", "", "serving"),
    "longest": (0, 60, 600),
    "ran": (30, None),
    "others": (0, 1),
    "blocks": ("", "local storage"),
    "stop": (0, 1200),
    "mode": ("act", "act", "scale-up"),
    "hard": (True, True, False),
    "measure": ("usd", "gpu_hours", "usd_per_hour"),
    "limit": ("6", "1", "400"),
    "foreign": (False, False, True),
    "node": (True, True, True, False),
}


def _hold(state: dict[str, Any], n: int, own: Any, now: Any) -> Hold:
    since, until = (now + timedelta(minutes=each) for each in (state["since"][n], state["until"]))
    return Hold(
        id=f"h{n}", decision="d", terms=own, since=since, binds_until=now, until=until,
        instance=state["instances"][n], ended_at=now if state["ended"] == n else None,
    )  # fmt: skip


def _lit(state: dict[str, Any], real: Node, n: int, now: Any) -> Lit:
    born = now + timedelta(minutes=state["born"][n])
    ran = None if state["ran"] is None else now - timedelta(minutes=state["ran"])
    works = tuple(
        BoundPod(
            uid=f"u{n}{i}", namespace="ml", name=f"p{i}", gpu=GpuRequest(count=1), workload_class=state["class"],
            team="red", max_run_s=60.0 * state["longest"], started_at=ran,
        )
        for i in range(state["pods"] if n == 0 else 0)
    )  # fmt: skip
    cpu = tuple(
        BoundPod(uid=f"w{n}", namespace="web", name="w", blocks=state["blocks"]) for _ in range(state["others"])
    )
    node = msgspec.structs.replace(real, name=f"n{n + 1}", instance=f"n{n + 1}", created_at=born, pods=(*works, *cpu))
    return Lit(f"n{n + 1}", "one", born, node if state["node"] or n else None)


def test_what_becomes_of_holds_that_are_set_apart_is_that_of_the_table() -> None:
    """Nobody settles or frees them: their nodes end with what is held, in order where all that runs may be stopped."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=90_000))
    stage.minutes(5)
    bare, found = look(stage.deps), []
    (real,) = bare.view.nodes
    for state in states(360, CHOICES):
        store, now = stage.deps.state, stage.deps.now()
        for table in (RESCUE, HOLD.table, CAP):
            for entry in list(table.scan(store, "c/")):
                table.delete(store, entry.name)  # type: ignore[attr-defined]
        limits: Any = {"period": "day", **measured(state["measure"], Decimal(state["limit"]))}
        policy = Policy(
            version=1,
            pools={"one": PoolPolicy(instance_type="one", max=5, mode=state["mode"])},
            classes={
                "batch": ClassPolicy(gpu_models="any", may_move=("hard-cap",), hold=1800, max_runtime=3600),
                "serving": ClassPolicy(gpu_models="any", max_runtime=7200),
                "training": ClassPolicy(gpu_models="any"),
            },
            budgets=(Budget(name="b", hard=state["hard"], **limits),),
        )
        apart = tuple(SetApart(kind="hold", name=each, called=each, error="E", where="w") for each in state["apart"])
        deps = replace(stage.deps, policy=policy, apart=apart)
        offering = next(each for each in deps.offerings if each.pool == "one")
        kind: Any = state["hold class"] or None
        own = msgspec.structs.replace(terms(offering, policy, workload_class=kind, team=""), stop_s=state["stop"])
        holds = [_hold(state, n, own, now) for n in range(2)]
        for hold in holds:
            HOLD.put(store, f"c/{hold.id}", hold, over=None)
        lit = [_lit(state, real, n, now) for n in range(2)]
        every = list(HOLD.scan(store, "c/"))
        others = {"one": "another's"} if state["foreign"] else {}
        snapshot = msgspec.structs.replace(bare, now=now, others=others)
        left, cold = holds_apart.keep(deps, snapshot, every, lit)
        stops = [
            f"{one.instance} {one.kind} {minutes(one.deadline, now)}"
            for one in (entry.value for entry in RESCUE.scan(store, "c/"))
        ]
        made = holds_apart.write_unbought_holds(deps, every, lit, meters(policy.budgets, now))
        anew = [
            f"{hold.id} {minutes(hold.since, now)} {minutes(hold.until, now)} {hold.terms.workload_class} "
            f"{hold.terms.team} {len(hold.accounts)}"
            for hold in (entry.value for entry in made.values())
        ]
        sums = [f"{sum(cap.value.held.values()):.3f}" for cap in CAP.scan(store, "c/")]
        answer = f"left {[one.instance for one in left]} cold {cold} stops {stops} anew {anew} {sums}"
        found.append(line(CHOICES, state, answer))
    assert differing(Path(__file__).with_name("holds_apart.txt"), found) == []
