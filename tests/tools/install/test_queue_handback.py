"""Queues handed back to a Kueue that follows its own reconcile: nothing stays stuck, and what is left is said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from api_server import api_server
from hypothesis import given, settings
from hypothesis import strategies as st
from played_kueue import Played
from queue_site import KUEUE, QueueSite
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING
from pilotlight.errors import Failed
from pilotlight.facts.messages import Tick
from pilotlight.flow.reconcile import reconcile
from pilotlight.tools.cli.install import kueue_commands
from pilotlight.tools.install import queue_checks


@pytest.fixture
def played() -> Iterator[Played]:
    """An empty cluster with Kueue."""
    with api_server() as server:
        yield Played(server)


def reserved(played: Played, **options: Any) -> QueueSite:
    """One Workload of a team without money that has its quota."""
    site = played.site({"poor": "0.01"}, **options)
    site.submit("poor", "train")
    played.settle()
    return site


def older_answer(played: Played, site: QueueSite) -> None:
    """Retry with a time, as it was once written: Kueue keeps the quota until then."""
    check: dict[str, Any] = {"name": "pilotlight", "state": "Retry", "message": "", "lastTransitionTime": site.now}
    check |= {"podSetUpdates": [{"name": "main", "nodeSelector": {"a": "b"}}]}
    site.patch("poor", "train", {"status": {"admissionChecks": [{**check, "requeueAfterSeconds": 3600}]}}, "/status")
    played.settle()
    assert site.stands("poor", "train") == "reserved"
    assert site.work("poor", "train")["status"]["requeueState"]


def back(site: QueueSite, played: Played) -> list[str]:
    """What was done, as "kind name"; with why where it failed."""
    done = [
        f"{q.kind} {q.name}{f': {q.failed}' if q.failed else ''}"
        for q in queue_checks.hand_back(site.api, dry_run=False)
    ]
    played.settle()
    return done


def test_an_older_answer_s_time_ends_first(played: Played) -> None:
    """A check in Retry with a time and the quota: freed, then off the queue, and Kueue admits it by quota alone."""
    site = reserved(played)
    older_answer(played, site)
    assert back(site, played) == ["Workload q-poor/train", "ClusterQueue q", "Workload q-poor/train"]
    assert site.stands("poor", "train") == "admitted"
    status = site.work("poor", "train")["status"]
    assert (status["admissionChecks"], status["requeueState"]) == ([], {})


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "StrictFIFO"], ids=["evicted", "out of its queue"])
def test_refused_work_is_admitted_by_quota_alone(played: Played, strategy: str) -> None:
    """Whatever became of its refusals."""
    site = reserved(played, strategy=strategy)
    site.tick()
    back(site, played)
    assert site.stands("poor", "train") == "admitted"
    assert "pilotlight.dev/inactive-because" not in site.work("poor", "train")["metadata"].get("annotations", {})
    assert back(site, played) == []


def test_a_check_of_ours_by_another_name_leaves_its_queue_too(played: Played) -> None:
    """Names that begin with ours and a dash are answered as ours: what is answered by nobody any more stays nowhere."""
    site = played.site({"poor": "0.01"})
    spec = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "pilotlight-spot"}]}}}
    site.api.ask("PATCH", f"{KUEUE}/clusterqueues/q", NOTHING, spec, MERGE_PATCH)
    site.submit("poor", "train")
    played.settle()
    site.tick()
    assert site.stands("poor", "train") == "reserved"
    back(site, played)
    assert site.stands("poor", "train") == "admitted"


def test_kueue_writes_at_the_same_time(played: Played) -> None:
    """A conflict is tried again over what is there then; others' checks and fields stay."""
    site = reserved(played)
    other = {"spec": {"stopPolicy": "None", "preemption": {"withinClusterQueue": "Never"}}}
    store = played.server.store
    played.server.before(
        "PATCH .*/clusterqueues/q$", lambda: store.patch(store.resource("clusterqueues"), ("", "q"), other), times=2
    )
    assert "ClusterQueue q" in back(site, played)
    assert store.get("clusterqueues", "q")["spec"]["preemption"] == {"withinClusterQueue": "Never"}
    assert site.stands("poor", "train") == "admitted"


def test_one_object_that_cannot_be_changed_stops_no_other(played: Played) -> None:
    """It is named with the reason; the next run takes up there."""
    site = reserved(played)
    older_answer(played, site)
    played.server.fail(403, on="PATCH .*/clusterqueues/q$", times=9)
    done = back(site, played)
    assert (
        [line for line in done if ": " in line] == [line for line in done if line.startswith("ClusterQueue q: ")] != []
    )
    assert site.stands("poor", "train") == "reserved"
    assert "requeueAt" not in site.work("poor", "train")["status"].get("requeueState", {})
    played.server._faults.clear()
    back(site, played)
    assert site.stands("poor", "train") == "admitted"


def test_nothing_is_changed_by_a_dry_run(played: Played) -> None:
    """It says the same, and writes nothing."""
    site = reserved(played)
    older_answer(played, site)
    before = played.server.store.version
    told = [(q.kind, q.freed) for q in queue_checks.hand_back(site.api, dry_run=True)]
    assert told == [("Workload", True), ("ClusterQueue", False), ("Workload", False)]
    assert played.server.store.version == before


def test_the_command_says_what_is_left_and_fails(played: Played, tmp_path: Path) -> None:
    """A line an object; where one could not be changed the run has failed, and says how to go on."""
    site = reserved(played)
    older_answer(played, site)
    kubeconfig = tmp_path / "admin"
    kubeconfig.write_text(played.server.kubeconfig())
    app = typer.Typer()
    kueue_commands.register(app)
    words = ["kueue", "handback", "--kubeconfig", str(kubeconfig), "--context", "test"]
    played.server.fail(403, on="PATCH .*/clusterqueues/q$", times=9)
    done = CliRunner().invoke(app, words)
    assert "Workload q-poor/train waits for no time of ours any more" in done.stdout
    assert "ClusterQueue q could not be changed: " in done.stdout
    assert isinstance(done.exception, Failed)
    assert "1 object could not be changed, and all others were: run it again" in str(done.exception)
    played.server._faults.clear()
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.stdout.splitlines()[0] == "ClusterQueue q waits for our answer no more"


MOMENTS = st.lists(st.sampled_from(["look", "Kueue", "older answer", "money", "none"]), max_size=12)
"""What happens before a queue is handed back: a look alone, one step of Kueue's alone, a budget that changes."""


@given(moments=MOMENTS, strategy=st.sampled_from(["BestEffortFIFO", "StrictFIFO"]))
@settings(max_examples=30, deadline=None)
def test_at_any_moment_the_quota_is_used_up(moments: list[str], strategy: str) -> None:
    """Two Workloads for one GPU: whatever was under way, one of them is admitted, and the other waits for its quota."""
    with api_server() as server:
        played = Played(server)
        site = played.site({"poor": "0.01"}, strategy=strategy)
        for name in ("train", "other"):
            site.submit("poor", name)
        for moment in moments:
            _happens(played, site, moment)
        assert [q.failed for q in queue_checks.hand_back(site.api, dry_run=False) if q.failed] == []
        played.settle()
        assert sorted(site.stands("poor", name) for name in ("train", "other")) == ["admitted", "waits"]


def _happens(played: Played, site: QueueSite, moment: str) -> None:
    assert played.kueue is not None
    if moment == "look":
        site.stage.wait(60)
        reconcile(site.deps, Tick(cluster="c"))
    elif moment == "Kueue":
        played.kueue.step()
    elif moment == "older answer":
        if site.stands("poor", "train") == "reserved":
            check = {"name": "pilotlight", "state": "Retry", "message": "", "lastTransitionTime": site.now}
            late = {**check, "requeueAfterSeconds": 3600}
            site.patch("poor", "train", {"status": {"admissionChecks": [late]}}, "/status")
    else:
        site.raise_budget("poor", "50" if moment == "money" else "0.01")
