"""Routes, quiet hours, bursts: pure decisions about alerts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.alerts.alert_routing import count_alert, group_alerts, pause_s, quiet_until, wants
from pilotlight.decide.limits.policy_schedule import in_window
from pilotlight.facts.alerts.channel_policy import Channel
from pilotlight.facts.alerts.delivery_records import Burst
from pilotlight.facts.limits.rule_policy import RuleTime
from pilotlight.facts.messages import Alert

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def _alert(**fields: Any) -> Alert:
    given: dict[str, Any] = {"kind": "refused", "severity": "warning", "fingerprint": "f", "what": "w", "why": "y"}
    return Alert(cluster="c", **{**given, **fields})


@pytest.mark.parametrize(
    ("rules", "fields", "wanted"),
    [
        pytest.param({}, {}, True, id="a channel without rules wants all"),
        pytest.param({"min_severity": "critical"}, {}, False, id="a warning is not critical"),
        pytest.param({"teams": ("nlp",)}, {"team": "nlp"}, True, id="its team's"),
        pytest.param({"teams": ("nlp",)}, {"team": "vision"}, False, id="not another team's"),
        pytest.param({"teams": ("nlp",)}, {}, True, id="what is of no team is for every team"),
        pytest.param({"kinds": ("refused",)}, {}, True, id="its kind"),
        pytest.param({"kinds": ("refused",)}, {"kind": "refused-too"}, False, id="not a kind that begins so"),
        pytest.param({"kinds": ("finding-*", "ref*")}, {}, True, id="unless a star says so"),
    ],
)
def test_a_channel_wants_what_its_rules_say(rules: dict[str, Any], fields: dict[str, Any], wanted: bool) -> None:
    """Severity, team and kind all have to fit."""
    assert wants(Channel(kind="console", **rules), _alert(**fields)) is wanted


@pytest.mark.parametrize(
    ("zone", "days", "start", "end", "now", "until"),
    [
        pytest.param("UTC", None, "22:00", "07:00", "2026-11-20T23:00", "2026-11-21T07:00", id="over midnight"),
        pytest.param("UTC", None, "22:00", "07:00", "2026-11-20T07:00", None, id="its end is outside"),
        pytest.param("UTC", None, "12:00", "13:00", "2026-11-20T12:30", "2026-11-20T13:00", id="within a day"),
        pytest.param(
            "Europe/Berlin", None, "22:00", "07:00", "2026-10-24T21:00", "2026-10-25T06:00", id="clocks go back"
        ),
        pytest.param("Europe/Berlin", None, "22:00", "07:00", "2026-03-28T22:00", "2026-03-29T05:00", id="and forward"),
        pytest.param("UTC", ("sat", "sun"), "00:00", "23:59", "2026-11-21T10:00", "2026-11-21T23:59", id="a weekend"),
        pytest.param("UTC", ("sat",), "22:00", "07:00", "2026-11-20T23:00", None, id="not on its days"),
    ],
)
def test_quiet_time_ends_by_the_local_clock(
    zone: str, days: Any, start: str, end: str, now: str, until: str | None
) -> None:
    """What is held back is held until the window's end in its zone, daylight saving followed."""
    quiet = RuleTime(timezone=zone, start=start, end=end, **({"days": days} if days else {}))
    found = quiet_until(quiet, _alert(), datetime.fromisoformat(f"{now}+00:00"))
    assert found == (datetime.fromisoformat(f"{until}+00:00") if until else None)


def test_what_is_critical_is_told_in_quiet_hours() -> None:
    """Quiet hours hold back all that is less."""
    quiet = RuleTime(start="00:00", end="23:00")
    assert quiet_until(quiet, _alert(severity="critical"), NOW) is None
    assert [quiet_until(quiet, _alert(severity=low), NOW) is None for low in ("info", "warning")] == [False, False]


@given(
    st.integers(0, 2 * 366 * 1440).map(lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)),
    st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"]),
    st.tuples(st.integers(0, 23), st.integers(0, 59)),
    st.tuples(st.integers(0, 23), st.integers(0, 59)),
)
def test_quiet_time_always_ends(now: datetime, zone: str, start: tuple[int, int], end: tuple[int, int]) -> None:
    """Whatever the window and the moment, what is held back comes within a day and an hour, at a moment outside it."""
    if start == end:
        return
    quiet = RuleTime(timezone=zone, start=f"{start[0]:02}:{start[1]:02}", end=f"{end[0]:02}:{end[1]:02}")
    until = quiet_until(quiet, _alert(), now)
    assert (until is not None) == in_window(quiet, now)
    if until is not None:
        assert now < until <= now + timedelta(hours=25)
        assert not in_window(quiet, until)


def test_a_window_counts_and_a_full_one_makes_the_next_full() -> None:
    """Counts grow within a window; a quiet one begins anew; one that follows on a full one holds all back."""
    burst: Burst | None = None
    for n in range(1, 6):
        burst = count_alert(burst, NOW + timedelta(seconds=n), after=3, window_s=60)
        assert burst.count == n
    assert count_alert(burst, NOW + timedelta(seconds=65), after=3, window_s=60).count == 4
    assert count_alert(burst, NOW + timedelta(seconds=200), after=3, window_s=60).count == 1


def test_a_group_names_the_most_common_and_adds_up_dollars() -> None:
    """Of a hundred alerts the ten most common texts are named with their counts, and sums are exact."""
    alerts = [_alert(fingerprint=str(n), what=f"pool {n % 12}", usd_per_hour="0.10", team="nlp") for n in range(100)]
    alerts[3] = _alert(fingerprint="x", what="pool 3", severity="critical", usd_per_hour="0.10", team="nlp")
    one = group_alerts(alerts)
    assert (one.what, one.usd_per_hour, one.severity, one.team) == ("100 refused alerts", "10.00", "critical", "nlp")
    assert one.why.splitlines()[0] == "pool 0 (9 times)"
    assert one.why.splitlines()[-1] == "and 2 others"
    assert group_alerts(list(reversed(alerts))).fingerprint == one.fingerprint


def test_pauses_grow_within_bounds() -> None:
    """Twice as long after each failure, never beyond ten minutes."""
    pauses = [pause_s(n) for n in range(1, 100)]
    assert pauses[:4] == [2, 4, 8, 16]
    assert pauses == sorted(pauses)
    assert pauses[-1] == 600
