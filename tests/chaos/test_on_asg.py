"""The chaos harness with the Auto Scaling adapter as its cloud; ``python bench/chaos_on_aws.py`` tries many seeds."""

from collections.abc import Mapping
from typing import Any

import pytest
from asg_hazard import broken, on_asg

from pilotlight.adapters.aws_api.query import QueryApi
from pilotlight.adapters.deadline import Deadline
from pilotlight.chaos.serial_run import run
from pilotlight.errors import Unsure
from pilotlight.ports import OPEN, Gate

WAYS = pytest.mark.parametrize("at_once", [True, False], ids=["launching at once", "by a size"])


@WAYS
def test_answers_that_are_lost_cut_late_or_wrong_break_nothing(at_once: bool) -> None:
    """Deaths, stalls, doubles and faults of the cloud in most changes: each count stays zero, and AWS was asked."""
    with pytest.MonkeyPatch.context() as patch, on_asg(3, at_once=at_once, patch=patch) as accounts:
        outcome = run(3, 16)
    assert broken(outcome) == []
    assert outcome.launches > 0
    asked = {action for aws in accounts for action, _ in aws.calls}
    assert ("LaunchInstances" if at_once else "SetDesiredCapacity") in asked


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
