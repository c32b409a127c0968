"""Families of what a cluster's decisions leave behind."""

from datetime import datetime

from pilotlight.codec.records import Format
from pilotlight.facts.capacity import InFlight
from pilotlight.facts.decisions import Record
from pilotlight.facts.memory import Memory
from pilotlight.state_schema.parted import Part, Parted
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

MEMORY = Table("memory", Format(Memory))
"""``<cluster>``."""

IN_FLIGHT = Table("inflight", Format(InFlight))
"""``<cluster>/<decision>.<n>``, and ``+<part>`` behind it for more demands than one record holds."""

OPEN = Table("open", Format(Record))
"""``<cluster>/<id>``: a decision from before its first effect until after its last."""

DECISION = Table("decision", Format(Record), 30 * 24 * HOUR)
"""``<cluster>/<id>``: a decision that was carried out."""


class IdlePart(Part[datetime], frozen=True, kw_only=True):
    """Since when nodes are idle, by name."""


IDLE = Parted(Table("idle", Format(IdlePart)), IdlePart)
"""``<cluster>/<part>``."""
