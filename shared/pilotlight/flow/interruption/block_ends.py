"""Blocks of capacity that end: what runs on them goes, and is saved and moved before, as after a cloud's notice.

The block says when it ends from its first day; the cloud's own event, forty minutes before, is only a reason to look.
"""

from datetime import timedelta
from typing import Literal

from pilotlight.facts.interruption import LEAD_S
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.books import interruptions
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.interrupt import interrupt

Whose = Literal["aws", "gcp", "azure", "world"]
WHOSE: dict[str, Whose] = {"eks": "aws", "gke": "gcp", "aks": "azure"}
"""Whose word it is that a pool's block ends, by the pool's cloud."""


def begin(deps: Deps) -> None:
    """Begin the rescue of every node whose block ends within its lead. What is begun is carried on as any other."""
    reserved = {name: pool for name, pool in deps.policy.pools.items() if pool.capacity_type == "reserved"}
    if not reserved:
        return
    now = interruptions.moment(deps)
    for state in deps.pools.describe():
        for paid in state.paid if state.name in reserved else ():
            if not paid.takes or paid.ends is None or paid.ends - now > timedelta(seconds=LEAD_S):
                continue
            for instance in paid.instances:
                if interruptions.find(deps, instance) is None:
                    interrupt(
                        deps,
                        InterruptionNotice(
                            cluster=deps.name,
                            instance=instance,
                            kind="capacity-reservation",
                            cloud=WHOSE.get(reserved[state.name].cloud, "world"),
                            identity=f"{instance}/{paid.name}",
                            at=now,
                            deadline=paid.ends,
                        ),
                    )
