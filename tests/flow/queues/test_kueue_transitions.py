"""Transitions of the Kueue that tests play, each with the function of Kueue's source that it stands for.

What a live suite shows of a real Kueue (``test_kueue_real``) stands on these; here each is one step from one state.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api_server import api_server
from kueue_reconcile import Kueue, condition
from played_kueue import Played
from queue_site import QueueSite

Json = dict[str, Any]
Steps = Callable[[Played, QueueSite], object]
TEAMS = {"rich": "100"}


@pytest.fixture
def played() -> Iterator[Played]:
    """An empty cluster with Kueue."""
    with api_server() as server:
        yield Played(server)


def check(state: str, **more: Any) -> Steps:
    """Our answer is written on the Workload's check."""

    def write(played: Played, site: QueueSite) -> None:
        at = {"lastTransitionTime": site.now, "message": ""}
        site.patch(
            "rich",
            "w",
            {"status": {"admissionChecks": [{"name": "pilotlight", "state": state, **at, **more}]}},
            "/status",
        )

    return write


def active(on: bool) -> Steps:
    """A person, or Pilotlight, takes it out of its queue or puts it back."""
    return lambda _, site: site.patch("rich", "w", {"spec": {"active": on}})


def stop(kind: str, policy: str) -> Steps:
    """A queue is stopped, or goes on."""
    name = ("", "q") if kind == "clusterqueues" else ("q-rich", "q")
    return lambda played, _: played.server.store.patch(
        played.server.store.resource(kind), name, {"spec": {"stopPolicy": policy}}
    )


def settle(played: Played, _: QueueSite) -> None:
    """Kueue goes on until nothing changes."""
    played.settle()


def after(seconds: float) -> Steps:
    """Time passes."""
    return lambda _, site: site.stage.wait(seconds)


def gone(played: Played, _: QueueSite) -> None:
    """Its LocalQueue is deleted."""
    played.server.store.remove("localqueues", "q", "q-rich")


def stands(site: QueueSite) -> Json:
    """How the Workload stands: its conditions as "Status/Reason", its check, whether it is active and has quota."""
    work = site.work("rich", "w")
    status = work.get("status", {})
    found = {c["type"]: f"{c['status']}/{c['reason']}" for c in status.get("conditions", ())}
    checks = [each["state"] for each in status.get("admissionChecks") or ()]
    more = {"check": checks[0] if checks else "", "active": work["spec"].get("active", True)}
    return {**found, **more, "quota": status.get("admission") is not None}


TRANSITIONS: dict[str, tuple[tuple[Steps, ...], Json]] = {
    "Scheduler.schedule, workload.SetQuotaReservation": (
        (settle,),
        {"QuotaReserved": "True/QuotaReserved", "check": "Pending", "quota": True},
    ),
    "workload.SyncAdmittedCondition": ((settle, check("Ready"), settle), {"Admitted": "True/Admitted"}),
    "reconcileCheckBasedEviction, evict.Evict, ReconcileGenericJob: Retry": (
        (settle, check("Retry"), stop("clusterqueues", "Hold"), settle),
        {"Evicted": "True/AdmissionCheck", "QuotaReserved": "False/Pending", "check": "Pending", "quota": False},
    ),
    "Reconcile: BackoffFinished, and the head has quota again": (
        (settle, check("Retry"), settle),
        {"Requeued": "True/BackoffFinished", "Evicted": "False/QuotaReserved", "quota": True},
    ),
    "workload.NeedsRequeueAtUpdate: waits with its quota": (
        (settle, check("Retry", requeueAfterSeconds=600), settle, after(300), settle),
        {"check": "Retry", "quota": True},
    ),
    "workload.NeedsRequeueAtUpdate: evicted once the time is over": (
        (settle, check("Retry", requeueAfterSeconds=600), settle, after(601), settle),
        {"Requeued": "True/BackoffFinished", "check": "Pending", "quota": True},
    ),
    "workload.SetDeactivationTarget, and Reconcile after it: Rejected": (
        (settle, check("Rejected"), settle),
        {"Evicted": "True/DeactivatedDueToAdmissionCheck", "active": False, "quota": False},
    ),
    "Reconcile: spec.active false": (
        (settle, active(False), settle),
        {"Evicted": "True/Deactivated", "Requeued": "False/Deactivated", "active": False, "quota": False},
    ),
    "Reconcile: Reactivated": (
        (settle, active(False), settle, active(True), settle),
        {"Requeued": "True/Reactivated", "Evicted": "False/QuotaReserved", "quota": True},
    ),
    "reconcileOnClusterQueueActiveState: Hold takes quota of what waits": (
        (settle, stop("clusterqueues", "Hold"), settle),
        {"QuotaReserved": "False/Inadmissible", "quota": False},
    ),
    "reconcileOnClusterQueueActiveState: Hold leaves what is admitted": (
        (settle, check("Ready"), settle, stop("clusterqueues", "Hold"), settle),
        {"Admitted": "True/Admitted", "quota": True},
    ),
    "reconcileOnClusterQueueActiveState: HoldAndDrain evicts": (
        (settle, check("Ready"), settle, stop("clusterqueues", "HoldAndDrain"), settle),
        {"Requeued": "False/ClusterQueueStopped", "Admitted": "False/NoReservation", "quota": False},
    ),
    "isDisabledRequeuedByClusterQueueStopped": (
        (
            settle,
            check("Ready"),
            settle,
            stop("clusterqueues", "HoldAndDrain"),
            settle,
            stop("clusterqueues", "None"),
            settle,
        ),
        {"Requeued": "True/ClusterQueueRestarted", "quota": True},
    ),
    "reconcileOnLocalQueueActiveState: HoldAndDrain evicts": (
        (settle, check("Ready"), settle, stop("localqueues", "HoldAndDrain"), settle),
        {"Requeued": "False/LocalQueueStopped", "quota": False},
    ),
    "isDisabledRequeuedByLocalQueueStopped": (
        (
            settle,
            check("Ready"),
            settle,
            stop("localqueues", "HoldAndDrain"),
            settle,
            stop("localqueues", "None"),
            settle,
        ),
        {"Requeued": "True/LocalQueueRestarted", "quota": True},
    ),
    "reconcileOnLocalQueueActiveState: its queue is gone": (
        (settle, gone, settle),
        {"QuotaReserved": "False/Inadmissible", "quota": False},
    ),
}


@pytest.mark.parametrize(("steps", "ends"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_a_workload_goes_on_as_kueue_s_source_says(played: Played, steps: tuple[Steps, ...], ends: Json) -> None:
    """From an empty queue by these steps to how it stands then; the name is the function that says so."""
    site = played.site(TEAMS)
    site.submit("rich", "w")
    for step in steps:
        step(played, site)
    assert {key: value for key, value in stands(site).items() if key in ends} == ends


def test_evictions_are_counted_on_the_workload(played: Played) -> None:
    """workloadEvictionStateInc: by their reason, as a real one's are read."""
    site = played.site(TEAMS)
    site.submit("rich", "w")
    for step in (settle, check("Retry"), settle, check("Retry"), settle):
        step(played, site)
    [stats] = site.work("rich", "w")["status"]["schedulingStats"]["evictions"]
    assert (stats["reason"], stats["count"], played.evictions("q-rich/w")) == ("AdmissionCheck", 2, 2)
    found = condition(site.work("rich", "w"), "Evicted")
    assert found is not None


def test_every_transition_names_the_function_that_it_stands_for() -> None:
    """Whoever reads one finds it in Kueue's source."""
    own = {"settle", "step"}
    for name, method in inspect.getmembers(Kueue, inspect.isfunction):
        if not name.startswith("_") and name not in own:
            assert re.search(
                r"\b[a-z]*[.*()]*[A-Za-z]*[a-z][A-Z][A-Za-z]+|\bReconcile\b|Evict\b", method.__doc__ or ""
            ), name
