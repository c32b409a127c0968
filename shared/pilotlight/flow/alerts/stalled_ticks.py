"""A scheduled tick that cannot be worked on: people are told, once a day for each kind of reason."""

from pilotlight.errors import Corrupt
from pilotlight.facts.messages import Alert, Tick
from pilotlight.flow.alerts.corrupt_records import tell_corrupt
from pilotlight.flow.alerts.decision_messages import by_fingerprint, send
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger


def tell_stalled(deps: Deps, tick: Tick, problem: Exception, why: str) -> None:
    """Send the alert, unless it was told already. ``why`` may hold nothing that people must not read."""
    if isinstance(problem, Corrupt):
        tell_corrupt(deps, problem)
        return
    fingerprint = f"stalled/{tick.what}/{type(problem).__name__}"
    if ledger.was_told(deps.state, deps.name, fingerprint):
        return
    alert = Alert(
        cluster=deps.name,
        kind="stalled",
        severity="critical",
        fingerprint=fingerprint,
        what=f"the {tick.what} ticks of cluster {deps.name} fail",
        why=why,
        next="each tick tries again; until one works nothing is done that it is for, and nodes stay as they are",
        how="the function's log; pilotlight check POLICY, pilotlight doctor",
        at=deps.clock.now(),
    )
    send(deps, (by_fingerprint(alert),))
