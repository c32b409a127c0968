"""Alerts as text, as Slack's blocks and as Telegram's HTML: within their limits, and nothing of an alert is markup."""

import html
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.alert_bodies.slack import slack
from pilotlight.codec.alert_bodies.telegram import telegram
from pilotlight.codec.alert_text import plain
from pilotlight.facts.messages import Alert

ALERT = Alert(
    cluster="prod",
    kind="budget",
    severity="critical",
    fingerprint="budget/nlp",
    what="budget nlp is spent",
    why="$400.00 of $400.00",
    next="no more nodes today",
    how="pilotlight budget",
    usd_per_hour="12.2400",
    usd="400",
    team="nlp",
    subject="pool a100",
)
TEXT = st.text(st.characters() | st.sampled_from("<>&*_`[]()~\\\"'😀\0"), max_size=6000)
ALERTS = st.builds(
    Alert,
    cluster=TEXT,
    kind=TEXT,
    severity=st.sampled_from(["info", "warning", "critical"]),
    fingerprint=TEXT,
    what=TEXT,
    why=TEXT,
    next=TEXT,
    how=TEXT,
    team=TEXT,
    subject=TEXT,
    usd=st.sampled_from(["", "1.5", "NaN", "1e400", "nonsense", "-3"]),
)


def test_an_alert_says_what_where_dollars_why_next_and_how() -> None:
    """Every part is there, dollars an hour and in all as people write them."""
    title, text = plain(ALERT)
    assert title == "CRITICAL: budget nlp is spent"
    assert text.splitlines() == [
        "where: cluster prod, team nlp, pool a100",
        "cost: $12.24 an hour, $400.00 in all",
        "why: $400.00 of $400.00",
        "next: no more nodes today",
        "how: pilotlight budget",
    ]


def test_what_is_over_says_so() -> None:
    """A resolved alert has that for its severity."""
    assert plain(msgspec.structs.replace(ALERT, resolved=True))[0] == "RESOLVED: budget nlp is spent"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [("0.526", "$0.526"), ("0.0124189721", "$0.0124"), ("1234.5", "$1,234.50"), ("12.3456", "$12.35")],
)
def test_dollars_keep_the_digits_that_matter(amount: str, shown: str) -> None:
    """A small price keeps its digits; the rest is to the cent."""
    assert f"cost: {shown} an hour" in plain(msgspec.structs.replace(ALERT, usd_per_hour=amount, usd=""))[1]


def test_slack_markup_of_an_alert_is_text() -> None:
    """A mention and a link in an alert mention and link nobody."""
    body = slack(msgspec.structs.replace(ALERT, why="<!channel> & <http://x|y>"))
    said = body["blocks"][2]["text"]["text"]
    assert said == "*why*\n&lt;!channel&gt; &amp; &lt;http://x|y&gt;"


@given(ALERTS)
def test_slack_blocks_stay_within_limits(alert: Alert) -> None:
    """Whatever an alert holds: header, sections, fields and blocks are within Slack's limits, and none is empty."""
    body = slack(alert)
    assert len(body["blocks"]) <= 50
    assert len(body["text"]) <= 3000
    for block in body["blocks"]:
        if block["type"] == "header":
            assert 1 <= len(block["text"]["text"]) <= 150
        if block["type"] == "rich_text":
            assert all(1 <= len(part["text"]) <= 3000 for part in block["elements"][0]["elements"])
            continue
        texts = [block.get("text"), *block.get("fields", ()), *block.get("elements", ())]
        assert len(block.get("fields", ())) <= 10
        for text in filter(None, texts):
            assert 1 <= len(text["text"]) <= (3000 if text is block.get("text") else 2000)
            assert not re.search(r"&(?!(amp|lt|gt);)|[<>]", text["text"]) or text["type"] == "plain_text"
    assert msgspec.json.encode(body)


@given(ALERTS)
def test_telegram_text_stays_within_limits_and_is_well_formed(alert: Alert) -> None:
    """Whatever an alert holds: after entities are read at most 4,096 UTF-16 units, and only our tags are tags."""
    text = telegram(alert)
    bare = re.sub(r"</?(?:b|code)>", "", text)
    assert "<" not in bare
    assert ">" not in bare
    assert not re.search(r"&(?!(amp|lt|gt);)", bare)
    assert 1 <= len(html.unescape(bare).encode("utf-16-le")) // 2 <= 4096
    assert text.count("<b>") == text.count("</b>")
