"""The audit of what people are told: when a second showing of one alert is a fault, and when nobody could know."""

import msgspec
import pytest
from harness.judges.tellings import Tellings

from pilotlight.facts.messages import Alert

ALERT = Alert(cluster="local", kind="k", severity="info", fingerprint="k/1", what="w", why="y", next="n", how="h")


PROOF = msgspec.json.encode({"alert": ALERT, "status": "told"})
"""What a teller writes once it has told."""


@pytest.mark.parametrize(
    ("proven_s", "again_s", "faults"),
    [
        (1.0, 30.0, 1),
        (1.0, 300.0, 1),
        (None, 30.0, 1),
        (None, 90.0, 0),
        (260.0, 262.0, 0),
        (260.0, 500.0, 1),
    ],
    ids=[
        "told again at once though it is written down",
        "told again later though it is written down",
        "told again within the lease of a teller that has not written yet",
        "told again once that lease is over",
        "claimed before a late teller wrote it down, told just after",
        "told long after a late teller wrote it down",
    ],
)
def test_an_alert_is_told_twice_only_where_nobody_could_know(
    proven_s: float | None, again_s: float, faults: int
) -> None:
    """One worker tells it at second 0 and writes that down, soon, late or never; another tells it again."""
    seen = Tellings()
    assert not list(seen.shown("w1", ALERT, 0.0))
    if proven_s is not None:
        seen.proven(PROOF, proven_s)
    assert len(list(seen.shown("w2", ALERT, again_s))) == faults


@pytest.mark.parametrize(
    ("again_s", "faults"),
    [pytest.param(1.4, 0, id="within the claim of another"), pytest.param(150.0, 1, id="long after it")],
)
def test_who_claimed_an_alert_of_a_late_teller_may_tell_it(again_s: float, faults: int) -> None:
    """A teller stands still and tells all the same; another had claimed the alert meanwhile, and tells it too."""
    seen = Tellings()
    seen.overslept.add("w1")
    assert not list(seen.shown("w1", ALERT, 0.0))
    seen.proven(PROOF, 1.0)
    assert len(list(seen.shown("w2", ALERT, again_s))) == faults
