"""Families of what budgets hold and have spent."""

from pilotlight.codec.record_format import Format
from pilotlight.facts.money.budgets import Account, Charged, Hold, Runs
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR

CAP = Table("cap", Format(Account), 400 * 24 * HOUR)
"""``<cluster>/<budget>/<measure>/<window>``: an account; ``.../<number>`` is a further part of it."""

HOLD = Table("hold", Format(Hold, 2))
"""``<cluster>/<decision>.<call>.<node>``: what is held for one node."""

CHARGED = Table("charged", Format(Charged), 48 * HOUR)
"""``<cluster>/<instance>``: until when an instance was charged whose hold is closed."""

RUNS = Table("runs", Format(Runs))
"""``<cluster>``: how long pods ran."""
