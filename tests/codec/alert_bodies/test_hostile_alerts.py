"""No string of an alert formats, mentions or links in any channel, by the rules with which each provider reads."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight.codec.alert_bodies.discord import discord
from pilotlight.codec.alert_bodies.pagerduty import pagerduty
from pilotlight.codec.alert_bodies.slack import slack
from pilotlight.codec.alert_bodies.teams import teams
from pilotlight.codec.alert_bodies.telegram import telegram
from pilotlight.codec.alert_text import inert, plain
from pilotlight.facts.messages import Alert

PIECES = (
    "*b*",
    "_i_",
    "~s~",
    "`c`",
    "```",
    "**b**",
    "__u__",
    "~~s~~",
    "||x||",
    "> q",
    ">>> q",
    "# h",
    "- l",
    "1. l",
    "+ l",
    "<!channel>",
    "<!here|here>",
    "<@U123>",
    "<#C1>",
    "<http://x.de|y>",
    "<@&9>",
    "@everyone",
    "@here",
    "<t:1:R>",
    "<:e:1>",
    ":tada:",
    ":tada::tada:",
    "[y](http://x.de)",
    "[y](<http://x.de>)",
    "![y](x)",
    "http://x.de/a",
    "https://x.de",
    "www.x.de",
    "<b>x</b>",
    "<at>Ann</at>",
    '<a href="x">y</a>',
    "&lt;!channel&gt;",
    "\\",
    "\\*",
    "</code>",
    "-# s",
    "\n",
    " ",
    "a",
    "a_b",
    "é",
    "😀",
    "\0",
    "\u200b",
    "|",
    "](",
    "/start",
    "#tag",
    "$TAG",
    "train_0",
    "12:30:45",
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)
ALERTS = st.builds(
    Alert,
    cluster=HOSTILE,
    kind=HOSTILE,
    severity=st.sampled_from(["info", "warning", "critical"]),
    fingerprint=HOSTILE,
    what=HOSTILE,
    why=HOSTILE,
    next=HOSTILE,
    how=HOSTILE,
    team=HOSTILE,
    subject=HOSTILE,
    resolved=st.booleans(),
    links=st.dictionaries(HOSTILE, HOSTILE, max_size=3),
)

URL = re.compile(r"\bhttps?://\S|\bwww\.\S", re.I)

SLACK = (
    re.compile(r"<[^>]*>"),
    *(
        re.compile(rf"(?<![0-9A-Za-z]){re.escape(m)}(?=\S)[^{re.escape(m)}\n]*(?<=\S){re.escape(m)}(?![0-9A-Za-z])")
        for m in "*_~"
    ),
    re.compile(r"`[^`]+`"),
    re.compile(r"^\s*(?:>|&gt;)", re.M),
    re.compile(r":[^\s:]+:"),
)
"""What mrkdwn makes of a text with ``verbatim``: control sequences, type, code, quotes, emoji (docs.slack.dev)."""

DISCORD = (
    re.compile(r"\*[^*]+\*"),
    re.compile(r"(?<![0-9A-Za-z])_[^_]+_(?![0-9A-Za-z])"),
    re.compile(r"~~.+?~~", re.S),
    re.compile(r"\|\|.+?\|\|", re.S),
    re.compile(r"`[^`]+`"),
    re.compile(r"^\s*(?:>|#{1,3} |-# |[-*+] |\d+\. )", re.M),
    re.compile(r"\[[^\]]*\]\([^)]*\)"),
    re.compile(r"<(?:@[!&]?|#|a?:\w+:|t:|/|id:)[^>]*>"),
    re.compile(r"@(?:everyone|here)"),
    re.compile(r":\w+:"),
    URL,
)
"""What Discord makes of a text whose escapes are taken out."""

MARKDOWN = (
    re.compile(r"\*[^*]+\*"),
    re.compile(r"(?<![0-9A-Za-z])_[^_]+_(?![0-9A-Za-z])"),
    re.compile(r"\[[^\]]*\]\([^)]*\)"),
    re.compile(r"^\s*(?:[-*+] |\d+\. |#)", re.M),
    re.compile(r"<at>"),
    URL,
)
"""What an Adaptive Card's TextBlock in Teams, and most else that reads markdown, makes of a text."""


def met(rules: tuple[re.Pattern[str], ...], text: str) -> list[str]:
    """What a reader with these rules makes of a text, besides showing it."""
    return [found[0] for rule in rules for found in rule.finditer(text)]


def unescaped(text: str) -> str:
    """A text of Discord's without what a backslash makes plain."""
    return re.sub(r"\\[^0-9A-Za-z\s]", "\0", text)


def cards(value: Any) -> Iterator[dict[str, Any]]:
    """Every element of a card."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from cards(part)
    elif isinstance(value, list):
        for part in value:
            yield from cards(part)


class Html(HTMLParser):
    """What Telegram's parser shows: ``loose`` is text outside of code, where it makes links and mentions by itself."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.loose = ""
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Only ours may come."""
        assert tag in ("b", "code", "a"), tag
        assert not self.open, f"{tag} in {self.open}"
        self.open.append(tag)
        self.hrefs += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        """Each closes what is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text."""
        if self.open != ["code"]:
            self.loose += data if self.open != ["a"] else ""


@pytest.mark.parametrize("piece", [p for p in PIECES if p[0] in "*_~`<:>" and len(p) > 2])
def test_the_parser_knows_the_markup_of_slack(piece: str) -> None:
    """What the property looks for is really found in a text that nobody made inert."""
    assert met(SLACK, piece) or piece in ("**b**", "__u__", "~~s~~", "```")


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_sets_type_mentions_or_links_in_slack(alert: Alert) -> None:
    """Only our heads are bold; text of an alert stands as it is, in blocks that are verbatim or know no markup."""
    body = slack(alert)
    assert (body["mrkdwn"], body["parse"]) == (False, "none")
    assert met(SLACK, body["text"]) == []
    for block in body["blocks"]:
        for text in filter(None, [block.get("text"), *block.get("fields", ())]):
            if text["type"] == "mrkdwn":
                head, _, rest = text["text"].partition("\n")
                assert re.fullmatch(r"\*(where|cost|why|next)\*", head)
                assert (met(SLACK, rest), text["verbatim"]) == ([], True)
            else:
                assert text["emoji"] is False
        if block["type"] == "context":
            assert met(SLACK, block["elements"][0]["text"]) == []
        for element in cards(block) if block["type"] == "rich_text" else ():
            assert element.get("type") in ("rich_text", "rich_text_section", "text", "link", None)


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_sets_type_mentions_or_links_in_discord(alert: Alert) -> None:
    """Every sign is escaped, nobody can be mentioned, and an embed stays within 6,000 characters."""
    body = discord(alert)
    (embed,) = body["embeds"]
    assert body["allowed_mentions"] == {"parse": []}
    assert "content" not in body
    fields = [field["value"] for field in embed["fields"] if field["name"] != "look"]
    for text in (embed["title"], embed["description"], *fields):
        assert met(DISCORD, unescaped(text)) == []
    assert all(1 <= len(field["value"]) <= 1024 for field in embed["fields"])
    size = len(embed["title"]) + len(embed["description"]) + len(embed["footer"]["text"])
    assert size + sum(len(field["name"] + field["value"]) for field in embed["fields"]) <= 6000


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_sets_type_mentions_or_links_in_teams(alert: Alert) -> None:
    """What an alert says stands in TextRuns alone, without an address; no card names anybody to mention."""
    body = teams(alert)
    card = body["attachments"][0]["content"]
    for element in cards(card["body"]):
        assert element.get("type") in ("RichTextBlock", "TextRun")
        if element["type"] == "TextRun":
            assert not URL.search(element["text"])
    assert "entities" not in card["msteams"]
    assert all(action["type"] == "Action.OpenUrl" for action in card["actions"])
    assert len(msgspec.json.encode(body)) <= 28 * 1024


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_sets_type_mentions_or_links_in_telegram(alert: Alert) -> None:
    """All of it stands in code; outside are our own words."""
    page = Html()
    page.feed(telegram(alert))
    page.close()
    assert page.open == []
    assert not re.sub(r"INFO|WARNING|CRITICAL|RESOLVED|where|cost|why|next|how|[:\s]", "", page.loose)


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_links_in_pagerduty(alert: Alert) -> None:
    """It is plain text; and no text has an address of which a page or a mail could make a link."""
    body = pagerduty(alert, "k")
    assert 1 <= len(body["dedup_key"]) <= 255
    if alert.resolved:
        assert body["event_action"] == "resolve"
        return
    texts = [v for v in body["payload"].values() if isinstance(v, str)]
    assert not any(URL.search(text) for text in [*texts, *body["payload"]["custom_details"].values()])
    assert 1 <= len(body["payload"]["summary"]) <= 1024


@settings(max_examples=40)
@given(ALERTS)
def test_nothing_is_left_to_read_where_nobody_knows_who_reads(alert: Alert) -> None:
    """What goes through Apprise means nothing to Slack's, Discord's, nor anybody's markdown, nor to HTML."""
    for text in map(inert, plain(alert)):
        assert met(SLACK + DISCORD + MARKDOWN, text) == []
        assert not re.search(r"[<>@\\]", text)


@given(st.dictionaries(HOSTILE, HOSTILE | HOSTILE.map(lambda text: f"https://x.de/{text}"), max_size=4))
def test_a_link_is_a_web_address_and_no_more(found: dict[str, str]) -> None:
    """What is given as a link ends where it should in each markup, and is of http or https."""
    alert = Alert(cluster="c", kind="k", severity="info", fingerprint="f", what="w", why="y", links=found)
    page = Html()
    page.feed(telegram(alert))
    hrefs = [*page.hrefs, *(a["url"] for a in teams(alert)["attachments"][0]["content"]["actions"])]
    for url in hrefs:
        assert re.fullmatch(r"https?://[^\s<>\"'|()\[\]\\`]+", url)
    assert len(page.hrefs) <= 5
