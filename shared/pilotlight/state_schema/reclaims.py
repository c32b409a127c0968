"""Families of owners that are idle: how far each has come, and when they were last looked at."""

from pilotlight.codec.record_format import MARK, Format
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.state_schema.table import Table

RECLAIM = Table("reclaim", Format(Reclaim))
"""``<cluster>/<namespace>/<kind>/<name>``."""

RECLAIM_LOOK = Table("reclaim-look", MARK, 60.0)
"""``<cluster>``: idle GPUs were looked for lately."""
