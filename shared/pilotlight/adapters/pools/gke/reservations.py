"""Zonal reservations that a node pool's instances run on, which are paid for whether they run or not.

By name, or by ``ANY_RESERVATION_THEN_FAIL``, nothing is launched beyond them: all of one is the pool's. Another pool
takes what is open of its machine type and goes on at the price on demand: of that only what is free counts, and what
it runs on. ``assuredCount`` is what can be used of ``count`` now.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from urllib.parse import urlencode

import msgspec

from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.groups import PAGE, Seen
from pilotlight.adapters.pools.gke.node_pools import NodePool
from pilotlight.errors import NoCapacity
from pilotlight.facts.offers.paid_capacity import Paid

BY_NAME, ANY_OR_FAIL, NEVER = "SPECIFIC_RESERVATION", "ANY_RESERVATION_THEN_FAIL", "NO_RESERVATION"
"""Without a word of it an instance takes any that is open ("ANY_RESERVATION (default)", ``compute.v1``)."""
NAMED = re.compile(r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)")
"""A reservation as an affinity names it; another project's with that one. A block of one is none that is read."""
READY = "READY"
RIGHT = "compute.reservations.list"


class _Accelerator(msgspec.Struct, frozen=True, rename="camel"):
    accelerator_type: str = ""
    accelerator_count: int = 0

    @property
    def kind(self) -> tuple[str, int]:
        return self.accelerator_type.rpartition("/")[2], self.accelerator_count


class _Machine(msgspec.Struct, frozen=True, rename="camel"):
    machine_type: str = ""
    guest_accelerators: tuple[_Accelerator, ...] = ()


class _Specific(msgspec.Struct, frozen=True, rename="camel"):
    count: str = "0"
    in_use_count: str = "0"
    assured_count: str = ""
    instance_properties: _Machine = _Machine()


class Reservation(msgspec.Struct, frozen=True, rename="camel"):
    """One as Compute Engine lists it; fields are its own."""

    name: str = ""
    status: str = ""
    specific_reservation: _Specific | None = None
    specific_reservation_required: bool = False
    delete_at_time: datetime | None = None


class _Listed(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[Reservation, ...] = ()
    next_page_token: str = ""


Look = Callable[[str, str], Sequence[Reservation]]
"""The reservations of a project in a zone."""


def reservations_of(api: GoogleRest) -> Look:
    """A look at reservations that asks for those of a project and a zone once."""
    known: dict[tuple[str, str], Sequence[Reservation]] = {}

    def look(project: str, zone: str) -> Sequence[Reservation]:
        if (project, zone) not in known:
            known[project, zone] = tuple(_listed(api, project, zone))
        return known[project, zone]

    return look


def _listed(api: GoogleRest, project: str, zone: str) -> Iterator[Reservation]:
    asked = {"maxResults": str(PAGE)}
    while True:
        page = api.read(f"/compute/v1/projects/{project}/zones/{zone}/reservations?{urlencode(asked)}", _Listed)
        yield from page.items
        if not page.next_page_token:
            return
        asked["pageToken"] = page.next_page_token


def is_bound(pool: NodePool) -> bool:
    """True where nothing of a pool is launched beyond reservations."""
    return pool.config.reservation_affinity.consume_reservation_type in (BY_NAME, ANY_OR_FAIL)


def paid_of(pool: NodePool, every: Sequence[Seen], look: Look) -> tuple[Paid, ...]:
    """What a pool's instances may run on at no further cost, less what its groups are yet to make."""
    if pool.config.reservation_affinity.consume_reservation_type == NEVER:
        return ()
    return tuple(one for seen in every for one in _paid(pool, seen, look))


def see_that_there_is_room(pool: NodePool, seen: Seen, wanted: int, look: Look) -> None:
    """Raises ``NoCapacity`` where a pool that is bound to reservations has no room for so many more in a zone: its
    group would take the purchase on and never make it."""
    if not is_bound(pool):
        return
    paid = paid_of(pool, [seen], look)
    free = sum(one.free for one in paid)
    if free < wanted:
        full = ", ".join(f"{one.name} ({one.free} of {one.count} free)" for one in paid) or "none that is ready"
        raise NoCapacity(f"node pool {pool.name} takes reservations alone, in {seen.group.zone}: {full}")


def _paid(pool: NodePool, seen: Seen, look: Look) -> Iterator[Paid]:
    coming = sum(not one.instance_status for one in seen.instances) + max(0, seen.size - len(seen.instances))
    for one in _usable(pool, seen, look):
        told = one.specific_reservation or _Specific()
        count = int(told.assured_count or told.count)
        free = max(0, count - int(told.in_use_count))
        taken = min(coming, free)
        coming -= taken
        on = tuple(name for name, where in sorted(seen.on.items()) if where == one.name)
        yield Paid(
            name=one.name,
            count=count if is_bound(pool) else len(on) + free,
            free=free - taken,
            zone=seen.group.zone,
            ends=one.delete_at_time,
            instances=on,
        )


def _usable(pool: NodePool, seen: Seen, look: Look) -> Iterator[Reservation]:
    affinity = pool.config.reservation_affinity
    if affinity.consume_reservation_type != BY_NAME:
        every = look(seen.group.project, seen.group.zone)
        yield from (one for one in every if not one.specific_reservation_required and _fits(pool, one, named=False))
        return
    for value in affinity.values:
        called = NAMED.fullmatch(value)
        if called is None:
            continue
        every = look(called["project"] or seen.group.project, seen.group.zone)
        yield from (one for one in every if one.name == called["name"] and _fits(pool, one, named=True))


def _fits(pool: NodePool, one: Reservation, *, named: bool) -> bool:
    """True where an instance of a pool fits a reservation; one by name whose machine is not told does."""
    if one.status != READY or one.specific_reservation is None:
        return False
    machine = one.specific_reservation.instance_properties
    if not machine.machine_type:
        return named
    kinds = {gpu.kind for gpu in machine.guest_accelerators}
    wanted = {(gpu.accelerator_type, int(gpu.accelerator_count)) for gpu in pool.config.accelerators}
    return machine.machine_type == pool.config.machine_type and (not kinds or not wanted or kinds == wanted)
