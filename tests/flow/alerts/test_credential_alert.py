"""A credential that ends soon is told of while it still works."""

from dataclasses import replace
from datetime import timedelta

import pytest
from stage import START, Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.limits.checks import Token
from pilotlight.flow.alerts.own_troubles import tell_ending_credential

DAY = timedelta(days=1)


def test_the_last_seven_days_are_told_once_a_day() -> None:
    """A token of 30 days is silent until seven are left; then one alert a day says so, however many ticks there are."""
    stage = Stage()
    token = Token(subject="system:serviceaccount:pilotlight:pilotlight", made=START - 22 * DAY, ends=START + 8 * DAY)
    stage.deps = replace(stage.deps, credential=lambda: token)
    stage.minutes(60)
    assert stage.alerts == []
    stage.wait(2 * DAY.total_seconds())
    stage.minutes(60)
    [alert] = stage.alerts
    assert (alert.kind, alert.severity, alert.how) == ("credential", "warning", "pilotlight connect --rotate")


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(None, id="no token at all"),
        pytest.param(Token(made=START, ends=START + DAY / 24), id="a short one that renews itself"),
        pytest.param(Token(made=START, ends=START + 30 * DAY), id="a fresh one"),
    ],
)
def test_nothing_to_tell(token: Token | None) -> None:
    """A credential that is well, or says nothing of itself, is no news."""
    stage = Stage()
    tell_ending_credential(replace(stage.deps, credential=lambda: token))
    assert stage.outbox.sent == []


def test_a_credential_that_cannot_be_read_spoils_no_tick() -> None:
    """The look has worked: what could not be asked about its credential changes nothing."""

    def silent() -> Token:
        raise Unavailable("the plugin does not answer")

    stage = Stage()
    stage.deps = replace(stage.deps, credential=silent)
    assert stage.tick().why == "nothing to do"
