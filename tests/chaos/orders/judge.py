"""What became of a schedule: all settles down, and the world's own log is judged. Nothing here asks the product.

The world is played again, change by change, so that what waits, boots and runs is known before and after each.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

import msgspec

from orders.lives import Direct
from orders.moments import Moment, Stage, Whole, Worlds
from orders.scenes import Request, Scene, Script, rescues, tick
from pilotlight.facts.messages import TYPES, CapacityChanged
from pilotlight.state_schema.table import plain
from pilotlight.units import HOUR, Seconds
from pilotlight.world.simulation import World

AGAIN_S: Seconds = 61.0
"""What was not acknowledged comes again after so long."""
MOST_TICKS = 60
CLOSED_S: Seconds = 600 + 60 + 60
"""A mark of ours ends by itself, and the first look after that may still find a lease."""
UNUSED_S: Seconds = 1800.0
"""Nobody pays for a node without work for longer: it boots, idles, and a dead worker's lease ends first."""
LEFT = ("lease/", "open/", "inflight/", "hold/", "mark/", "rescue/", "look-again/")
"""Families of keys that are empty when all is quiet."""
_CHANGED = next(name for name, kind in TYPES.items() if kind is CapacityChanged)


class _Account(msgspec.Struct):
    held: dict[str, object] = {}
    settled: Decimal = Decimal(0)


class Judge:
    """One scene's. What was judged is known: schedules that come to one state while all settles down end alike."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds, self._scene = worlds, worlds.scene
        self._known: dict[tuple[int, int, int], tuple[str, ...]] = {}
        self.settled = 0

    def judged(self, whole: Whole, again: tuple[int, ...], lines: list[str] | None = None) -> tuple[str, ...]:
        """What is broken once all has settled down; deliveries that were not acknowledged come ``again``."""
        one = Direct(self._worlds, whole)
        one.ask(("world", "calm"))
        one.ask(("world", "advance", AGAIN_S))
        broke: list[str] = []
        for n in again:
            broke += self._did(one, self._scene.scripts[n]._replace(before=()), lines)
        return (*broke, *self._settle(_alone(one.whole), lines))

    def _settle(self, whole: Whole, lines: list[str] | None) -> tuple[str, ...]:
        passed: list[tuple[tuple[int, int, int], tuple[str, ...]]] = []
        found: tuple[str, ...] | None = None
        while found is None:
            if lines is None and whole.key in self._known:
                found = self._known[whole.key]
            elif len(passed) == MOST_TICKS or (passed and self._quiet(whole)):
                found = tuple(self._broken(whole))
            else:
                before = whole.key
                whole, broke = self._tick(whole, lines)
                passed.append((before, broke))
        self.settled += len(passed)
        for key, broke in reversed(passed):
            found = self._known[key] = (*broke, *found)
        return found

    def _tick(self, whole: Whole, lines: list[str] | None) -> tuple[Whole, tuple[str, ...]]:
        """A minute passes, or more where nothing happens: a look, and one at rescues. The next is by a new process."""
        one = Direct(self._worlds, whole)
        name = f"quiet {whole.moment.now_s:.0f}"
        broke = self._did(one, tick(name), lines)
        if one.whole.store.rows("rescue/"):
            broke += self._did(one, rescues(f"{name} too"), lines)
        now_s, next_s = one.whole.moment.now_s, self._worlds.stage(one.whole.moment).world.next_event_s()
        most_s = 60.0 if one.whole.store.rows("rescue/") else 300.0
        one.ask(("world", "advance", min(most_s, max(60.0, (next_s or 0.0) - now_s))))
        return _alone(one.whole), tuple(broke)

    def _did(self, one: Direct, script: Script, lines: list[str] | None) -> list[str]:
        now_s = one.whole.moment.now_s
        status, said = one.do(script)
        if lines is not None:
            lines.append(f"{now_s:7.1f} s  {script.name}: {status} {said}")
        return [f"{script.name} answered {status}: {said}"] if status == 500 else []

    def _quiet(self, whole: Whole) -> bool:
        world = self._worlds.stage(whole.moment).world
        held = any(whole.store.rows(family) for family in LEFT)
        return not world.nodes and not held and set(self._scene.runs) <= {job.id for job in world.finished}

    def _broken(self, whole: Whole) -> Iterator[str]:
        played = Played(self._scene, whole.moment)
        yield from played.broken()
        yield from _left(whole)
        yield from _told(whole, played)
        yield from _charged(whole, played)


def _alone(whole: Whole) -> Whole:
    """The same with nobody at work, who could have read a version."""
    return whole._replace(store=whole.store.renumbered())


class Played:
    """A world that is played again from its first change to its last; what is wrong with each."""

    def __init__(self, scene: Scene, moment: Moment) -> None:
        self._scene, self._stage = scene, Stage(scene)
        self.launched = self.released = 0
        self.usd = Decimal(0)
        self._broke: list[str] = []
        self._closed: dict[str, Seconds] = {}
        for change in moment.changes:
            self._play(change)
        self._end()

    @property
    def lost(self) -> bool:
        """Whether the cloud took a node."""
        return any(record.get("reason") == "reclaimed" for record in self._stage.log)

    @property
    def world(self) -> World:
        """As it ended."""
        return self._stage.world

    def broken(self) -> tuple[str, ...]:
        """What was wrong, once each."""
        return tuple(dict.fromkeys(self._broke))

    def _play(self, change: Request) -> None:
        world, log = self.world, self._stage.log
        doomed = [job for node in world.nodes.values() if node.doomed_s for job in node.jobs.values()]
        waiting = sum(len(job.demands) for job in (*world.pending.values(), *doomed))
        going = {node.id for node in world.nodes.values() if node.doomed_s}
        busy = {node.id: list(node.jobs) for node in world.nodes.values()}
        seen, desired = len(log), dict(world.fleet.desired)
        try:
            self._stage.change(change)
        except Exception as error:  # What the call's worker was told; the world is as it is then.
            self._broke += [] if change[0] in ("pools", "cluster") else [f"{change} raised {error}"]
        for record in log[seen:]:
            self._look_at(record, going, busy)
        if change[1] == "grow":
            self.launched += world.fleet.desired[change[2]] - desired[change[2]]
            self._bought(change, waiting)
        elif change[1] == "release":
            self.released += desired[change[2]] - world.fleet.desired[change[2]]
        self._doors()

    def _bought(self, change: Request, waiting: int) -> None:
        booting = [node.id for node in self.world.nodes.values() if not node.ready]
        if len(booting) > waiting:
            at = f"at {self.world.now_s:.0f} s {change[2]} was raised to {change[3]}"
            self._broke.append(f"bought twice: {at}: {', '.join(booting)} boot, and {waiting} pods wait")
        if len(self.world.nodes) > (self._scene.policy.caps.nodes or 99):
            self._broke.append(f"above a cap: {len(self.world.nodes)} nodes are lit")

    def _look_at(self, record: dict[str, object], going: set[str], busy: dict[str, list[str]]) -> None:
        if (
            record["event"] == "stop"
            and record["reason"] not in ("done", "reclaimed")
            and record["job"] not in self._scene.stops
        ):
            nodes = [node for node, jobs in busy.items() if record["job"] in jobs]
            if not going.issuperset(nodes):
                self._broke.append(f"killed: {record['job']} on {', '.join(nodes)} at {record['t']} s")

    def _doors(self) -> None:
        """No node stays closed to pods that nothing is done to any more."""
        world = self.world
        closed = {node.id for node in world.nodes.values() if node.keeps_closed and not node.doomed_s}
        self._closed = {id: self._closed.get(id, world.now_s) for id in closed}
        for id, since_s in self._closed.items():
            if world.now_s - since_s > CLOSED_S:
                self._broke.append(f"closed for ever: {id} takes no pods since {since_s:.0f} s")

    def _end(self) -> None:
        world, scene, log = self.world, self._scene, self._stage.log
        launches = [record for record in log if record["event"] == "launch"]
        if len(launches) > scene.launches:
            self._broke.append(
                f"bought twice: {len(launches)} nodes were launched, {scene.launches} at most are wanted"
            )
        done = {job.id for job in world.finished}
        self._broke += [f"never ran: {job}" for job in scene.runs if job not in done]
        self._broke += [f"still lit: {node.id}" for node in world.nodes.values()]
        self.usd = Decimal(world.cost())
        for budget in scene.policy.budgets:
            if budget.usd is not None and self.usd > budget.usd:
                self._broke.append(f"above a cap: ${self.usd:.2f} of {budget.name}'s ${budget.usd}")
        for launch in launches:
            self._unused(str(launch["node"]))

    def _unused(self, node: str) -> None:
        """Time between a launch, the starts and stops on it, and its end."""
        at_s: list[Seconds] = []
        runs = 0
        here: set[object] = set()
        for record in self._stage.log:
            t = float(record["t"])
            if record.get("node") == node and record["event"] in ("launch", "terminate"):
                at_s.append(t)
            elif record["event"] == "start" and any(p["node"] == node for p in record["placement"]):
                here.add(record["job"])
                at_s.append(t)
                runs += 1
            elif record["event"] == "stop" and record["job"] in here:
                here.discard(record["job"])
                at_s += [t]
        spans = list(pairwise(at_s))
        idle = [span for n, span in enumerate(spans) if not n % 2]
        if any(end - begin > UNUSED_S for begin, end in idle):
            self._broke.append(f"paid for nothing: {node} was lit without work for over {UNUSED_S:.0f} s")


def _left(whole: Whole) -> Iterator[str]:
    """Nothing is held."""
    for family in LEFT:
        for key, _ in whole.store.rows(family):
            yield f"left behind: {key}"
    for key, value in whole.store.rows("cap/"):
        if msgspec.json.decode(plain(value), type=_Account).held:
            yield f"left behind: {key} holds {msgspec.json.decode(plain(value), type=_Account).held}"


def _told(whole: Whole, played: Played) -> Iterator[str]:
    """What people were told is what happened. Of a purchase whose answer is lost a pool's size tells, unless its cloud
    takes a node meanwhile."""
    told: Counter[str] = Counter()
    for id, contents in whole.sent.items():
        kinds = {sent.type for sent in contents}
        if kinds == {_CHANGED}:
            changes = [msgspec.json.decode(sent.data, type=CapacityChanged) for sent in contents]
            told[changes[0].change] += changes[0].nodes
            if len(contents) > 1:
                yield f"told twice: {id} with {len(contents)} contents"
    if not played.lost and (told["grow"], told["release"]) != (played.launched, played.released):
        yield (
            f"told wrongly: {told['grow']} bought and {told['release']} given back were told, "
            f"{played.launched} and {played.released} were"
        )


def _charged(whole: Whole, played: Played) -> Iterator[str]:
    """Each account was charged what its nodes cost, and not more than a look's time beyond."""
    for key, value in whole.store.rows("cap/"):
        settled = msgspec.json.decode(plain(value), type=_Account).settled
        if not played.usd - Decimal("0.01") <= settled <= played.usd + Decimal(12 * 300) / Decimal(HOUR):
            yield f"charged wrongly: {key} says ${settled:.2f}, and nodes cost ${played.usd:.2f}"
