"""The managed instance groups (MIGs) behind a node pool, one a zone.

Shapes are those of ``compute.v1``, Google's discovery document: only the fields that are used.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.node_pools import NodePool
from pilotlight.adapters.pools.gke.own_names import stem
from pilotlight.adapters.pools.gke.refusals import Problem, Problems, gravest
from pilotlight.errors import BadRequest, Denied, PilotlightError, Retry, Throttled, Unavailable

GROUP = re.compile(r".*/projects/([^/]+)/zones/([^/]+)/instanceGroupManagers/([^/]+)")
LEAVES = ("DELETING", "ABANDONING")
"""Actions after which an instance is none of its group's."""
CREATING = "CREATING"
RECREATES = "RECREATING"
MAKES = (CREATING, RECREATES)
"""What a group tries for ever: for one that was asked for, and for one that went and is to come again."""
PAGE = 500
MOST_PAGES, MOST_ERRORS, READINGS = 100, 10, 3
"""Pages of instances, and of errors, that are read of a group; so often a list is read that changes meanwhile."""
LARGEST = 50_000
"""No group is larger: that is as many as are listed."""
T = TypeVar("T")


class Group(NamedTuple):
    """A MIG, by its project, zone and name."""

    project: str
    zone: str
    name: str

    @property
    def path(self) -> str:
        """Its path at Compute Engine."""
        return f"/compute/v1/projects/{self.project}/zones/{self.zone}/instanceGroupManagers/{self.name}"

    @property
    def zone_path(self) -> str:
        """The path of its zone."""
        return f"/compute/v1/projects/{self.project}/zones/{self.zone}"


class _GroupStatus(msgspec.Struct, frozen=True):
    autoscaler: str = ""


class _Size(msgspec.Struct, frozen=True, rename="camel"):
    target_size: int = 0
    base_instance_name: str = ""
    status: _GroupStatus = _GroupStatus()


class _Attempt(msgspec.Struct, frozen=True):
    errors: Problems = Problems()


class _Ends(msgspec.Struct, frozen=True, rename="camel"):
    termination_timestamp: datetime | None = None


class Managed(msgspec.Struct, frozen=True, rename="camel"):
    """An instance of a MIG: its name is there before it is; ``instance_status`` is empty until then."""

    name: str = ""
    instance: str = ""  # Its URL.
    current_action: str = "NONE"
    instance_status: str = ""
    last_attempt: _Attempt = _Attempt()
    scheduling: _Ends = _Ends()

    @property
    def called(self) -> str:
        """Its name, which its node has too."""
        return self.name or self.instance.rpartition("/")[2]

    @property
    def live(self) -> bool:
        """True where it is one of its group's, or will be."""
        return self.current_action not in LEAVES

    @property
    def unmade(self) -> bool:
        """True where it is not there yet. An old error of one that is there says nothing."""
        return self.current_action in MAKES and not self.instance_status

    @property
    def costs_nothing(self) -> bool:
        """True where its machine is not there: "Flex Start ... is waiting for available capacity", says PENDING."""
        return self.instance_status in ("", "PENDING")


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    managed_instances: tuple[Managed, ...] = ()
    next_page_token: str = ""


class _Action(msgspec.Struct, frozen=True):
    action: str = ""
    instance: str = ""


class _Told(msgspec.Struct, frozen=True, rename="camel"):
    error: Problem = Problem()
    instance_action_details: _Action = _Action()
    timestamp: datetime | None = None


class _Errors(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[_Told, ...] = ()
    next_page_token: str = ""


class _Consumed(msgspec.Struct, frozen=True, rename="camel"):
    consumed_reservation: str = ""


class _ResourceStatus(msgspec.Struct, frozen=True, rename="camel"):
    reservation_consumption_info: _Consumed = _Consumed()


class _Instance(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    status: str = ""
    creation_timestamp: datetime | None = None
    resource_status: _ResourceStatus = _ResourceStatus()


class _Instances(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[_Instance, ...] = ()
    next_page_token: str = ""


class Seen(NamedTuple):
    """A MIG as it is: its size, its instances, the errors of those that could not be made, when the others were, and
    the names of the reservations that they run ``on``; the ``autoscaler`` of Compute Engine that sets its size; and
    what ``leaves`` it."""

    group: Group
    base: str
    size: int
    instances: tuple[Managed, ...] = ()
    refused: Mapping[str, Problem] = {}
    made: Mapping[str, datetime] = {}
    on: Mapping[str, str] = {}
    autoscaler: str = ""
    leaves: tuple[str, ...] = ()


def groups_of(pool: NodePool) -> tuple[Group, ...]:
    """The MIGs of a node pool."""
    found = (GROUP.fullmatch(url) for url in pool.instance_group_urls)
    return tuple(Group(*one.groups()) for one in found if one)


def look(api: GoogleRest, group: Group) -> Seen:
    """One MIG. Nothing is listed of an empty one."""
    size = api.read(group.path, _Size)
    base = size.base_instance_name.partition("-#")[0] or group.name.removesuffix("-grp")
    scaled = size.status.autoscaler.rpartition("/")[2]
    if not 0 <= size.target_size <= LARGEST:
        raise BadRequest(f"its size is {size.target_size}, which no group has")
    if not size.target_size:
        return Seen(group, base, 0, autoscaler=scaled)
    listed = tuple(_by_name(lambda: _listed(api, group), lambda one: one.called))
    found, leaves = tuple(one for one in listed if one.live), tuple(one.called for one in listed if not one.live)
    booted = any(one.instance_status for one in found)
    there = _by_name(lambda: _there(api, group, f"{stem(base)}.*"), lambda one: one.name) if booted else ()
    made = {one.name: one.creation_timestamp for one in there if one.creation_timestamp}
    used = {one.name: one.resource_status.reservation_consumption_info.consumed_reservation for one in there}
    on = {name: where.rpartition("/")[2] for name, where in used.items() if where}
    return Seen(group, base, size.target_size, found, _refused(api, group, found), made, on, scaled, leaves)


class Looked(NamedTuple):
    """The groups of a node pool that could be read, and why each other one could not."""

    every: tuple[Seen, ...]
    unread: tuple[PilotlightError, ...] = ()


def look_at(api: GoogleRest, pool: NodePool) -> Looked:
    """Every group of a pool. One that is refused, as it was deleted beside us or is not ours to see, or that does not
    answer, costs itself."""
    every: list[Seen] = []
    unread: list[PilotlightError] = []
    groups = groups_of(pool)
    if len(groups) < max(1, len(pool.instance_group_urls)):
        told = ", ".join(pool.instance_group_urls) or "none"
        unread.append(BadRequest(f"GKE names no group of a zone for node pool {pool.name}: {told}"))
    for group in groups:
        named = f"group {group.name} in {group.zone} of node pool {pool.name}"
        try:
            every.append(look(api, group))
        except (Denied, Retry) as no:
            unread.append(told_of(no, f"{named} cannot be read: {no}"))
    return Looked(tuple(every), tuple(unread))


def told_of(no: PilotlightError, why: str) -> PilotlightError:
    """The same error, with its place."""
    return Throttled(why, no.after_s) if isinstance(no, Throttled) else type(no)(why)


def _refused(api: GoogleRest, group: Group, found: Sequence[Managed]) -> Mapping[str, Problem]:
    """By name why an instance could not be made, of those that are not there yet."""
    unmade = {one.called: one for one in found if one.unmade}
    refused = {name: gravest(errors) for name, one in unmade.items() if (errors := one.last_attempt.errors.errors)}
    if len(refused) < len(unmade):
        actions = {name: one.current_action for name, one in unmade.items()}
        refused = dict(_told(api, group, actions)) | refused
    return refused


def _by_name(read: Callable[[], Iterable[T]], name: Callable[[T], str]) -> Iterable[T]:
    """A list, each once. Where it changes between two pages one is told twice, and another not: it is read again."""
    found: dict[str, T] = {}
    for _ in range(READINGS):
        told = tuple(read())
        found |= (named := {name(one): one for one in told})
        if len(named) == len(told):
            return told
    return found.values()


def _listed(api: GoogleRest, group: Group) -> Iterator[Managed]:
    """Every instance: a MIG that is PAGELESS tells all at once, whatever is asked for."""
    asked = {"maxResults": str(PAGE)}
    for _ in range(MOST_PAGES):
        page = api.read(f"{group.path}/listManagedInstances?{urlencode(asked)}", _Page, "POST")
        yield from page.managed_instances
        if not page.next_page_token:
            return
        asked["pageToken"] = page.next_page_token
    raise Unavailable(f"the list of instances of group {group.name} has no end: {MOST_PAGES} pages were read")


def _told(api: GoogleRest, group: Group, actions: Mapping[str, str]) -> Iterable[tuple[str, Problem]]:
    """Errors of the action that goes on at each instance, by name: the gravest of the newest moment, last for each.
    Names are of one step, so none is another's; one that is recreated has errors of its creation, which say nothing."""
    newest: dict[str, tuple[datetime, list[Problem]]] = {}
    for one in _errors(api, group):
        name, at = one.instance_action_details.instance.rpartition("/")[2], one.timestamp
        if at is None or name not in actions or not one.instance_action_details.action.startswith(actions[name]):
            continue
        if name not in newest or at > newest[name][0]:
            newest[name] = at, []
        if at == newest[name][0]:
            newest[name][1].append(one.error)
    return ((name, gravest(errors)) for name, (_, errors) in newest.items())


def _errors(api: GoogleRest, group: Group) -> Iterator[_Told]:
    """What a group still tells of its errors, page by page within a bound: it goes on failing for ever."""
    asked = {"maxResults": str(PAGE)}
    for _ in range(MOST_ERRORS):
        page = api.read(f"{group.path}/listErrors?{urlencode(asked)}", _Errors)
        yield from page.items
        if not page.next_page_token:
            return
        asked["pageToken"] = page.next_page_token


def runs_beside(api: GoogleRest, group: Group, name: str) -> bool:
    """True where an instance runs in a group's zone that is none of the group's: a person took it out of it, by
    ``abandonInstances``. One that its group deletes is no longer of it either, and runs no longer."""
    return any(one.status == "RUNNING" for one in _there(api, group, name))


def _there(api: GoogleRest, group: Group, called: str) -> Iterator[_Instance]:
    """Instances that are called so: a list of managed ones does not tell when they were made, nor what they use."""
    asked = {"filter": f"name eq {called}", "maxResults": str(PAGE)}
    for _ in range(MOST_PAGES):
        page = api.read(f"{group.zone_path}/instances?{urlencode(asked, quote_via=quote)}", _Instances)
        yield from page.items
        if not page.next_page_token:
            return
        asked["pageToken"] = page.next_page_token
