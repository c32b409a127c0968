"""A store that is gone for one put, as when its worker dies there."""

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Unavailable
from pilotlight.units import Seconds


class Failing(MemoryState):
    """A store that fails once, at the ``at``-th put from when that was set; 0 is never."""

    at = 0

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Put, or fail."""
        self.at -= 1
        if self.at == 0:
            raise Unavailable("the store is gone for a moment")
        return super().put(key, value, if_version=if_version, ttl_s=ttl_s)
