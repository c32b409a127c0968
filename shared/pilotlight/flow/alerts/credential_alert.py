"""A credential that ends within days is told of, once a day, before ticks begin to fail."""

from pilotlight.errors import PilotlightError
from pilotlight.facts.messages import Alert
from pilotlight.flow.deps import Deps
from pilotlight.units import Seconds

DAILY_S: Seconds = 86_400.0


def remind(deps: Deps) -> None:
    """Tell of a credential that ends soon. What cannot be read now is no news: the look has just worked."""
    try:
        token = deps.credential()
    except PilotlightError:
        return
    if token is None:
        return
    from pilotlight.decide.alerts.credential_end import token_check
    from pilotlight.flow.alerts.told_once import tell_once

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
