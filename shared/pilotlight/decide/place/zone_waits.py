"""Waits for a zone or type that the cloud is short of, where a wait costs less than a dearer node."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pilotlight.decide.demand.run_lengths import expected_run_s
from pilotlight.decide.offers.selection import Candidate, Eligible
from pilotlight.decide.offers.shortage import better_waited_for, short_zones
from pilotlight.decide.place.belonging import PoolNames
from pilotlight.decide.place.purchase import Group
from pilotlight.facts.workload import PodShape

if TYPE_CHECKING:
    from pilotlight.decide.place.provision import Provisioner

ASKED_LATELY = timedelta(seconds=30)
"""A zone that was refused within this is not asked again before its rest is over."""


def wait_for_short_type(run: "Provisioner", candidate: Candidate, group: Group) -> str:
    """Reason why pods wait for what the cloud is short of rather than get a candidate; empty where they get it."""
    if group.shape.due or not any(b.short_since is not None and b.until > run.now for b in run.memory.backoffs):
        return ""
    shape = group.shape
    held = run.able(run.offerings, shape).held
    short = [c for c, code, _ in held if code == "backoff" and _has_room(run, c, shape)]
    run_s = expected_run_s(run.memory, shape, run.now)
    return better_waited_for(candidate, short, shape, len(group.pods), run_s, run.policy, run.memory, run.now)


def zones_to_ask_again(run: "Provisioner", group: Group, able: Eligible) -> tuple[Candidate, ...]:
    """A pod's own zones that rest, before it goes to a dearer type: to ask them again costs nothing."""
    homes = run.homes_of(group.shape) if run.only is None else None
    if homes is None or any(c.offering.pool in homes for c in able.candidates):
        return ()
    before = run.now - ASKED_LATELY
    asked = {b.offering: b.at for b in run.memory.backoffs if b.at is not None}
    short = [c for c in short_zones(able) if c.offering.pool in homes]
    again = tuple(c for c in short if (at := asked.get(c.offering.name)) is not None and at <= before)
    return () if not again or wait_for_own_zone(run, group, homes) else again


def wait_for_own_zone(run: "Provisioner", group: Group, homes: PoolNames | None) -> str:
    """Reason why pods whose own pools are short in every zone are kept off dearer nodes; empty where they are not."""
    if homes is None or not group.pods:
        return ""
    able = run.able(run.offerings, group.shape)
    short = [c for c in short_zones(able) if c.offering.pool in homes]
    known = (*able.candidates, *(c for c, _, _ in able.held))
    if not short or any(c.offering.pool in homes for c in able.candidates):
        return ""
    away = [c for c in known if c.offering.pool not in homes]
    if not away:
        return ""
    next_ = min(away, key=lambda c: (c.rate, c.offering.name))
    run_s = expected_run_s(run.memory, group.shape, run.now)
    count = len(group.pods)
    return better_waited_for(next_, short, group.shape, count, run_s, run.policy, run.memory, run.now)


def _has_room(run: "Provisioner", candidate: Candidate, shape: PodShape) -> bool:
    """True where caps and budgets leave a node of a candidate."""
    offering = candidate.offering
    return run.headroom.room(offering, run.headroom.terms(offering, shape))[0] > 0
