"""Node pools of GKE through their MIGs: instances are created by names of ours, and deleted by name.

``createInstances`` is idempotent twice: by a UUID of the step, and by names that are hashes of it. It is DONE when it
was taken on. A MIG tries for ever to make what it could not: ``describe`` names such instances as refused, and a
release of them, which is a step as any other, calls them off. A size is never set: the MIG would choose a victim.
Nodes of a pool of queued provisioning come by GKE's queue alone (``queue``): all of a step, or none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from uuid import NAMESPACE_URL, uuid4, uuid5

import msgspec
from msgspec.structs import replace

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke.closed import Closed, by_autoscaler, why_closed
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.groups import Group, Seen, look_at, runs_beside, told_of
from pilotlight.adapters.pools.gke.node_pools import Cluster, NodePool
from pilotlight.adapters.pools.gke.own_names import is_own, stem
from pilotlight.adapters.pools.gke.pool_states import PoolLook, instance_state, names, state_at
from pilotlight.adapters.pools.gke.refusals import Missing, Problem, Problems, error_of
from pilotlight.adapters.pools.gke.reservations import (
    RIGHT,
    Look,
    is_bound,
    paid_of,
    reservations_of,
    see_that_there_is_room,
)
from pilotlight.errors import BadRequest, Busy, Denied, Forbidden, PilotlightError, Retry, Unsure
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, PoolState
from pilotlight.ports.clouds import CALL_S, OPEN, UNBOUNDED, Gate, KubernetesApi, SizeGate
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds, count_of

if TYPE_CHECKING:
    from pilotlight.adapters.pools.gke.queue import Queue

WRITE_S: Seconds = CALL_S
LOOKS = 5
NAMED = (
    "name gke:PROJECT/LOCATION/CLUSTER in PILOTLIGHT_POOLS as `gcloud container clusters list --project PROJECT` has it"
)
"""So often an operation is looked at that is not DONE yet."""
LOOK_EVERY_S: Seconds = 1.0


class _Operation(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    status: str = ""
    error: Problems = Problems()
    http_error_status_code: int = 0  # Of one that failed, also where it lists no errors.
    http_error_message: str = ""

    @property
    def problems(self) -> Problems:
        """Why it failed; none where it did not."""
        if self.error.errors or self.http_error_status_code < 400:
            return self.error
        barred = self.http_error_status_code in (401, 403)
        code = "FORBIDDEN" if barred else str(self.http_error_status_code)
        return Problems((Problem(code=code, message=self.http_error_message),))


class GkePools:
    """The Pools port of one cluster. ``names`` are the node pools by the policy's names, ``reserved`` those of the
    policy whose capacity is paid for, ``api`` is its API server, where there is one to ask."""

    cloud = "gcp"

    def __init__(
        self,
        gke: GoogleRest,
        compute: GoogleRest,
        cluster: str,
        names: Mapping[str, str],
        clock: Clock,
        reserved: Collection[str] = (),
        api: KubernetesApi | None = None,
    ) -> None:
        self._gke, self._compute, self._clock, self._reserved, self._api = gke, compute, clock, reserved, api
        self._cluster, self._names = cluster, dict(names)
        self._lock = Lock()

    def describe(self) -> Sequence[PoolState]:
        """Every pool of the policy that has a node pool. Instances that are nodes already are among those on their
        way. A group that cannot be read costs its pool alone; where none can, what keeps us from it is raised.

        Once one does not answer, each further one is asked once: many that are silent take no function's whole time.
        """
        cluster, compute = self._read(), self._compute
        pools = {pool.name: pool for pool in cluster.node_pools}
        seen: dict[str, PoolLook] = {}
        for name, called in self._names.items():
            if called in pools:
                seen[name] = self._look(pools[called], compute)
                compute = (
                    compute.without_patience() if any(isinstance(no, Retry) for no in seen[name].unread) else compute
                )
        _see_that_one_is_read(seen.values())
        reservations = reservations_of(compute)
        states = []
        for name, one in seen.items():
            pool = pools[self._names[name]]
            state = self._state(name, cluster, pool, one)
            states.append(self._with_paid(state, pool, one.every, reservations))
        return states

    def _with_paid(self, state: PoolState, pool: NodePool, every: Sequence[Seen], reservations: Look) -> PoolState:
        """With what is paid for already, of a pool that may run on it; nothing where that cannot be read."""
        if state.name not in self._reserved and not is_bound(pool):
            return state
        try:
            return replace(state, paid=paid_of(pool, every, reservations))
        except Denied as no:
            return replace(state, paid_unread=f"{RIGHT} is refused, so nothing is bought on a reservation: {no}")
        except Retry:
            return state

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """A MIG tells what it does with an instance; that spot is about to be taken nobody tells before it goes."""
        _, found = self._find(pool)
        queue, _, every, unread = self._look(found)
        if queue and queue.names(instance):
            return InstanceState(there=queue.has(instance))
        for seen in every:
            for one in seen.instances:
                if one.called == instance:
                    return instance_state(one, seen)
        _see_that_all_are_listed(every)
        if unread:
            return None
        beside = self._beside(every, instance)
        return InstanceState(there=True, runs=True) if beside else InstanceState(there=False)

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        with self._lock:
            cluster, found = self._find(pool)
            look = self._look(found)
            now = self._state(pool, cluster, found, look)
            size = now.desired
            if size >= to:
                return now
            self._see_that_it_may(cluster, found, look)
            has = max(size, to - most)
            grown = size + to - has
            if look.queue:
                asked = look.queue.ask(size, grown, f"{token or uuid4()}/{pool}", partial(gate, grown))
                return PoolState(name=pool, desired=grown, asked=(asked,))
            seen = _of_zone(pool, look.every, zone)
            see_that_there_is_room(found, seen, to - has, reservations_of(self._compute))
            step = token or str(uuid4())
            called = names(seen, f"{step}/{pool}", range(has + 1, to + 1))
            body = {"instances": [{"name": name} for name in called]}
            try:
                self._change(seen.group, "createInstances", str(uuid5(NAMESPACE_URL, step)), body, partial(gate, grown))
            except Busy as no:
                self._see_that_none_is_there(found, called, no)
                raise
            at = self._clock.now()
            booting = tuple(Booting(instance=name, requested_at=at) for name in called)
            return PoolState(name=pool, desired=grown, booting=booting)

    def _see_that_none_is_there(self, pool: NodePool, called: Collection[str], no: Busy) -> None:
        """Raises ``Unsure`` where an instance by a step's name is there: then a 409 says that it was made before."""
        with suppress(Denied, Retry):
            look = self._look(pool)
            if look.whole and not any(one.called in called for seen in look.every for one in seen.instances):
                return
        raise Unsure(f"it may have been made before: {no}")

    def came(self, pool: str, to: int, token: str) -> int | None:
        _, found = self._find(pool)
        look, step = self._look(found), f"{token}/{pool}"
        if not look.whole:
            return None
        if look.queue:
            return look.queue.came(step)
        came = 0
        for seen in look.every:
            called = set(names(seen, step, range(1, to + 1)))
            came += sum(one.called in called for one in seen.instances)
        return came

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        with self._lock:
            cluster, found = self._find(pool)
            look = self._look(found)
            if look.queue and look.queue.names(instance):
                look.queue.call_off(instance, gate)
                return
            for seen in look.every:
                if instance in [one.called for one in seen.instances]:
                    self._see_that_it_goes(cluster, found, look, seen, instance)
                    # A name may be another's later: each release has an id of its own.
                    named = f"zones/{seen.group.zone}/instances/{instance}"
                    body = {"instances": [named], "skipInstancesOnValidationError": True}
                    self._change(seen.group, "deleteInstances", str(uuid4()), body, gate)
                    return
            _see_that_all_are_listed(look.every)
            if look.unread:
                raise look.unread[0]
            if group := self._beside(look.every, instance):
                raise BadRequest(
                    f"{instance} runs and is in no group of node pool {found.name}, so nothing here ends it: "
                    f"gcloud compute instances delete {instance} --zone {group.zone} --project {group.project}"
                )

    def _beside(self, every: Sequence[Seen], instance: str) -> Group | None:
        """The group that an instance was taken out of and beside which it runs; None where it is gone."""
        ours = (seen.group for seen in every if instance.startswith(stem(seen.base)))
        return next((group for group in ours if runs_beside(self._compute, group, instance)), None)

    def _read(self) -> Cluster:
        try:
            return self._gke.read(f"/v1/{quote(self._cluster)}", Cluster)
        except Missing:
            raise Missing(f"GKE has no {self._cluster}: {NAMED}") from None

    def _find(self, pool: str) -> tuple[Cluster, NodePool]:
        cluster, name = self._read(), self._names.get(pool, pool)
        found = next((one for one in cluster.node_pools if one.name == name), None)
        if found is None:
            raise BadRequest(f"GKE has no node pool {name} in {self._cluster}; create it, or mend pools.{pool}")
        return cluster, found

    def _look(self, pool: NodePool, compute: GoogleRest | None = None) -> PoolLook:
        """A pool's queue first: what gets its nodes meanwhile is counted twice, never not at all."""
        queue, no = self._queue(pool)
        every, unread = look_at(compute or self._compute, pool)
        unasked = str(no) if isinstance(no, Denied) else ""
        return PoolLook(queue, unasked, every, (*unread, *([no] if no and self._api else ())))

    def _queue(self, pool: NodePool) -> "tuple[Queue | None, PilotlightError | None]":
        """The queue that a pool's nodes come by, or why it cannot be asked; neither where they come by its groups."""
        if not pool.queued_provisioning.enabled:
            return None, None
        if self._api is None:
            return None, BadRequest("no API server is there to ask")
        from pilotlight.adapters.pools.gke.queue import read_queue

        try:
            return read_queue(self._api, pool), None
        except Denied as no:
            return None, no
        except Retry as no:
            return None, told_of(no, f"the queue of node pool {pool.name} does not answer: {no}")

    def _see_that_it_may(self, cluster: Cluster, pool: NodePool, look: PoolLook) -> None:
        no = self._closed(cluster, pool, look)
        if no is not None:
            raise no.cause or (Busy if no.passes else BadRequest)(no.why)

    def _state(self, name: str, cluster: Cluster, pool: NodePool, look: PoolLook) -> PoolState:
        return state_at(name, pool, look, self._closed(cluster, pool, look), self._clock.now(), self._where)

    def _closed(self, cluster: Cluster, pool: NodePool, look: PoolLook) -> Closed | None:
        no = why_closed(cluster, pool, self._where, self._clock.now(), unasked=look.unasked)
        scaled = next((seen for seen in look.every if seen.autoscaler), None)
        if no is None and scaled is not None:
            no = by_autoscaler(scaled)
        return Closed(str(look.unread[0]), cause=look.unread[0]) if look.unread and no is None else no

    def _see_that_it_goes(self, cluster: Cluster, pool: NodePool, look: PoolLook, seen: Seen, instance: str) -> None:
        """Raises while GKE works on a pool, and in one that another scales for what is not of our names."""
        no = self._closed(cluster, pool, look)
        if no is not None and (no.passes or (no.shared and not is_own(seen.base, instance))):
            raise (Busy if no.passes else BadRequest)(no.why)

    @property
    def _where(self) -> str:
        """Its cluster, as gcloud is told of it."""
        _, project, _, location, _, cluster = self._cluster.split("/")
        return f"--cluster {cluster} --location {location} --project {project}"

    def _change(self, group: Group, verb: str, request: str, body: Mapping[str, Any], gate: Gate) -> None:
        path = f"{group.path}/{verb}?{urlencode({'requestId': request})}"
        with Deadline(WRITE_S) as deadline:
            done = self._compute.change(deadline, path, _Operation, body, gate)
            for _ in range(LOOKS):
                if done.status == "DONE" or not done.name:
                    break
                self._compute.sleep(LOOK_EVERY_S)
                try:
                    path = f"{group.zone_path}/operations/{done.name}"
                    done = self._compute.ask(deadline, "GET", path, _Operation)
                except (Retry, Denied):  # It was taken on: the next look tells what came of it.
                    break
        if done.problems.errors:
            raise error_of(f"{verb} of {group.name} in {group.zone}", done.problems)


def _see_that_one_is_read(every: Iterable[PoolLook]) -> None:
    """Raises where groups were asked for and none could be read: none answers, or the account may not."""
    looks = list(every)
    unread = [no for one in looks for no in one.unread]
    barred = [no for kind in (Retry, Forbidden) for no in unread if isinstance(no, kind)]
    if barred and not any(one.every for one in looks):
        raise barred[0]


def _see_that_all_are_listed(every: Sequence[Seen]) -> None:
    """Raises where a list lags behind its group's size: what it does not name may be there all the same."""
    for seen in every:
        if len(seen.instances) < seen.size:
            listed = count_of(len(seen.instances), "instance")
            raise Busy(f"{seen.group.name} has size {seen.size} and lists {listed}: look again")


def _of_zone(pool: str, every: Sequence[Seen], zone: str) -> Seen:
    """The group that a purchase goes to: that of the zone, or the only one."""
    found = [seen for seen in every if zone in ("", seen.group.zone)]
    if len(found) == 1:
        return found[0]
    zones = ", ".join(seen.group.zone for seen in every) or "none"
    if zone:
        raise BadRequest(f"the node pool of {pool} has no group in {zone}, but {zones}; mend pools.{pool}.zones")
    raise BadRequest(f"the node pool of {pool} has zones {zones}: name those to buy in, in pools.{pool}.zones")
