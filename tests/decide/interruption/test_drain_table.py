"""The rescue of a node in many states, as a table has it: every step, when it comes due, by when, for how much."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from small_fleet import NOW, V100X4, node
from state_tables import differing, line, minutes, states

from pilotlight.decide.interruption.drain_plan import (
    assumed_saved,
    begin_of,
    deadline_of,
    drain_moves,
    groups,
    unsaved_work,
    worth_moving,
)
from pilotlight.facts.capacity import BoundPod, Node
from pilotlight.facts.interruption.interruption import Interruption, Move
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.workload import GpuRequest

HERE = Path(__file__).parent
PRICE = Decimal(12)


def _ago(count: float | None) -> Any:
    return None if count is None else NOW - timedelta(minutes=count)


def _pod(name: str, gpus: int, **fields: Any) -> BoundPod:
    return BoundPod(uid=name, namespace="ml", name=name, gpu=GpuRequest(count=gpus) if gpus else None, **fields)


def _node(state: dict[str, Any]) -> tuple[Node, Node]:
    first = _pod(
        "a",
        1,
        started_at=_ago(state["ran"]),
        checkpoint_takes_s=state["saves"] * 60,
        grace_s=state["grace"] * 60,
        checkpointed_at=_ago(state["saved"]),
        blocks="PodDisruptionBudget x" if state["blocked"] else "",
        workload_class=state["class"],
        gang=state["gang"],
    )
    second = _pod("b", 2, gang=state["gang"], checkpoint_takes_s=120 * state["both"], started_at=_ago(20))
    other = _pod("web", 0, grace_s=60)
    pods = {0: (), 1: (first,), 2: (first, second), 3: (first, other), 4: (other,), 5: (second, first, other)}
    away = _pod("c", 1, gang=state["gang"], checkpoint_takes_s=60, grace_s=180)
    devices = (0,) * state["gpus"]
    on = node("n", V100X4, pods=pods[state["pods"]], devices=devices, schedulable=state["open"])
    return on, node("m", V100X4, pods=(away,))


NODES = {
    "pods": (1, 2, 2, 3, 5, 0, 4),
    "ran": (60, 30, None),
    "saves": (0, 1, 2, 5, 12),
    "grace": (0.5, 0, 2, 5),
    "saved": (None, 10, 1, 90),
    "blocked": (False, True),
    "class": ("batch", "serving"),
    "gang": ("", "g"),
    "both": (False, True),
    "open": (True, False),
    "gpus": (4, 0, 2),
}
NOTICES = {
    "kind": ("spot-interruption", "rebalance", "hard-cap", "back-to-spot", "lifecycle"),
    "deadline": (2, None, 1, 5, 10, 12, 30),
    "until": (30, None, 5),
    "begin": (0, 1, -2),
    "truth": ("verified", "unverified"),
    "replaced": (False, True),
    "cordoned": (False, True),
    "asked": (None, 1, 3),
    "evicted": ("", "a", "web"),
    "boot": (2, 4),
}


def _found(state: dict[str, Any]) -> Interruption:
    ends, until = state["deadline"], state["until"]
    return Interruption(
        cluster="c",
        instance="i-n",
        kind=state["kind"],
        received_at=NOW,
        begin=NOW + timedelta(minutes=state["begin"]),
        deadline=None if ends is None else NOW + timedelta(minutes=ends),
        until=None if until is None else NOW + timedelta(minutes=until),
        truth=state["truth"],
        replaced=state["replaced"],
        cordoned=state["cordoned"],
        asked={} if state["asked"] is None else {"a": _ago(state["asked"]), "b": _ago(state["asked"] - 1)},
        evicted={state["evicted"]: NOW} if state["evicted"] else {},
    )


def _step(move: Move) -> str:
    by = f" by {minutes(move.by, NOW)}" if move.by else ""
    lost = f" ${move.usd:.2f}" if move.usd else ""
    return f"{minutes(move.at, NOW)} {move.do} {move.subject}{by}{lost} ({move.why[:24]})"


def test_every_step_of_a_rescue_is_that_of_the_table() -> None:
    """By the notice, what runs on the node, and what was done already."""
    found = []
    choices = NODES | NOTICES
    for state in states(350, choices):
        on, other = _node(state)
        moves = drain_moves(_found(state), on, (on, other), PRICE, 60 * state["boot"], NOW)
        found.append(line(choices, state, "; ".join(map(_step, moves))))
    assert differing(HERE / "drain_steps.txt", found) == []


def test_what_a_move_is_worth_is_that_of_the_table() -> None:
    """Whether a node that may go is emptied, in which order its pods leave, and what each of them loses."""
    found = []
    choices = NODES | {"boot": (2, 0, 30), "asked": (None, 1, 3, 5)}
    for state in states(120, choices, seed=2):
        on, other = _node(state)
        worth = worth_moving(on, (on, other), PRICE, 60 * state["boot"], NOW)
        order = [(",".join(p.uid for p in one.pods), f"{one.usd:.2f}", one.takes_s, one.grace_s)
                 for one in groups(on, (on, other), PRICE, NOW)]  # fmt: skip
        lost = [unsaved_work(pod, on, PRICE, NOW) for pod in on.pods]
        asked = {} if state["asked"] is None else {"a": _ago(state["asked"])}
        saved = [minutes(assumed_saved(pod, asked, NOW), NOW) for pod in on.pods]
        each = [f"{one.pod} {one.gpu_hours:.3f} ${one.usd:.3f}" for one in lost]
        found.append(line(choices, state, f"{worth} {order} {each} saved {saved}"))
    assert differing(HERE / "drain_worth.txt", found) == []


def test_when_an_instance_goes_is_as_in_the_table() -> None:
    """By a notice's kind, its own time and its deadline; and when the rescue begins."""
    found = []
    choices = {
        "kind": ("spot-interruption", "lifecycle", "rebalance", "scheduled-change", "preempted"),
        "deadline": (None, 5, 0, -1, 40, 30),
        "at": (None, -1, -5, 0, -2),
    }
    for state in states(60, choices, seed=3):
        ends, said = (None if state[n] is None else NOW + timedelta(minutes=state[n]) for n in ("deadline", "at"))
        notice = InterruptionNotice(cluster="c", instance="i", kind=state["kind"], deadline=ends, at=said, cloud="aws")
        goes = deadline_of(notice, NOW)
        found.append(line(choices, state, f"goes {minutes(goes, NOW)} begin {minutes(begin_of(goes, NOW), NOW)}"))
    assert differing(HERE / "drain_deadlines.txt", found) == []
