"""Families of records that are followed until their end is known: advice, and owners on their way to rest."""

from pilotlight.facts.alerts.advice import Advised, OpenAdvice
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.state_schema.table import MARK, Format, Table
from pilotlight.units import HOUR

FOLLOWED = Table("shadow", Format(OpenAdvice))
"""``<cluster>``: advice whose end is not known yet."""

ADVICE = Table("advice", Format(Advised), 40 * 24 * HOUR)
"""``<cluster>/<when it ended>/<call>/<target>``: advice whose end is known."""


RECLAIM = Table("reclaim", Format(Reclaim))
"""``<cluster>/<namespace>/<kind>/<name>``."""

RECLAIM_LOOK = Table("reclaim-look", MARK, 60.0)
"""``<cluster>``: idle GPUs were looked for lately."""
