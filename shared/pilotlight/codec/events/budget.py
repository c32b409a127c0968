"""Google Cloud's budget notification: several a day, hours late, the same threshold again and again.

A fact is a budget's threshold crossed in a period, by what is spent or by what is forecast: both may come at once.
"""

from decimal import Decimal

import msgspec

from pilotlight.codec.events.envelope import Envelope, Found, Ignored, convert_shape
from pilotlight.facts.messages import BudgetNotice, Message, Moment, Name


class _Notification(msgspec.Struct, frozen=True, kw_only=True):
    budgetDisplayName: Name
    costAmount: float
    budgetAmount: float
    currencyCode: str
    costIntervalStart: Moment
    alertThresholdExceeded: float | None = None
    forecastThresholdExceeded: float | None = None


def read(event: Envelope) -> Found:
    """One message a threshold; one without any where none is crossed."""
    said = convert_shape(event.data, _Notification, event.path)
    notices: list[Message | Ignored] = []
    if said.alertThresholdExceeded is not None or said.forecastThresholdExceeded is None:
        notices.append(_notice(event, said, said.alertThresholdExceeded, forecast=False))
    if said.forecastThresholdExceeded is not None:
        notices.append(_notice(event, said, said.forecastThresholdExceeded, forecast=True))
    return notices


def _notice(event: Envelope, said: _Notification, threshold: float | None, *, forecast: bool) -> BudgetNotice:
    budget = str(event.attributes.get("budgetId") or said.budgetDisplayName)
    crossed = f"{threshold}" if threshold is not None else f"at {_decimal(said.costAmount)}"
    fact = (budget, f"{said.costIntervalStart:%Y-%m-%d}", crossed, "forecast" if forecast else "spent")
    notice = {
        "cluster": event.cluster,
        "budget": budget,
        "cost": _decimal(said.costAmount),
        "limit": _decimal(said.budgetAmount),
        "currency": said.currencyCode,
        "since": said.costIntervalStart,
        "threshold": threshold,
        "forecast": forecast,
        "display": said.budgetDisplayName,
        "identity": "/".join(fact),
        "at": event.at,
    }
    return convert_shape(notice, BudgetNotice, event.path)


def _decimal(amount: float) -> str:
    """A sum as it was written: the shortest text that reads back as the same number."""
    return format(Decimal(repr(amount)), "f")
