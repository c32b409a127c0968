"""The Cluster port of a real cluster."""

import time
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

import msgspec

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.reads import Found, Reads
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.adapters.http import KEPT
from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.nodes.nodes import is_closed, is_opened
from pilotlight.codec.kubernetes.pods.claimants import Claimants
from pilotlight.codec.kubernetes.pods.pods import is_daemon, is_mirror
from pilotlight.codec.kubernetes.pods.pods_on_nodes import bound_pod
from pilotlight.codec.kubernetes.pods.requests import Asked, read_request
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import BadRequest, Busy, Denied
from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.limits.isolated_objects import SetApart
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import CheckAnswer, QueuedWork
from pilotlight.ports.state import Clock
from pilotlight.units import Seconds, count_of

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.pod_tolerations import TolerationLimit
    from pilotlight.facts.limits.checks import Token
    from pilotlight.facts.money.gates import GateState
    from pilotlight.facts.nodes.first_work import Pull
    from pilotlight.facts.utilisation.reclaim_steps import OwnerState, PodOwner

STOPPING_S: Seconds = 35
"""A drain waits so long for the pods it evicted to stop: Kubernetes' own grace of 30 s, and well within a lease."""
LOOK_S: Seconds = 1


class KubernetesCluster:
    """One cluster through its API server."""

    at_once = KEPT

    def __init__(
        self, api: Api, policy: Policy, clock: Clock, *, pause: Callable[[Seconds], None] = time.sleep
    ) -> None:
        self._api, self._policy, self._clock, self._pause = api, policy, clock, pause
        self._reads = Reads(api, policy)

    @cached_property
    def _limit(self) -> "TolerationLimit":
        from pilotlight.adapters.cluster.kubernetes.pod_tolerations import TolerationLimit

        return TolerationLimit(self._api)

    @property
    def api(self) -> Api:
        """Its API server, which Karpenter's claims are asked of too."""
        return self._api

    def credential(self) -> "Token | None":
        """Claims of the credential in use; None where it says nothing."""
        from pilotlight.adapters.cluster.kubernetes.access.server_access import token_of

        return token_of(self._api.token())

    def observe(self) -> ClusterView:
        return self._viewed(self._reads.look())

    def observe_without(self, apart: Sequence[SetApart]) -> ClusterView:
        from pilotlight.codec.kubernetes.apart_objects import bare

        return self._viewed(self._reads.look_without(partial(bare, apart)))

    def _viewed(self, found: Found) -> ClusterView:
        now = self._clock.now()
        view = view_of(found.pods, found.nodes, found.objects, policy=self._policy, classify=classify, now=now)
        scalers = self._reads.scalers() if view.pending or view.nodes or self._lights_ahead else ()
        view = msgspec.structs.replace(view, scalers=scalers) if scalers else view
        homed = bool(self._policy.homed)
        if not homed and not any(node.home for node in view.nodes):
            return view
        from pilotlight.adapters.cluster.kubernetes import closing_lease

        watched = closing_lease.has_watchman(self._api, now)
        limited = not homed or self._limit.holds(pod for pod in found.pods if not pod.spec.node_name)
        asked, known = found.objects.daemon_sets_known, tuple(found.objects.daemon_sets.values())
        sets = self._reads.daemon_sets() if asked is None else known if asked else None
        return closing_lease.view_for_closing(view, found, sets, self._policy, watched=watched, limited=limited)

    @property
    def _lights_ahead(self) -> bool:
        """True where the policy may light nodes that no pod waits for."""
        return any(rule.does.warm for rule in self._policy.rules) or any(
            pool.spares.warm or pool.min for pool in self._policy.pools.values()
        )

    def cordon(self, node: str, by: str = "") -> None:
        writes.cordon(self._api, node, by)

    def uncordon(self, node: str) -> None:
        writes.uncordon(self._api, node)

    def forget_opened(self, node: str) -> None:
        writes.forget_opened(self._api, node)

    def open(self, node: str) -> None:
        writes.open(self._api, node)

    def name_home(self, node: str, home: str) -> None:
        writes.name_home(self._api, node, home)

    def without_home(self) -> Set[str]:
        from pilotlight.adapters.cluster.kubernetes import closing_lease

        return closing_lease.born_nodes(self._api)

    def tolerate(self, namespace: str, pod: str, uid: str, home: str) -> None:
        from pilotlight.adapters.cluster.kubernetes import pod_tolerations

        pod_tolerations.tolerate(self._api, namespace, pod, uid, home)

    def beat(self) -> None:
        from pilotlight.adapters.cluster.kubernetes import closing_lease

        closing_lease.beat(self._api, self._clock.now())

    def scheduler_beat(self) -> datetime | None:
        from pilotlight.adapters.cluster.kubernetes import scheduler_lease

        return scheduler_lease.last_renewal(self._api)

    def pulls(self, pods: Sequence[BoundPod]) -> "Mapping[str, Pull]":
        from pilotlight.adapters.cluster.kubernetes import pull_reads

        return pull_reads.pulls(self._api, pods)

    def bound_pods(self, node: str) -> Sequence[BoundPod]:
        if is_opened(self._reads.node(node)):
            raise Denied(f"node {node} was opened by hand meanwhile")
        claims = Claimants(self._policy, classify)
        return tuple(bound_pod(asked, Objects(), claims, "") for asked in self._live(node))

    def drain(self, node: str) -> None:
        """Evict all but GPU pods, which are never evicted here, and those that stay with their node; every budget is
        asked before the first goes. Then wait a little: raises ``Busy`` while GPU pods are bound, a budget forbids an
        eviction, or pods still stop."""
        if not is_closed(self._reads.node(node)):
            raise BadRequest(f"node {node} is not cordoned: cordon it before the drain")
        live = [asked for asked in self._live(node) if not _stays(asked.pod)]
        working = [asked for asked in live if asked.holds_gpu]
        if working:
            raise Busy(f"node {node} has {count_of(len(working), 'GPU pod')} bound: they are not evicted")
        going = [asked.pod.metadata for asked in live if asked.pod.metadata.deletion_timestamp is None]
        for only_ask in (True, False):
            for pod in going:
                writes.evict(self._api, pod.namespace, pod.name, pod.uid, node, only_ask=only_ask)
        if live:
            self._until_empty(node)

    def _until_empty(self, node: str) -> None:
        for wait in (LOOK_S,) * int(STOPPING_S / LOOK_S):
            left = [asked.pod.name for asked in self._live(node) if not _stays(asked.pod)]
            if not left:
                return
            self._pause(wait)
        raise Busy(f"node {node}: {', '.join(sorted(left)[:3])} still on it {STOPPING_S:g} s after the eviction")

    def evict(self, namespace: str, pod: str, uid: str, grace_s: Seconds | None = None) -> None:
        node = writes.node_of(self._api, namespace, pod, uid)
        if node:
            writes.evict(self._api, namespace, pod, uid, node, grace_s)

    def delete(self, namespace: str, pod: str, uid: str, grace_s: Seconds) -> None:
        writes.delete(self._api, namespace, pod, uid, grace_s)

    def tell(self, namespace: str, name: str, reason: str, message: str, change: str = "") -> None:
        try:
            about = self._reads.pod(namespace, name) if namespace else self._reads.node(name).metadata
        except BadRequest:
            return  # Nobody is left to be told.
        kind = writes.POD if namespace else writes.NODE
        writes.tell(self._api, about, reason, message, self._clock.now(), change or message, kind=kind)
        if namespace:
            writes.annotate(self._api, about, reason, message)

    def answer_check(self, answer: CheckAnswer) -> None:
        from pilotlight.adapters.cluster.kubernetes import kueue_check_status

        kueue_check_status.answer(self._api, self._reads.kueue, answer, self._clock.now())

    def lets_nothing_pass(self, queue: str) -> bool:
        from pilotlight.adapters.cluster.kubernetes import kueue_check_status

        return kueue_check_status.is_strict(self._api, self._reads.kueue, queue)

    def park(self, work: QueuedWork, why: str) -> None:
        from pilotlight.adapters.cluster.kubernetes import kueue_check_status

        kueue_check_status.set_active(self._api, self._reads.kueue, work, why)

    def tell_of_work(self, work: QueuedWork, reason: str, message: str, change: str) -> None:
        from pilotlight.adapters.cluster.kubernetes import kueue_check_status

        kueue_check_status.tell(self._api, self._reads.kueue, work, reason, message, change, self._clock.now())

    def stop_queue(self, queue: str, why: str) -> bool:
        from pilotlight.adapters.cluster.kubernetes import queue_stop_policy

        return queue_stop_policy.stop(self._api, queue, why)

    def read_gates(self, nodepools: Sequence[str]) -> "Sequence[GateState]":
        from pilotlight.adapters.cluster.kubernetes import nodepool_limits

        return nodepool_limits.read(self._api, nodepools)

    def limit_gate(self, gate: "GateState", gpus: int) -> None:
        from pilotlight.adapters.cluster.kubernetes import nodepool_limits

        nodepool_limits.set_limit(self._api, gate, gpus)

    def owner_of(self, namespace: str, pod: str, uid: str) -> "OwnerState | None":
        from pilotlight.adapters.cluster.kubernetes import pod_owners

        return pod_owners.of_pod(self._api, namespace, pod, uid)

    def owner_now(self, owner: "PodOwner") -> "OwnerState | None":
        from pilotlight.adapters.cluster.kubernetes import pod_owners

        return pod_owners.now(self._api, owner)

    def rest(self, owner: "PodOwner", count: int) -> None:
        from pilotlight.adapters.cluster.kubernetes import pod_owners

        pod_owners.rest(self._api, owner, count, self._clock.now())

    def wake(self, owner: "PodOwner") -> int:
        from pilotlight.adapters.cluster.kubernetes import pod_owners

        return pod_owners.wake(self._api, owner, self._clock.now())

    def _live(self, node: str) -> list[Asked]:
        return [read_request(pod) for pod in self._reads.on_node(node) if not pod.is_finished]


def _stays(pod: Pod) -> bool:
    return is_daemon(pod) or is_mirror(pod)
