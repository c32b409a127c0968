"""Dependencies that are opened as they are used: an event that is known opens none."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pilotlight.errors import Failed, Reject

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps
    from pilotlight.ports.clouds import Bills
    from pilotlight.ports.delivery import Outbox
    from pilotlight.ports.state import Clock, State

T = TypeVar("T")


class LateDeps:
    """In the place of ``Deps``, with only these four at once; with the first other thing that is used, all are opened.
    The bill is opened alone: who reads it reaches no cluster.

    An event that is known needs no more: it costs neither policy, catalogue, cluster nor cloud. A deployment that is
    set up wrongly raises ``Failed``: that is no fault of the event.
    """

    def __init__(
        self,
        open: "Callable[[], Deps]",
        bills: "Callable[[], Bills | None]",
        *,
        name: str,
        state: "State",
        outbox: "Outbox",
        clock: "Clock",
    ) -> None:
        self.name, self.state, self.outbox, self.clock = name, state, outbox, clock
        self._open, self._bills = open, bills
        self._opened: Deps | None = None

    def now(self) -> datetime:
        """As ``Deps.now``."""
        return self.state.now()

    @property
    def whole(self) -> "Deps":
        """All of them, opened."""
        if self._opened is None:
            self._opened = _set_up(self._open)
        return self._opened

    @cached_property
    def bills(self) -> "Bills | None":
        """The cloud's bill, where one is set up; opened once."""
        return self._opened.bills if self._opened is not None else _set_up(self._bills)

    def __getattr__(self, name: str) -> Any:
        """Whatever else ``Deps`` has."""
        return getattr(self.whole, name)


def _set_up(open: Callable[[], T]) -> T:
    try:
        return open()
    except Reject as error:
        raise Failed(f"not set up: {error}") from error
