"""Adapters of the AlertChannel port: the places where people read alerts.

One file a provider, imported when a policy names it. A channel shows an alert in one attempt and says whether it may
be tried again; no error names its secret. The delivery of alerts calls it.
"""

from collections.abc import Callable
from typing import TypedDict

from pilotlight.facts.alerts.channel_policy import Channel as Rules
from pilotlight.ports.delivery import AlertChannel
from pilotlight.ports.state import Clock, State
from pilotlight.units import Seconds

POST_S: Seconds = 10.0
"""Seconds that a post may take."""


class _Limits(TypedDict):
    """Limits of every channel that is reached over the network."""

    timeout_s: Seconds
    allow_private: bool


def channel_of(rules: Rules, secret: Callable[[str], str], clock: Clock, state: State) -> AlertChannel:
    """The channel that a policy's rules describe. ``secret`` reads what they name. Raises ``BadInput``."""
    limits = _Limits(timeout_s=POST_S, allow_private=rules.allow_private)

    def server(public: str) -> str:
        return secret(rules.url_env) if rules.url_env else public

    match rules.kind:
        case "webhook":
            from pilotlight.adapters.channels.webhook import WebhookChannel

            signed = secret(rules.secret_env) if rules.secret_env else ""
            return WebhookChannel(secret(rules.url_env), clock, signed, **limits)
        case "slack" if rules.token_env:
            from pilotlight.adapters.channels.slack_channel import PUBLIC, SlackBot

            return SlackBot(secret(rules.token_env), rules.chat, clock, server=server(PUBLIC), **limits)
        case "slack":
            from pilotlight.adapters.channels.slack_channel import SlackChannel

            return SlackChannel(secret(rules.url_env), clock, **limits)
        case "teams":
            from pilotlight.adapters.channels.teams_channel import TeamsChannel

            return TeamsChannel(secret(rules.url_env), clock, **limits)
        case "discord":
            from pilotlight.adapters.channels.discord_channel import DiscordChannel

            return DiscordChannel(secret(rules.url_env), clock, **limits)
        case "pagerduty":
            from pilotlight.adapters.channels.pagerduty_channel import PUBLIC, PagerDutyChannel

            return PagerDutyChannel(secret(rules.token_env), clock, server=server(PUBLIC), **limits)
        case "telegram":
            from pilotlight.adapters.channels.telegram_channel import PUBLIC, TelegramChannel

            return TelegramChannel(secret(rules.token_env), rules.chat, clock, state, server=server(PUBLIC), **limits)
        case "apprise":
            from pilotlight.adapters.channels.apprise import AppriseChannel

            return AppriseChannel(secret(rules.url_env), allow_private=rules.allow_private)
        case "console":
            from pilotlight.adapters.channels.console import ConsoleChannel

            return ConsoleChannel()
