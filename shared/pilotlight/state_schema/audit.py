"""Families of the audit chain: its newest links in one record, changed by compare-and-set, the earlier behind it."""

from pilotlight.codec.record_format import Format
from pilotlight.facts.decisions import Chain
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

AT_THE_HEAD = 16
"""So many links are in the head's record; then they move behind it, and it begins anew."""

KEPT_S = 400 * 24 * HOUR
"""A year of links, and time to see to it."""

HEAD = Table("audit", Format(Chain))
"""``<cluster>``: the head, and the links that have no record of their own yet."""

LINKS = Table("audit-links", Format(Chain), KEPT_S)
"""``<cluster>/<seq>``: the links from that number on."""
