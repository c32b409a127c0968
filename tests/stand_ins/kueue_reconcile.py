"""Kueue's reconcile over the API stand-in, transition by transition, as its source of 0.15 to 0.19 has them.

Each transition names the function of Kueue that it stands for, and ``test_kueue_transitions`` tries each. Left out, as
nothing here asks for it: cohorts, preemption, topology, MultiKueue, partial admission, waitForPodsReady, DRA, the
retention of finished work, execution times. Time is the clock's that is given; between two steps anything may change
the objects, as on a real server.
"""

import copy
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from api_store import Json, Store

RETRY, PENDING, READY, REJECTED = "Retry", "Pending", "Ready", "Rejected"
AC_EVICTED, DEACTIVATED, TARGET = "AdmissionCheck", "Deactivated", "DeactivationTarget"
AGAIN = {DEACTIVATED: "Reactivated", AC_EVICTED: "BackoffFinished"}
"""By the reason for which a Workload is not in its queue the one for which it is there again."""

RESTARTED = {"LocalQueueStopped": "LocalQueueRestarted", "ClusterQueueStopped": "ClusterQueueRestarted"}
"""The same once the queue of that kind goes on."""


class Kueue:
    """Its scheduler, its Workload reconciler and its Job reconciler; ``evictions`` are those it told, by Workload."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self.store, self.now = store, now
        self.evictions: dict[str, list[datetime]] = {}

    def settle(self, most: int = 200) -> None:
        """Reconcile until nothing changes any more, as its work queues would within a second."""
        for _ in range(most):
            if not self.step():
                return
        raise AssertionError("Kueue's objects never come to rest")

    def step(self) -> bool:
        """One reconcile of every Workload, and one turn of the scheduler. Whether anything changed."""
        changed = [self._write(wl, change) for wl in self._workloads() for change in (self.reconcile, self.job)]
        return any([*changed, self.schedule()])

    def _workloads(self) -> Iterator[Json]:
        for found in self.store.list(self.store.resource("workloads"), "", "", ""):
            if not is_true(found, "Finished"):
                yield found

    def _write(self, wl: Json, change: Callable[[Json], object]) -> bool:
        resource, meta = self.store.resource("workloads"), wl["metadata"]
        key = (meta["namespace"], meta["name"])
        if not self.store.has(resource, key):
            return False
        before = self.store.read(resource, key)
        after = copy.deepcopy(before)
        after.setdefault("status", {})
        change(after)
        if {**before, "status": before.get("status", {})} == after:
            return False
        self.store.write(resource, after)
        return True

    # pkg/controller/core/workload_controller.go

    def reconcile(self, wl: Json) -> None:
        """(*WorkloadReconciler).Reconcile: each branch that writes returns, and the next event goes on."""
        status = wl["status"]
        if self.needs_requeue_at_update(wl):
            return
        if wl["spec"].get("active", True):
            if is_true(wl, TARGET):
                wl["spec"]["active"] = False
                return
            if at := (status.get("requeueState") or {}).get("requeueAt"):
                if _time(at) > self.now():
                    return  # "Waiting for backoff to finish": before any eviction, with the quota taken.
                if not is_true(wl, "QuotaReserved"):
                    status["requeueState"].pop("requeueAt")
                    return
            if self.requeue(wl):
                return
        elif self.deactivate(wl):
            return
        queue = self._cluster_queue(wl)
        if self.restarted(wl, queue) or (queue is not None and self.sync_admission_checks(wl, queue)):
            return
        if not is_true(wl, "Admitted") and self.sync_admitted_condition(wl):
            return
        if is_true(wl, "QuotaReserved") and not self.check_based_eviction(wl):
            self.on_queue_active_state(wl, queue)

    def needs_requeue_at_update(self, wl: Json) -> bool:
        """workload.NeedsRequeueAtUpdate and workload.GetMaxRetryTime, then workload.SetRequeueState."""
        times = [
            _time(check["lastTransitionTime"]) + timedelta(seconds=check["requeueAfterSeconds"])
            for check in _checks(wl)
            if check["state"] == RETRY and check.get("requeueAfterSeconds") is not None
        ]
        latest = max((at for at in times if at > self.now()), default=None)
        current = (wl["status"].get("requeueState") or {}).get("requeueAt")
        if latest is None or (current and _time(current) >= latest):
            return False
        wl["status"]["requeueState"] = {**(wl["status"].get("requeueState") or {}), "requeueAt": _text(latest)}
        return True

    def requeue(self, wl: Json) -> bool:
        """Reconcile's switch over the reason of a Requeued condition that is False."""
        found = condition(wl, "Requeued")
        if found is None or found["status"] != "False" or found["reason"] not in AGAIN:
            return False
        self._set(wl, "Requeued", "True", AGAIN[found["reason"]])
        return True

    def restarted(self, wl: Json, queue: Json | None) -> bool:
        """isDisabledRequeuedByLocalQueueStopped and isDisabledRequeuedByClusterQueueStopped: what a stopped queue
        evicted is in it again once it goes on."""
        found = condition(wl, "Requeued")
        if found is None or found["status"] != "False" or found["reason"] not in RESTARTED:
            return False
        where = self._local_queue(wl) if found["reason"] == "LocalQueueStopped" else queue
        if where is None or _stop(where) != "None":
            return False
        self._set(wl, "Requeued", "True", RESTARTED[found["reason"]])
        return True

    def deactivate(self, wl: Json) -> bool:
        """Reconcile's branch for spec.active false: workload.Evict once, and status.requeueState is cleared."""
        changed = wl["status"].pop("requeueState", None) is not None
        if is_true(wl, "Evicted"):
            return changed
        target = condition(wl, TARGET)
        if target is not None:
            wl["status"]["conditions"].remove(target)
        cause = f"DueTo{target['reason']}" if target else ""
        why = f" due to {target['message']}" if target else ""
        self.evict(wl, f"{DEACTIVATED}{cause}", f"The workload is deactivated{why}")
        return True

    def evict(self, wl: Json, reason: str, message: str) -> None:
        """evict.Evict: prepareForEviction, resetChecksOnEviction, workloadEvictionStateInc. What another manager
        applied to a check beside its state stays: server-side apply takes only its own fields back."""
        self._set(wl, "Evicted", "True", reason, message)
        stats = wl["status"].setdefault("schedulingStats", {}).setdefault("evictions", [])
        counted = next((each for each in stats if each["reason"] == reason), None)
        if counted is None:
            stats.append(counted := {"reason": reason, "underlyingCause": "", "count": 0})
        counted["count"] += 1
        for check in _checks(wl):
            if check["state"] != PENDING:
                was = check["state"]
                tries = {"retryCount": check.pop("retryCount", 0) + 1} if was == RETRY else {}
                told = f"Reset to Pending after eviction. Previously: {was}"
                check.update(state=PENDING, message=told, lastTransitionTime=_text(self.now()), **tries)
        if wl["status"].get("admission") is not None:
            meta = wl["metadata"]
            self.evictions.setdefault(f"{meta['namespace']}/{meta['name']}", []).append(self.now())

    def sync_admission_checks(self, wl: Json, queue: Json) -> bool:
        """reconcileSyncAdmissionChecks with syncAdmissionCheckConditions: the queue's list is the Workload's."""
        rules = (queue["spec"].get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
        names = {rule["name"] for rule in rules}
        kept = [check for check in _checks(wl) if check["name"] in names]
        fresh = [
            {"name": name, "state": PENDING, "message": "", "lastTransitionTime": _text(self.now())}
            for name in names - {check["name"] for check in kept}
        ]
        if not fresh and len(kept) == len(_checks(wl)):
            return False
        wl["status"]["admissionChecks"] = sorted([*kept, *fresh], key=lambda check: str(check["name"]))
        return True

    def sync_admitted_condition(self, wl: Json) -> bool:
        """workload.SyncAdmittedCondition: quota, and every check ready."""
        if not is_true(wl, "QuotaReserved") or any(check["state"] != READY for check in _checks(wl)):
            return False
        self._set(wl, "Admitted", "True", "Admitted")
        return True

    def check_based_eviction(self, wl: Json) -> bool:
        """reconcileCheckBasedEviction: Rejected deactivates, Retry evicts."""
        if is_true(wl, "Evicted"):
            return False
        states = [check["state"] for check in _checks(wl)]
        if REJECTED in states:  # workload.SetDeactivationTarget: the reconcile after it deactivates.
            self._set(wl, TARGET, "True", AC_EVICTED, "Admission check(s) rejected")
            return True
        if RETRY in states:
            self.evict(wl, AC_EVICTED, "Evicted due to AdmissionCheck in Retry state")
            return True
        return False

    def on_queue_active_state(self, wl: Json, queue: Json | None) -> bool:
        """reconcileOnLocalQueueActiveState, then reconcileOnClusterQueueActiveState: what is not admitted loses its
        quota in a queue that is stopped or gone, what is admitted is evicted where the queue drains."""
        for kind, where in (("LocalQueue", self._local_queue(wl)), ("ClusterQueue", queue)):
            stop = _stop(where) if where is not None else "gone"
            if is_true(wl, "Admitted"):
                if stop == "HoldAndDrain" and not is_true(wl, "Evicted"):
                    self.evict(wl, f"{kind}Stopped", f"The {kind} is stopped")
                    return True
            elif stop != "None":
                self._unset_quota(wl, "Inadmissible")
                return True
        return False

    # pkg/controller/jobframework/reconciler.go

    def job(self, wl: Json) -> bool:
        """ReconcileGenericJob, its step "handle eviction": the job is stopped, its admission cleared; it is not in its
        queue until the reason for that is over."""
        if not (is_true(wl, "Evicted") and is_true(wl, "QuotaReserved")):
            return False
        reason = (condition(wl, "Evicted") or {})["reason"]
        self._set(wl, "Requeued", "False", reason)
        self._unset_quota(wl, "Pending")
        return True

    # pkg/scheduler and pkg/cache/queue

    def schedule(self) -> bool:
        """(*Manager).Heads, then (*Scheduler).schedule: of each queue the first that fits, or of a StrictFIFO one the
        head alone."""
        done = False
        for queue in self.store.list(self.store.resource("clusterqueues"), "", "", ""):
            if _stop(queue) == "None":
                done = self._admit_of(queue) or done
        return done

    def _admit_of(self, queue: Json) -> bool:
        strict = queue["spec"].get("queueingStrategy") == "StrictFIFO"
        for wl in sorted((w for w in self._workloads() if self._pends_in(w, queue)), key=self._order):
            if self._free(queue) >= _gpus(wl):
                return self._write(wl, lambda found: self.set_quota_reservation(found, queue))
            if strict:
                return False
        return False

    def _pends_in(self, wl: Json, queue: Json) -> bool:
        """workload.IsAdmissible, in a LocalQueue of this ClusterQueue that is not stopped."""
        local, found = self._local_queue(wl), condition(wl, "Requeued")
        waits = wl.get("status", {}).get("requeueState") or {}
        return (
            local is not None
            and local["spec"]["clusterQueue"] == queue["metadata"]["name"]
            and _stop(local) == "None"
            and wl["spec"].get("active", True)
            and not is_true(wl, "QuotaReserved")
            and not (found and found["status"] == "False")
            and not waits.get("requeueAt")
        )

    def _order(self, wl: Json) -> tuple[int, str, str]:
        """queueOrderingFunc: by priority, then Ordering.GetQueueOrderTimestamp: what a check evicted goes last."""
        found = condition(wl, "Evicted")
        evicted = found is not None and found["status"] == "True" and found["reason"] == AC_EVICTED
        at = found["lastTransitionTime"] if evicted and found else wl["metadata"]["creationTimestamp"]
        return -wl["spec"].get("priority", 0), at, wl["metadata"]["name"]

    def set_quota_reservation(self, wl: Json, queue: Json) -> None:
        """workload.SetQuotaReservation: Evicted is over, and its checks are the queue's."""
        name, flavors = queue["metadata"]["name"], queue["spec"]["resourceGroups"][0]["flavors"]
        sets = [
            {"name": each["name"], "count": each["count"], "flavors": {"nvidia.com/gpu": flavors[0]["name"]}}
            for each in wl["spec"]["podSets"]
        ]
        wl.setdefault("status", {})["admission"] = {"clusterQueue": name, "podSetAssignments": sets}
        self._set(wl, "QuotaReserved", "True", "QuotaReserved")
        if is_true(wl, "Evicted"):
            self._set(wl, "Evicted", "False", "QuotaReserved")
        self.sync_admission_checks(wl, queue)

    def _free(self, queue: Json) -> int:
        name = queue["metadata"]["name"]
        quota = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
        held = (w for w in self._workloads() if is_true(w, "QuotaReserved"))
        mine = [w for w in held if (w["status"].get("admission") or {}).get("clusterQueue") == name]
        return int(quota) - sum(_gpus(w) for w in mine)

    def _unset_quota(self, wl: Json, reason: str) -> None:
        """workload.UnsetQuotaReservationWithCondition."""
        self._set(wl, "QuotaReserved", "False", reason)
        wl["status"]["admission"] = None
        if is_true(wl, "Admitted"):
            self._set(wl, "Admitted", "False", "NoReservation")

    def _local_queue(self, wl: Json) -> Json | None:
        resource = self.store.resource("localqueues")
        key = (wl["metadata"]["namespace"], wl["spec"].get("queueName", ""))
        return self.store.read(resource, key) if self.store.has(resource, key) else None

    def _cluster_queue(self, wl: Json) -> Json | None:
        local, resource = self._local_queue(wl), self.store.resource("clusterqueues")
        key = ("", local["spec"]["clusterQueue"]) if local is not None else ("", "")
        return self.store.read(resource, key) if self.store.has(resource, key) else None

    def _set(self, wl: Json, kind: str, status: str, reason: str, message: str = "") -> None:
        """meta.SetStatusCondition: the time moves where the status does."""
        conditions = wl["status"].setdefault("conditions", [])
        found = condition(wl, kind)
        if found is None:
            found = {"type": kind, "status": "", "lastTransitionTime": ""}
            conditions.append(found)
        if found["status"] != status:
            found["lastTransitionTime"] = _text(self.now())
        found.update(status=status, reason=reason, message=message)


def condition(wl: Json, kind: str) -> Json | None:
    """A condition of a Workload."""
    found: list[Json] = wl.get("status", {}).get("conditions") or []
    return next((each for each in found if each["type"] == kind), None)


def is_true(wl: Json, kind: str) -> bool:
    """Whether it is there and True."""
    found = condition(wl, kind)
    return found is not None and found["status"] == "True"


def _stop(queue: Json) -> str:
    return str(queue["spec"].get("stopPolicy", "None"))


def _checks(wl: Json) -> list[Json]:
    return wl["status"].get("admissionChecks") or []


def _gpus(wl: Json) -> int:
    total = 0
    for each in wl["spec"]["podSets"]:
        containers: list[dict[str, Any]] = each["template"]["spec"]["containers"]
        total += each["count"] * sum(int(c["resources"]["limits"].get("nvidia.com/gpu", 0)) for c in containers)
    return total


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
