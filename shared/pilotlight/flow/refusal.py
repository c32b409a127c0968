"""A cloud could not launch what a pool asked for: its offerings rest, and what waits is planned anew."""

import logging
from typing import TYPE_CHECKING

from pilotlight.errors import Busy
from pilotlight.facts.messages import STALE_S, CapacityFailed, Tick
from pilotlight.flow.answer import Answer
from pilotlight.state_schema.marks import EVENT, Mark
from pilotlight.units import human

if TYPE_CHECKING:
    from pilotlight.facts.policy import Policy
    from pilotlight.flow.deps import Deps

_log = logging.getLogger("pilotlight")


def refusal(deps: "Deps", failed: CapacityFailed, *, dry_run: bool = False) -> Answer:
    """Answer one refusal. One that is known, too old, or of a group that is none of ours changes nothing."""
    claim = f"{deps.name}/{failed.identity}"
    if failed.identity and EVENT.get(deps.state, claim) is not None:
        return Answer(decision="", did=(), why="this refusal was handled already", outcome="known")
    pool = pool_of(deps.policy, failed.group, deps.name)
    why = _of_no_use(deps, failed, pool)
    if why:
        _log.info("refusal of no use", extra={"data": {"group": failed.group, "why": why}})
        return Answer(decision="", did=(), why=why, outcome="known")
    # What is known costs a cold start nothing of this.
    from pilotlight.flow.reconcile import reconcile

    tick = Tick(cluster=deps.name, identity=failed.identity, at=failed.at)
    if dry_run:
        return reconcile(deps, tick, dry_run=True)
    _remember(deps, failed, pool)
    if failed.identity:
        EVENT.put(deps.state, claim, Mark(note=failed.group))
    return reconcile(deps, tick)


def pool_of(policy: "Policy", group: str, cluster: str = "") -> str:
    """The pool that the cloud calls ``group``, or makes it of; or nothing."""
    from pilotlight.facts.nodes.instance_groups import pool_of_group

    names = {rules.cluster_pool or name: name for name, rules in policy.pools.items()}
    return names.get(pool_of_group(group, names, cluster), "")


def _of_no_use(deps: "Deps", failed: CapacityFailed, pool: str) -> str:
    if not pool:
        return f"no pool of the policy is called {failed.group} at its cloud"
    age_s = (deps.now() - failed.at).total_seconds() if failed.at else 0.0
    if age_s > STALE_S:
        return f"pool {pool} was refused {human(age_s)} ago: too long to still hold"
    return ""


def _remember(deps: "Deps", failed: CapacityFailed, pool: str) -> None:
    """Written under the lease, like all of the memory. Raises ``Busy`` while another works on the cluster."""
    from pilotlight.flow.records import lease, ledger, memory_updates

    held = lease.acquire(deps.state, deps.name, f"refusal of {failed.group}")
    if held is None:
        raise Busy("another delivery is at work on this cluster; the refusal is remembered after it")
    try:
        was, now = ledger.recall(deps.state, deps.name), deps.now()
        message = f"{failed.group}: {failed.message}" if failed.message else failed.group
        refused = memory_updates.note_late_refusal(
            was.memory, deps.offerings, pool, failed.zone, failed.reason, message, now
        )
        ledger.remember(deps.state, deps.name, was, refused)
    finally:
        held.release()
