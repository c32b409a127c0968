"""When silence hands a pool back to whoever scaled it before."""

from datetime import UTC, datetime, timedelta

import pytest

from pilotlight.facts.limits.pool_handover import Taken
from pilotlight.tools.install.handover_steps import falls_back

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
TAKEN = Taken(pool="a", group="g", pools="asg:eu-west-1", on_silence="hand-back", at=NOW - timedelta(hours=5))


@pytest.mark.parametrize(
    ("ago_s", "back"),
    [
        pytest.param(60, False, id="heard of a minute ago"),
        pytest.param(600, True, id="silent for the ten minutes"),
        pytest.param(-60, False, id="heard of by a clock that is a minute ahead"),
        pytest.param(-86400, True, id="renewed a day ahead, which no clock of ours says"),
    ],
)
def test_a_pool_falls_back_after_silence_whatever_a_wrong_clock_wrote(ago_s: float, back: bool) -> None:
    """Ten minutes without a sign of life give a pool back; a renewal far in the future is no sign."""
    assert falls_back(TAKEN, NOW - timedelta(seconds=ago_s), NOW, 600) is back
