"""Queues of a real Kueue behind KUBECONFIG, whose controllers move conditions by themselves; dollars are the world's.

A look sees all queues of the cluster: run it alone there.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kueue_at_work import is_at_work, within
from queue_site import ANY, KUEUE, QueueSite

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING, Api, Missing
from pilotlight.errors import Conflict
from pilotlight.tools.install import queue_checks

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]


@pytest.fixture(scope="module")
def api() -> Api:
    """The control plane, where a Kueue is at work on it."""
    found = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))
    if not is_at_work(found):
        pytest.skip("no Kueue is at work here")
    return found


Opens = Callable[..., "Real"]


class Real(QueueSite):
    """The site with Jobs: their Workloads are Kueue's own, under names that it makes."""

    def job(self, team: str, name: str, pods: int = 1, priority: int = 0) -> None:
        """A Job in its team's queue."""
        meta = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "q"}}
        spec = {"suspend": True, "parallelism": pods, "completions": pods}
        template = {"metadata": {"labels": {"gpu": "on-demand"}}, "spec": self.pod_spec(1)}
        self.make(
            f"/apis/batch/v1/namespaces/{self.space(team)}/jobs",
            {"metadata": meta, "spec": {**spec, "template": template}},
        )
        assert within(10, lambda: bool(self.of_job(team, name))), "Kueue made no Workload of the Job"

    def of_job(self, team: str, name: str) -> str:
        """The Workload of a Job."""
        found = self.api.get(f"{KUEUE}/namespaces/{self.space(team)}/workloads", ANY)["items"]
        owned = (
            w["metadata"]["name"] for w in found for o in w["metadata"].get("ownerReferences", ()) if o["name"] == name
        )
        return next(owned, "")

    def becomes(self, team: str, job: str, state: str, seconds: float = 10) -> bool:
        """Whether the Workload of a Job comes to stand so in time."""
        return within(seconds, lambda: self._stands_whole(team, job) == state)

    def _stands_whole(self, team: str, job: str) -> str:
        """As it stands; one that has its quota, once Kueue has written its checks too."""
        work = self.of_job(team, job)
        stands = self.stands(team, work)
        checked = stands != "reserved" or self.work(team, work)["status"].get("admissionChecks")
        return stands if checked else "waits"

    def looks_until(self, team: str, job: str, state: str) -> bool:
        """Whether it comes to stand so with some looks: one may see Kueue between two of its writes."""
        return any(self.tick(60) and self.becomes(team, job, state, 10) for _ in range(4))

    def lit(self) -> list[int]:
        """Nodes that each pool was asked for."""
        return [pool.desired for pool in self.deps.pools.describe()]

    def suspended(self, team: str, job: str) -> bool:
        """Whether a Job is."""
        found = self.api.get(f"/apis/batch/v1/namespaces/{self.space(team)}/jobs/{job}", ANY)
        return bool(found["spec"].get("suspend"))

    def ready(self, name: str) -> None:
        """A node of the pool, once the node controller has taken its first taint off."""
        self.node(f"{self.name}-{name}")
        path = f"/api/v1/nodes/{self.name}-{name}"
        assert within(30, lambda: not self.api.get(path, ANY)["spec"].get("taints"))

    def end_job(self, team: str, name: str) -> None:
        """A Job is deleted, and its pods with it."""
        path = f"/apis/batch/v1/namespaces/{self.space(team)}/jobs/{name}"
        self.api.ask("DELETE", path, NOTHING, {"propagationPolicy": "Background", "gracePeriodSeconds": 0}, JSON)
        self._made.remove(path)
        pods = f"/api/v1/namespaces/{self.space(team)}/pods"
        assert within(20, lambda: not self.api.get(pods, ANY)["items"])

    def older_answer(self, team: str, name: str) -> None:
        """Retry with a time, as Pilotlight answered once."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        check = {"name": "pilotlight", "state": "Retry", "message": "", "lastTransitionTime": at}
        self.patch(team, name, {"status": {"admissionChecks": [{**check, "requeueAfterSeconds": 600}]}}, "/status")

    def evictions(self, team: str, name: str) -> int:
        """How often Kueue counts a Workload as evicted."""
        stats = self.work(team, name)["status"].get("schedulingStats") or {}
        return sum(each["count"] for each in stats.get("evictions") or ())

    def clear(self) -> None:
        """Its Jobs first: Kueue lets a queue go when nothing is in it."""
        for path in reversed(self._made):
            with suppress(Missing):
                body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
                self.api.ask("DELETE", path, NOTHING, body, JSON)


@pytest.fixture
def opens(api: Api) -> Iterator[Opens]:
    """Makes a site of names of the run's own."""
    made: list[Real] = []

    def site(teams: dict[str, str], **options: Any) -> Real:
        made.append(Real(api, lambda: None, teams, name=f"pilotlight-test-{uuid.uuid4().hex[:8]}", **options))
        return made[-1]

    try:
        yield site
    finally:
        for each in made:
            each.clear()


def test_quota_of_what_is_refused_is_another_s_within_ten_seconds(opens: Opens) -> None:
    """One GPU of quota: the team without money has it first, the other's Workload ten seconds after it is refused."""
    site = opens({"poor": "0.01", "rich": "100"})
    site.job("poor", "first")
    assert site.becomes("poor", "first", "reserved")
    site.job("rich", "second")
    time.sleep(1.1)  # Kueue orders by whole seconds: in the second of the refusal either may be first.
    while not any("answered Retry" in line for line in site.tick().did):
        time.sleep(0.2)  # It met a write of Kueue's own.
    began = time.monotonic()
    assert site.becomes("rich", "second", "reserved"), "the quota stayed with what was refused"
    assert time.monotonic() - began < 10
    site.tick(60)
    assert site.lit() == [1]


def test_a_team_without_money_leaves_its_queue_after_six_evictions(opens: Opens) -> None:
    """Alone it is given its quota again each time; then it is out, with an Event, and nothing of it is bought."""
    site = opens({"poor": "0.01"})
    site.job("poor", "train")
    for _ in range(24):
        if site.becomes("poor", "train", "reserved", 3):
            site.tick(60)
        elif site.becomes("poor", "train", "out", 1):
            break
    work = site.of_job("poor", "train")
    assert site.stands("poor", work) == "out"
    assert site.evictions("poor", work) in (
        5,
        6,
    )  # An answer that met a write of Kueue's own counts, and evicts nothing.
    assert [told.partition(":")[0] for told in site.events("poor", work)] == ["OutOfQueue"]
    assert site.lit() == [0]


def test_the_head_of_a_strict_queue_leaves_it_at_once(opens: Opens) -> None:
    """What is behind it has the quota within ten seconds."""
    site = opens({"poor": "0.01", "rich": "100"}, strategy="StrictFIFO")
    site.job("poor", "head")
    assert site.becomes("poor", "head", "reserved")
    site.job("rich", "behind")
    site.tick()
    assert site.becomes("rich", "behind", "reserved")
    assert site.becomes("poor", "head", "out")


def test_out_of_its_queue_until_there_is_room(opens: Opens) -> None:
    """A budget that is raised brings it back, and its node is bought; a person may bring it back too."""
    site = opens({"poor": "0.01"}, strategy="StrictFIFO")
    site.job("poor", "train")
    assert site.becomes("poor", "train", "reserved")
    assert site.looks_until("poor", "train", "out")
    site.tick(60)
    assert site.becomes("poor", "train", "out")
    work = site.of_job("poor", "train")
    site.patch("poor", work, {"spec": {"active": True}})
    assert site.becomes("poor", "train", "reserved")
    assert site.looks_until("poor", "train", "out")
    site.raise_budget("poor", "10")
    assert site.looks_until("poor", "train", "reserved")
    assert any(site.tick(60) and site.lit() == [1] for _ in range(4))


def test_work_starts_when_its_nodes_are_ready_and_a_gang_as_one(opens: Opens) -> None:
    """Two pods, one node: it waits. With the second it is admitted, its Job is resumed, and its pods are pinned."""
    site = opens({"rich": "100"}, gpus=4)
    site.job("rich", "gang", pods=2)
    assert site.becomes("rich", "gang", "reserved")
    site.tick()
    assert site.lit() == [2]
    site.ready("a")
    site.tick(60)
    assert not site.becomes("rich", "gang", "admitted", 2)
    site.ready("b")
    site.tick(60)
    assert site.becomes("rich", "gang", "admitted")
    assert within(10, lambda: not site.suspended("rich", "gang"))
    job = site.api.get(f"/apis/batch/v1/namespaces/{site.space('rich')}/jobs/gang", ANY)
    assert job["spec"]["template"]["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] == "one"


def test_a_gang_without_money_for_all_has_none(opens: Opens) -> None:
    """Dollars for one node of three: nothing is bought, and the quota is another's within ten seconds."""
    site = opens({"poor": "3", "rich": "100"}, gpus=3)
    site.job("poor", "gang", pods=3)
    assert site.becomes("poor", "gang", "reserved")
    site.job("rich", "next", pods=3)
    assert site.looks_until("rich", "next", "reserved")
    assert site.lit() == [0]


def test_what_is_evicted_while_its_nodes_boot_is_bought_for_once(opens: Opens) -> None:
    """A person takes it out of its queue and puts it back: another turn of its quota, and the same node."""
    site = opens({"rich": "100"})
    site.job("rich", "train")
    assert site.becomes("rich", "train", "reserved")
    site.tick()
    work = site.of_job("rich", "train")
    site.patch("rich", work, {"spec": {"active": False}})
    assert site.becomes("rich", "train", "out")
    site.tick(30)
    site.patch("rich", work, {"spec": {"active": True}})
    assert site.becomes("rich", "train", "reserved")
    site.tick(30)
    assert site.lit() == [1]


@pytest.mark.parametrize("moment", ["waits", "refused", "an older answer", "out", "running"])
def test_handback_at_any_moment_leaves_nothing_stuck(opens: Opens, moment: str) -> None:
    """Everything of the queue is admitted by quota alone within ten seconds, and what runs goes on."""
    site = opens(
        {"poor": "0.01" if moment != "running" else "100"},
        strategy="StrictFIFO" if moment == "out" else "BestEffortFIFO",
    )
    site.job("poor", "train")
    assert site.becomes("poor", "train", "reserved")
    work = site.of_job("poor", "train")
    if moment == "running":
        site.ready("a")
    if moment in ("refused", "out", "running"):
        site.tick()
    if moment == "running":
        assert site.becomes("poor", "train", "admitted")
        assert within(10, lambda: not site.suspended("poor", "train"))
    if moment == "an older answer":
        site.older_answer("poor", work)
        assert within(10, lambda: bool(site.work("poor", work)["status"].get("requeueState")))
        assert not site.becomes("poor", "train", "waits", 2), "this Kueue evicts before the time"
    done = list(queue_checks.hand_back(site.api, dry_run=False))
    assert [each.failed for each in done if each.failed] == []
    assert site.becomes("poor", "train", "admitted"), site.work("poor", work)["status"]
    assert within(10, lambda: not site.suspended("poor", "train"))
    time.sleep(2)
    assert (site.stands("poor", site.of_job("poor", "train")), site.suspended("poor", "train")) == ("admitted", False)
    assert not site.work("poor", work)["status"].get("admissionChecks")


def test_a_queue_that_the_ladder_stops_admits_no_more_and_is_as_before(opens: Opens) -> None:
    """What waits with its quota gives it back, and has it again once the step is over."""
    site = opens({"rich": "100"})
    site.job("rich", "train")
    assert site.becomes("rich", "train", "reserved")
    cluster = site.deps.cluster
    assert isinstance(cluster, KubernetesCluster)
    assert within(5, lambda: _done(lambda: cluster.stop_queue(site.name, "over")))
    assert site.becomes("rich", "train", "waits")
    site.tick()
    assert site.lit() == [0]
    assert within(5, lambda: _done(lambda: cluster.stop_queue(site.name, "")))
    assert site.becomes("rich", "train", "reserved")


def _done(call: Callable[[], object]) -> bool:
    try:
        call()
    except Conflict:
        return False
    return True


def test_another_s_idle_node_is_no_gift(opens: Opens) -> None:
    """A team of half a dollar a day is not let in to a ready node that another's dollars hold; with money it is."""
    site = opens({"rich": "100", "poor": "0.50"}, gpus=2)
    site.job("rich", "first")
    assert site.becomes("rich", "first", "reserved")
    site.tick()
    site.ready("a")
    assert site.looks_until("rich", "first", "admitted")
    site.end_job("rich", "first")
    site.job("poor", "second")
    assert site.becomes("poor", "second", "reserved")
    site.tick(30)
    assert not site.becomes("poor", "second", "admitted", 3)
    site.raise_budget("poor", "50")
    assert site.looks_until("poor", "second", "admitted")
