"""Pools in which nothing is bought: GKE works on them, or another hand would undo or end what is done there.

While GKE works, nothing is given back either: both colours of an upgrade are listed, and it waits a while. In any other
pool what we asked for goes back, or its group would buy a stock-out hours later and nobody would end an idle node.

That is safe beside an autoscaler too, for instances by names of ours: ``deleteInstances`` takes the named one alone and
lowers the size by it; the autoscaler reads sizes anew at each of its looks, and asks for no node that no pod waits for
(but up to its own minimum, by names of the group's). Names that are not ours are its nodes: those it gives back itself.
"""

from datetime import datetime
from typing import NamedTuple

from pilotlight.adapters.pools.gke.groups import Seen
from pilotlight.adapters.pools.gke.node_pools import Cluster, NodePool
from pilotlight.errors import PilotlightError
from pilotlight.units import count_of

STEADY = ("RUNNING", "RUNNING_WITH_ERROR")
"""States of a pool that GKE does not work on; an error of an earlier size does not stop the next."""
BROKEN = "ERROR"
"""It may be unusable, says the document; GKE does nothing about it by itself."""
GOING = ("PROVISIONING", "STOPPING", BROKEN)
"""States of a cluster that is not there yet, or is deleted; of ``ERROR``, says the document, by GKE itself."""
BY_CLASS = "cloud.google.com/compute-class"
"""The label of the nodes of a ComputeClass."""
BLUE_GREEN = "BLUE_GREEN"
NODES_STAY = "NO_MINOR_OR_NODE_UPGRADES"


class Closed(NamedTuple):
    """Why nothing is bought in a pool; ``passes`` by itself where GKE is at work. ``shared``: another makes nodes there
    too, so that those of our names alone are ours. ``cause``: a part of it that could not be read."""

    why: str
    passes: bool = False
    shared: bool = False
    cause: PilotlightError | None = None


def why_closed(cluster: Cluster, pool: NodePool, where: str, now: datetime, *, unasked: str = "") -> Closed | None:
    """Why nothing is bought in a pool, with the way out; None where it may be. ``where`` is for gcloud, ``unasked`` why
    the queue of queued provisioning cannot be asked. Its nodes GKE's autoscaler makes: without it nothing comes."""
    phase = pool.update_info.blue_green_info.phase
    upgraded = phase not in ("", "PHASE_UNSPECIFIED")
    if pool.status == BROKEN and not upgraded:
        said = pool.ails or "look into its status message"
        return Closed(f"node pool {pool.name} has status ERROR: {said}; mend or replace it")
    if pool.status not in STEADY or upgraded:
        at = f"{pool.status}, blue-green {phase}" if phase else pool.status or "no status"
        return Closed(f"GKE works on node pool {pool.name} ({at}): nothing is asked of it until that is over", True)
    if cluster.status in GOING:
        return Closed(
            f"the cluster comes or goes ({cluster.status}): nothing is bought in it", cluster.status != BROKEN
        )
    if no := _made_by_another(cluster, pool, unasked=unasked):
        return no
    update = f"gcloud container node-pools update {pool.name} {where}"
    queued = pool.queued_provisioning.enabled
    if queued and not pool.autoscaling.enabled:
        return Closed(f"the queue of node pool {pool.name} needs its autoscaling: {update} --enable-autoscaling")
    if pool.autoscaling.enabled and not queued:
        why = f"the cluster autoscaler scales node pool {pool.name}: {update} --no-enable-autoscaling"
        return Closed(why, shared=True)
    if pool.management.auto_repair and not _excluded(cluster, now):
        return Closed(
            f"auto-repair recreates nodes of {pool.name}, jobs with them: {update} --no-enable-autorepair; where a "
            f"release channel does not let you, add a maintenance exclusion of scope {NODES_STAY.lower()}"
        )
    return None


def surges(pool: NodePool, where: str) -> str:
    """What an upgrade lights beside a pool, with the command that makes it light none; empty where it lights none. GKE
    takes no strategy for ``SURGE`` (``container.v1``)."""
    settings = pool.upgrade_settings
    rolls = settings.strategy in ("", "NODE_POOL_UPDATE_STRATEGY_UNSPECIFIED", "SURGE")
    if settings.strategy != BLUE_GREEN and not (rolls and settings.max_surge):
        return ""
    more = count_of(settings.max_surge, "node") if rolls else "as many nodes"
    update = f"gcloud container node-pools update {pool.name} {where} --enable-surge-upgrade"
    return (
        f"an upgrade lights {more} beside those of {pool.name}, which no budget holds: "
        f"{update} --max-surge-upgrade 0 --max-unavailable-upgrade 1"
    )


def by_autoscaler(seen: Seen) -> Closed:
    """Why nothing is bought in a pool of whose group Compute Engine's own autoscaler sets the size: it chooses which
    instances go."""
    why = f"autoscaler {seen.autoscaler} of Compute Engine sets the size of group {seen.group.name}"
    update = f"gcloud compute instance-groups managed stop-autoscaling {seen.group.name} --zone {seen.group.zone}"
    return Closed(f"{why}: {update}", shared=True)


def _made_by_another(cluster: Cluster, pool: NodePool, *, unasked: str) -> Closed | None:
    """Why a pool can never be ours, with what to make instead; None where it can."""
    if cluster.autopilot.enabled:
        return Closed("Autopilot buys its nodes by itself: use a Standard cluster, or mode advise", shared=True)
    if pool.autoscaling.autoprovisioned or BY_CLASS in pool.config.labels:
        by = "a ComputeClass" if BY_CLASS in pool.config.labels else "node auto-provisioning"
        why = f"{by} made node pool {pool.name}, and deletes it: create one by hand, and name that"
        return Closed(why, shared=True)
    if pool.queued_provisioning.enabled and unasked:
        return Closed(f"node pool {pool.name} takes queued provisioning alone, which cannot be asked for: {unasked}")
    if pool.config.flex_start and not pool.queued_provisioning.enabled:
        return Closed(
            f"node pool {pool.name} is of flex-start, which has no static size: create one with "
            "--enable-queued-provisioning too, and name that",
            shared=True,
        )
    return None


def _excluded(cluster: Cluster, now: datetime) -> bool:
    """True while GKE is told to leave nodes as they are."""
    return any(
        one.holds_at(now) and one.maintenance_exclusion_options.scope == NODES_STAY
        for one in cluster.maintenance_policy.window.maintenance_exclusions.values()
    )
