"""What AWS says of money by itself, from the body that its topic sends to the alert that people get."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.doorway import Response
from pilotlight.facts.messages import Alert
from pilotlight.settings import Settings
from pilotlight.wiring import App
from pilotlight.world.world_clock import VirtualClock

SAMPLES = Path(__file__).resolve().parents[2] / "events" / "samples" / "aws"
BUDGET = json.loads((SAMPLES / "sns_budget.json").read_bytes())
ANOMALY = json.loads((SAMPLES / "sns_cost_anomaly.json").read_bytes())


class Bills:
    """billing_tick, and what it sends out."""

    def __init__(self, clock: VirtualClock) -> None:
        self._outbox = MemoryOutbox()
        self._app = App(Settings(), state=MemoryState(clock), outbox=self._outbox, clock=clock)

    def hear(self, body: object) -> Response:
        """A body comes in."""
        return self._app.receive("billing_tick", json.dumps(body).encode(), {})

    @property
    def alerts(self) -> list[Alert]:
        """What is on its way to people."""
        return [msgspec.json.decode(m.data, type=Alert) for m in self._outbox.sent if m.topic == "alerts"]

    @property
    def letters(self) -> list[dict[str, Any]]:
        """The dead letters."""
        return [json.loads(bytes(m.data)) for m in self._outbox.sent if m.topic == "dead-letter"]


@pytest.fixture
def bills(clock: VirtualClock) -> Bills:
    """A deployment that has heard nothing yet."""
    return Bills(clock)


def budget(**lines: str) -> dict[str, Any]:
    """AWS Budgets' notice with other lines in its list; an empty one is left out."""
    words = BUDGET["Message"]
    for key, value in lines.items():
        name = key.replace("_", " ")
        old = next(line for line in words.splitlines() if line.startswith(f"{name}: "))
        words = words.replace(old + "\n", f"{name}: {value}\n" if value else "")
    return {**BUDGET, "Message": words}


def anomaly(**fields: Any) -> dict[str, Any]:
    """Cost Anomaly Detection's notice with other fields."""
    return {**ANOMALY, "Message": json.dumps({**json.loads(ANOMALY["Message"]), **fields})}


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda notice: notice, id="as SNS posts it"),
        pytest.param(lambda notice: {"Records": [{"EventSource": "aws:sns", "Sns": notice}]}, id="to a Lambda"),
        pytest.param(
            lambda notice: {"Records": [{"eventSource": "aws:sqs", "messageId": "1", "body": json.dumps(notice)}]},
            id="through a queue",
        ),
        pytest.param(
            lambda notice: {"Records": [{"eventSource": "aws:sqs", "messageId": "1", "body": notice["Message"]}]},
            id="through a queue, raw",
        ),
    ],
)
def test_a_budget_and_an_anomaly_are_told_once_however_they_come(bills: Bills, wrap: Any) -> None:
    """AWS sends at least once: the second and third time nobody is told. Nothing is stopped, nothing refused."""
    answers = [bills.hear(wrap(notice)) for notice in (BUDGET, ANOMALY) * 3]
    assert {answer.status for answer in answers} == {200}
    assert bills.letters == []
    assert [(a.kind, a.severity, a.what, a.why, a.usd) for a in bills.alerts] == [
        (
            "cloud-budget",
            "warning",
            "the cloud's budget gpu-monthly has passed 80 %",
            "4123.07 of 5000.00 USD since 2026-11-01, as the cloud says hours later",
            "4123.07",
        ),
        (
            "cloud-anomaly",
            "warning",
            "the cloud finds spend of Amazon Elastic Compute Cloud - Compute unusual: 1001.25 USD more than expected",
            "1301.25 USD where 300.0 was expected, since 2026-11-18: "
            "Amazon Elastic Compute Cloud - Compute/eu-west-1/EU-BoxUsage:g5.12xlarge/210987654321",
            "1001.25",
        ),
    ]
    assert list(bills.alerts[1].links) == ["the cloud's page"]


def test_an_anomaly_comes_by_eventbridge_too(bills: Bills) -> None:
    """It is the same one: who has heard of it by SNS is not told again."""
    bills.hear(ANOMALY)
    answer = bills.hear(json.loads((SAMPLES / "cost_anomaly.json").read_bytes()))
    assert (answer.body["why"], len(bills.alerts)) == ("people were told of it already", 1)


def test_an_anomaly_is_news_once_it_has_doubled(bills: Bills) -> None:
    """AWS tells of one every day that it goes on; people hear of it when it is another size."""
    for more in (1001.25, 1010, 1020, 2100):
        bills.hear(anomaly(impact={"totalActualSpend": 300 + more, "totalExpectedSpend": 300, "totalImpact": more}))
    assert [a.usd for a in bills.alerts] == ["1001.25", "2100.0"]


@pytest.mark.parametrize(
    ("notice", "what", "since"),
    [
        pytest.param(budget(Alert_Threshold="> 80%"), "has passed 80 %", "2026-11-01", id="a threshold in per cent"),
        pytest.param(budget(Alert_Threshold="> $6,000.00"), "has passed 120 %", "2026-11-01", id="more than all of it"),
        pytest.param(
            {**BUDGET, "Message": BUDGET["Message"].replace("for the current month", "per day")},
            "has passed 80 %",
            "2026-11-19",
            id="a budget of a day tells of yesterday",
        ),
        pytest.param(
            {**BUDGET, "Message": BUDGET["Message"].replace("current month", "current quarter")},
            "has passed 80 %",
            "2026-10-01",
            id="a budget of a quarter",
        ),
        pytest.param(
            {**BUDGET, "Message": BUDGET["Message"].replace("ACTUAL", "FORECASTED")},
            "is forecast to pass 80 %",
            "2026-11-01",
            id="a forecast",
        ),
    ],
)
def test_a_budget_says_its_threshold_and_its_period(bills: Bills, notice: object, what: str, since: str) -> None:
    """By its share, whether it is written as an amount or in per cent."""
    bills.hear(notice)
    (alert,) = bills.alerts
    assert (alert.what, since in alert.why) == (f"the cloud's budget gpu-monthly {what}", True)


@pytest.mark.parametrize(
    ("notice", "path"),
    [
        pytest.param(budget(Budget_Name=""), "Message.Budget Name", id="a budget without a name"),
        pytest.param(budget(Budgeted_Amount="lots"), "Message.Budgeted Amount", id="an amount that is none"),
        pytest.param(budget(Budgeted_Amount="$0.00"), "Message.Budgeted Amount", id="a budget of nothing"),
        pytest.param(budget(ACTUAL_Amount=""), "Message.ACTUAL Amount", id="a budget without its amount"),
        pytest.param(budget(Alert_Type="PERHAPS"), "Message.Alert Type", id="an alert of no known type"),
        pytest.param(
            {**BUDGET, "Message": BUDGET["Message"].replace("November 20", "November 31")}, "Message", id="no such day"
        ),
        pytest.param(anomaly(anomalyId=""), "Message.anomalyId", id="an anomaly without an id"),
        pytest.param(anomaly(impact={}), "Message.impact", id="an anomaly of unknown impact"),
        pytest.param(anomaly(anomalyStartDate="soon"), "Message.anomalyStartDate", id="an anomaly that has no time"),
        pytest.param(anomaly(rootCauses=[{"service": 7}]), "Message.rootCauses[0].service", id="a cause of no shape"),
    ],
)
def test_one_that_cannot_be_read_is_kept_with_the_path(bills: Bills, notice: object, path: str) -> None:
    """It is a dead letter, and answered so that AWS does not send it for ever."""
    answer = bills.hear(notice)
    assert (answer.status, [letter["path"] for letter in bills.letters]) == (200, [path])
    assert "rejected" in answer.body
    assert bills.alerts == []


def test_a_budget_of_too_little_use_is_no_matter_of_money(bills: Bills) -> None:
    """Budgets of reservations' use warn below a threshold: they are ignored, and not lost as letters."""
    assert "ignored" in bills.hear(budget(Budget_Type="RI Utilization", Alert_Threshold="< 80%")).body
    assert (bills.alerts, bills.letters) == ([], [])
