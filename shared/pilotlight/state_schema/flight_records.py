"""The family of capacity in flight: asked for, and not there yet."""

from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.state_schema.table import Format, Table

IN_FLIGHT = Table("inflight", Format(InFlight))
"""``<cluster>/<decision>.<n>``, and ``+<part>`` behind it for more demands than one record holds."""
