"""A cloud's own notices on money, of a budget's threshold or of unusual spend: people are told once, and nothing is
stopped by them."""

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from pilotlight.errors import BadEvent
from pilotlight.facts.messages import Alert, BudgetNotice
from pilotlight.flow.answer import Answer, tell_once

if TYPE_CHECKING:
    from pilotlight.flow.deps import Deps


def cloud_budget(deps: "Deps", notice: BudgetNotice) -> Answer:
    """A cloud's budget crossed a threshold: told once a period. It comes late, and caps nothing."""
    if notice.threshold is None and not notice.anomaly:
        return Answer(decision="", did=(), why=f"budget {notice.budget}: no threshold is crossed")
    try:
        cost, limit = Decimal(notice.cost), Decimal(notice.limit)
    except InvalidOperation:
        raise BadEvent(f"{notice.cost!r} of {notice.limit!r} is no amount", "cost") from None
    if not (cost.is_finite() and limit.is_finite()):
        raise BadEvent(f"{notice.cost} of {notice.limit} is no amount", "cost")
    alert = _unusual(deps, notice, cost, limit) if notice.anomaly else _passed(deps, notice, cost, limit)
    did = (alert.what,) if tell_once(deps, alert) else ()
    return Answer(decision="", did=did, why=alert.what if did else "people were told of it already")


def _passed(deps: "Deps", notice: BudgetNotice, cost: Decimal, limit: Decimal) -> Alert:
    verb = "is forecast to pass" if notice.forecast else "has passed"
    share = f"{notice.threshold or 0:.3%}".replace(".000%", " %")
    what = f"the cloud's budget {notice.display or notice.budget} {verb} {share}"
    return Alert(
        cluster=deps.name,
        kind="cloud-budget",
        severity="warning",
        fingerprint=f"cloud-budget/{notice.budget}/{notice.since:%Y%m%d}/{notice.threshold}/{notice.forecast}",
        what=what,
        why=f"{cost} of {limit} {notice.currency} since {notice.since:%Y-%m-%d}, as the cloud says hours later",
        next="nothing is stopped by it: budgets of the policy are what caps",
        how="pilotlight budget",
        usd=notice.cost if notice.currency == "USD" else "",
        at=deps.state.now(),
    )


def _unusual(deps: "Deps", notice: BudgetNotice, cost: Decimal, limit: Decimal) -> Alert:
    """Told under its id and the power of two of dollars that it has come to: it is news once it has doubled."""
    more = cost - limit
    doubled = max(0, int(more)).bit_length()
    about = f" of {notice.display}" if notice.display else ""
    expected = f"{cost} {notice.currency} where {limit} was expected" if limit else f"{cost} {notice.currency} too much"
    return Alert(
        cluster=deps.name,
        kind="cloud-anomaly",
        severity="warning",
        fingerprint=f"cloud-anomaly/{notice.budget}/{doubled}",
        what=f"the cloud finds spend{about} unusual: {more} {notice.currency} more than expected",
        why=f"{expected}, since {notice.since:%Y-%m-%d}: {notice.anomaly}",
        next="nothing is stopped by it: budgets of the policy are what caps",
        how="pilotlight report month",
        usd=str(more) if notice.currency == "USD" else "",
        at=deps.state.now(),
        links={"the cloud's page": notice.link} if notice.link else {},
    )
