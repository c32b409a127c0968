"""Every order of two workers' calls within bounds: searched by states, counted by schedules.

A schedule is one sequence of choices. At each call of the worker whose turn it is: it goes on; it is held and the other
goes on (a switch); it dies; and with each of these time may pass first (a stall), beyond the end of every lease. Where
a worker has ended or died the other goes on, which is no switch.

What comes after a state depends on nothing but the state: the world, the store, the outbox, the time, what the calls
of each worker answered so far (a worker is a function of that), whose turn it is, and what is left of the bounds. So
two schedules that come to one state go on alike, and what follows is searched once: that is the whole reduction. It
leaves out no order. Calls that commute come to one state in either order; no table of what commutes has to be right.
Switches before a clock is read are made only with a stall: without one they are switches before the next call.

How many schedules there are is counted exactly, over the states. ``brute`` walks each one by itself, to compare.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from orders.lives import Direct, Life, Lives
from orders.moments import Whole, Worlds, ask
from orders.scenes import Request, Scene, Script
from orders.store import Store
from pilotlight.ports.clouds import CALL_S
from pilotlight.units import Seconds

sys.setrecursionlimit(20_000)

Left = tuple[int, int, int]
"""What is left of the bounds: switches, stalls, deaths."""


class Bounds(NamedTuple):
    """At most so many switches, stalls and deaths in a schedule; how long a stall may last."""

    switches: int = 3
    stalls: int = 1
    deaths: int = 1
    stalls_s: tuple[Seconds, ...] = (62.0, 602.0)


class Choice(NamedTuple):
    """A turn of a schedule: time passes, then a worker makes one call, or dies before it."""

    worker: int
    stall_s: Seconds = 0.0
    dies: bool = False


class At(NamedTuple):
    """A state but for what is left: None is a worker that died; ``out_s`` is when one let out its request."""

    whole: int
    lives: tuple[Life | None, Life | None]
    turn: int
    out_s: tuple[Seconds, Seconds] = (0.0, 0.0)


class End(NamedTuple):
    """Both workers are done or dead. ``again`` are the deliveries that were not acknowledged, ``broke`` what failed."""

    whole: int
    again: tuple[int, ...]
    broke: tuple[str, ...]


Found = Callable[[Whole, End, tuple[Choice, ...]], None]


class Search:
    """One scene, after its setup. ``found`` is told of every end once, with the first schedule that came to it."""

    def __init__(self, scene: Scene, bounds: Bounds, found: Found) -> None:
        self.scene, self.bounds = scene, bounds
        self.worlds, self.lives = Worlds(scene), Lives(scene)
        self.wholes: list[Whole] = []
        self.ends: set[End] = set()
        self.steps: dict[tuple[int, int, Seconds], tuple[int, Life]] = {}
        self.counts: dict[int, int] = {}
        self._found = found
        self.on_state: Callable[[], None] = lambda: None
        self._ids: dict[tuple[int, int, int], int] = {}
        self._path: list[Choice] = []
        first = self._id(played(scene, self.worlds))
        self.first = At(first, (self.lives.begin(scene.scripts[0]), self.lives.begin(scene.scripts[1])), 0)

    def run(self, starters: tuple[int, ...] = (0, 1)) -> int:
        """Search all; how many schedules there are."""
        left = (self.bounds.switches, self.bounds.stalls, self.bounds.deaths)
        return sum(self._all(self.first._replace(turn=turn), left) for turn in starters)

    def brute(self, starters: tuple[int, ...] = (0, 1)) -> int:
        """The same by walking every schedule to its end by itself: nothing is merged."""
        left = (self.bounds.switches, self.bounds.stalls, self.bounds.deaths)
        return sum(self._each(self.first._replace(turn=turn), left) for turn in starters)

    def walk(self, schedule: Iterator[Choice]) -> Iterator[tuple[Choice, At]]:
        """The states of one schedule, each before its choice."""
        at = self.first
        for choice in schedule:
            yield choice, at
            at = self.after(at, choice)

    def end(self, at: At) -> End:
        """What a state without choices is."""
        broke = [f"{one.script.name} answered {one.said}" for one in at.lives if one and one.status == 500]
        again = [n for n, one in enumerate(at.lives) if one is None or one.status != 200]
        return End(at.whole, tuple(again), tuple(broke))

    def choices(self, at: At, left: Left) -> Iterator[tuple[Choice, Left]]:
        """What may come next, with what is then left."""
        switches, stalls, deaths = left
        life, other = at.lives[at.turn], 1 - at.turn
        there = _busy(at.lives[other])
        waits = self._stalls(at) if stalls else ()
        if not _busy(life):
            if there:
                yield Choice(other), left
                for wait in waits if life is None else ():
                    yield Choice(other, wait), (switches, stalls - 1, deaths)
            return
        assert life is not None
        yield Choice(at.turn), left
        for wait in waits:
            yield Choice(at.turn, wait), (switches, stalls - 1, deaths)
        if there and switches:
            if not life.clock:
                yield Choice(other), (switches - 1, stalls, deaths)
            for wait in waits:
                yield Choice(other, wait), (switches - 1, stalls - 1, deaths)
        if deaths and not life.clock and life.request is not None and life.request[0] != "world":
            yield Choice(at.turn, dies=True), (switches, stalls, deaths - 1)

    def after(self, at: At, choice: Choice) -> At:
        """The state after a choice."""
        worker, lives, out_s = choice.worker, list(at.lives), list(at.out_s)
        if choice.dies:
            lives[worker], out_s[worker] = None, 0.0
            return At(at.whole, (lives[0], lives[1]), worker, (out_s[0], out_s[1]))
        life = at.lives[worker]
        assert life is not None
        key = (at.whole, life.id, choice.stall_s)
        if key not in self.steps:
            self.steps[key] = self._step(self.wholes[at.whole], life, choice.stall_s)
        whole, lives[worker] = self.steps[key]
        gone = lives[worker]
        out_s[worker] = self.wholes[whole].moment.now_s if gone and gone.lands else 0.0
        return At(whole, (lives[0], lives[1]), worker, (out_s[0], out_s[1]))

    def _all(self, at: At, left: Left) -> int:
        key = 0
        for part in (at.whole, *(one.id + 1 if one else 0 for one in at.lives), at.turn, *left, *map(int, at.out_s)):
            key = key << 28 | part
        known = self.counts.get(key)
        if known is None:
            self.on_state()
            known = self.counts[key] = self._sum(at, left, self._all)
        return known

    def _each(self, at: At, left: Left) -> int:
        return self._sum(at, left, self._each)

    def _sum(self, at: At, left: Left, go_on: Callable[[At, Left], int]) -> int:
        total = 0
        for choice, then in self.choices(at, left):
            self._path.append(choice)
            total += go_on(self.after(at, choice), then)
            self._path.pop()
        if not total:
            end = self.end(at)
            if end not in self.ends:
                self.ends.add(end)
                self._found(self.wholes[end.whole], end, tuple(self._path))
        return total or 1

    def _step(self, whole: Whole, life: Life, stall_s: Seconds) -> tuple[int, Life]:
        if stall_s:
            _, whole = ask(self.worlds, whole, ("world", "advance", stall_s))
        answer, whole = ask(self.worlds, whole, life.request or ())
        return self._id(whole), self.lives.go_on(life, answer)

    def _stalls(self, at: At) -> tuple[Seconds, ...]:
        """How long all may stand still here: a request that was let out lands in time, for that no check can see to."""
        now_s = self.wholes[at.whole].moment.now_s
        out_s = [since for life, since in zip(at.lives, at.out_s, strict=True) if life is not None and life.lands]
        most = min((since + CALL_S - now_s for since in out_s), default=None)
        if most is None:
            return self.bounds.stalls_s
        return (most,) if most > 0 else ()

    def _id(self, whole: Whole) -> int:
        found = self._ids.get(whole.key)
        if found is None:
            found = self._ids[whole.key] = len(self.wholes)
            self.wholes.append(whole)
        return found


def written(schedule: Iterable[Choice]) -> str:
    """A schedule as a line: who, how many calls it makes, ``+62`` where time passes first, ``!`` where it dies."""
    parts: list[list[str]] = []
    for worker, stall_s, dies in schedule:
        name = "AB"[worker] + (f"+{stall_s:g}" if stall_s else "")
        if dies:
            parts.append([name, "!"])
        elif parts and not stall_s and parts[-1][0][0] == name and parts[-1][1] != "!":
            parts[-1][1] = str(int(parts[-1][1]) + 1)
        else:
            parts.append([name, "1"])
    return " ".join(":".join(part) if part[1] != "!" else f"{part[0]}!" for part in parts)


def read(schedule: str) -> list[Choice]:
    """What ``written`` wrote. Raises ``ValueError``."""
    out: list[Choice] = []
    for part in schedule.split():
        name, _, count = part.rstrip("!").partition(":")
        worker, stall_s = "AB".index(name[0]), float(name[2:] or 0) if name[1:] else 0.0
        if part.endswith("!"):
            out.append(Choice(worker, stall_s, dies=True))
            continue
        out += [Choice(worker, stall_s), *[Choice(worker)] * (int(count) - 1)]
    return out


def _busy(life: Life | None) -> bool:
    return life is not None and not life.over


def played(scene: Scene, worlds: Worlds) -> Whole:
    """All that is outside, after a scene's setup."""
    one = Direct(worlds, Whole(worlds.first, Store({}, {}, 0), {}))
    for step in scene.setup:
        if isinstance(step, Script):
            status, said = one.do(step)
            assert status == 200, said
        else:
            request: Request = ("world", "advance", step) if isinstance(step, int | float) else step
            one.ask(request)
    return one.whole
