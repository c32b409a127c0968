"""The front door: a request's body and headers in, a flow's answer out.

================  ======  =========================================================================
outcome           status  body
================  ======  =========================================================================
decided           200     ``{"decision", "did", "why"}``, ``look_again_at``, and ``plan`` on a dry run
asks for nothing  200     ``{"ignored": why}``
Reject            200     ``{"rejected": why}``, after the event is in the dead-letter topic; 413 for a body too large
a store's fault   503     ``{"error": why}``: whatever the store says, no event is to blame, and each comes again
a tick fails      503     the same, whatever it is: a schedule's tick is no poison, and people are told once
Retry             503     ``{"error": why}`` with Retry-After; also when the dead letter cannot be written
anything else     500     ``{"error": why}``: the sender backs off, and dead-letters it after its last attempt
================  ======  =========================================================================

A body that holds several events answers ``{"answers": [...]}`` with the worst status, and of those only the bad ones
are dead-lettered, each by itself; an event for every cluster,
``{"clusters": {name: ...}}`` likewise.
"""

from pilotlight.doorway.answers import Response
from pilotlight.doorway.door import receive
from pilotlight.doorway.functions import RECEIVES, TICKS, Function, House, takes

__all__ = ["RECEIVES", "TICKS", "Function", "House", "Response", "receive", "takes"]
