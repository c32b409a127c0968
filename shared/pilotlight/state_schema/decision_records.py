"""Families of records that a cluster's decisions leave: memory, decisions, and the audit chain."""

from datetime import datetime

from pilotlight.facts.decisions import CallStep, Chain, Record
from pilotlight.facts.memory import Memory
from pilotlight.state_schema.parted import Parted
from pilotlight.state_schema.table import Format, Part, Table
from pilotlight.units import HOUR

MEMORY = Table("memory", Format(Memory, 3, squeezed=True))
"""``<cluster>``."""

OPEN = Table("open", Format(Record, 2))
"""``<cluster>/<id>``: a decision from before its first call until after its last is known."""

STEP = Table("step", Format(CallStep), 24 * HOUR)
"""``<cluster>/<decision>/<n>``: one call of an open decision; left behind only where its worker came back too late."""


DECISION = Table("decision", Format(Record, 2), 30 * 24 * HOUR)
"""``<cluster>/<id>``: a decision that was carried out."""


class IdlePart(Part[datetime], frozen=True, kw_only=True):
    """Since when nodes are idle, by name."""


class BeliefPart(Part[datetime], frozen=True, kw_only=True):
    """Since when pods are believed to fit where they are not bound, by pod and node."""


BELIEFS = Parted(Table("belief", Format(BeliefPart)), BeliefPart)
"""``<cluster>/<part>``."""

IDLE = Parted(Table("idle", Format(IdlePart)), IdlePart)
"""``<cluster>/<part>``."""


LINKS_AT_HEAD = 16
"""So many links are in the head's record; then they move behind it, and it begins anew."""

AUDIT_KEPT_S = 400 * 24 * HOUR
"""A year of links, and time to see to it."""

HEAD = Table("audit", Format(Chain))
"""``<cluster>``: the head, and the links that have no record of their own yet."""

LINKS = Table("audit-links", Format(Chain), AUDIT_KEPT_S)
"""``<cluster>/<seq>``: the links from that number on."""
