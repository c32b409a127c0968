"""Alerts of our own troubles: ticks that fail, records that cannot be read, and a credential that ends within days."""

import hashlib

from pilotlight.errors import Corrupt, PilotlightError
from pilotlight.facts.messages import Alert, Tick
from pilotlight.flow.alerts.decision_messages import send
from pilotlight.flow.answer import by_fingerprint, tell_once
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.units import Seconds

DAILY_S: Seconds = 86_400.0


def tell_stalled(deps: Deps, tick: Tick, problem: Exception, why: str) -> None:
    """Tell of a scheduled tick that cannot be worked on, once a day for each kind of reason.

    ``why`` may hold nothing that people must not read.
    """
    if isinstance(problem, Corrupt):
        tell_corrupt(deps, problem)
        return
    alert = Alert(
        cluster=deps.name,
        kind="stalled",
        severity="critical",
        fingerprint=f"stalled/{tick.what}/{type(problem).__name__}",
        what=f"the {tick.what} ticks of cluster {deps.name} fail",
        why=why,
        next="each tick tries again; until one works nothing is done that it is for, and nodes stay as they are",
        how="the function's log; pilotlight check POLICY, pilotlight doctor",
        at=deps.clock.now(),
    )
    _send_once(deps, alert)


def tell_corrupt(deps: Deps, problem: Corrupt) -> None:
    """Tell of a record of the state that cannot be read, once a day a record: whoever finds it stops."""
    alert = Alert(
        cluster=deps.name,
        kind="corrupt-state",
        severity="critical",
        fingerprint=f"corrupt/{hashlib.blake2b(str(problem).encode(), digest_size=8).hexdigest()}",
        what=f"a record of cluster {deps.name}'s state cannot be read",
        why=str(problem),
        next="nothing is bought or released until a person mends it",
        how="pilotlight state export, mend the record, pilotlight state import --replace",
        at=deps.clock.now(),
    )
    _send_once(deps, alert)


def _send_once(deps: Deps, alert: Alert) -> None:
    if not ledger.was_told(deps.state, deps.name, alert.fingerprint):
        send(deps, (by_fingerprint(alert),))


def tell_ending_credential(deps: Deps) -> None:
    """Tell of a credential that ends soon. What cannot be read now is no news: the look has just worked."""
    try:
        token = deps.credential()
    except PilotlightError:
        return
    if token is None:
        return
    from pilotlight.decide.alerts.credential_end import token_check

    now = deps.clock.now()
    check = token_check(token, now)
    if check.verdict == "ok":
        return
    alert = Alert(
        cluster=deps.name,
        kind="credential",
        severity="warning",
        fingerprint=f"credential/{token.subject}/{token.ends and f'{token.ends:%Y%m%d}'}",
        what=f"the credential for cluster {deps.name}: {check.what}",
        why="it was made to end; nothing renews it by itself",
        next="once it has ended nothing is bought or given back here, and nodes stay as they are",
        how=check.fix,
        at=now,
    )
    tell_once(deps, alert, DAILY_S)
