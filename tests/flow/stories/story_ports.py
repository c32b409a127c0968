"""Ports of a worker to whom something befalls at its so many-th call: it dies, stands still, or its answer is lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Unsure
from pilotlight.ports.state import Page, Stored
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools


class Died(BaseException):
    """The worker is no more: none of its calls are made from then on."""


class Fate:
    """What befalls a worker at its so many-th call to the outside; nothing where there is none."""

    def __init__(self) -> None:
        self.at, self.befalls, self.dead = 0, Fate.nothing, False

    @staticmethod
    def nothing() -> None:
        """Nothing befalls it."""

    def plan(self, at: int, befalls: Callable[[], None]) -> None:
        """It befalls the worker that looks next."""
        self.at, self.befalls, self.dead = at, befalls, False

    def meet(self) -> None:
        """A call is about to be made."""
        if self.dead:
            raise Died
        self.at -= 1
        if self.at == 0:
            self.befalls()

    def die(self) -> None:
        """The worker dies here."""
        self.dead = True
        raise Died


class Store(MemoryState):
    """A store that knows when it was looked at, also where it was restored from a backup."""

    def __init__(self, clock: Any, fate: Fate) -> None:
        super().__init__(clock)
        self.fate, self.seen = fate, dict[str, datetime]()
        self._writes = False

    def last_look(self, cluster: str) -> datetime | None:
        """When a look last began."""
        return self.seen.get(cluster)

    def note_look(self, cluster: str, at: datetime) -> None:
        """A look begins."""
        self.seen[cluster] = at

    def get(self, key: str) -> Stored | None:
        """Read; what a write reads is no call of its own."""
        if not self._writes:
            self.fate.meet()
        return super().get(key)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Write."""
        self.fate.meet()
        with self._writing():
            return super().put(key, value, if_version=if_version, ttl_s=ttl_s)

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete."""
        self.fate.meet()
        with self._writing():
            super().delete(key, if_version=if_version)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Read many."""
        self.fate.meet()
        return super().scan(prefix, after=after, limit=limit)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._writes = True
        try:
            yield
        finally:
            self._writes = False

    def backup(self) -> tuple[dict[str, Any], list[str]]:
        """All that is in it."""
        return dict(self._entries), list(self._keys)

    def restore(self, backup: tuple[dict[str, Any], list[str]]) -> None:
        """Only that is in it."""
        self._entries, self._keys = dict(backup[0]), list(backup[1])


class Cloud(WorldPools):
    """A cloud whose answers may be lost, made or not, and that says nothing of single instances where it is silent."""

    def __init__(self, world: World, fate: Fate, say: Callable[[str], None]) -> None:
        super().__init__(world)
        self.fate, self.say, self.lost, self.silent = fate, say, list[bool](), False

    def describe(self) -> Any:
        """Its pools."""
        self.fate.meet()
        return super().describe()

    def instance(self, pool: str, instance: str) -> Any:
        """One instance; it is asked on a thread of its own, on which nothing befalls a worker."""
        return None if self.silent else super().instance(pool, instance)

    def grow(self, pool: str, to: int, zone: str = "", **more: Any) -> Any:
        """Raise a pool."""
        return self._sent(f"grow {pool} to {to}", more, lambda: super(Cloud, self).grow(pool, to, zone, **more))

    def release(self, pool: str, instance: str, **more: Any) -> None:
        """Give one back."""
        self._sent(f"release {instance}", more, lambda: super(Cloud, self).release(pool, instance, **more))

    def stop(self, pool: str, instance: str, **more: Any) -> None:
        """Stop one."""
        self._sent(f"stop {instance}", more, lambda: super(Cloud, self).stop(pool, instance, **more))

    def _sent(self, line: str, more: dict[str, Any], send: Callable[[], Any]) -> Any:
        self.fate.meet()
        self.say(f"  cloud: {line}")
        if not self.lost:
            return send()
        if self.lost.pop():
            send()
        elif "gate" in more:
            more["gate"]()
        raise Unsure("its answer is lost")


class Cluster(WorldCluster):
    """A cluster at whose calls a worker may die or stand still."""

    def __init__(self, world: World, fate: Fate) -> None:
        super().__init__(world)
        self.fate = fate


def _met(name: str) -> Any:
    def call(self: Cluster, *args: Any, **more: Any) -> Any:
        self.fate.meet()
        return getattr(WorldCluster, name)(self, *args, **more)

    return call


for _name in ("observe", "cordon", "uncordon", "forget_opened", "name_home", "tolerate", "open", "bound", "drain",
              "evict", "delete", "tell"):  # fmt: skip
    setattr(Cluster, _name, _met(_name))
