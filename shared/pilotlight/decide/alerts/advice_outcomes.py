"""Advice that nobody acted on, and the dollars that it would have saved or cost beside what was done instead."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.facts.alerts.advice import Advised, End, OpenAdvice
from pilotlight.facts.capacity import Node
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.facts.decisions import Held
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.units import Seconds, Usd, UsdPerHour

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


class Hurt(NamedTuple):
    """Advice that would have cost more than it saved: dollars, and seconds that work would have waited for it."""

    advice: Advised
    why: str
    usd: Usd
    wait_s: Seconds


class BesideAdvice(NamedTuple):
    """Advice for one pool beside its cost as it was kept."""

    pool: str  # The policy's pool.
    usd: Usd | None  # Dollars that its nodes cost as they were kept; None where nothing was metered.
    idle_usd: Usd | None  # Of these, dollars of time without work.
    nodes: int  # Nodes that were metered.
    buys: int  # Nodes that were advised to be bought.
    releases: int  # Nodes that were advised to be given back.
    saved_usd: Usd  # Dollars that giving back would have saved, less those of lighting anew.
    served: int  # Advised purchases whose pods came to run by other means.
    waited_s: Seconds  # Seconds from advice to the pods at work, all of these together.
    would_s: Seconds  # Seconds that booting takes, all of these together.
    added_s: Seconds  # Seconds that work would have waited for nodes given back.
    unpriced: int  # Advice whose dollars are not known; it is in no sum.
    hurt: tuple[Hurt, ...]  # Advice that would have cost more than it saved, the dearest first.


def compare_with_advice(
    advice: Sequence[Advised], metered: Iterable[MeterDay], value_of_wait: UsdPerHour, now: datetime
) -> list[BesideAdvice]:
    """Advice for each pool beside its cost as it was kept, by the pool's name."""
    lines = [line for day in metered for line in day.lines]
    pools = sorted({one.pool for one in advice} | {line.pool for line in lines})
    found: list[BesideAdvice] = []
    for pool in pools:
        of_it = [one for one in advice if one.pool == pool]
        found.append(_pool(pool, of_it, [line for line in lines if line.pool == pool], value_of_wait, now))
    return found


def _pool(
    pool: str, advice: Sequence[Advised], costs: Sequence[CostLine], worth: UsdPerHour, now: datetime
) -> BesideAdvice:
    releases = [one for one in advice if one.call == "release"]
    buys = [one for one in advice if one.call == "grow"]
    served = [one for one in buys if one.end == "bound"]
    used = [one for one in releases if one.end == "used"]
    return BesideAdvice(
        pool=pool,
        usd=_metered(costs),
        idle_usd=_metered(costs, "idle"),
        nodes=len({line.node for line in costs} - {""}),
        buys=sum(one.count for one in buys),
        releases=len(releases),
        saved_usd=sum((_saved(one, now) - _relit(one) for one in releases), Decimal(0)),
        served=len(served),
        waited_s=sum(_lasted(one, now) for one in served),
        would_s=sum(one.boot_s for one in served),
        added_s=sum(one.boot_s for one in used),
        unpriced=sum(one.usd_per_hour is None for one in advice),
        hurt=tuple(sorted(_hurts(advice, worth, now), key=lambda hurt: (-hurt.usd, hurt.advice.at))),
    )


def _metered(costs: Sequence[CostLine], kind: str = "") -> Usd | None:
    """Dollars of these lines, or of one kind among them; None where nothing was metered."""
    return sum((line.usd for line in costs if kind in ("", line.kind)), Decimal(0)) if costs else None


def _lasted(advice: Advised, now: datetime) -> Seconds:
    return ((advice.ended_at or now) - advice.at).total_seconds()


def _cost(advice: Advised, seconds: Seconds) -> Usd:
    return (advice.usd_per_hour or Decimal(0)) * advice.count * _hours(seconds)


def _hours(seconds: Seconds) -> Decimal:
    return Decimal(repr(seconds)) / 3600


def _saved(advice: Advised, now: datetime) -> Usd:
    """Cost of a node from the advice to give it back until it went, was used, or now."""
    return _cost(advice, _lasted(advice, now))


def _relit(advice: Advised) -> Usd:
    """Cost of lighting another node before it is of use, where work came back."""
    return _cost(advice, advice.boot_s) if advice.end == "used" else Decimal(0)


def _hurts(advice: Sequence[Advised], worth: UsdPerHour, now: datetime) -> Iterable[Hurt]:
    for one in advice:
        lasted = _lasted(one, now)
        if one.end == "used":
            usd = _relit(one) + worth * _hours(one.boot_s) - _saved(one, now)
            if usd > 0:
                yield Hurt(one, f"work came back to it {lasted:.0f} s later", usd, one.boot_s)
        elif one.call == "grow" and one.end and lasted < one.boot_s:
            did = "ran" if one.end == "bound" else "were gone"
            why = f"its pods {did} {lasted:.0f} s later, before the node would have been there"
            yield Hurt(one, why, _cost(one, one.boot_s), 0.0)
