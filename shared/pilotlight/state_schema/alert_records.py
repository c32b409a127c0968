"""Families of what people are told, and of what comes of it: alerts on their way to a channel and those that have
arrived, advice until its end is known, and owners of idle GPUs on their way to rest.
"""

from pilotlight.facts.alerts.advice import Advised, OpenAdvice
from pilotlight.facts.alerts.delivery_records import Burst, Rest, Telling
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.state_schema.marks import MARK
from pilotlight.state_schema.table import Format, Table
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

FOLLOWED = Table("shadow", Format(OpenAdvice))
"""``<cluster>``: advice whose end is not known yet."""

ADVICE = Table("advice", Format(Advised), 40 * 24 * HOUR)
"""``<cluster>/<when it ended>/<call>/<target>``: advice whose end is known."""

RECLAIM = Table("reclaim", Format(Reclaim))
"""``<cluster>/<namespace>/<kind>/<name>``."""

RECLAIM_LOOK = Table("reclaim-look", MARK, 60.0)
"""``<cluster>``: idle GPUs were looked for lately."""
