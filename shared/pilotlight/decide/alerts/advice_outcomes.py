"""Outcomes of advice that nobody acted on: followed from look to look until its node or its pods say how it ended."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from pilotlight.facts.alerts.advice import Advised, End, OpenAdvice
from pilotlight.facts.capacity import ClusterView, Node
from pilotlight.facts.decisions import Held
from pilotlight.units import Seconds

MOST_OPEN = 400
"""Advice that is followed at once; what is advised beyond it is not, until some of that ended."""
MOST_PODS = 50
"""Pods by which one purchase is followed."""


def follow_advice(
    was: OpenAdvice, held: Sequence[Held], view: ClusterView, boots: Mapping[str, Seconds], now: datetime
) -> tuple[OpenAdvice, tuple[Advised, ...]]:
    """The advice that is open after a look, and that which ended with it. ``boots`` is by pool.

    Only what a pool's mode held is advice: pauses and limits hold what would else be done.
    """
    nodes = {node.name: node for node in view.nodes}
    bound = {pod.uid for node in view.nodes for pod in node.gpu_pods}
    waiting = {pod.uid for pod in view.pending}
    still: dict[str, Advised] = {}
    ended: list[Advised] = []
    for key, advice in was.open.items():
        end = _of_node(nodes.get(advice.target)) if advice.call == "release" else _of_pods(advice, bound, waiting)
        if end:
            ended.append(replace(advice, end=end, ended_at=now))
        else:
            still[key] = advice
    known = {uid for advice in still.values() for uid in advice.pods}
    for one in held:
        new = _advised(one, known, boots, now) if one.code == "mode" else None
        if new is not None and len(still) < MOST_OPEN:
            still.setdefault(f"{new.call}/{new.target}/{new.pods[0] if new.pods else ''}", new)
    return OpenAdvice(open=still), tuple(ended)


def _of_node(node: Node | None) -> End:
    if node is None:
        return "gone"
    return "used" if node.gpu_pods else ""


def _of_pods(advice: Advised, bound: set[str], waiting: set[str]) -> End:
    if not waiting.isdisjoint(advice.pods):
        return ""
    return "bound" if not bound.isdisjoint(advice.pods) else "left"


def _advised(held: Held, known: set[str], boots: Mapping[str, Seconds], now: datetime) -> Advised | None:
    """The advice in what a mode held; None where it is followed already."""
    boot_s = boots.get(held.action.pool, 0.0)
    if held.node is not None:
        node = held.node
        return Advised(
            call="release", pool=node.pool, target=node.node, at=now, boot_s=boot_s, usd_per_hour=node.usd_per_hour
        )
    assert held.buy is not None
    buy = held.buy
    if not buy.demands or not known.isdisjoint(buy.demands[:MOST_PODS]):
        return None
    return Advised(
        call="grow", pool=buy.pool, target=buy.offering, at=now, boot_s=buy.boot_s, usd_per_hour=buy.usd_per_hour,
        count=held.count, pods=tuple(buy.demands[:MOST_PODS]),
    )  # fmt: skip
