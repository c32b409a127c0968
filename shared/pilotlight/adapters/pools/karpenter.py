"""NodeClaims of Karpenter: a machine is asked for by a name of ours, and given back by deleting its claim.

A pool is a NodePool that buys nothing by itself (its limit of GPUs is 0): its template says how machines are made.
Names are hashes of the step, so that what is sent twice makes nothing twice. Karpenter deletes a claim as soon as its
provider has no machine, after 5 minutes without a launch, and after 15 without a node: each is told by its name while
it is there, and one that is gone was refused. Where Karpenter is silent one that is not launched is called off by name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pilotlight.codec.kubernetes.karpenter_objects import (
    HANDED_BACK,
    GatedNodePool,
    NodeClaim,
    gate_state,
    live_ones,
    made_by,
    why_unread,
)
from pilotlight.codec.kubernetes.node_claims import (
    HASH,
    SHORT,
    ClaimEvent,
    claim_name,
    ending_of,
    is_proven,
    node_claim,
    shortage,
    stem,
    step_of,
    told_of,
    with_label,
)
from pilotlight.codec.kubernetes.nodes.gpu_models import instance_id
from pilotlight.codec.kubernetes.pages import Listing, ListOf, listing
from pilotlight.errors import BadRequest, Busy, Conflict, Denied, Forbidden, PilotlightError, Retry, Unsure
from pilotlight.facts.labels import KARPENTER_NODE_POOL, POOL
from pilotlight.facts.money.gates import LIMITED
from pilotlight.facts.nodes.pool_state import (
    AskedNode,
    Booting,
    InstanceState,
    PoolRules,
    PoolState,
)
from pilotlight.facts.policy import PoolPolicy
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, KubernetesApi, SizeGate

GROUP = "/apis/karpenter.sh/v1"
EVENTS = "/api/v1/namespaces/default/events"
"""Events of objects that have no namespace."""
UNSERVED = (
    "karpenter.sh/v1 is not served: install Karpenter's CRDs and Karpenter again; where they are gone for good, end "
    "the machines of its claims at their cloud, for they go on billing"
)
AZURE = "karpenter.azure.com"
UNLISTED = "Azure's provider lists no machine whose claim is of no NodePool, and ends it where its node is not ready"
"""karpenter-provider-azure, ``launchtemplate/tags.go`` and ``instance/azureresourcegraphlist.go``: a machine is listed
by a tag that its claim's label makes; kubernetes-sigs/karpenter, ``nodeclaim/garbagecollection``, ends the others."""
UNHEARD = "nobody says why; see that Karpenter runs"
T = TypeVar("T")
Claims = Iterable[NodeClaim]
_NODE_POOLS: Listing[GatedNodePool] = listing(GatedNodePool)
_CLAIMS: Listing[NodeClaim] = listing(NodeClaim)
_EVENTS: Listing[ClaimEvent] = listing(ClaimEvent)


class KarpenterPools:
    """The Pools port of a cluster's NodePools, by the policy's pools. Nothing is asked for by one that is a gate, and
    claims of ours from before it was one go back."""

    cloud = ""

    def __init__(self, api: KubernetesApi | None, pools: Mapping[str, PoolPolicy]) -> None:
        self._api = api
        self._pools = dict(pools) if api is not None else {}
        self._gates = frozenset(name for name, pool in self._pools.items() if pool.nodepool)
        self._lock = Lock()

    def describe(self) -> Sequence[PoolState]:
        """Every pool that has a NodePool, or claims of one. What is a node already is among what is on its way. Our
        claims are known though NodePools do not answer, and go back as ever."""
        if not self._pools:
            return ()
        direct = self._pools.keys() - self._gates
        try:
            claims = self._claims()
        except (Denied, Retry) as no:
            if direct:
                raise
            return [self._unread_gate(name, no) for name in self._pools]
        short, (found, silent) = (self._shortages(), self._seen_node_pools()) if direct else ((), ({}, ""))
        asked = direct if silent else found.keys()
        there = [name for name in self._pools if name in asked or self._mine(name, claims)]
        return [self._state(name, found.get(name), claims, short, silent) for name in there]

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        mine = self._mine(pool)
        claim = _named(mine, instance)
        if claim is None or claim.unread:
            return None if any(one.unread for one in mine) else InstanceState(there=False)
        meta, joined = claim.metadata, bool(claim.status.node_name)
        goes = meta.deletion_timestamp is not None
        return InstanceState(there=True, created_at=claim.billed_from, going=goes, runs=joined and not goes)

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        with self._lock:
            found = self._node_pools().get(pool) if pool in self._pools.keys() - self._gates else None
            if found is None:
                raise BadRequest(self._missing(pool))
            claims = self._claims()
            mine = self._mine(pool, claims)
            size = len(live_ones(mine))
            if size >= to:
                return self._state(pool, found, claims, ())
            if at := _given(found):
                again = f"pilotlight takeover --pool {pool} takes it again"
                raise BadRequest(f"NodePool {self._called(pool)} was handed back at {at}: {again}")
            if no := why_unread(mine) or _closed(found):
                raise BadRequest(no)
            if found.unready:
                raise Denied(f"NodePool {self._called(pool)}: {found.unready}"[:240])
            has = max(size, to - most)
            steps, rules = self._steps(pool, token or str(uuid4()), range(has + 1, to + 1)), self._pools[pool]
            names = [claim_name(self._called(pool), step) for step in steps]
            for n, step in enumerate(steps):
                body = node_claim(found, self._called(pool), step, rules.instance_type, rules.capacity_type, zone)
                self._create(body, partial(gate, size + len(names)) if not n else OPEN, first=not n)
            return PoolState(
                name=pool, desired=size + len(names), asked=tuple(AskedNode(name=name, zone=zone) for name in names)
            )

    def came(self, pool: str, to: int, token: str) -> int | None:
        live = {claim.metadata.name for claim in live_ones(self._claims())} if pool in self._pools else set[str]()
        return len(
            live.intersection(
                claim_name(self._called(pool), step) for step in self._steps(pool, token, range(1, to + 1))
            )
        )

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        with self._lock:
            mine = self._mine(pool)
            claim = _named(mine, instance)
            if (claim is None or claim.unread) and (no := why_unread(mine)):
                raise BadRequest(no)
            if claim is None or claim.metadata.deletion_timestamp is not None or self._api is None:
                return
            name, meta = claim.metadata.name, claim.metadata
            if claim.nodepool:
                raise BadRequest(f"NodeClaim {name} is NodePool {claim.nodepool}'s, which ends it by itself")
            # Its name may be another's later. One that is called off is launched by nobody in between.
            read = {"uid": meta.uid, **({"resourceVersion": meta.resource_version} if instance == name else {})}
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": read}
            if not self._api.change("DELETE", f"{GROUP}/nodeclaims/{quote(name)}", options, gate):
                now = _named(self._mine(pool), name)
                if now is not None and now.metadata.uid == meta.uid:
                    raise Busy(f"NodeClaim {name} has changed since it was read: look again")

    def _create(self, body: Mapping[str, Any], gate: Gate, *, first: bool) -> None:
        """Ask for one. What is there by that name was asked for by this very step: a 409 without it made nothing."""
        assert self._api is not None
        name = body["metadata"]["name"]
        try:
            if not self._api.change("POST", f"{GROUP}/nodeclaims", body, gate) and not self._is_there(name):
                raise Conflict(f"POST of NodeClaim {name}: 409, and it is not there: see who answers so, a webhook?")
        except PilotlightError as no:
            raise no if first else Unsure(f"some of it was asked for: {no}") from None

    def _is_there(self, name: str) -> bool:
        """Whether one that was asked for is there, whoever took its label off."""
        try:
            page = self._list("nodeclaims", _CLAIMS, fieldSelector=f"metadata.name={name}")
            return bool(page.items or page.unread)
        except (Denied, Retry) as no:
            raise Unsure(f"NodeClaim {name} may be there: {no}") from None

    def _called(self, pool: str) -> str:
        rules = self._pools.get(pool)
        return (rules.nodepool or rules.cluster_pool if rules is not None else "") or pool

    def _node_pools(self) -> Mapping[str, GatedNodePool]:
        """By pool those that are there."""
        found = {pool.metadata.name: pool for pool in self._list("nodepools", _NODE_POOLS).items or ()}
        asked = (name for name in self._pools if name not in self._gates)
        return {name: found[called] for name in asked if (called := self._called(name)) in found}

    def _seen_node_pools(self) -> tuple[Mapping[str, GatedNodePool], str]:
        """Those that are there, and why they do not answer."""
        try:
            return self._node_pools(), ""
        except Retry as no:
            return {}, f"Karpenter's NodePools do not answer: {no}"

    def _claims(self) -> Sequence[NodeClaim]:
        """Those of ours, and what no pool has. One that cannot be read is one, and its pool is not seen whole."""
        ours = self._list("nodeclaims", _CLAIMS, labelSelector=POOL).items or ()
        bare = self._list("nodeclaims", _CLAIMS, labelSelector=f"!{POOL},!{KARPENTER_NODE_POOL}").items or ()
        return [self._by_proof(one) for one in (*ours, *bare)]

    def _by_proof(self, claim: NodeClaim) -> NodeClaim:
        """A claim as of the pool whose step its name proves, whatever another hand did to its label. Where the policy
        calls that pool otherwise by now it is of the one whose NodePool its name begins with."""
        pool, label = step_of(claim).rpartition("/")[0].rpartition("/")[2], claim.metadata.labels.get(POOL)
        every = [self._called(one) for one in self._pools]
        known = [self._called(pool)] if pool in self._pools else every if label not in every else []
        called = next((one for one in known if is_proven(claim, one)), label)
        return claim if called in (None, label) else with_label(claim, called)

    def _mine(self, pool: str, claims: Claims | None = None) -> list[NodeClaim]:
        """Claims of a pool; of a gate those that Karpenter has not made."""
        if pool not in self._pools:
            return []
        called = self._called(pool)
        mine = [
            one for one in (self._claims() if claims is None else claims) if one.metadata.labels.get(POOL) == called
        ]
        return made_by("", mine) if pool in self._gates else mine

    def _list(self, kind: str, shape: Listing[T], **query: str) -> ListOf[T]:
        assert self._api is not None
        try:
            return self._api.get(f"{GROUP}/{kind}", shape, **query)
        except BadRequest as no:
            raise BadRequest(f"{UNSERVED}: {no}") from None

    def _shortages(self) -> Sequence[ClaimEvent]:
        """What Karpenter said of claims that no machine was left for, the newest first; nothing without the right."""
        assert self._api is not None
        asked = f"involvedObject.kind=NodeClaim,reason={SHORT}"
        try:
            found = self._api.get(EVENTS, _EVENTS, fieldSelector=asked).items or []
        except (Forbidden, Retry):
            return ()
        return sorted((one for one in found if one.at), key=lambda one: str(one.at), reverse=True)

    def _unread_gate(self, name: str, no: PilotlightError) -> PoolState:
        why = f"its NodeClaims cannot be read: {no}"
        rules = PoolRules(group=self._called(name), closed=why, silent=isinstance(no, Retry), starves=True)
        return PoolState(name=name, desired=0, unread=why, hidden=True, rules=rules)

    def _state(
        self, name: str, pool: GatedNodePool | None, claims: Claims, short: Iterable[ClaimEvent], silent: str = ""
    ) -> PoolState:
        odd = why_unread(mine := self._mine(name, claims))
        live, going = live_ones(mine), [claim for claim in mine if claim.metadata.deletion_timestamp is not None]
        said = [shortage(told) for told in short if self._is_ours(told, name)]
        return PoolState(
            name=name,
            desired=len(live),
            booting=tuple(_boots(claim) for claim in mine if _on_its_way(claim)),
            refusal=next(iter(said), None),
            asked=tuple(map(_asked, live)),
            ended=(*(ending_of(claim) for claim in going if not claim.status.node_name), *said),
            unread=odd,
            hidden=bool(odd),
            rules=self._rules(name, pool, live, odd, silent),
        )

    def _rules(
        self, name: str, pool: GatedNodePool | None, live: Sequence[NodeClaim], unread: str, silent: str
    ) -> PoolRules:
        """Where nothing may be bought, or the NodePool is gone, our claims go back as ever: nobody else ends them."""
        told = _closed(pool) if pool is not None else silent or self._missing(name)
        return PoolRules(
            group=self._called(name),
            closed=unread or ("" if name in self._gates else told),
            starves=bool(unread or silent),
            silent=bool(silent and not unread),
            handed_back=_given(pool) if pool is not None else "",
            gives=tuple(
                _instance(claim) or claim.metadata.name for claim in live if not (claim.nodepool or claim.unread)
            ),
            forgets=True,
        )

    def _missing(self, pool: str) -> str:
        return f"Karpenter has no NodePool {self._called(pool)}: create it, or mend pools.{pool}"

    def _is_ours(self, told: ClaimEvent, pool: str) -> bool:
        """Whether it is of a claim of the pool's, which may be gone."""
        return bool(
            re.fullmatch(rf"{re.escape(stem(self._called(pool)))}-[0-9a-f]{{{HASH}}}", told.involved_object.name)
        )

    def _steps(self, pool: str, step: str, numbers: range) -> list[str]:
        """What the names of a step's claims are hashes of."""
        return [f"{step}/{pool}/{n}" for n in numbers]


def _named(claims: Claims, instance: str) -> NodeClaim | None:
    """A claim, by its name or by its instance."""
    return next((claim for claim in claims if instance in (claim.metadata.name, _instance(claim))), None)


def _on_its_way(claim: NodeClaim) -> bool:
    """Launched; of those that go, what costs: a node that is gone by force leaves its machine."""
    return claim.costs if claim.metadata.deletion_timestamp is not None else bool(claim.status.provider_id)


def _boots(claim: NodeClaim) -> Booting:
    going = claim.metadata.deletion_timestamp
    return Booting(instance=_instance(claim), requested_at=claim.billed_from, going=going)


def _asked(claim: NodeClaim) -> AskedNode:
    """One that was given to its NodePool is Karpenter's, which ends it as it likes; an unread one may be a node."""
    name, instance, why = claim.metadata.name, _instance(claim), claim.unlaunched
    joined = bool(claim.status.node_name or claim.nodepool or claim.unread)
    waits = None if why is None else told_of(claim, "late", f"not launched in time: {why or UNHEARD}")
    made_at = claim.billed_from if instance else None
    return AskedNode(name=name, instance=instance, made_at=made_at, zone=claim.zone, joined=joined, waits=waits)


def _instance(claim: NodeClaim) -> str:
    return instance_id(claim.status.provider_id) if claim.status.provider_id else ""


def _given(pool: GatedNodePool) -> str:
    """When a NodePool's machines were given to it, and all further ones; empty where they are ours."""
    return pool.metadata.annotations.get(HANDED_BACK, "")[:20]


def _closed(pool: GatedNodePool) -> str:
    """Why nothing may be asked for by a NodePool's template; empty where it may."""
    name = pool.metadata.name
    if pool.spec.template.spec.node_class_ref.group == AZURE:
        return f"{UNLISTED}: write cluster_pool: karpenter:{name} to hold its dollars alone"
    if pool.spec.replicas == 0 or gate_state(pool, ()).limit == 0:
        return ""
    return (
        f"Karpenter buys by NodePool {name} itself: set its spec.limits {LIMITED} to 0, or write "
        f"cluster_pool: karpenter:{name} to hold its dollars alone"
    )
