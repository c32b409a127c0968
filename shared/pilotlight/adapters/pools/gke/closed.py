"""Pools of which nothing may be asked: GKE works on them, or another hand would undo or end what is done there."""

from datetime import datetime
from typing import NamedTuple

from pilotlight.adapters.pools.gke.groups import Cluster, NodePool

STEADY = ("RUNNING", "RUNNING_WITH_ERROR")
"""States of a pool that GKE does not work on; an error of an earlier size does not stop the next."""
BY_CLASS = "cloud.google.com/compute-class"
"""The label of the nodes of a ComputeClass."""
NODES_STAY = "NO_MINOR_OR_NODE_UPGRADES"


class Closed(NamedTuple):
    """Why a pool is left alone; ``passes`` by itself where GKE is at work."""

    why: str
    passes: bool = False


def why_closed(cluster: Cluster, pool: NodePool, where: str, now: datetime, *, unasked: str = "") -> Closed | None:
    """Why nothing may be asked of a pool, with the way out; None where it may. ``where`` is for gcloud, ``unasked`` why
    the queue of queued provisioning cannot be asked. Its nodes GKE's autoscaler makes: without it nothing comes."""
    phase = pool.update_info.blue_green_info.phase
    if pool.status not in STEADY or phase not in ("", "PHASE_UNSPECIFIED"):
        at = f"{pool.status}, blue-green {phase}" if phase else pool.status or "no status"
        return Closed(f"GKE works on node pool {pool.name} ({at}): nothing is asked of it until that is over", True)
    why = _made_by_another(cluster, pool, unasked=unasked)
    if why:
        return Closed(why)
    update = f"gcloud container node-pools update {pool.name} {where}"
    queued = pool.queued_provisioning.enabled
    if queued and not pool.autoscaling.enabled:
        return Closed(f"the queue of node pool {pool.name} needs its autoscaling: {update} --enable-autoscaling")
    if pool.autoscaling.enabled and not queued:
        return Closed(f"the cluster autoscaler scales node pool {pool.name}: {update} --no-enable-autoscaling")
    if pool.management.auto_repair and not _excluded(cluster, now):
        return Closed(
            f"auto-repair recreates nodes of {pool.name}, jobs with them: {update} --no-enable-autorepair; where a "
            f"release channel does not let you, add a maintenance exclusion of scope {NODES_STAY.lower()}"
        )
    return None


def _made_by_another(cluster: Cluster, pool: NodePool, *, unasked: str) -> str:
    """Why a pool can never be ours, with what to make instead; empty where it can."""
    if cluster.autopilot.enabled:
        return "Autopilot buys its nodes by itself: use a Standard cluster, or mode advise"
    if pool.autoscaling.autoprovisioned or BY_CLASS in pool.config.labels:
        by = "a ComputeClass" if BY_CLASS in pool.config.labels else "node auto-provisioning"
        return f"{by} made node pool {pool.name}, and deletes it: create one by hand, and name that"
    if pool.queued_provisioning.enabled and unasked:
        return f"node pool {pool.name} takes queued provisioning alone, which cannot be asked for: {unasked}"
    if pool.config.flex_start and not pool.queued_provisioning.enabled:
        return (
            f"node pool {pool.name} is of flex-start, which has no static size: create one with "
            "--enable-queued-provisioning too, and name that"
        )
    return ""


def _excluded(cluster: Cluster, now: datetime) -> bool:
    """True while GKE is told to leave nodes as they are."""
    return any(
        one.start_time <= now < one.end_time and one.maintenance_exclusion_options.scope == NODES_STAY
        for one in cluster.maintenance_policy.window.maintenance_exclusions.values()
    )
