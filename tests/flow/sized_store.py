"""A store that knows how large the records are that are put into it."""

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds


class Sized(MemoryState):
    """A store that knows how large the largest record of each family was."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.largest: dict[str, int] = {}

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Measure, and put."""
        family = key.partition("/")[0]
        self.largest[family] = max(self.largest.get(family, 0), len(value))
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)
