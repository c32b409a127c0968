"""A read of AWS, tried again within bounds: reading changes nothing."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pilotlight.errors import Retry, Throttled
from pilotlight.units import Seconds

T = TypeVar("T")


def read_again(once: Callable[[], T], pauses_s: Sequence[Seconds], sleep: Callable[[Seconds], None]) -> T:
    """What ``once`` reads, tried again after each pause, or as long as AWS asks for. Raises the last error."""
    for pause_s in pauses_s:
        try:
            return once()
        except Retry as error:
            sleep(max(pause_s, error.after_s) if isinstance(error, Throttled) else pause_s)
    return once()
