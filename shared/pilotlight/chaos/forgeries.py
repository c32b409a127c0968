"""Notices that are not true: forged, dated wrongly, replayed; about instances that are, that were, or that never were.

No work may be lost to one. Where nobody can be asked, what it says is believed at the last moment at which a true one
could still be obeyed: the pod's grace and a margin before the deadline.
"""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any, Literal, NamedTuple

from pilotlight.chaos.scene import START
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.units import Seconds
from pilotlight.world.world import World

KINDS: tuple[NoticeKind, ...] = (
    "spot-interruption", "spot-interruption", "scheduled-change", "lifecycle", "capacity-reservation", "preempted",
    "state-change",
)  # fmt: skip
MARGIN_S: Seconds = 10 + 30
"""Before a deadline: the margin, and the grace of a run's pods."""
CLOCKS_S: Seconds = 10
"""The clocks that an eviction goes by are wrong by less."""


class _Forged(NamedTuple):
    at_s: Seconds
    deadline_s: Seconds | None


class Forgeries:
    """Makes them, and is told of every run that begins and ends; ``broke`` is told of work that was lost to one."""

    def __init__(self, world: World, cluster: str, broke: Callable[[Literal["false_evictions"], str], None]) -> None:
        self._world, self._cluster, self._broke = world, cluster, broke
        self._sent: dict[str, list[_Forged]] = {}
        self._on: dict[str, list[str]] = {}

    def forge(self, rng: Random, known: list[str]) -> InterruptionNotice:
        """A notice that is not true. ``known`` are all instances there ever were."""
        instance = rng.choice([*(known or ["n1"]), *self._world.nodes, f"n{900 + len(self._sent)}"])
        now_s, kind = self._world.now_s, rng.choice(KINDS)
        at_s = now_s - rng.choice((0.0, rng.uniform(0, 600), rng.uniform(0, 4 * 86400)))
        deadline_s = rng.choice((at_s + 120, now_s + 120, now_s + rng.uniform(-600, 1200)))
        ended = kind in ("preempted", "state-change") or rng.random() < 0.1
        self._sent.setdefault(instance, []).append(_Forged(now_s, None if ended else deadline_s))
        return InterruptionNotice(
            cluster=self._cluster,
            instance=instance,
            kind=kind,
            cloud="world",
            at=START + timedelta(seconds=at_s),
            deadline=None if ended else START + timedelta(seconds=deadline_s),
        )

    def log(self, record: dict[str, Any]) -> None:
        """A record of the world's log."""
        if record["event"] == "start":
            self._on[record["job"]] = sorted({placed["node"] for placed in record["placement"]})
        elif record["event"] == "stop" and record["reason"] == "evicted":
            self._evicted(record["job"], record["t"])

    def _evicted(self, job: str, t: Seconds) -> None:
        nodes = self._on[job]
        if any(id not in self._world.nodes or self._world.nodes[id].doomed_s is not None for id in nodes):
            return
        forged = [each for id in nodes for each in self._sent.get(id, ())]
        if not forged:
            return
        last = [f for f in forged if f.deadline_s is not None and t >= f.deadline_s - MARGIN_S - CLOCKS_S]
        if not last:
            self._broke("false_evictions", f"{job} was evicted from {', '.join(nodes)} by a notice that is not true")
