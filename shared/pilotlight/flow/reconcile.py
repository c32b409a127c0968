"""A schedule tick: settle what booted, put out what idles, catch demand whose event was lost."""

import msgspec

from pilotlight.errors import Retry
from pilotlight.facts.messages import Alert, Tick
from pilotlight.flow import ledger
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.rescue import carry_on
from pilotlight.flow.tell import alert_out, send
from pilotlight.flow.walk import dry_run as _dry_run
from pilotlight.flow.walk import walk
from pilotlight.units import Seconds, clock_seconds, human

SILENT_S: Seconds = 600.0
"""A cluster or cloud that does not answer for so long is told of. Nothing is changed meanwhile."""


def reconcile(deps: Deps, tick: Tick, *, dry_run: bool = False) -> Answer:
    """What one tick leads to."""
    if dry_run:
        return _dry_run(deps, releases=True)
    try:
        try:
            carry_on(deps)
        finally:  # A rescue that fails keeps nothing else from being looked at.
            answer = walk(deps, "reconcile", f"tick {tick.identity}".strip(), releases=True)
    except Retry as silent:
        _silence(deps, silent)
        raise
    if deps.state.get(_key(deps)) is not None:
        deps.state.delete(_key(deps))
    return answer


def _key(deps: Deps) -> str:
    return f"silent/{deps.name}"


def _silence(deps: Deps, silent: Retry) -> None:
    """Remember since when ticks fail; tell of it once it is long. A store that is down cannot remember: it raises."""
    now = clock_seconds(deps.clock.now())
    stored = deps.state.get(_key(deps))
    if stored is None:
        deps.state.put(_key(deps), msgspec.json.encode(now))
        return
    since = msgspec.json.decode(stored.value, type=float)
    fingerprint = f"silent/{since:.0f}"
    if now - since < SILENT_S or ledger.was_told(deps.state, deps.name, fingerprint):
        return
    alert = Alert(
        cluster=deps.name,
        kind="silent",
        severity="critical",
        fingerprint=fingerprint,
        what=f"cluster {deps.name} was not looked at for {human(now - since)}",
        why=str(silent),
        next="nodes stay as they are and nothing is bought until it answers",
        how="check the API server, the cloud's API and their credentials",
        at=deps.clock.now(),
    )
    send(deps, (alert_out(alert, f"silent-{since:.0f}"),))
