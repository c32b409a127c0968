"""Notices that are not true: forged, dated wrongly, replayed; about instances that are, that were, or that never were.

No work may be lost to one. Where nobody can be asked, what it says is believed at the last moment at which a true one
could still be obeyed: the pod's grace and a margin before the deadline.
"""

from datetime import timedelta
from random import Random
from typing import Literal, NamedTuple, get_args

from harness.scene import START
from pilotlight.facts.messages import InterruptionNotice, NoticeKind
from pilotlight.units import Seconds
from pilotlight.world.simulation import World

KINDS: tuple[NoticeKind, ...] = get_args(NoticeKind)
CLOUDS: tuple[Literal["aws", "gcp", "azure", "world", "node"], ...] = ("aws", "gcp", "azure", "world", "world", "node")
MARGIN_S: Seconds = 10 + 30
"""Before a deadline: the margin, and the grace of a run's pods."""
CLOCKS_S: Seconds = 10
"""The clocks that an eviction goes by are wrong by less."""


class _Forged(NamedTuple):
    deadline_s: Seconds | None


class Forgeries:
    """Makes them, and knows until when each of them binds nobody."""

    def __init__(self, world: World, cluster: str) -> None:
        self._world, self._cluster = world, cluster
        self._sent: dict[str, list[_Forged]] = {}

    def forge(self, rng: Random, known: list[str]) -> InterruptionNotice:
        """A notice that is not true. ``known`` are all instances there ever were."""
        live = list(self._world.nodes)
        instance = rng.choice([*(known or ["n1"]), *live, *live, *live, f"n{900 + len(self._sent)}"])
        now_s, kind = self._world.now_s, rng.choice(KINDS)
        at_s = now_s - rng.choice((0.0, rng.uniform(0, 600), rng.uniform(0, 4 * 86400)))
        deadline_s = rng.choice((at_s + 120, now_s + 120, now_s + rng.uniform(-600, 1200)))
        over = kind in ("preempted", "state-change", "rebalance")
        ended = over or rng.random() < 0.1
        # Of an end to come that names no time two minutes are left: EC2's notice leaves as much.
        ends_s = None if over else at_s + 120 if ended else deadline_s
        self._sent.setdefault(instance, []).append(_Forged(ends_s))
        return InterruptionNotice(
            cluster=self._cluster,
            instance=instance,
            kind=kind,
            cloud=rng.choice(CLOUDS),
            at=START + timedelta(seconds=at_s),
            deadline=None if ended else START + timedelta(seconds=deadline_s),
        )

    def due(self, instances: list[str]) -> bool:
        """Whether one was sent of any of them that must be obeyed now, where nobody can be asked."""
        ends = [each.deadline_s for id in instances for each in self._sent.get(id, ())]
        return any(end_s is not None and self._world.now_s >= end_s - MARGIN_S - CLOCKS_S for end_s in ends)
