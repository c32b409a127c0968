"""Lists of a cluster's objects, page by page, and the paths that they stand at.

Every list is one consistent read (no ``resourceVersion``), so what was written before it is in it.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from msgspec.structs import force_setattr as put

from pilotlight.adapters.cluster.kubernetes import transport
from pilotlight.adapters.cluster.kubernetes.transport import Api, Decodes, Expired, TooLarge
from pilotlight.codec.kubernetes.pages import ListOf, read_resizes
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts.workload import Finding

T = TypeVar("T")

PAGE, MOST = 1_000, 5_000
"""Objects a page while nobody knows how large they are, and at most."""
FULL = 0.75
"""Share of the largest answer that a page is to fill, by what objects of its path took so far."""
SMALLER = 8
"""Objects may be so large that a page of them is not taken: a page so many times smaller is asked for then."""
RESTARTS = 3
"""A list whose pages expired is begun again so often."""
PODS, NODES, NAMESPACES = "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces"
CLAIMS, VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
CSI_DRIVERS, CAPACITIES = "/apis/storage.k8s.io/v1/csidrivers", "/apis/storage.k8s.io/v1/csistoragecapacities"
KUEUES = ("/apis/kueue.x-k8s.io/v1beta2", "/apis/kueue.x-k8s.io/v1beta1")
"""The versions of Kueue's interface, the one that is stored first."""
DAEMON_SETS = "/apis/apps/v1/daemonsets"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
DEVICES = "/apis/resource.k8s.io/v1"
POD_GROUPS = (
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
)
KAI_GROUPS, OWN_GROUPS = "/apis/scheduling.run.ai/v2alpha2/podgroups", "/apis/scheduling.k8s.io/v1alpha2/podgroups"
"""PodGroups of KAI and of Kubernetes 1.36: asked for only where a pod names one."""
LEADER_WORKER_SETS = "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"


class Lists:
    """Lists of one cluster. ``unread`` tells of the objects that could not be read."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.unread: list[Finding] = []
        self._largest: dict[str, float] = {}
        """Bytes of an object by path: the mean of the page where that was largest."""
        self._bare: Callable[[Any], Any] | None = None

    def all(
        self,
        path: str,
        decoder: Decodes[ListOf[T]],
        keep: Callable[[T], T | None] = lambda item: item,
        **query: str,
    ) -> list[T]:
        """Every object of a list as ``keep`` makes it, page by page; None is left out."""
        for _ in range(RESTARTS):
            try:
                return self._pages(path, decoder, keep, query)
            except Expired as expired:
                last = expired
        raise last

    def _pages(
        self, path: str, decoder: Decodes[ListOf[T]], keep: Callable[[T], T | None], query: dict[str, str]
    ) -> list[T]:
        found: list[T] = []
        after, size, body = "", self._fitting(path), _Measured(decoder)
        while True:
            try:
                page = self._api.get(path, body, limit=str(size), **{"continue": after}, **query)
            except TooLarge:
                if size == 1:
                    raise
                size = max(1, size // SMALLER)
                continue
            if page.items:
                self._largest[path] = max(self._largest.get(path, 1), body.size / len(page.items))
                size = self._fitting(path)
            self._keep(page, keep, found)
            after = page.metadata.next
            del page  # Before another is read: each is as large as answers may be.
            if not after:
                return found

    def _keep(self, page: ListOf[T], keep: Callable[[T], T | None], found: list[T]) -> None:
        """Add what is wanted of a page."""
        items = page.items or ()
        if self._bare is not None:
            items = [left for item in items if (left := self._bare(item)) is not None]
        found += (kept for item in items if (kept := keep(item)) is not None)
        self.unread += page.unread

    def _fitting(self, path: str) -> int:
        """Objects of a path that fill a page."""
        if path not in self._largest:
            return PAGE
        return max(1, min(MOST, int(transport.LARGEST_BODY * FULL / self._largest[path])))


class _Measured(Generic[T]):
    """A decoder that knows the bytes of the last body."""

    def __init__(self, decoder: Decodes[T]) -> None:
        self._decoder, self.size = decoder, 0

    def decode(self, body: bytes) -> T:
        """The value of a body."""
        self.size = len(body)
        return self._decoder.decode(body)


def pod_path(namespace: str, name: str) -> str:
    """Where a pod is."""
    return f"{NAMESPACES}/{quote(namespace)}/pods/{quote(name)}"


class SharedTemplates:
    """Pods of one owner are alike: what its template gives to all of them is kept once, whatever their number.

    What differs, as tolerations of homes do, is kept apart. Of a pod on a node its conditions go too, but that of a
    resize: they only tell why a pod waits. The pods come from their page, and nobody else has them yet.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], Pod] = {}

    def __call__(self, pod: Pod) -> Pod:
        """The same pod, in less room."""
        meta, spec, owner = pod.metadata, pod.spec, pod.metadata.owner
        if spec.node_name:
            read_resizes(pod)
        if owner is None:
            return pod
        like = self._seen.setdefault((meta.namespace, owner.kind, owner.name), pod)
        if like is not pod:
            if like.spec.containers == spec.containers:
                put(spec, "containers", like.spec.containers)
            if like.spec.tolerations == spec.tolerations:
                put(spec, "tolerations", like.spec.tolerations)
            if like.metadata.labels == meta.labels:
                put(meta, "labels", like.metadata.labels)
        return pod
