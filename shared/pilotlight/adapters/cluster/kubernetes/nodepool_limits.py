"""Limits of GPUs of Karpenter's NodePools, by server-side apply under a field manager of our own.

The value from before ours is kept in an annotation, so that it is found again whatever becomes of our state. Force
takes the field from whoever wrote it; the version that was read must still stand. A change of limits is no drift: they
are no part of the template whose hash nodes carry. Sources: the NodePool CRD of karpenter.sh/v1; Kubernetes'
documentation, "Server-Side Apply".
"""

from collections.abc import Sequence
from urllib.parse import quote

from msgspec.structs import replace

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
from pilotlight.facts.labels import POOL
from pilotlight.facts.money.gates import LIMITED, GateState

KARPENTER = "karpenter.sh/v1"
NODE_POOLS, NODE_CLAIMS = f"/apis/{KARPENTER}/nodepools", f"/apis/{KARPENTER}/nodeclaims"


def read(api: Api, names: Sequence[str]) -> tuple[GateState, ...]:
    """NodePools by their names; one that is not there, or whose claims cannot all be read, says so."""
    lists = Lists(api)
    pools = {pool.metadata.name: pool for pool in lists.all(NODE_POOLS, listing(GatedNodePool))}
    odd = {finding.subject: finding.message for finding in lists.unread}
    made = Lists(api).all(NODE_CLAIMS, listing(NodeClaim))
    missing = "there is no such NodePool: create it, or mend cluster_pool"
    found = (
        gate_state(pools[name], made) if name in pools else unread_state(name, odd.get(name, missing), made)
        for name in names
    )
    return tuple(replace(state, unread=state.unread or _blind(state.nodepool, made)) for state in found)


def _blind(name: str, claims: Sequence[NodeClaim]) -> str:
    """Why the claims of a NodePool are not all read: one is not that is its own, or nobody's."""
    odd = (one for one in claims if one.unread and (one.nodepool == name or not _is_known(one)))
    return next((f"NodeClaim {one.metadata.name}: {one.unread}" for one in odd), "")


def _is_known(claim: NodeClaim) -> bool:
    return bool(claim.nodepool) or POOL in claim.metadata.labels


def set_limit(api: Api, gate: GateState, gpus: int) -> None:
    """Write it. Raises ``Conflict`` where the NodePool has changed since it was read, ``Forbidden``, ``Missing``."""
    notes = {BEFORE: gate.written if gate.before is None else gate.before, WROTE: str(gpus)}
    meta = {"name": gate.nodepool, "resourceVersion": gate.version, "annotations": notes}
    body = {"apiVersion": KARPENTER, "kind": "NodePool", "metadata": meta, "spec": {"limits": {LIMITED: str(gpus)}}}
    query = f"?fieldManager={MANAGER}&force=true"
    api.ask("PATCH", f"{NODE_POOLS}/{quote(gate.nodepool)}{query}", NOTHING, body, APPLY_PATCH)
