"""Families of advice: what is open, and what became of the rest."""

from pilotlight.codec.record_format import Format
from pilotlight.facts.alerts.advice import Advised, OpenAdvice
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

FOLLOWED = Table("shadow", Format(OpenAdvice))
"""``<cluster>``: advice whose end is not known yet."""

ADVICE = Table("advice", Format(Advised), 40 * 24 * HOUR)
"""``<cluster>/<when it ended>/<call>/<target>``: advice whose end is known."""
