"""Families of what budgets hold and have spent."""

from datetime import datetime, timedelta
from typing import Any

from pilotlight.codec.records import Format
from pilotlight.facts.budget import Account, Charged, Hold, Runs
from pilotlight.state_schema.table import Table
from pilotlight.units import HOUR


def _with_its_end(hold: dict[str, Any]) -> dict[str, Any]:
    """Schema 1 held every node for its longest run, counted from the last moment at which a pod may bind."""
    until = datetime.fromisoformat(hold["binds_until"]) + timedelta(seconds=hold["terms"]["run_s"])
    return {**hold, "until": until.isoformat()}


CAP = Table("cap", Format(Account), 400 * 24 * HOUR)
"""``<cluster>/<budget>/<measure>/<window>``: an account; ``.../<number>`` is a further part of it."""

HOLD = Table("hold", Format(Hold, _with_its_end))
"""``<cluster>/<decision>.<call>.<node>``: what is held for one node."""

CHARGED = Table("charged", Format(Charged), 48 * HOUR)
"""``<cluster>/<instance>``: until when an instance was charged whose hold is closed."""

RUNS = Table("runs", Format(Runs))
"""``<cluster>``: how long pods ran."""
