"""Blocks of capacity that end: what runs on them goes, and is saved and moved before, as after a cloud's notice.

The block says when it ends from its first day; the cloud's own event, forty minutes before, is only a reason to look.
"""

from datetime import datetime, timedelta
from typing import get_args

from pilotlight.decide.interruption.verify_notice import SOONER
from pilotlight.facts.interruption.interruption import LEAD_S, Interruption
from pilotlight.facts.interruption.notice_kinds import WORLD, NoticeCloud
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.interrupt import interrupt, news

_CLOUDS: tuple[NoticeCloud, ...] = get_args(NoticeCloud)


def begin(deps: Deps) -> None:
    """Begin the rescue of every node whose block ends within its lead. What is begun is carried on as any other."""
    reserved = {name: pool for name, pool in deps.policy.pools.items() if pool.capacity_type == "reserved"}
    if not reserved:
        return
    now = interruption_records.moment(deps)
    whose = next((cloud for cloud in _CLOUDS if cloud == deps.pools.cloud), WORLD)
    for state in deps.pools.describe():
        for paid in state.paid if state.name in reserved else ():
            if not paid.takes or paid.ends is None or paid.ends - now > timedelta(seconds=LEAD_S):
                continue
            for instance in paid.instances:
                notice = InterruptionNotice(
                    cluster=deps.name,
                    instance=instance,
                    kind="capacity-reservation",
                    cloud=whose,
                    identity=f"{instance}/{paid.name}",
                    at=now,
                    deadline=paid.ends,
                )
                if _new(deps, notice, paid.ends):
                    interrupt(deps, notice)


def _new(deps: Deps, notice: InterruptionNotice, ends: datetime) -> bool:
    """True where an instance's end is yet to be begun: notices that came before do not keep it from it."""
    known = interruption_records.find(deps, notice.instance)
    if known is None:
        return True
    return news(known.found, notice) and not any(
        _begun(one, notice, ends) for one in interruption_records.past(deps, notice.instance)
    )


def _begun(past: Interruption, notice: InterruptionNotice, ends: datetime) -> bool:
    """True where one that is over was begun here, of this end: what is posted of it sooner, or otherwise, was not."""
    return (
        (past.kind, past.cloud, past.outcome == "stayed") == (notice.kind, notice.cloud, False)
        and (past.deadline is not None and abs(past.deadline - ends) < SOONER)
        and (past.said_at is not None and abs(past.said_at - past.received_at) < SOONER)
        and ends - past.received_at <= timedelta(seconds=LEAD_S)
    )
