"""Machines that we asked Karpenter for by claims, given to their NodePools: Karpenter counts them and ends idle ones.

A claim without the label of a NodePool is nobody's but ours: given back it carries that label, and so does its node,
for Karpenter goes by the node's once it is registered. No job ends by it: each pod that is no daemon's is marked
do-not-disrupt first, so that Karpenter moves none of those that run. Sources: kubernetes-sigs/karpenter,
``StateNode.ValidateNodeDisruptable``, ``ValidatePodsDisruptable``, and ``nodeclaim/disruption``.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import NODES, PODS, Lists, pod_path
from pilotlight.adapters.cluster.kubernetes.nodepool_limits import NODE_CLAIMS, NODE_POOLS
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.karpenter_objects import HANDED_BACK, NodeClaim
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.pods.eviction_blocks import DO_NOT_DISRUPT
from pilotlight.codec.kubernetes.pods.pods import is_daemon, is_mirror
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.errors import Conflict, Forbidden
from pilotlight.facts.labels import KARPENTER_NODE_POOL, POOL
from pilotlight.facts.money.gates import LIMITED
from pilotlight.tools.install.hand_over import Told
from pilotlight.units import count_of

STAMP = "%Y-%m-%dT%H:%M:%SZ"
_ANY = typed_json.decoder(dict[str, Any])
_CLAIMS, _PODS = listing(NodeClaim), listing(Pod)

Claims = Mapping[str, Sequence[NodeClaim]]
"""Claims by the NodePool whose template they were made of."""


def our_claims(api: Api) -> Claims:
    """Those that are still ours alone; none where there is no Karpenter, or it may not be seen."""
    return _by_pool(api, given=False)


def _by_pool(api: Api, *, given: bool) -> Claims:
    try:
        every = Lists(api).all(NODE_CLAIMS, _CLAIMS)
    except (Missing, Forbidden):
        return {}
    found = defaultdict[str, list[NodeClaim]](list)
    for claim in every:
        pool = claim.metadata.labels.get(POOL, "")
        whose = HANDED_BACK in claim.metadata.annotations if given else not claim.nodepool
        if pool and whose and claim.metadata.deletion_timestamp is None:
            found[pool].append(claim)
    return found


def may_be_given(api: Api, names: Collection[str]) -> list[str]:
    """NodePools of which we made claims that are ours alone; where some are named, those of them that are there."""
    claims = our_claims(api)
    return [name for name in names if name in claims or _node_pool(api, name)] if names else sorted(claims)


def _node_pool(api: Api, name: str) -> dict[str, Any] | None:
    try:
        return api.get(f"{NODE_POOLS}/{quote(name)}", _ANY)
    except (Missing, Forbidden):
        return None


def give_claims(api: Api, names: Collection[str], now: datetime, *, dry_run: bool) -> Iterator[Told]:
    """Give these NodePools what was made by their templates. What fails half-way is gone on with by a rerun."""
    for name in names:
        lines = list(_give_pool(api, name, now, dry_run))
        yield from lines or [Told(pool=f"NodePool {name}", verb="nothing to do", why="is given back already")]


def _give_pool(api: Api, name: str, now: datetime, dry: bool) -> Iterator[Told]:
    called, does = f"NodePool {name}", _does(dry)
    pool = _node_pool(api, name)
    if pool is None:
        why = "there is none by that name, or no right to it: make it again, or delete its NodeClaims by hand"
        yield Told(pool=called, verb="nothing to do", why=why)
        return
    if not (pool["metadata"].get("annotations") or {}).get(HANDED_BACK):
        at = f"{now:{STAMP}}"  # First: from here on no tick of ours buys or ends anything there.
        if not dry:
            _patch(api, f"{NODE_POOLS}/{quote(name)}", {"annotations": {HANDED_BACK: at}})
        yield Told(pool=called, verb=does, setting="handed back", now=at)
    for claim in our_claims(api).get(name, ()):
        if kept := _keep_pods(api, claim, dry):
            where = f"NodeClaim {claim.metadata.name}"
            yield Told(pool=where, verb=does, setting=f"{DO_NOT_DISRUPT} of {count_of(kept, 'pod')}", now="true")
        if not dry:
            _mark(api, claim, name, now)
        yield Told(pool=f"NodeClaim {claim.metadata.name}", verb=does, setting=KARPENTER_NODE_POOL, now=name)
    limit = str((pool["spec"].get("limits") or {}).get(LIMITED, ""))
    if limit == "0" or pool["spec"].get("replicas") == 0:
        why = "Karpenter buys nothing by it until you set what it may"
        is_ = f"limit of {LIMITED}" if limit == "0" else "replicas"
        yield Told(pool=called, verb="kept", setting=is_, now="0", why=why)


def _does(dry: bool) -> Literal["set", "would set"]:
    return "would set" if dry else "set"


def _keep_pods(api: Api, claim: NodeClaim, dry: bool) -> int:
    """Mark the pods of a claim's node; how many had no mark."""
    node = claim.status.node_name
    found = Lists(api).all(PODS, _PODS, fieldSelector=f"spec.nodeName={node}") if node else ()
    works = [pod for pod in found if not (pod.is_finished or is_daemon(pod) or is_mirror(pod))]
    bare = [pod for pod in works if DO_NOT_DISRUPT not in pod.metadata.annotations]
    for pod in () if dry else bare:
        with suppress(Missing, Conflict):  # It has ended; another may have its name.
            meta = {"uid": pod.metadata.uid, "annotations": {DO_NOT_DISRUPT: "true"}}
            _patch(api, pod_path(pod.metadata.namespace, pod.metadata.name), meta)
    return len(bare)


def _mark(api: Api, claim: NodeClaim, pool: str | None, at: datetime | None) -> None:
    """Whose a claim and its node are: a NodePool's, or ours again. One that has gone meanwhile is nobody's."""
    label, note = {KARPENTER_NODE_POOL: pool}, {HANDED_BACK: at and f"{at:{STAMP}}"}
    with suppress(Missing):
        if claim.status.node_name:
            _patch(api, f"{NODES}/{quote(claim.status.node_name)}", {"labels": label})
    with suppress(Missing):
        _patch(api, f"{NODE_CLAIMS}/{quote(claim.metadata.name)}", {"labels": label, "annotations": note})


def take_claims(api: Api, names: Collection[str], *, dry_run: bool) -> Iterator[Told]:
    """Make those of these NodePools ours again. Marks of pods stay: we move none of them either."""
    for name, claims in sorted(_by_pool(api, given=True).items()):
        for claim in claims if name in names else ():
            if not dry_run:
                _mark(api, claim, None, None)
            called = f"NodeClaim {claim.metadata.name}"
            yield Told(pool=called, verb=_does(dry_run), setting=KARPENTER_NODE_POOL, was=name)


def _patch(api: Api, path: str, meta: dict[str, Any]) -> None:
    api.ask("PATCH", path, NOTHING, {"metadata": meta}, MERGE_PATCH)
