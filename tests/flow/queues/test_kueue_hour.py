"""An hour of a real Kueue behind KUBECONFIG: 200 Jobs of three teams, on machines that are bought, join and go again.

The world's clock goes a minute a look; Kueue, the scheduler and the Job controller are the control plane's own. A pod
is over five looks after it was bound.
"""

import os
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from queue_site import ANY, HOUR
from stage import START
from test_kueue_real import Opens, Real, api, opens

from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Missing
from pilotlight.facts.policy import ClassPolicy

__all__ = ["api", "opens"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
TEAMS = {"one": "12", "two": "6", "three": "0.50"}
QUOTA, MINUTES, RUNS = 24, 60, 5
STOPS = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR, may_move=("hard-cap",), hold=HOUR)
"""Of a class that may not be stopped, a pod that the scheduler puts on another's node may pass its team's cap."""


class Hour:
    """The machines and pods of a site, look by look."""

    def __init__(self, site: Real) -> None:
        self.site = site
        self.nodes: set[str] = set()
        self.bound: Counter[tuple[str, str]] = Counter()
        self.passed: list[str] = []
        behind = (datetime.now(UTC) - START).total_seconds() - MINUTES * 60
        site.stage.wait(max(0.0, behind))  # Objects of the control plane are from now, and never from before.

    def minute(self, jobs: list[tuple[str, str]]) -> None:
        """Jobs come, a look, machines join and go, pods end."""
        for team, name in jobs:
            self.site.job(team, name)
        self.site.tick(60)
        for each in self.site.balances:
            if each.total > each.meter.limit:
                self.passed.append(f"{each.meter.budget.name}: {each.total} of {each.meter.limit}")
        self._join()
        self._end_pods()

    def _join(self) -> None:
        up = {node.instance for node in self.site.stage.deps.cluster.observe().nodes if node.ready}
        for instance in sorted(up - self.nodes):
            self.site.node(instance)
        for instance in sorted(self.nodes - up):
            with suppress(Missing):
                self.site.api.ask("DELETE", f"/api/v1/nodes/{instance}", NOTHING, {}, JSON)
        self.nodes = up

    def _end_pods(self) -> None:
        for team in TEAMS:
            path = f"/api/v1/namespaces/{self.site.space(team)}/pods"
            for pod in self.site.api.get(path, ANY)["items"]:
                name = pod["metadata"]["name"]
                if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
                    continue
                self.bound[team, name] += 1
                if self.bound[team, name] > RUNS:
                    over = {"status": {"phase": "Succeeded"}}
                    with suppress(Missing):
                        self.site.api.ask("PATCH", f"{path}/{name}/status", NOTHING, over, MERGE_PATCH)

    def count(self, names: list[tuple[str, str]]) -> Counter[str]:
        """How many stand how."""
        return Counter(self._stands(*each) for each in names)

    def _stands(self, team: str, job: str) -> str:
        work = self.site.of_job(team, job)
        return "finished" if self.site.has(team, work, "Finished") else self.site.stands(team, work)


def test_two_hundred_in_an_hour_under_three_budgets(opens: Opens, record_property: Any) -> None:
    """No budget passes its cap at any look, nobody is evicted above six times, and none is stuck: each has run, runs,
    waits for quota that others use, or is out of its queue and was told why."""
    site = opens(TEAMS, gpus=QUOTA, batch=STOPS)
    hour, names = Hour(site), [(team, f"w{n}") for n in range(67) for team in TEAMS][:200]
    for minute in range(MINUTES):
        hour.minute(names[200 * minute // MINUTES : 200 * (minute + 1) // MINUTES])
    time.sleep(3)
    stand = hour.count(names)
    evicted = [site.evictions(team, site.of_job(team, name)) for team, name in names]
    record_property("hour", {"stand": dict(stand), "evictions": sum(evicted), "most": max(evicted)})
    works = {each: site.of_job(*each) for each in names}
    assert hour.passed == []
    assert max(evicted) <= 6
    assert [
        each for each in names if site.stands(each[0], works[each]) == "out" and not site.events(each[0], works[each])
    ] == []
    assert stand["reserved"] + stand["admitted"] <= QUOTA
    assert stand["waits"] == 0 or stand["reserved"] + stand["admitted"] == QUOTA
    assert stand["finished"] >= 20
