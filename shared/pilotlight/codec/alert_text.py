"""Alerts as people read them: what, where, dollars, why, what happens next, how to act. Pure.

``alert_bodies`` makes of it what each provider takes. For receivers without an escape, signs with a meaning become
their likes.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from pilotlight.facts.messages import Alert
from pilotlight.units import cents, round_usd

_MOST_DOLLARS = Decimal(10) ** 15
"""No bill is larger: such an amount is nonsense, and left out."""


MOST_LINKS, MOST_URL = 5, 1000


class AlertParts(NamedTuple):
    """The parts of an alert; those that are empty are left out."""

    title: str
    where: str
    cost: str
    why: str
    next: str
    how: str


def alert_parts(alert: Alert) -> AlertParts:
    """AlertParts of an alert."""
    where = [f"cluster {alert.cluster}"]
    where += [f"team {alert.team}"] if alert.team else []
    where += [alert.subject] if alert.subject else []
    return AlertParts(
        title=f"{'RESOLVED' if alert.resolved else alert.severity.upper()}: {clean(alert.what)}",
        where=clean(", ".join(where)),
        cost=_cost(alert),
        why=clean(alert.why),
        next=clean(alert.next),
        how=clean(alert.how),
    )


def plain(alert: Alert) -> tuple[str, str]:
    """Title and text, for a channel that knows no markup."""
    said = alert_parts(alert)
    lines = [f"{name}: {text}" for name, text in named_parts(said) if text]
    return said.title, "\n".join(lines)


def links(alert: Alert) -> list[tuple[str, str]]:
    """Where to look further, by name: only web addresses, with nothing in them that could end one."""
    found = ((clean(name)[:40], quote(url, safe="/:?&=%#+,;@~.-_")) for name, url in alert.links.items())
    return [(name, url) for name, url in found if name and len(url) <= MOST_URL and _is_web(url)][:MOST_LINKS]


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def clean(text: str) -> str:
    """Text without what no terminal or chat should be sent: control characters, lone surrogates."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()


def named_parts(said: AlertParts) -> list[tuple[str, str]]:
    """Every part but the title, with its name."""
    names = ("where", "cost", "why", "next", "how")
    return [(name, getattr(said, name)) for name in names]


def _cost(alert: Alert) -> str:
    rate, whole = _dollars(alert.usd_per_hour), _dollars(alert.usd)
    return ", ".join([f"{rate} an hour"] * bool(rate) + [f"{whole} in all"] * bool(whole))


def _dollars(amount: str) -> str:
    """An amount to the cent; a smaller price with the digits it has, four at most."""
    try:
        usd = Decimal(amount)
    except InvalidOperation:
        return ""
    if not usd.is_finite() or abs(usd) > _MOST_DOLLARS:
        return ""
    if abs(usd) < 10:
        usd = round_usd(usd, Decimal("0.0001"))
    return cents(usd) if usd == round_usd(usd) or abs(usd) >= 10 else f"${usd.normalize():f}"


def cut(text: str, limit: int, escaped: Callable[[str], str], size: Callable[[str], int] | None = None) -> str:
    """Text escaped, cut where it would pass the limit, never within an escape. ``size`` is of one raw character."""
    size = size or (lambda c: len(escaped(c)))
    sizes = [size(c) for c in text]
    if sum(sizes) <= limit:
        return escaped(text)
    room, kept = limit - 1, 0
    while kept < len(sizes) and sizes[kept] <= room:
        room -= sizes[kept]
        kept += 1
    return escaped(text[:kept]) + "…"


_SIGNS = str.maketrans({"*": "∗", "`": "ˋ", "~": "∼"})
_MORE_SIGNS = str.maketrans(
    {"<": "‹", ">": "›", "@": "＠", "#": "＃", "[": "［", "]": "］", "|": "¦", "\\": "＼", "!": "ǃ"}
)
_UNDERSCORE = re.compile(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
_EMOJI = re.compile(r":(?=\S*:)")
_QUOTE = re.compile(r"^(\s*)>", re.M)
_LIST = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s)", re.M)
_SCHEME = re.compile(r":(?=//)")
_WWW = re.compile(r"\b(www)\.", re.I)


def strip_formatting(text: str) -> str:
    """Without signs that set type in Slack's markup, of the same length. An underscore within a name stays."""
    text = _UNDERSCORE.sub("＿", text.translate(_SIGNS))
    return _QUOTE.sub(r"\1›", _EMOJI.sub("꞉", text))


def strip_links(text: str) -> str:
    """Without addresses that a reader's program would make links of, of the same length."""
    return _WWW.sub(r"\1․", _SCHEME.sub("꞉", text))


def inert(text: str) -> str:
    """Without what any of the markups that are around gives a meaning: for receivers of which nothing is known."""
    text = strip_links(strip_formatting(text)).translate(_MORE_SIGNS)
    return _LIST.sub(lambda found: found[1] + found[2].translate({45: "‐", 43: "＋", 46: "․", 41: "）"}), text)
