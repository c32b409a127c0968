"""One call to a store on the network: attempts within one deadline, and no "failed" for what may have been done.

A write whose answer is lost is sent again, because its condition lets it through once. Where the second meets another
version, that may be its own: ``MetAgain`` says so, and whoever wrote looks.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from msgspec import MsgspecError

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.errors import Conflict, Denied, Reject, StoreFault, Throttled, Unavailable, Unsure
from pilotlight.units import Seconds

STORE_S: Seconds = 10.0
"""For one call with all its attempts: names, connecting, sending and reading together."""

PAUSES_S: tuple[Seconds, ...] = (0.0, 0.2, 0.8)
"""Between one attempt and the next. The first may have met a kept connection that had ended."""

T = TypeVar("T")
P = ParamSpec("P")

_UNREADABLE = (ArithmeticError, AttributeError, LookupError, MsgspecError, TypeError, ValueError)
"""What code raises that meets an answer of another shape than the store's."""


def of_store(lost: type[Unavailable]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """An operation of a store: whatever is wrong with it is no fault of who asks. A refusal is a ``StoreFault``, an
    answer that cannot be read is ``lost``.
    """

    def made(operation: Callable[P, T]) -> Callable[P, T]:
        @wraps(operation)
        def explained(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return operation(*args, **kwargs)
            except (Denied, Reject) as no:
                raise StoreFault(str(no)) from None
            except _UNREADABLE as odd:
                asked = f"{operation.__name__} {next(iter(args[1:]), '')}".strip()
                raise lost(f"the state's answer to {asked} cannot be read ({type(odd).__name__}: {odd})"[:500]) from odd

        return explained

    return made


class MetAgain(Conflict):
    """Another version is there, and an earlier attempt of this call may have written it."""


def retry_call(send: Callable[[Deadline], T]) -> T:
    """Answer of the store in the end. ``send`` raises ``Unsure`` where a write was sent and no answer came.

    Raises what ``send`` does; ``Unsure`` where any attempt may have been done; ``MetAgain`` for a conflict after that.
    """
    lost: Unsure | None = None
    with Deadline(STORE_S) as deadline:
        for pause_s in (*PAUSES_S, None):
            try:
                return send(deadline)
            except Conflict as error:
                raise (MetAgain(str(error)) if lost else error) from None
            except StoreFault:
                raise
            except (Throttled, Unavailable) as error:
                lost = error if isinstance(error, Unsure) else lost
                if pause_s is None or _over(deadline, pause_s):
                    raise lost or error from None
                time.sleep(pause_s)
    raise AssertionError("the last attempt returns or raises")


def _over(deadline: Deadline, pause_s: Seconds) -> bool:
    try:
        return deadline.seconds_left() <= pause_s
    except TimeoutError:
        return True
