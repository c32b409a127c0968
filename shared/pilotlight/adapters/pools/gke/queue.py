"""GKE's queue for node pools of queued provisioning: all nodes of a step by one ProvisioningRequest, or none.

A request is named by its step, so that what is sent twice asks once. Each of its nodes has a name here, ``REQUEST.N``:
to give back one that waits, or that failed, is to delete the request, for its nodes come together or not at all.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from pilotlight.adapters.pools.gke.node_pools import NodePool
from pilotlight.adapters.pools.gke.own_names import is_own, own_name, stem
from pilotlight.adapters.pools.gke.refusals import SHORT
from pilotlight.codec.kubernetes.pages import Listing, listing
from pilotlight.codec.kubernetes.provisioning_requests import ProvisioningRequest, pod_template, provisioning_request
from pilotlight.errors import BadRequest, Busy, Conflict, Denied, QuotaExceeded, Retry, Unsure
from pilotlight.facts.labels import POOL
from pilotlight.facts.nodes.pool_state import AskedNode, Booting, LateRefusal, PoolState
from pilotlight.ports.clouds import OPEN, Gate, KubernetesApi

NAMESPACE = "pilotlight"
REQUESTS = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{NAMESPACE}/provisioningrequests"
TEMPLATES = f"/api/v1/namespaces/{NAMESPACE}/podtemplates"
SHORTAGES = frozenset(
    ("ResourcePoolExhausted", "QueuingInfeasibleNoCapacity", "WaitTimeExceeded", "IPSpaceExhausted", "ZoneNotSupported")
)
QUOTAS = frozenset(("QuotaExceeded", "LimitExceeded"))
_REQUESTS: Listing[ProvisioningRequest] = listing(ProvisioningRequest)


def read_queue(api: KubernetesApi, pool: NodePool) -> "Queue":
    """A node pool's queue as it is now."""
    return Queue(api, pool, _look(api, pool))


class Queue(NamedTuple):
    """Requests for nodes of one node pool, as they were read."""

    api: KubernetesApi
    pool: NodePool
    requests: Sequence[ProvisioningRequest]

    def names(self, instance: str) -> bool:
        """True for a name of the queue's: an instance of Compute Engine has no dot in its name."""
        return "." in instance

    def has(self, instance: str) -> bool:
        """True while a node waits, or its request failed and is there still."""
        return any(instance in _nodes(one) for one in self.requests if not one.over)

    def join_to(self, state: PoolState) -> PoolState:
        """The pool with what its queue holds: nodes that wait, and those that failed and are called off."""
        asked = [one for one in self.requests if not one.over]
        waits = [one for one in asked if not one.failed]
        failed = [one for one in asked if one.failed]
        return replace(
            state,
            desired=state.desired + sum(one.nodes for one in asked),
            queued=tuple(
                Booting(instance=name, requested_at=one.metadata.created_at) for one in waits for name in _nodes(one)
            ),
            refused=(*state.refused, *(name for one in failed for name in _nodes(one))),
            asked=tuple(
                AskedNode(name=one.metadata.name, joined=one.over or bool(one.failed)) for one in self.requests
            ),
            refusal=_refusal(failed[0]) if failed else state.refusal,
        )

    def ask(self, size: int, to: int, step: str, gate: Gate) -> AskedNode:
        """Ask for nodes up to a size. What is there by that name was asked for by this very step.

        The template asks for nothing by itself, and costs nothing: it is there before the gate is asked.
        """
        called = self.pool.name
        gpus = sum(int(one.accelerator_count) for one in self.pool.config.accelerators)
        if not gpus:
            raise BadRequest(f"GKE names no accelerators of node pool {called}: its queue cannot be asked for GPUs")
        if any(one.divided for one in self.pool.config.accelerators):
            raise BadRequest(f"node pool {called} divides its GPUs: its queue would put several pods on a node")
        if (most := self.pool.most) is not None and to > most:
            raise QuotaExceeded(
                f"the autoscaler of node pool {called} makes at most {most}, and {to} are wanted: its queue would "
                f"keep them waiting; raise its --total-max-nodes"
            )
        template = f"{stem(called)}-{gpus}-gpus"
        self.api.change("POST", TEMPLATES, pod_template(template, called, gpus), OPEN)
        name = self._name(step)
        if not self.api.change("POST", REQUESTS, provisioning_request(name, called, template, to - size), gate):
            self._see_that_it_is_there(name)
        return AskedNode(name=name)

    def _see_that_it_is_there(self, name: str) -> None:
        """After a 409: a request of that name is this step's, and without one nothing was asked for."""
        try:
            there = any(one.metadata.name == name for one in _look(self.api, self.pool))
        except (Denied, Retry) as no:
            raise Unsure(f"ProvisioningRequest {name} may be there: {no}") from None
        if not there:
            raise Conflict(
                f"POST of ProvisioningRequest {name}: 409, and it is not there: see who answers so, a webhook?"
            )

    def came(self, step: str) -> int:
        """Nodes that a step asked for, or got; 0 where its request never came, or is gone."""
        return sum(one.nodes for one in self.requests if one.metadata.name == self._name(step))

    def _name(self, step: str) -> str:
        return own_name(self.pool.name, step)

    def call_off(self, instance: str, gate: Gate) -> None:
        """Delete the request of a node. One that got its nodes meanwhile stays: they are its group's."""
        found = next((one for one in self.requests if instance in _nodes(one)), None)
        if found is None or found.over:
            return
        meta = found.metadata
        read = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": read}
        if self.api.change("DELETE", f"{REQUESTS}/{quote(meta.name)}", body, gate):
            return
        if any(one.metadata.uid == meta.uid for one in _look(self.api, self.pool)):
            raise Busy(f"ProvisioningRequest {meta.name} has changed since it was read: look again")


def _look(api: KubernetesApi, pool: NodePool) -> Sequence[ProvisioningRequest]:
    """Requests of ours, by our label or, where another hand took that off, by a step's name.

    Of one that cannot be read its pool is not known: nothing is bought there.
    """
    page = api.get(REQUESTS, _REQUESTS)
    for odd in page.unread:
        raise BadRequest(f"ProvisioningRequest {odd.subject} cannot be read: {odd.message}; mend or delete it")
    return [
        one
        for one in page.items or ()
        if one.metadata.deletion_timestamp is None
        and (one.metadata.labels.get(POOL) == pool.name or is_own(pool.name, one.metadata.name))
    ]


def _nodes(request: ProvisioningRequest) -> list[str]:
    """Names of its nodes, while they are none."""
    return [f"{request.metadata.name}.{n}" for n in range(request.nodes)]


def _refusal(request: ProvisioningRequest) -> LateRefusal:
    name, (code, message) = request.metadata.name, request.failed or ("", "")
    said = f"ProvisioningRequest {name}: {code}: {message}"[:240]
    return LateRefusal(identity=f"{name}/{request.metadata.uid}", reason=_reason(code, message), message=said)


def _reason(code: str, message: str) -> Literal["no-capacity", "quota", "other"]:
    if code in QUOTAS:
        return "quota"
    return "no-capacity" if code in SHORTAGES or any(short in message for short in SHORT) else "other"
