"""Families of alerts on their way to a channel, and of those that have arrived."""

from pilotlight.facts.alerts.delivery_records import Burst, Rest, Telling
from pilotlight.state_schema.table import MARK, Format, Table
from pilotlight.units import HOUR

WAITING = Table("waiting", Format(Telling))
"""``<cluster>/<channel>/<id>``: what is claimed or waits; the claim lapses when its deliverer dies."""

PROOF = Table("proof", Format(Telling), 40 * 24 * HOUR)
"""``<cluster>/<channel>/<id>``: what was told, or given up: it keeps the same fingerprint from being told again. Kept
for longer than a budget's month, so that its end is told too and what was given up can be redelivered."""

ACK = Table("ack", MARK, 40 * 24 * HOUR)
"""``<cluster>/<id>``: somebody has seen to it, as the note says who; it is escalated no further."""

BURST = Table("burst", Format(Burst), HOUR)
"""``<cluster>/<channel>/<kind>``: how many of a kind came in this window."""

REST = Table("rest", Format(Rest), HOUR)
"""``<channel>``: one that fails, and is left alone for a while."""
