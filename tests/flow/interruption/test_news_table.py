"""Second words about an instance, and looks without a node that goes, in many states, as tables have them."""

from datetime import timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from stage import START, Stage
from state_tables import differing, line, minutes, states

from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.interruption.interruption import Confirmed, Interruption, Lost
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.workload import Due, Gang, GpuRequest, PodDemand, shape
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.interruption.departing_node import without_node
from pilotlight.flow.interruption.interrupt import news
from pilotlight.flow.interruption.verify_notice import Questions
from pilotlight.flow.observe.snapshot import look

HERE = Path(__file__).parent
KINDS = ("spot-interruption", "rebalance", "scheduled-change", "lifecycle", "state-change", "preempted")
OURS = ("hard-cap", "max-runtime", "deadline", "node-age", "back-to-spot", "sick-gpu")
NEWS: dict[str, Any] = {
    "known": (*KINDS, *OURS),
    "outcome": ("", "disproved", "stayed", "uncordoned", "released", "gone", "not ours", "unknown"),
    "said": (-5, None, 0),
    "ended": (-3, None, -20),
    "deadline": (2, None, 60),
    "kind": KINDS,
    "at": (0, None, -5, 7, 7.01, 30),
    "ends": (2, None, 1.9, 1.92, 1.91, 60, 59),
    "action": ("terminate", "reboot", "freeze"),
}


def _at(count: float | None) -> Any:
    return None if count is None else START + timedelta(minutes=count)


def test_which_second_word_is_news_is_that_of_the_table() -> None:
    """By what is known of an instance, how that ended, and what is said of it now."""
    found = []
    for state in states(700, NEWS):
        known = Interruption(
            cluster="c", instance="n", kind=state["known"], received_at=_at(-5), begin=_at(-5),
            said_at=_at(state["said"]), outcome=state["outcome"], ended_at=_at(state["ended"]),
            deadline=_at(state["deadline"]),
        )  # fmt: skip
        notice = InterruptionNotice(
            cluster="c", instance="n", kind=state["kind"], cloud="world", action=state["action"], at=_at(state["at"]),
            deadline=_at(state["ends"]),
        )  # fmt: skip
        found.append(line(NEWS, state, news(known, notice)))
    assert differing(HERE / "news.txt", found) == []


def _pod(draw: Random, n: int) -> BoundPod:
    gang = draw.choice(("", "", "g"))
    made = shape(
        gpu=GpuRequest(count=1),
        gang=Gang(key=gang, size=2) if gang else None,
        due=Due(job="j", by=START, work_s=9) if draw.random() < 0.3 else None,
    )
    return BoundPod(
        uid=f"u{n}", namespace="ml", name=f"p{n}", gpu=draw.choice((GpuRequest(count=1), None)), gang=gang,
        workload_class=draw.choice(("", "serving")), team="red", max_run_s=60, started_at=draw.choice((None, START)),
        shape=made if draw.random() < 0.6 else None,
    )  # fmt: skip


def test_a_look_without_a_node_that_goes_is_that_of_the_table() -> None:
    """Its pods wait once each, where and as what they may; a gang's rest keeps them in its zone; the node is closed."""
    bare = look(Stage().deps)
    found = []
    for seed in range(200):
        draw = Random(seed)
        nodes = [
            Node(
                name=f"n{n}", instance=draw.choice((f"i{n}", "")), pool=draw.choice("ab"), instance_type="x",
                capacity_type="spot", created_at=START, ready=True, zone=draw.choice(("", "z1", "z1", "z2")),
                schedulable=draw.random() < 0.8, pods=tuple(_pod(draw, 10 * n + i) for i in range(draw.randint(0, 2))),
            )
            for n in range(3)
        ]  # fmt: skip
        waits = PodDemand(
            uid=draw.choice(("u0", "u9")),
            namespace="ml",
            name="w",
            shape=shape(gpu=GpuRequest(count=1)),
            created_at=START,
        )
        view = ClusterView(nodes=tuple(nodes), pending=(waits,))
        fields = {name: getattr(bare, name) for name in bare.__struct_fields__}
        snapshot = type(bare)(**fields | {"view": view, "moving": frozenset({"m"})})
        gone, move, onto = draw.random() < 0.3, draw.random() < 0.8, draw.choice(((), ("a", "c")))
        seen = without_node(snapshot, nodes[0], gone=gone, move=move, onto=onto)
        left = [f"{n.name} {n.schedulable}" for n in seen.view.nodes]
        asks = [
            f"{d.uid} {d.shape.workload_class} {d.shape.gang is not None} {d.shape.due is not None} "
            f"{d.shape.max_run_s:g} "
            f"{[[(r.key, r.values) for r in term] for term in d.shape.terms]} {len(d.shape.tolerations)} "
            f"{minutes(d.created_at, START)}"
            for d in seen.view.pending
        ]
        names = [view.node_of(each, name) for each, name in (("i1", ""), ("n1", ""), ("x", "n2"), ("", ""))]
        whose = [each.name if each else "-" for each in names]
        found.append(f"{seed} {gone} {move} {onto} -> {left} {asks} {sorted(seen.moving)} {whose}")
    assert differing(HERE / "departing.txt", found) == []


ASKED: dict[str, Any] = {
    "truth": ("unverified", "verified", "disproved"),
    "deadline": (2, None, 30),
    "confirmed": (None, 20, 1),
    "doomed": (None, 1, 20, 30),
    "asked": (None, 0, -0.24, -0.25, -1),
    "received": (0, -0.49, -0.5, -9),
    "kind": ("spot-interruption", "rebalance", "lifecycle", "state-change"),
    "there": (True, False),
    "named": (True, False),
}


def test_what_a_cloud_makes_of_a_notice_is_that_of_the_table() -> None:
    """Asked no more often than every quarter of a minute; of two ends the true one counts, with who was asked."""
    stage = Stage()
    stage.event(stage.submit("a", run_s=90_000))
    stage.minutes(5)
    (node,) = stage.deps.observe().nodes
    lit = stage.world.nodes[node.name]
    found = []
    for state in states(300, ASKED, seed=3):
        now = stage.deps.now()

        def at(count: float | None, now: Any = now) -> Any:
            return None if count is None else now + timedelta(minutes=count)

        doomed = state["doomed"]
        lit.doomed_s = None if doomed is None else stage.world.now_s + 60 * doomed
        confirmed = state["confirmed"]
        known = Interruption(
            cluster="c", instance=node.name if state["there"] else "i-else", pool=node.pool, kind=state["kind"],
            received_at=at(state["received"]), begin=at(0), deadline=at(state["deadline"]), truth=state["truth"],
            asked={"u1": at(-1)}, asked_cloud_at=at(state["asked"]), named=state["named"],
            confirmed=None if confirmed is None else Confirmed(deadline=at(confirmed), asked={"u2": at(-2)}),
        )  # fmt: skip
        said = Questions(stage.deps).verify(known, node, now)
        times = "/".join(minutes(each, now) for each in (said.deadline, said.begin, said.asked_cloud_at))
        proof = said.proof.partition(" at ")[0]
        found.append(line(ASKED, state, f"{said.truth} {times} {sorted(said.asked)} {said.confirmed is None} {proof}"))
    lit.doomed_s = None
    assert differing(HERE / "asked.txt", found) == []


WORDS: dict[str, Any] = {
    "kind": (*KINDS, *OURS),
    "outcome": ("", "disproved", "released", "gone", "stayed", "not ours", "after the fact"),
    "truth": ("verified", "unverified", "disproved"),
    "deadline": (2, None),
    "ours": (True, False),
    "lost": (True, False),
    "priced": (True, False),
    "pool": ("p", ""),
    "node": ("n", "", "i"),
    "pods": (1, 0, 2),
    "messages": ("begin", "", "other"),
    "decision": ("", "d"),
    "now": (1, -1),
}


def test_what_people_are_told_of_an_interruption_is_that_of_the_table() -> None:
    """As it comes, as it ends, and of a word that was not true; each once, never dated before its beginning."""
    found = []
    for state in states(300, WORDS, seed=4):
        own = Interruption(
            cluster="c", instance="i", kind=state["kind"], received_at=START, begin=START, truth=state["truth"],
            deadline=_at(state["deadline"]), ours=state["ours"], outcome=state["outcome"], pool=state["pool"],
            node=state["node"], why="why", proof="proof", priced=state["priced"], decision=state["decision"],
            lost={"u": Lost(pod="ml/p", gpu_hours=0.5, usd=Decimal(3))} if state["lost"] else {},
        )  # fmt: skip
        opening = interruption_records.opening(own, state["pods"], Decimal(2), START)
        kept = {"begin": (opening,), "other": (interruption_records.untrue(own, START),)}.get(state["messages"], ())
        fields = {name: getattr(own, name) for name in own.__struct_fields__}
        told = Interruption(**fields | {"messages": kept})
        over = interruption_records.ending(told, Decimal(2), _at(state["now"]))
        again = interruption_records.retold(told, 3, Decimal(2))
        texts = [bytes(message.data).decode() for message in (opening, *over, *again)]
        found.append(line(WORDS, state, texts))
    assert differing(HERE / "told.txt", found) == []


def test_ids_of_messages_tell_one_interruption_from_another() -> None:
    """By instance, kind and moment: none of them hides another's alert."""
    made = [
        Interruption(cluster="c", instance=instance, kind=kind, received_at=at, begin=START)  # type: ignore[arg-type]
        for instance, kind, at in product(("i", "j"), ("rebalance", "lifecycle"), (START, _at(1)))
    ]
    ids = {interruption_records.opening(one, 1, Decimal(1), START).id for one in made}
    assert len(ids) == len(made)
