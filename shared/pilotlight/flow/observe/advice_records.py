"""Outcomes of advice, look by look: only in pools that are advised on, and for ``pilotlight shadow report``.

Keys: ``shadow/<cluster>`` and ``advice/<cluster>/<when it ended>/<call>/<target>``.
"""

from pilotlight.decide.alerts.advice_outcomes import follow_advice
from pilotlight.facts.alerts.advice import OpenAdvice
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.state_schema.alert_records import ADVICE, FOLLOWED


def follow(deps: Deps, snapshot: Snapshot, plan: Plan, _: Money) -> tuple[str, ...]:
    """Move what is followed on by one look. What ended is written first: after a crash it is written again."""
    now = snapshot.now
    found = FOLLOWED.get(deps.state, deps.name)
    was = found.value if found else OpenAdvice()
    boots = {offering.pool: offering.boot_s for offering in deps.offerings}
    open_, ended = follow_advice(was, plan.held, snapshot.view, boots, now)
    for advice in ended:
        ADVICE.put(deps.state, f"{deps.name}/{now:%Y-%m-%dT%H:%M:%S}/{advice.call}/{advice.target}", advice)
    if open_ != was:
        FOLLOWED.put(deps.state, deps.name, open_)
    return ()
