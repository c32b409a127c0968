"""Families of instances, and of notices that one is taken."""

from pilotlight.codec.records import Format
from pilotlight.facts.interruption import Instances, Interruption
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

INSTANCES = Table("instances", Format(Instances))
"""``<cluster>``: which pool and node each instance was."""

RESCUE = Table("rescue", Format(Interruption))
"""``<cluster>/<instance>``: a notice that is being dealt with."""

INTERRUPTION = Table("interruption", Format(Interruption), 30 * 24 * HOUR)
"""``<cluster>/<instance>/<moment>``: one that is over."""
