"""A cloud's own budget that crossed a threshold: people are told once, and nothing is stopped by it."""

from decimal import Decimal, InvalidOperation

from pilotlight.codec.records import Mark
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Alert, BudgetNotice
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.tell import alert_out
from pilotlight.state_schema.marks import NOTICED
from pilotlight.units import Seconds


def cloud_budget(deps: Deps, notice: BudgetNotice) -> Answer:
    """A cloud's budget crossed a threshold: told once a period. It comes late, and caps nothing."""
    if notice.threshold is None:
        return Answer(decision="", did=(), why=f"budget {notice.budget}: no threshold is crossed")
    try:
        cost, limit = Decimal(notice.cost), Decimal(notice.limit)
    except InvalidOperation:
        raise BadEvent(f"{notice.cost!r} of {notice.limit!r} is no amount", "cost") from None
    verb = "is forecast to pass" if notice.forecast else "has passed"
    what = f"the cloud's budget {notice.display or notice.budget} {verb} {notice.threshold:.3%}".replace(".000%", " %")
    alert = Alert(
        cluster=deps.name,
        kind="cloud-budget",
        severity="warning",
        fingerprint=f"cloud-budget/{notice.budget}/{notice.since:%Y%m%d}/{notice.threshold}/{notice.forecast}",
        what=what,
        why=f"{cost} of {limit} {notice.currency} since {notice.since:%Y-%m-%d}, as the cloud says hours later",
        next="nothing is stopped by it: budgets of the policy are what caps",
        how="pilotlight budget status",
        usd=notice.cost if notice.currency == "USD" else "",
        at=deps.state.now(),
    )
    did = (what,) if tell_once(deps, alert) else ()
    return Answer(decision="", did=did, why=what if did else "people were told of this threshold already")


def tell_once(deps: Deps, alert: Alert, again_s: Seconds | None = None) -> bool:
    """Send an alert that was not sent lately, by default in the last 40 days.

    Marked after: a crash in between tells twice rather than never.
    """
    if was_noticed(deps, alert.fingerprint):
        return False
    deps.outbox.publish([alert_out(alert, alert.fingerprint.replace("/", "-"))])
    NOTICED.put(deps.state, f"{deps.name}/{alert.fingerprint}", Mark(), ttl_s=again_s)
    return True


def was_noticed(deps: Deps, what: str) -> bool:
    """Whether people were told of it lately."""
    return NOTICED.get(deps.state, f"{deps.name}/{what}") is not None
