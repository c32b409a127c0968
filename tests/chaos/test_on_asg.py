"""The chaos harness with the Auto Scaling adapter as its cloud; ``bench/chaos/chaos_on_aws.py`` tries many seeds."""

from collections.abc import Mapping
from typing import Any

import pytest
from harness.asg_hazard import broken, on_asg
from harness.serial_run import run

from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.errors import Unsure
from pilotlight.ports.clouds import OPEN, Gate

WAYS = {
    "launching at once": (3, 16, {"at_once": True}, "LaunchInstances"),
    "by a size": (3, 16, {"at_once": False}, "SetDesiredCapacity"),
    "by a size, of which AWS launches none in the end": (319, 8, {"at_once": False}, "SetDesiredCapacity"),
    "by a size, with nodes that stand by": (41, 8, {"at_once": False, "stops": True}, "PutWarmPool"),
}


@pytest.mark.parametrize(("seed", "deliveries", "way", "call"), WAYS.values(), ids=WAYS)
def test_answers_that_are_lost_cut_late_or_wrong_break_nothing(
    seed: int, deliveries: int, way: dict[str, bool], call: str
) -> None:
    """Deaths, stalls, doubles and faults of the cloud in most changes: each count stays zero, and AWS was asked."""
    with pytest.MonkeyPatch.context() as patch, on_asg(seed, **way, patch=patch) as accounts:
        outcome = run(seed, deliveries)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert call in {action for aws in accounts for action, _ in aws.calls}


def test_an_adapter_that_sends_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, under another token."""
    change = QueryApi.change

    def twice(
        api: QueryApi, deadline: Deadline, action: str, shape: type[Any], asked: Mapping[str, str], gate: Gate
    ) -> Any:
        try:
            return change(api, deadline, action, shape, asked, gate)
        except Unsure:
            anew = {"ClientToken": "another"} if "ClientToken" in asked else {}
            return change(api, deadline, action, shape, {**asked, **anew}, OPEN)

    monkeypatch.setattr(QueryApi, "change", twice)
    with on_asg(3, at_once=True, patch=monkeypatch):
        found = broken(run(3, 16))
    assert any("double_buys" in each for each in found)
