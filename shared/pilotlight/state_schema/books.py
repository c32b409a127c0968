"""Families of what budgets hold and have spent."""

from pilotlight.codec.records import Format
from pilotlight.facts.budget import Account, Hold, Runs
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

CAP = Table("cap", Format(Account), 400 * 24 * HOUR)
"""``<cluster>/<budget>/<measure>/<window>``: an account."""

HOLD = Table("hold", Format(Hold))
"""``<cluster>/<decision>.<call>.<node>``: what is held for one node."""

RUNS = Table("runs", Format(Runs))
"""``<cluster>``: how long pods ran."""
