"""A cloud's own budget that crossed a threshold: people are told once, and nothing is stopped by it."""

from decimal import Decimal, InvalidOperation

from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Alert, BudgetNotice
from pilotlight.flow.alerts.once import tell_once
from pilotlight.flow.deps import Answer, Deps


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
