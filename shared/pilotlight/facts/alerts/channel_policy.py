"""Alert channels in the policy file: where alerts go, when a channel is quiet, and to whom an alert goes on."""

from typing import Literal

import msgspec

from pilotlight.facts.limits.policy_terms import Duration
from pilotlight.facts.limits.rule_policy import RuleTime

Severity = Literal["info", "warning", "critical"]


class Channel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One place alerts go to. ``*_env`` name the environment variables that hold its secrets.

    ``webhook``, ``slack``, ``teams``, ``discord`` and ``apprise`` have their URL in ``url_env``; ``secret_env`` signs a
    web hook's posts. ``telegram``, and ``slack`` by a bot, have the bot's token in ``token_env`` and the ``chat``;
    ``pagerduty`` has its routing key in ``token_env``. With a token ``url_env`` names another server.
    ``teams`` and ``kinds`` are those it wants (``capacity-*`` is every kind that begins so); empty means all. What
    nobody has acknowledged after ``escalate_after`` goes on to the channel ``escalate_to``, from warnings on; what
    cannot be told goes to ``fallback``. With ``direct`` false a channel gets nothing but that.
    ``again_after`` is how long one fingerprint is not told again. ``allow_private`` lets the URL lead to loopback,
    link-local and private addresses.
    """

    # The service that it is at.
    kind: Literal["console", "webhook", "slack", "telegram", "pagerduty", "teams", "discord", "apprise"]
    url_env: str = ""  # Variable with its URL.
    secret_env: str = ""  # Variable with the secret that signs posts.
    token_env: str = ""  # Variable with its token or routing key.
    chat: str = ""  # The chat's id or name, where a bot posts.
    min_severity: Severity = "info"  # Least severity that is told here.
    teams: tuple[str, ...] = ()  # Teams that it wants; empty: all.
    kinds: tuple[str, ...] = ()  # Kinds that it wants; empty: all.
    quiet_hours: RuleTime | None = None  # Hours in which what is less than critical waits.
    again_after: Duration = 6 * 3600  # Seconds in which a fingerprint is not told again.
    escalate_to: str = ""  # Channel for what nobody acknowledged.
    escalate_after: Duration = 600  # Seconds until then.
    fallback: str = ""  # Channel for what cannot be told here.
    direct: bool = True  # False: it gets only what other channels hand on.
    allow_private: bool = False  # The URL may lead to private addresses.


class Alerts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Channels by name. More than ``group_after`` alerts of one kind within a minute are told as one, with
    their count, when the window ends; 0 tells each. ``page`` is the address of the home's page, which alerts link."""

    channels: dict[str, Channel] = {}  # By the names that the policy gives them.
    page: str = ""  # Address of the home's page, which alerts link.
    group_after: int = 10  # Alerts of one kind within a minute that are told one by one.
