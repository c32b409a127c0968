"""Families whose records only have to be there: ``Mark``, with a note for people."""

from datetime import datetime

import msgspec

from pilotlight.state_schema.table import Format, Table
from pilotlight.units import HOUR


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A record whose being there is what it says. ``note`` is for people who look; ``at`` is when it was made, where
    somebody asks."""

    note: str = ""
    at: datetime | None = None


MARK = Format(Mark, 2)

DAY_S = 24 * HOUR

BILL_READ = Table("bill-read", MARK, HOUR)
"""``<cluster>``: its bill was read lately. One that could not be read is tried again sooner."""

BILL_READING = Table("bill-reading", MARK, 600.0)
"""``<cluster>``: its bill is being read. A read that outlives its function is tried again once this is gone."""

CHAT = Table("chat", MARK)
"""``<chat id>``: where Telegram says a chat has moved."""

EVENT = Table("event", MARK, 3600.0)
"""``<cluster>/<identity>``: an event was handled; its second delivery costs one read."""

FLUSH = Table("flush", MARK, 5.0)
"""``all``: what waits was told just now."""

HEARD = Table("heard", MARK, DAY_S)
"""``<cluster>/<digest>``: this very alert was taken in."""

LOOK_AGAIN = Table("look-again", MARK)
"""``<cluster>``: whoever holds the lease has to look again."""

NOTICED = Table("noticed", MARK, 40 * DAY_S)
"""``<cluster>/<what>``: people were told of what a bill or a cloud's budget shows."""

PRICES_READ = Table("prices-read", MARK)
"""``<cluster>``: its cloud was asked for prices lately; the note says why it did not tell. It is then asked sooner."""

SILENT = Table("silent", MARK)
"""``<cluster>``: since when its API server does not answer."""

TICK = Table("tick", MARK, 60.0)
"""``<cluster>/<what>``: serve's schedule ticked in this interval."""

TOLD = Table("told", MARK, DAY_S)
"""``<cluster>/<what>``: people were told of a finding or a refusal."""
