"""Limits of GPUs of Karpenter's NodePools, by server-side apply under a field manager of our own.

The value from before ours is kept in an annotation, so that it is found again whatever becomes of our state. Force
takes the field from whoever wrote it; the version that was read must still stand. A change of limits is no drift: they
are no part of the template whose hash nodes carry. Sources: the NodePool CRD of karpenter.sh/v1; Kubernetes'
documentation, "Server-Side Apply".
"""

from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from pilotlight.adapters.cluster.kubernetes.listing import Lists
from pilotlight.adapters.cluster.kubernetes.transport import APPLY_PATCH, NOTHING, Api
from pilotlight.codec.kubernetes.karpenter_objects import (
    BEFORE,
    MANAGER,
    WROTE,
    GatedNodePool,
    NodeClaim,
    gate_state,
    unread_state,
)
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.facts.money.gates import LIMITED, GateState

KARPENTER = "karpenter.sh/v1"
NODE_POOLS, NODE_CLAIMS = f"/apis/{KARPENTER}/nodepools", f"/apis/{KARPENTER}/nodeclaims"


def read(api: Api, names: Sequence[str]) -> tuple[GateState, ...]:
    """NodePools by their names; one that is not there, or whose claims cannot all be read, says so."""
    lists = Lists(api)
    pools = {pool.metadata.name: pool for pool in lists.all(NODE_POOLS, listing(GatedNodePool))}
    odd = {finding.subject: finding.message for finding in lists.unread}
    claims = Lists(api)
    made = claims.all(NODE_CLAIMS, listing(NodeClaim))
    blind = next((f"NodeClaim {one.subject}: {one.message}" for one in claims.unread), "")
    missing = "there is no such NodePool: create it, or mend cluster_pool"
    found = (
        gate_state(pools[name], made) if name in pools else unread_state(name, odd.get(name, missing), made)
        for name in names
    )
    return tuple(msgspec.structs.replace(state, unread=state.unread or blind) for state in found)


def set_limit(api: Api, gate: GateState, gpus: int) -> None:
    """Write it. Raises ``Conflict`` where the NodePool has changed since it was read, ``Forbidden``, ``Missing``."""
    notes = {BEFORE: gate.written if gate.before is None else gate.before, WROTE: str(gpus)}
    meta = {"name": gate.nodepool, "resourceVersion": gate.version, "annotations": notes}
    body = {"apiVersion": KARPENTER, "kind": "NodePool", "metadata": meta, "spec": {"limits": {LIMITED: str(gpus)}}}
    query = f"?fieldManager={MANAGER}&force=true"
    api.ask("PATCH", f"{NODE_POOLS}/{quote(gate.nodepool)}{query}", NOTHING, body, APPLY_PATCH)
