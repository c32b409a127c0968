"""The judge of what came late: a node that went back unused is told, one that its cloud gave up is a refusal."""

import pytest
from harness.judges.late_calls import LateCalls


@pytest.mark.parametrize(
    ("given_up", "says"), [(set(), "nobody was told"), ({"n1"}, "")], ids=["by us", "by its cloud"]
)
def test_what_came_late_and_went_back_is_told_unless_its_cloud_gave_it_up(given_up: set[str], says: str) -> None:
    """Karpenter deletes a machine that never joins: its offering rests, as that of any refusal."""
    late = LateCalls()
    late.given_up = given_up
    late.came(["n1"], 100.0)
    late.log({"event": "terminate", "node": "n1", "reason": "released"})
    found = list(late.untold([], set(), []))
    assert [says in line for line in found] == ([True] if says else [])
