"""A bill that is set up and must not be read as it is: whoever reads it is told why."""

from datetime import datetime
from typing import TYPE_CHECKING

from pilotlight.errors import BadInput

if TYPE_CHECKING:
    from pilotlight.facts.money.bill import Bill


class UnreadBills:
    """Bills that wait for a setting."""

    def __init__(self, why: str) -> None:
        self._why = why

    def read(self, start: datetime, end: datetime) -> "Bill":
        """Raises ``BadInput`` with the reason."""
        raise BadInput(self._why)
