"""Families of instances: which node each was, and notices that one is taken."""

from pilotlight.facts.interruption.interruption import Instance, Interruption
from pilotlight.state_schema.parted import Parted
from pilotlight.state_schema.table import Format, Part, Table
from pilotlight.units import HOUR


class InstancePart(Part[Instance], frozen=True, kw_only=True):
    """Which pool and node instances were, by their names."""


INSTANCES = Parted(Table("instances", Format(InstancePart, 2)), InstancePart)
"""``<cluster>/<part>``: instances that the last look showed."""

GONE = Parted(Table("instances-gone", Format(InstancePart), 48 * HOUR), InstancePart)
"""``<cluster>/<hour>/<part>``: those that looks show no more, by the hour in which they were first missed."""

RESCUE = Table("rescue", Format(Interruption))
"""``<cluster>/<instance>``: a notice that is being dealt with."""

INTERRUPTION = Table("interruption", Format(Interruption), 30 * 24 * HOUR)
"""``<cluster>/<instance>/<moment>``: one that is over."""
