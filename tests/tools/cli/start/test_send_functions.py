"""``pilotlight send`` and the function that each sample is for."""

import json
from pathlib import Path

import pytest

from pilotlight.codec.events import Delivery, decode
from pilotlight.doorway import takes
from pilotlight.tools.cli.act.send_command import _unpacked, function_of

SAMPLES = Path(__file__).resolve().parents[4] / "events" / "samples"
OUTSIDE = sorted(p for p in SAMPLES.rglob("*.json") if p.parent.name != "pilotlight")


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_function_of_a_sample_takes_its_message(path: Path) -> None:
    """What a source sends goes to a function that takes it."""
    body, headers = _unpacked(path.read_bytes())
    messages = [one.message for one in decode(body, headers, cluster="") if isinstance(one, Delivery)]
    function = function_of(body, headers)
    assert function is not None
    assert any(takes(function, message) for message in messages)


def test_a_bad_neighbour_does_not_hide_the_function() -> None:
    """The first event that a function takes decides."""
    body = json.dumps([{"involvedObject": 3}, {"tick": "reconcile"}]).encode()
    assert function_of(body, {}) == "capacity_reconcile"
