"""Rules over the alerts of a policy whose every value is well-formed."""

import re
from collections.abc import Iterator

from pilotlight.facts.alerts.channel_policy import Alerts, Channel
from pilotlight.facts.limits.rule_policy import RuleTime

Problem = tuple[str, str]

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"
_NEEDS = {
    "webhook": {"url_env": "the variable that holds the URL"},
    "slack": {"url_env": "the variable that holds the incoming web hook's URL"},
    "teams": {"url_env": "the variable that holds the workflow's web hook URL"},
    "discord": {"url_env": "the variable that holds the web hook's URL"},
    "pagerduty": {"token_env": "the variable that holds the integration's routing key"},
    "apprise": {"url_env": "the variable that holds the Apprise URL"},
    "telegram": {"token_env": "the variable that holds the bot's token", "chat": "the chat's id or @name"},
}
_BOT = {"token_env": "the variable that holds the bot's token", "chat": "the channel's id"}
"""What Slack needs in place of a web hook's URL."""
_TAKES = {
    "secret_env": ("webhook",),
    "token_env": ("telegram", "slack", "pagerduty"),
    "chat": ("telegram", "slack"),
}


def alert_problems(alerts: Alerts) -> Iterator[Problem]:
    """Every contradiction, as path and reason."""
    for name, channel in alerts.channels.items():
        yield from _channel(f"alerts.channels.{name}", name, channel)
        yield from _others(f"alerts.channels.{name}", name, channel, alerts)
    if alerts.page and not alerts.page.startswith(("https://", "http://")):
        yield "alerts.page", f"{alerts.page!r} is no web address: write one as https://pilotlight.example.com"
    if alerts.group_after < 0:
        yield "alerts.group_after", "must be 0 or more"


def _channel(path: str, name: str, channel: Channel) -> Iterator[Problem]:
    if not re.fullmatch(_NAME, name):
        yield path, f"{name!r} is no name: write letters, digits, dots, dashes or underscores"
    bot = channel.kind == "slack" and (channel.token_env or channel.chat)
    for key, what in (_BOT if bot else _NEEDS.get(channel.kind, {})).items():
        if not getattr(channel, key):
            yield f"{path}.{key}", f"is missing: name {what}"
    for key, kinds in _TAKES.items():
        if getattr(channel, key) and channel.kind not in kinds:
            yield f"{path}.{key}", f"means nothing to a {channel.kind}: leave it out"
    if channel.quiet_hours is not None:
        yield from _quiet(f"{path}.quiet_hours", channel.quiet_hours)


def _others(path: str, name: str, channel: Channel, alerts: Alerts) -> Iterator[Problem]:
    for key in ("escalate_to", "fallback"):
        other = getattr(channel, key)
        if other and (other == name or other not in alerts.channels):
            known = ", ".join(sorted(alerts.channels.keys() - {name})) or "no other"
            yield f"{path}.{key}", f"{other!r} is no other channel: there are {known}"
    if channel.escalate_after <= 0:
        yield f"{path}.escalate_after", "must be more than 0"


def _quiet(path: str, quiet: RuleTime) -> Iterator[Problem]:
    yield from window_problems(path, quiet)
    if quiet.start == quiet.end:
        yield f"{path}.end", "equals start: the window would be empty"


def window_problems(path: str, window: RuleTime) -> Iterator[Problem]:
    """What is wrong with a window of the week."""
    if not known_zone(window.timezone):
        yield f"{path}.timezone", f"{window.timezone!r} is no IANA time zone; write one as America/New_York"
    for key in ("start", "end"):
        clock = getattr(window, key)
        if not re.fullmatch(_CLOCK, clock):
            yield f"{path}.{key}", f"{clock!r} is no time of day: write HH:MM, as 22:00"
    if not window.days:
        yield f"{path}.days", "is empty: name at least one"


def known_zone(name: str) -> bool:
    """True where a name is one of the IANA time zones."""
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
