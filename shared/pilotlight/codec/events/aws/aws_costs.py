"""AWS's own notices about money: AWS Budgets, which writes to people, and Cost Anomaly Detection, in JSON.

Both come by SNS, an anomaly by EventBridge too. Of a budget's notice the lines of its list are read ("Budgeted Amount:
$2.00"), as AWS Budgets sends them to SNS; of an anomaly the fields of "Creating an Amazon SNS topic for anomaly
notifications" in AWS's guide. Both are hours late, so neither caps anything.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape, join
from pilotlight.errors import BadEvent
from pilotlight.facts.messages import BudgetNotice, Moment, Name

_DATED = re.compile(r"AWS Budget Notification (\w+) (\d{1,2}), (\d{4})")
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_ACCOUNT = re.compile(r"^AWS Account (\d{12})", re.MULTILINE)
_LINE = re.compile(r"^([A-Z][A-Za-z ]{3,30}): (.{1,300})$", re.MULTILINE)
_AMOUNT = re.compile(r"([$¥€£]?) ?(\d[\d,]{0,20}(?:\.\d{1,12})?) ?([A-Za-z%][\w %-]{0,20})?")
_SIGNS = {"$": "USD", "¥": "CNY", "€": "EUR", "£": "GBP"}
_MOST_CAUSES = 3


class _Amount(NamedTuple):
    number: Decimal
    unit: str


def read_budget(event: Envelope) -> BudgetNotice | Ignored:
    """A budget that crossed a threshold, by what is spent or by what is forecast."""
    words: str = event.data["awsBudget"]
    lines = {key: value.strip() for key, value in _LINE.findall(words)}
    name, kind = _line(event, lines, "Budget Name"), _line(event, lines, "Alert Type")
    if kind not in ("ACTUAL", "FORECASTED"):
        raise BadEvent(f"Expected ACTUAL or FORECASTED, not {kind!r:.40}", join(event.path, "Alert Type"))
    crossed = _line(event, lines, "Alert Threshold")
    if crossed.startswith("<"):
        return Ignored(reason=f"the AWS budget {name:.80} tells of too little use, not of money spent")
    limit = _amount(event, lines, "Budgeted Amount")
    if limit.number <= 0:
        raise BadEvent("a budget of nothing", join(event.path, "Budgeted Amount"))
    cost = _amount(event, lines, f"{kind} Amount")
    at = _amount(event, {"Alert Threshold": crossed.lstrip(">= ")}, "Alert Threshold")
    share = at.number / 100 if at.unit == "%" and limit.unit != "%" else at.number / limit.number
    since, account = _since(event, words), _ACCOUNT.search(words)
    budget = f"{account[1]}/{name}" if account else name
    notice = {
        "cluster": event.cluster,
        "budget": budget,
        "cost": str(cost.number),
        "limit": str(limit.number),
        "currency": limit.unit,
        "since": since,
        "threshold": float(round(share, 6)),
        "forecast": kind == "FORECASTED",
        "display": name,
        "identity": f"{budget}/{since:%Y-%m-%d}/{round(share, 6)}/{kind.lower()}",
        "at": event.at,
    }
    return convert_shape(notice, BudgetNotice, event.path)


class _Impact(msgspec.Struct, frozen=True, kw_only=True):
    totalImpact: float
    totalActualSpend: float | None = None
    totalExpectedSpend: float | None = None


class _Cause(msgspec.Struct, frozen=True, kw_only=True):
    service: str = ""
    region: str = ""
    usageType: str = ""
    linkedAccount: str = ""


class _Anomaly(msgspec.Struct, frozen=True, kw_only=True):
    anomalyId: Name
    anomalyStartDate: Moment
    impact: _Impact
    accountId: str = ""
    dimensionalValue: str = ""
    monitorName: str = ""
    anomalyDetailsLink: str = ""
    rootCauses: list[_Cause] = []


def read_anomaly(event: Envelope) -> BudgetNotice:
    """Spend that AWS calls unusual: ``limit`` is what was expected. AWS tells of one again as it grows."""
    said = convert_shape(event.data, _Anomaly, event.path)
    actual, expected = said.impact.totalActualSpend, said.impact.totalExpectedSpend
    known = actual is not None and expected is not None
    causes = ["/".join(filter(None, (c.service, c.region, c.usageType, c.linkedAccount))) for c in said.rootCauses]
    notice = {
        "cluster": event.cluster,
        "budget": said.anomalyId,
        "cost": _decimal(actual if known and actual is not None else said.impact.totalImpact),
        "limit": _decimal(expected if known and expected is not None else 0.0),
        "currency": "USD",
        "since": said.anomalyStartDate,
        "anomaly": "; ".join(filter(None, causes[:_MOST_CAUSES])) or "no cause that AWS names",
        "display": said.dimensionalValue or said.monitorName,
        "link": said.anomalyDetailsLink,
        "identity": f"{said.anomalyId}/{_decimal(said.impact.totalImpact)}",
        "at": event.at,
    }
    return convert_shape(notice, BudgetNotice, event.path)


def _line(event: Envelope, lines: dict[str, str], name: str) -> str:
    if not lines.get(name):
        raise BadEvent(f"AWS Budgets' notice has no line {name!r}", join(event.path, name))
    return lines[name]


def _amount(event: Envelope, lines: dict[str, str], name: str) -> _Amount:
    text = _line(event, lines, name)
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise BadEvent(f"Expected an amount, not {text!r:.40}", join(event.path, name))
    return _Amount(Decimal(found[2].replace(",", "")), _SIGNS.get(found[1], "") or (found[3] or "").strip())


def _since(event: Envelope, words: str) -> datetime:
    """When the budget's period began, by the notice's date and the period that it names."""
    dated = _DATED.match(words)
    if dated and dated[1] in _MONTHS:
        try:
            day = datetime(int(dated[3]), _MONTHS.index(dated[1]) + 1, int(dated[2]), tzinfo=UTC)
        except ValueError:
            raise BadEvent(f"no calendar has {dated[1]} {dated[2]}, {dated[3]}", event.path) from None
    elif event.at is not None:
        day = event.at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    else:
        raise BadEvent("AWS Budgets' notice has no date", event.path)
    if "per day" in words:
        return day - timedelta(days=1)  # It tells of yesterday.
    if "quarter" in words:
        return day.replace(month=day.month - (day.month - 1) % 3, day=1)
    return day.replace(month=1, day=1) if "current year" in words else day.replace(day=1)


def _decimal(amount: float) -> str:
    """A sum as it was written."""
    return format(Decimal(repr(amount)), "f")
