"""Seconds that the end of a node is planned with, whatever ends it."""

from pilotlight.units import Seconds

MARGIN_S: Seconds = 10.0
"""All is done so long before the deadline: clocks differ, and calls take time."""

RETRY_S: Seconds = 20.0
"""A pod behind a disruption budget is tried so long before it must leave: the budget may refuse it for a while."""

TICK_S: Seconds = 60.0
"""The schedule's next look may be so far off: a replacement is asked for so much earlier than it must be."""
