"""GKE and Compute Engine over a small world: a node pool for each of its pools, a managed instance group in its zone.

There is no emulator of the two: this one is written from Google's documents, and each request and each answer is
validated by them. ``faults`` are taken one a call, in order: what the server does instead of, or after, what was asked.
"""

import re
import threading
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from civo_server import Fault
from gke_answers import CLUSTER, PROJECT, SITE, TYPES, ZONE, Refused, attempt, stamp
from gke_operations import Operations
from gke_reservations import Reserved
from gke_rights import Rights
from gke_settings import PoolSettings
from google_documents import Call

from pilotlight.errors import PilotlightError
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode


class Gke(Operations, PoolSettings, Rights, Reserved):
    """The project. ``calls`` are (method, path's parts, query, body) as they came; ``extra`` are fields of pools.

    ``zones`` are those of a pool's groups. ``tried`` has by name why an instance could not be made, of those that a
    group goes on trying. ``slow`` groups make nothing before ``make``; ``hidden`` ones do not even list it.
    ``stale`` are errors that a name's last attempt still tells, ``told`` what listErrors has, ``until``
    when one of limited duration ends. ``paged`` lists go by pages of two. ``doubled`` pools are upgraded blue-green.
    ``once`` are of another hand's resize request, which is rolled back whole; ``going`` are listed while they go.
    ``abandoned`` ones run on, in no group. ``sizes`` are told whatever they are; ``stuck_deletions`` have a status.
    ``refuses`` has by pool the status that its groups answer with, as one that is deleted or not ours to see; ``never``
    are pools that take instances on and make none, without an error. In so many readings as ``shifts`` a list moves
    between two pages: one is told twice and another not. ``autoscalers`` of Compute Engine target the groups of pools.
    """

    def __init__(self, world: World) -> None:
        for part in (Operations, PoolSettings, Rights, Reserved):
            part.__init__(self)
        self.world = world
        self.calls: list[tuple[str, Mapping[str, str], Mapping[str, str], Any]] = []
        self.faults: list[Fault] = []
        self.cluster: dict[str, Any] = {}
        self.zones = {pool: [ZONE] for pool in world.fleet.pools}
        self.tried: dict[str, tuple[str, str, PilotlightError]] = {}
        self.unmade: dict[str, tuple[str, str]] = {}
        self.once: list[str] = []
        self.going: dict[str, tuple[str, str]] = {}
        self.abandoned, self.sizes, self.stuck_deletions = set[str](), dict[str, int](), dict[str, int]()
        self.stale: dict[str, list[dict[str, str]]] = {}
        self.until: dict[str, datetime] = {}
        self.told: list[dict[str, Any]] = []
        self.slow, self.hidden, self.paged, self.shifts, self.endless = False, False, False, 0, False
        self.refuses: dict[str, int] = {}
        self.never: set[str] = set()
        self.autoscalers: dict[str, str] = {}
        self.code, self.codes = "", list[dict[str, str]]()
        self.doubled: set[str] = set()
        self.zone_of: dict[str, str] = {}
        self.born = 0
        self.lock = threading.RLock()
        self._names: list[str] = []
        self.again: set[str] = set()
        _name_after(world, self._names, self.base)

    def names(self) -> dict[str, str]:
        """GKE's names of the pools by the policy's."""
        return {name: f"{name}-pool" for name in self.world.fleet.pools}

    def base(self, pool: str) -> str:
        """What the names of a pool's instances begin with."""
        return f"gke-{CLUSTER}-{pool}-pool-0a1b2c3d"

    def changes(self) -> list[tuple[str, Any]]:
        """The verbs that change something, with what they were asked."""
        changing = ("createInstances", "deleteInstances", "resize", "setAutoscaling", "setManagement", "setSize")
        return [(m.rpartition(".")[2], body) for m, _, _, body in self.calls if m.endswith(changing)]

    def deleted(self) -> list[str]:
        """The names that were deleted, in order."""
        named = [body["instances"] for verb, body in self.changes() if verb == "deleteInstances"]
        return [url.rpartition("/")[2] for urls in named for url in urls]

    def answer(self, call: Call, asked: Any) -> dict[str, Any]:
        """What Google says, and does. Raises ``Refused``."""
        with self.lock:
            self.see_rights(call)
            act: Callable[[Call, Any], dict[str, Any]] = getattr(self, f"_{call.method.replace('.', '_')}")
            return act(call, asked)

    def _container_projects_locations_clusters_get(self, call: Call, asked: Any) -> dict[str, Any]:
        path = call.path
        if (path["projectsId"], path["locationsId"], path["clustersId"]) != (PROJECT, ZONE, CLUSTER):
            raise Refused(404, "notFound", f"Not found: projects/{PROJECT}/zones/{ZONE}/clusters/{path['clustersId']}.")
        pools = [self._node_pool(pool) for pool in self.world.fleet.pools]
        return {"name": CLUSTER, "location": ZONE, "status": "RUNNING", "nodePools": pools, **self.cluster}

    def _node_pool(self, pool: str) -> dict[str, Any]:
        names = [self.group(pool)]
        green: dict[str, Any] = {}
        if pool in self.doubled:
            names.append(self.group(pool).replace("0a1b2c3d", "green"))
            green = {"status": "RECONCILING", "updateInfo": {"blueGreenInfo": {"phase": "NODE_POOL_SOAKING"}}}
        urls = [
            f"{SITE}/projects/{PROJECT}/zones/{zone}/instanceGroupManagers/{name}"
            for name in names
            for zone in self.zones[pool]
        ]
        return {
            "name": f"{pool}-pool",
            "status": "RUNNING",
            "locations": self.zones[pool],
            "instanceGroupUrls": urls,
            "management": {"autoRepair": False, "autoUpgrade": True},
            "config": {"machineType": self.world.fleet.pools[pool].instance_type, "labels": {"gpu": pool}},
            **green,
            **self.extra.get(pool, {}),
        }

    def group(self, pool: str) -> str:
        """The name of a pool's groups."""
        return f"{self.base(pool)}-grp"

    def _pool(self, call: Call) -> str:
        name = call.path["instanceGroupManager"].replace("-green-", "-0a1b2c3d-")
        found = next((pool for pool in self.world.fleet.pools if self.group(pool) == name), None)
        if found is None or call.path["zone"] not in self.zones[found]:
            raise Refused(404, "notFound", f"The resource '{call.path['instanceGroupManager']}' was not found")
        if status := self.refuses.get(found):
            raise Refused(status, "notFound" if status == 404 else "forbidden", f"{name}: no")
        return found

    def nodes(self, pool: str, zone: str) -> list[WorldNode]:
        """The instances of one of a pool's groups that are there."""
        nodes = (node for node in self.world.nodes.values() if node.pool == pool and node.id not in self.abandoned)
        return [node for node in nodes if self.zone_of.get(node.id, ZONE) == zone]

    def waiting(self, pool: str, zone: str) -> list[str]:
        """Those that are not there yet."""
        found = [name for name, (of, at, _) in self.tried.items() if (of, at) == (pool, zone)]
        return found + [name for name, (of, at) in self.unmade.items() if (of, at) == (pool, zone)]

    def _compute_instanceGroupManagers_get(self, call: Call, asked: Any) -> dict[str, Any]:
        pool, zone = self._pool(call), call.path["zone"]
        size = len(self.nodes(pool, zone)) + len(self.waiting(pool, zone))
        name = call.path["instanceGroupManager"]
        return {
            "name": name,
            "zone": f"{SITE}/projects/{PROJECT}/zones/{zone}",
            "baseInstanceName": name.removesuffix("-grp"),
            "targetSize": 0 if "-green-" in name else self.sizes.get(pool, size),
            "listManagedInstancesResults": "PAGINATED" if self.paged else "PAGELESS",
            "status": {"isStable": not self.waiting(pool, zone), **self._autoscaled(pool, zone)},
        }

    def _autoscaled(self, pool: str, zone: str) -> dict[str, Any]:
        where = f"{SITE}/projects/{PROJECT}/zones/{zone}/autoscalers"
        return {"autoscaler": f"{where}/{self.autoscalers[pool]}"} if pool in self.autoscalers else {}

    def _compute_instanceGroupManagers_listManagedInstances(self, call: Call, asked: Any) -> dict[str, Any]:
        pool, zone = self._pool(call), call.path["zone"]
        found = [self._there(node, zone) for node in self.nodes(pool, zone)]
        found += [] if self.hidden else [self._not_there(name, zone) for name in self.waiting(pool, zone)]
        found += [self._goes(name, zone) for name, at in self.going.items() if at == (pool, zone)]
        return self._page("managedInstances", found, call)

    def _page(self, key: str, found: list[Any], call: Call) -> dict[str, Any]:
        if self.shifts and len(found) > 1:
            found, self.shifts = [*found[1:], found[-1]], self.shifts - 1
        if not self.paged:
            return {key: found} if found else {}
        first = 0 if self.endless else int(call.query.get("pageToken", 0))
        more = {"nextPageToken": str(first + 2)} if len(found) > first + 2 else {}
        return {key: found[first : first + 2], **more}

    def _there(self, node: WorldNode, zone: str) -> dict[str, Any]:
        goes = node.doomed_s is not None
        action, status = ("NONE", "RUNNING") if node.joined else ("CREATING", "STAGING")
        return {
            "id": str(1000 + node.seq),
            "name": node.id,
            "instance": f"{SITE}/projects/{PROJECT}/zones/{zone}/instances/{node.id}",
            "currentAction": action,
            "instanceStatus": "STOPPING" if goes else status,
            **({"lastAttempt": {"errors": {"errors": self.stale[node.id]}}} if node.id in self.stale else {}),
            **({"scheduling": {"terminationTimestamp": stamp(self.until[node.id])}} if node.id in self.until else {}),
        }

    def _not_there(self, name: str, zone: str) -> dict[str, Any]:
        tried = self.tried.get(name)
        errors = (self.codes or [attempt(self.code, tried[2])]) if tried else self.stale.get(name, [])
        return {
            "name": name,
            "instance": f"{SITE}/projects/{PROJECT}/zones/{zone}/instances/{name}",
            "currentAction": f"{'RE' * (name in self.again)}CREATING{'_WITHOUT_RETRIES' * (name in self.once)}",
            **({"lastAttempt": {"errors": {"errors": errors}}} if errors else {}),
        }

    def _goes(self, name: str, zone: str) -> dict[str, Any]:
        url = f"{SITE}/projects/{PROJECT}/zones/{zone}/instances/{name}"
        return {"name": name, "instance": url, "currentAction": "DELETING", "instanceStatus": "STOPPING"}

    def _compute_instanceGroupManagers_listErrors(self, call: Call, asked: Any) -> dict[str, Any]:
        self._pool(call)
        return self._page("items", self.told, call)

    def _compute_instances_list(self, call: Call, asked: Any) -> dict[str, Any]:
        field, how, like = call.query["filter"].split(" ", 2)
        assert (field, how) == ("name", "eq"), "written as the document's regular expressions are"
        there = [
            node
            for node in self.world.nodes.values()
            if re.fullmatch(like, node.id) and self.zone_of.get(node.id, ZONE) == call.path["zone"]
        ]
        found = [
            {
                "name": node.id,
                "creationTimestamp": stamp(self.world.moment(node.launched_s)),
                "status": "RUNNING",
                **self.consumed(node.id),
            }
            for node in there
        ]
        return self._page("items", found, call)

    def _compute_reservations_list(self, call: Call, asked: Any) -> dict[str, Any]:
        return self._page("items", self.listed(call, {*self.world.nodes}), call)

    def _compute_instanceGroupManagers_createInstances(self, call: Call, asked: Any) -> dict[str, Any]:
        if (known := self._known(call, asked)) is not None:
            return known
        pool, zone = self._pool(call), call.path["zone"]
        if (ends := self.ends.get("createInstances")) is not None:
            return self._operation(call, asked, ends)
        names = [one["name"] for one in asked["instances"]]
        for name in names:
            if not re.fullmatch(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?", name):
                raise Refused(400, "invalid", f"Invalid value for field 'instances.name': '{name}'")
            if name in self.world.nodes or name in self.waiting(pool, zone):
                raise Refused(409, "alreadyExists", f"The resource '{name}' already exists")
        for name in names:
            self.unmade[name] = pool, zone
            self.world.fleet.desired[pool] += 1
        if not (self.slow or pool in self.never):
            self.make(names)
        return self._operation(call, asked)

    def make(self, names: Collection[str] = ()) -> None:
        """The groups make what they were asked for: such names alone, where any are told."""
        with self.lock, self.world.lock:
            asked = [name for name in self.unmade if name in names or not names]
            for name in [name for name in asked if self.unmade[name][0] not in self.never]:
                self._make(name, *self.unmade.pop(name))

    def try_again(self) -> None:
        """They try again what they could not make, as they do for ever."""
        with self.lock, self.world.lock:
            for name, (pool, zone, _) in list(self.tried.items()):
                del self.tried[name]
                self._make(name, pool, zone)

    def _make(self, name: str, pool: str, zone: str) -> None:
        self._names.append(name)
        self.world.fleet.desired[pool] -= 1  # The world counts what it launches.
        try:
            self.consume(name, self.extra.get(pool, {}), {*self.world.nodes})
            self.launch(pool, zone)
            self.zone_of[name] = zone
        except PilotlightError as no:
            self._names.clear()
            self.world.fleet.desired[pool] += 1
            self.tried[name] = pool, zone, no

    def launch(self, pool: str, zone: str) -> None:
        """One instance, as the world launches it."""
        self.world.launch(pool, 1, "" if zone == ZONE else zone)

    def resize_request(self, pool: str, count: int) -> None:
        """Another hand's resize request: the size rises by all of its instances, and each is tried once."""
        for _ in range(count):
            self.born += 1
            self.once.append(f"{self.base(pool)}-{self.born:04d}")
            self.unmade[self.once[-1]] = pool, ZONE
            self.world.fleet.desired[pool] += 1

    def rolls_back(self) -> None:
        """It fails: what was made of it is removed from its group, and listed until it is gone."""
        for name in self.once:
            if name in self.world.nodes:
                self.going[name] = self.world.nodes[name].pool, ZONE
                self.world.terminate(name, "rolled back", evict=True)
            elif (at := self.unmade.pop(name, None)) is not None:
                self.world.fleet.desired[at[0]] -= 1

    def another_hand(self, pool: str, count: int = 1) -> None:
        """Somebody resizes the group: it makes instances by names of its own."""
        for _ in range(count):
            self.born += 1
            self.unmade[f"{self.base(pool)}-{self.born:04d}"] = pool, ZONE
            self.world.fleet.desired[pool] += 1
        self.make()

    def recreate(self, name: str) -> None:
        """A repair: another instance by the same name."""
        pool, zone = self.world.nodes[name].pool, self.zone_of.get(name, ZONE)
        self.world.terminate(name, "repaired", evict=True)
        self.again.add(name)
        self.world.fleet.desired[pool] += 1
        self._make(name, pool, zone)

    def _compute_instanceGroupManagers_deleteInstances(self, call: Call, asked: Any) -> dict[str, Any]:
        if (known := self._known(call, asked)) is not None:
            return known
        pool, zone = self._pool(call), call.path["zone"]
        if status := self.stuck_deletions.get(pool):
            raise Refused(status, "backendError", "not now")
        if ends := self.ends.get("deleteInstances"):
            return self._operation(call, asked, ends)
        for url in asked["instances"]:
            found = re.fullmatch(r"(?:.*/)?zones/([^/]+)/instances/([^/]+)", url)
            if found is None or found[1] != zone:
                raise Refused(400, "invalid", f"Invalid value for field 'instances': '{url}'")
            name = found[2]
            if name in self.waiting(pool, zone):
                self.tried.pop(name, None)
                self.unmade.pop(name, None)
                self.world.fleet.desired[pool] -= 1
            elif name in [node.id for node in self.nodes(pool, zone)]:
                self.world.terminate(name, "released", evict=True)
            elif not asked.get("skipInstancesOnValidationError"):
                raise Refused(400, "invalid", f"'{name}' is not a member of the group")
        return self._operation(call, asked)

    def _compute_machineTypes_aggregatedList(self, call: Call, asked: Any) -> dict[str, Any]:
        return {"items": {f"zones/{one['zone']}": {"machineTypes": [one]} for one in TYPES}}


def _name_after(world: World, names: list[str], base: Callable[[str], str]) -> None:
    """The world's next nodes are called by ``names``: an instance has the name that it was asked for by. One that its
    group made anew by itself has a name of its group's."""
    born: Callable[[WorldNode], WorldNode] = world.fleet._born

    def named(node: WorldNode) -> WorldNode:
        node.id = names.pop(0) if names else f"{base(node.pool)}-n{node.seq:03d}"
        return born(node)

    setattr(world.fleet, "_born", named)  # noqa: B010  # A method of one fleet alone.
