"""Lifetimes of spot nodes, learnt by type, zone and hour of the day, and what they make of the offerings.

Losses are taken as a Poisson process whose rate has a Gamma prior: (losses + w) / (hours + w / prior) is the estimate,
the prior weighs ``WEIGHT`` losses (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6). Each level leans on
the next: an hour of the day on its type and zone, those on all types of the zone, and the zone on the catalogue's rate.
Nodes of a zone go together: what is counted is the share of its nodes that a zone takes, in hours in which it had any.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isclose

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.offers.spot_history import HOURS_A_DAY, Lives, Survival
from pilotlight.units import HOUR, Seconds, clock_seconds

WEIGHT = 1.0
"""A prior weighs as much as so many losses seen."""

PRIOR_AN_HOUR = 0.05
"""What is taken where a catalogue says nothing."""

MOST_AN_HOUR = 4.0
"""No more is believed: with looks of a minute, what is taken within a quarter of an hour cannot be told apart."""

HALF_LIFE_S: Seconds = 3 * 24 * HOUR
"""What was seen so long ago counts half: a zone's weather lasts for hours to days."""

MOST_KEPT = 64
"""So many types and zones are remembered, those seen last."""

WRITTEN_S: Seconds = 600.0
"""Where nothing has changed what is known is written anew so often, no sooner."""

MOST_STEP_S: Seconds = 24 * HOUR
"""Of a longer gap between two looks only so much is counted."""

MOST_AWAY_S: Seconds = 1800.0
"""A spell without capacity counts so long beyond the last refusal: nobody asked since, and nobody knows."""

LivesByZone = Mapping[str, Lives]
"""By ``place``."""


def place(instance_type: str, zone: str) -> str:
    """The name of a type in a zone: "p3.2xlarge/us-east-1a"."""
    return f"{instance_type}/{zone}"


def learn_from_look(
    known: LivesByZone, nodes: Sequence[Node], offerings: Iterable[Offering], now: datetime
) -> LivesByZone:
    """Learn from a look at a cluster's nodes, of the zones that spot is sold in by name."""
    sold = sorted({place(o.instance_type, o.zone) for o in offerings if o.zone and o.capacity_type == "spot"})
    now_s = clock_seconds(now)
    here: dict[str, list[Node]] = {name: [] for name in sold}
    for node in nodes:
        if node.capacity_type == "spot" and (name := place(node.instance_type, node.zone)) in here:
            here[name].append(node)
    fresh = {name: _looked(known.get(name), there, now_s) for name, there in here.items()}
    return _bounded({**known, **{name: lives for name, lives in fresh.items() if lives is not None}})


def learn_from_purchase(known: LivesByZone, offering: Offering, served: bool, now: datetime) -> LivesByZone:
    """Learn from a node of an offering that was asked for, and whether the cloud had one."""
    if not offering.zone or offering.capacity_type != "spot":
        return known
    now_s, name = clock_seconds(now), place(offering.instance_type, offering.zone)
    old = known.get(name) or Lives(at=now_s)
    new = replace(old, asked=old.asked + 1, refused=old.refused + (not served))
    if served and old.short_since:
        new = replace(new, away=old.away + 1, away_h=old.away_h + _away_h(old, now_s), short_since=0.0)
    elif not served:
        new = replace(new, short_since=old.short_since or now_s)
    return _bounded({**known, name: new})


def gave_back(known: LivesByZone, node: Node | None) -> LivesByZone:
    """Learn from a node that we gave back: it is not one that was taken."""
    name = place(node.instance_type, node.zone) if node is not None and node.capacity_type == "spot" else ""
    old = known.get(name)
    return known if old is None else {**known, name: replace(old, nodes=max(0, old.nodes - 1))}


def survival(known: LivesByZone, instance_type: str, zone: str, prior: float, hour: int | None = None) -> Survival:
    """Rate of a type's nodes taken in a zone, at an hour of the day or at any. ``prior`` is the catalogue's."""
    return _survival(known, _by_zone(known), instance_type, zone, prior, hour)


def as_lived(offerings: Sequence[Offering], known: LivesByZone, now: datetime) -> Sequence[Offering]:
    """The offerings, spot in a named zone with the interruptions that were learnt for this hour, to two digits."""
    sums = _by_zone(known)
    out: list[Offering] = []
    for one in offerings:
        if one.zone and one.capacity_type == "spot":
            prior = one.interruptions_per_hour
            out.append(_learnt(one, _survival(known, sums, one.instance_type, one.zone, prior, now.hour)))
        else:
            out.append(one)
    return out


def sell_as_lived(work: Work) -> None:
    """Sell spot with the interruptions that were learnt for this hour."""
    work.offerings = as_lived(work.offerings, work.memory.lives, work.now)


def _learnt(offering: Offering, found: Survival) -> Offering:
    rate = _two_digits(found.rate)
    if isclose(rate, offering.interruptions_per_hour):
        return offering
    # What it rests on is rounded too: the words of a verdict need no more, and few figures make few offerings.
    seen = replace(
        found, rate=rate, losses=_one_digit(found.losses), hours=_one_digit(found.hours), prior=_two_digits(found.prior)
    )
    return replace(offering, interruptions_per_hour=rate, survival=seen)


def _two_digits(figure: float) -> float:
    return float(f"{figure:.2g}")


def _one_digit(figure: float) -> float:
    return float(f"{figure:.1g}")


def _by_zone(known: LivesByZone) -> Mapping[str, tuple[float, float]]:
    """Losses and hours of all types of a zone."""
    sums: dict[str, tuple[float, float]] = {}
    for name, lives in known.items():
        zone = name.partition("/")[2]
        lost, hours = sums.get(zone, (0.0, 0.0))
        sums[zone] = lost + sum(lives.lost), hours + sum(lives.hours)
    return sums


def _survival(
    known: LivesByZone,
    sums: Mapping[str, tuple[float, float]],
    instance_type: str,
    zone: str,
    prior: float,
    hour: int | None,
) -> Survival:
    of_zone = _rate(*sums.get(zone, (0.0, 0.0)), prior or PRIOR_AN_HOUR)
    own = known.get(place(instance_type, zone))
    if own is None:
        return Survival(rate=min(MOST_AN_HOUR, of_zone), prior=of_zone)
    lost, hours = sum(own.lost), sum(own.hours)
    rate = _rate(lost, hours, of_zone)
    if hour is not None:
        rate = _rate(own.lost[hour], own.hours[hour], rate)
    up = 1 - own.refused / own.asked if own.asked else None
    return Survival(rate=min(MOST_AN_HOUR, rate), losses=lost, hours=hours, prior=of_zone, up=up)


def _rate(lost: float, hours: float, prior: float) -> float:
    return (lost + WEIGHT) / (hours + WEIGHT / prior)


def _looked(old: Lives | None, there: Sequence[Node], now_s: Seconds) -> Lives | None:
    """One type in one zone after a look; None where nothing is known and nothing is there."""
    ready = [node for node in there if node.ready]
    if old is None:
        return Lives(at=now_s, nodes=len(ready)) if ready else None
    if now_s <= old.at:
        return old
    stayed = sum(_was_there(node, old.at) for node in there)
    if len(ready) == old.nodes and stayed >= old.nodes and (now_s - old.at < WRITTEN_S or not old.nodes):
        return old
    hours, lost = list(old.hours), list(old.lost)
    if old.nodes:
        _spread(hours, old.at, min(now_s, old.at + MOST_STEP_S))
        lost[_hour(now_s)] += max(0, old.nodes - stayed) / old.nodes
    fade = 0.5 ** ((now_s - old.at) / HALF_LIFE_S)
    return replace(
        old,
        at=now_s,
        nodes=len(ready),
        hours=tuple(round(h * fade, 4) for h in hours),
        lost=tuple(round(n * fade, 4) for n in lost),
        asked=old.asked * fade,
        refused=old.refused * fade,
        away=old.away * fade,
        away_h=old.away_h * fade,
    )


def _was_there(node: Node, at_s: Seconds) -> bool:
    """True for a node that was ready at an earlier look; one that works now and is not ready was."""
    if not node.ready:
        return bool(node.gpu_pods) or clock_seconds(node.created_at) < at_s
    return clock_seconds(node.ready_since or node.created_at) <= at_s


def _spread(hours: list[float], from_s: Seconds, to_s: Seconds) -> None:
    """Add a stretch of time to the hours of the day that it covers."""
    while from_s < to_s:
        until_s = min(to_s, (from_s // HOUR + 1) * HOUR)
        hours[_hour(from_s)] += (until_s - from_s) / HOUR
        from_s = until_s


def _hour(at_s: Seconds) -> int:
    return int(at_s // HOUR) % HOURS_A_DAY


def _away_h(old: Lives, now_s: Seconds) -> float:
    """Hours of a spell without capacity that was over by now."""
    return min(now_s - old.short_since, max(MOST_AWAY_S, old.at - old.short_since + MOST_AWAY_S)) / HOUR


def _bounded(known: dict[str, Lives]) -> LivesByZone:
    kept = sorted(known, key=lambda name: (-known[name].at, name))[:MOST_KEPT]
    return {name: known[name] for name in sorted(kept)}
