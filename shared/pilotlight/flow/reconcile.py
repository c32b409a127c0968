"""A schedule tick: settle what booted, put out what idles, catch demand whose event was lost."""

from pilotlight.facts.messages import Tick
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.walk import dry_run as _dry_run
from pilotlight.flow.walk import walk


def reconcile(deps: Deps, tick: Tick, *, dry_run: bool = False) -> Answer:
    """What one tick leads to."""
    if dry_run:
        return _dry_run(deps, releases=True)
    return walk(deps, "reconcile", f"tick {tick.identity}".strip(), releases=True)
