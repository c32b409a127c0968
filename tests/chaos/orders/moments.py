"""A world, a store and an outbox as values: what a call makes of them, worked out once for each call on each value.

A world is known by the changes that made it: the same changes in the same order make the same world.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from orders.scenes import Request, Scene
from orders.store import Raised, Store, mark
from pilotlight.errors import PilotlightError
from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

LANDS = ("grow", "release")
"""Requests on their way to the cloud: they were let out, and land within ``CALL_S``."""

LIVE = 400
"""Worlds that are kept as they run; another is made anew from its changes."""


class Moment:
    """A world after its changes. What is read of it, and what a change makes of it, is worked out once."""

    def __init__(self, id: int, changes: tuple[Request, ...], now: datetime, now_s: Seconds) -> None:
        self.id, self.changes, self.now, self.now_s = id, changes, now, now_s
        self.reads: dict[Request, Any] = {}
        self.next: dict[Request, tuple[Any, Moment]] = {}


class Stage:
    """A world that runs, with the log of what happened in it."""

    def __init__(self, scene: Scene) -> None:
        self.log: list[dict[str, Any]] = []
        self.scene = scene
        clock = VirtualClock(scene.start)
        self.world = World(scene.catalog, scene.pools, faults=scene.faults, clock=clock, log=self.log.append)
        self.cluster, self.pools = WorldCluster(self.world), WorldPools(self.world)

    def read(self, request: Request) -> Any:
        """The answer to a call that changes nothing."""
        port, method, *rest = request
        if method == "size":
            return self.world.fleet.desired.get(rest[0], 0)
        if method == "holds":
            return self.pools.holds(*rest)
        return getattr(self.cluster if port == "cluster" else self.pools, method)(*rest)

    def change(self, request: Request) -> Any:
        """The answer to a call that changes the world, or what happens in it by itself."""
        port, method, *rest = request
        world = self.world
        match method:
            case "submit":
                self.scene.submit(world, *rest)
            case "advance":
                world.advance(world.now_s + rest[0])
            case "interrupt":
                world.interrupt(*rest)
            case "calm":
                world.set_faults(self.scene.calm)
            case "release":
                node = world.nodes.get(rest[1])
                if node is not None and node.pool == rest[0]:  # As real clouds do: with whatever runs on it.
                    world.terminate(rest[1], "released", evict=True)
            case _:
                return getattr(self.cluster if port == "cluster" else self.pools, method)(*rest)
        return None

    def changes(self, request: Request) -> bool:
        """Whether a call may change anything, as the world is; in doubt it does."""
        _, method, *rest = request
        nodes = self.world.nodes
        match method:
            case "observe" | "describe" | "size" | "holds" | "instance" | "bound_pods" | "drain" | "beat" | "owner_of":
                return False
            case "tell":
                return bool(rest[2] == CHECKPOINT_NOW)
            case "grow":
                return bool(self.world.fleet.desired.get(rest[0], 0) < rest[1])
            case "release":
                return rest[1] in nodes and nodes[rest[1]].pool == rest[0]
            case "cordon" | "uncordon" | "forget_opened" | "open" if rest[0] not in nodes or not nodes[rest[0]].joined:
                return False
            case "cordon":
                return not nodes[rest[0]].cordoned or rest[1] not in ("", nodes[rest[0]].closed_by)
            case "uncordon":
                return nodes[rest[0]].cordoned
            case "forget_opened":
                return bool(nodes[rest[0]].closed_by) and not nodes[rest[0]].cordoned
        return True


class Worlds:
    """All worlds that were met, of one scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._live: OrderedDict[int, Stage] = OrderedDict()
        self._made = 1
        self.first = Moment(0, (), scene.start, 0.0)
        self._keep(self.first, Stage(scene))

    def ask(self, moment: Moment, request: Request) -> tuple[Any, Moment]:
        """What a call answers, and the world after it."""
        if request in moment.reads:
            return moment.reads[request], moment
        if request in moment.next:
            return moment.next[request]
        stage = self.stage(moment)
        if stage.changes(request):
            del self._live[moment.id]
            answer = _tried(stage.change, request)
            world = stage.world
            after = Moment(self._made, (*moment.changes, request), world.clock.now(), world.now_s)
            self._made += 1
            self._keep(after, stage)
            moment.next[request] = answer, after
            return answer, after
        answer = moment.reads[request] = None if request[1] in ("tell", "beat") else _tried(stage.read, request)
        return answer, moment

    def stage(self, moment: Moment) -> Stage:
        """The world as it runs. It is only to be read."""
        stage = self._live.get(moment.id)
        if stage is None:
            stage = Stage(self.scene)
            for request in moment.changes:
                _tried(stage.change, request)
            self._keep(moment, stage)
        self._live.move_to_end(moment.id)
        return stage

    def _keep(self, moment: Moment, stage: Stage) -> None:
        self._live[moment.id] = stage
        if len(self._live) > LIVE:
            self._live.popitem(last=False)


def _tried(do: Callable[[Request], Any], request: Request) -> Any:
    try:
        return do(request)
    except PilotlightError as error:
        return Raised(error)


class Sent(NamedTuple):
    """A message that arrived."""

    id: str
    type: str
    data: bytes


class Whole(NamedTuple):
    """All that is outside of the workers. ``sent`` are the messages that arrived, by id: every content that came."""

    moment: Moment
    store: Store
    sent: Mapping[str, frozenset[Sent]]
    sent_digest: int = 0

    @property
    def key(self) -> tuple[int, int, int]:
        """Equal where all is equal."""
        return self.moment.id, self.store.digest, self.sent_digest


def ask(worlds: Worlds, whole: Whole, request: Request) -> tuple[Any, Whole]:
    """What a call of a port answers, and what is outside after it."""
    port, method = request[:2]
    if method == "now":
        return whole.moment.now, whole
    if port == "state":
        answer, store = whole.store.ask(request, whole.moment.now_s)
        return answer, whole if store is whole.store else whole._replace(store=store)
    if port == "outbox":
        return None, _published(whole, request[2])
    answer, moment = worlds.ask(whole.moment, request)
    if moment is not whole.moment:
        whole = whole._replace(moment=moment, store=whole.store.at(moment.now_s))
    return answer, whole


def _published(whole: Whole, messages: tuple[Sent, ...]) -> Whole:
    sent, digest = dict(whole.sent), whole.sent_digest
    for message in messages:
        known = sent.get(message.id, frozenset())
        if message not in known:
            sent[message.id] = known | {message}
            digest ^= mark(message)
    return whole._replace(sent=sent, sent_digest=digest)
