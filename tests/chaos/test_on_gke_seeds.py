"""The chaos harness with the GKE adapter as its cloud; ``bench/chaos/chaos_on_gke.py`` tries many seeds."""

from collections.abc import Mapping
from typing import Any

import pytest
from harness.asg_hazard import broken
from harness.gke_hazard import on_gke
from harness.serial_run import run

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.errors import Unsure
from pilotlight.ports.clouds import OPEN, Gate


@pytest.mark.parametrize("seed", [3, 11])
def test_faults_lost_answers_and_late_instances_break_nothing(seed: int) -> None:
    """Deaths, stalls, doubles and faults of Google in most changes: each count stays zero, and some is called off."""
    with pytest.MonkeyPatch.context() as patch, on_gke(seed, patch=patch) as projects:
        outcome = run(seed, 16)
    assert broken(outcome) == []
    assert outcome.launches > 0
    assert sum(gke.called_off for gke in projects) > 0


def test_an_adapter_that_asks_twice_by_other_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what may not have happened is asked for once more, under another id and other names."""
    change = GoogleRest.change

    def twice(
        api: GoogleRest, deadline: Deadline, path: str, shape: type[Any], body: Mapping[str, Any], gate: Gate
    ) -> Any:
        try:
            return change(api, deadline, path, shape, body, gate)
        except Unsure:
            if "createInstances" not in path:
                raise
            anew = {"instances": [{"name": f"{one['name'][:-1]}z"} for one in body["instances"]]}
            return change(api, deadline, path.partition("?")[0], shape, anew, OPEN)

    monkeypatch.setattr(GoogleRest, "change", twice)
    with on_gke(3, patch=monkeypatch):
        found = broken(run(3, 16))
    assert any("double_buys" in each for each in found)
