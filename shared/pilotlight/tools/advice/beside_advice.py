"""Advice that nobody acted on, and the dollars that it would have saved or cost beside what was done instead."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pilotlight.facts.alerts.advice import Advised
from pilotlight.facts.money.bill import CostLine, MeterDay
from pilotlight.ports.state import State
from pilotlight.state_schema.alert_records import ADVICE, FOLLOWED
from pilotlight.units import Seconds, Usd, UsdPerHour


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


def advice_since(state: State, cluster: str, since: datetime) -> list[Advised]:
    """All advice that was open at some time since then."""
    ended = (entry.value for entry in ADVICE.scan(state, f"{cluster}/", after=f"{cluster}/{since:%Y-%m-%dT%H:%M:%S}"))
    found = FOLLOWED.get(state, cluster)
    return [*ended, *(found.value.open.values() if found else ())]
