"""Luck of homes: patches of pods and nodes that are refused, or lost to another; failed calls, counted."""

from harness.faults.luck import Fault, Luck, Port
from pilotlight.errors import Conflict, Forbidden
from pilotlight.units import Seconds

PATCHES = ("name_home", "tolerate", "open")
REFUSED = (
    Fault("before", Forbidden("the admission policy says no")),
    Fault("before", Conflict("another was there")),
    Fault("after", Conflict("another was there")),
)


class NotedLuck(Luck):
    """Luck that counts the calls that went wrong."""

    failed = 0

    def fault(self, port: Port, method: str, conditional: bool, now_s: Seconds) -> Fault | None:
        """What befalls this call: a patch of a pod or node may be refused, or another be there first."""
        found = super().fault(port, method, conditional, now_s)
        if found is not None and method in PATCHES:
            found = self._rng.choice((found, *REFUSED))
        self.failed += found is not None
        return found
