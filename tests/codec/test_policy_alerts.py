"""The alerts of a policy file: what is written, and what is refused by path."""

import pytest

from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadPolicy

WHOLE = """
version: 1
alerts:
  group_after: 20
  channels:
    screen: {kind: console}
    ops: {kind: slack, url_env: OPS, min_severity: warning, kinds: ["finding-*"], teams: [nlp]}
    phones:
      kind: telegram
      token_env: BOT
      chat: "-1001"
      quiet_hours: {timezone: America/New_York, days: [sat, sun], start: "22:00", end: "07:00"}
    hook: {kind: webhook, url_env: HOOK, secret_env: SIGN, allow_private: true, again_after: 1d}
    mail: {kind: apprise, url_env: MAIL}
"""


def test_a_whole_policy_of_alerts_is_read() -> None:
    """Every key has its value, durations in seconds."""
    alerts = read_policy(WHOLE, "p").alerts
    assert alerts.group_after == 20
    assert alerts.channels["hook"].again_after == 86_400
    quiet = alerts.channels["phones"].quiet_hours
    assert quiet is not None
    assert quiet.days == ("sat", "sun")


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        ("a: {kind: slack}", "channels.a.url_env: is missing"),
        ("a: {kind: telegram, token_env: T}", "channels.a.chat: is missing"),
        ("a: {kind: telegram, chat: c}", "channels.a.token_env: is missing"),
        ("a: {kind: apprise}", "channels.a.url_env: is missing"),
        ("a: {kind: console, secret_env: S}", "channels.a.secret_env: means nothing to a console"),
        ("a/b: {kind: console}", "channels.a/b: 'a/b' is no name"),
        ("a: {kind: pager}", "channels.a.kind: 'pager' is not one of"),
        ("a: {kind: console, quiet_hours: {start: '9', end: '10:00'}}", "channels.a.quiet_hours.start: '9' is no time"),
        ("a: {kind: console, quiet_hours: {start: '09:00', end: '09:00'}}", "channels.a.quiet_hours.end: equals start"),
        (
            "a: {kind: console, quiet_hours: {timezone: Mars, start: '09:00', end: '10:00'}}",
            "channels.a.quiet_hours.timezone: 'Mars' is no IANA time zone",
        ),
    ],
)
def test_what_is_wrong_with_a_channel_is_told_by_path(channel: str, told: str) -> None:
    """Each contradiction is one line with its path."""
    with pytest.raises(BadPolicy) as caught:
        read_policy(f"version: 1\nalerts:\n  channels:\n    {channel}\n", "p")
    (problem,) = caught.value.problems
    assert problem.startswith(f"p: alerts.{told}")
