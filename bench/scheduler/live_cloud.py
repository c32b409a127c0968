"""A cloud and an account for ``homes_live.py``: nodes that are bought join a real API server, and Pilotlight is let in.

A node joins 10 to 20 s after its purchase, not ready and without GPUs, as a kubelet registers it; it is Ready 1 to 3 s
later, and its GPUs come half a second after that, as a device plugin brings them. A seed gives the times.
"""

import heapq
import http.client
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import yaml

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.closing_lease import LEASE
from pilotlight.adapters.cluster.kubernetes.pod_tolerations import LIMIT, refusal
from pilotlight.adapters.cluster.kubernetes.transport import JSON, MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Metadata, Pod
from pilotlight.errors import Busy, Conflict, PilotlightError, Retry
from pilotlight.facts.capacity import Offering
from pilotlight.facts.labels import HOSTNAME, WATCHED_AT
from pilotlight.facts.nodes.pool_state import Booting, InstanceState, PoolState
from pilotlight.facts.policy import Policy
from pilotlight.ports.clouds import OPEN, UNBOUNDED, Gate, SizeGate
from pilotlight.tools.install.admission_policy import limit_to
from pilotlight.units import Usd

Object = dict[str, Any]
T = TypeVar("T")
ANY: msgspec.json.Decoder[Object] = msgspec.json.Decoder(dict)
NODES = "/api/v1/nodes"
JOIN_S, READY_S, PLUGIN_S = (10.0, 20.0), (1.0, 3.0), 0.5
ABREAST = 16
MANIFESTS = Path(__file__).resolve().parents[2] / "infra" / "kubernetes"
FILES = (
    *("namespace", "admission/nodes", "admission/tolerations", "admission/evictions"),
    *("rbac/observe", "rbac/act", "placement/watchman"),
)
_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Role": _RBAC + "/namespaces/{}/roles",
    "RoleBinding": _RBAC + "/namespaces/{}/rolebindings",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
}


@dataclass
class Machine:
    """A node that was bought."""

    name: str
    pool: str
    asked_at: datetime
    joined: bool = False
    ready: bool = False


@dataclass
class LiveCloud:
    """Node pools whose nodes are objects of an API server; ``mark`` is in their names."""

    api: Api
    policy: Policy
    offerings: Mapping[str, Offering]
    seed: int
    mark: str
    join_s: tuple[float, float] = JOIN_S
    cloud: str = "world"
    machines: dict[str, Machine] = field(default_factory=dict)
    ever: list[Machine] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _bought: Counter[str] = field(default_factory=Counter)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _wake: threading.Condition = field(default_factory=lambda: threading.Condition(threading.RLock()))
    _n: int = 0
    _over: bool = False

    def __post_init__(self) -> None:
        self._crew = ThreadPoolExecutor(ABREAST)
        threading.Thread(target=self._turn, name="cloud", daemon=True).start()

    def describe(self) -> Sequence[PoolState]:
        """Every pool with the instances that have not joined."""
        with self._wake:
            return tuple(self._state(pool) for pool in self.policy.pools)

    def instance(self, pool: str, instance: str) -> InstanceState | None:
        """One machine."""
        found = self.machines.get(instance)
        if found is None or found.pool != pool:
            return InstanceState(there=False)
        return InstanceState(there=True, created_at=found.asked_at, runs=found.joined)

    def grow(
        self, pool: str, to: int, zone: str = "", *, gate: SizeGate = OPEN, token: str = "", most: int = UNBOUNDED
    ) -> PoolState:
        """Buy what is missing."""
        size = self._size(pool)
        if size < to:
            to = min(to, size + most)
            gate(to)
        with self._wake:
            for _ in range(to - self._size(pool)):
                self._bought[pool] += 1
                self._buy(pool, self._bought[pool])
            return self._state(pool)

    def release(self, pool: str, instance: str, *, gate: Gate = OPEN) -> None:
        """Give a machine back: its object goes too."""
        if instance not in self.machines:
            return
        gate()
        with self._wake:
            gone = self.machines.pop(instance)
        with suppress(Missing):
            self.api.ask("DELETE", f"{NODES}/{gone.name}", NOTHING)

    def usd_per_hour(self) -> Usd:
        """Dollars an hour of what is bought now."""
        return Usd(sum(self.offerings[each.pool].usd_per_hour for each in self.machines.values()))

    def comes_as(self, one: Machine) -> Offering:
        """What a machine turns out to be: what was bought."""
        return self.offerings[one.pool]

    def close(self) -> None:
        """Nothing joins any more; objects of it go."""
        with self._wake:
            self._over = True
            self._wake.notify()
        self._crew.shutdown(wait=True)
        self.api.ask("DELETE", f"{NODES}?labelSelector=homes-live={self.mark}", NOTHING)

    def _size(self, pool: str) -> int:
        return sum(each.pool == pool for each in self.machines.values())

    def _state(self, pool: str) -> PoolState:
        coming = [m for m in self.machines.values() if m.pool == pool and not m.joined]
        booting = tuple(Booting(instance=m.name, requested_at=m.asked_at) for m in coming)
        return PoolState(name=pool, desired=self._size(pool), booting=booting)

    def _buy(self, pool: str, n: int) -> None:
        draw = Random(f"{self.seed}/{pool}/{n}")
        one = Machine(f"{self.mark}-{pool}-{n}", pool, datetime.now(UTC))
        self.machines[one.name] = one
        self.ever.append(one)
        at = time.monotonic() + draw.uniform(*self.join_s)
        self._at(at, lambda: self._join(one))
        at += draw.uniform(*READY_S)
        self._at(at, lambda: self._ready(one))
        self._at(at + PLUGIN_S, lambda: self._plug_in(one))

    def _at(self, when: float, do: Callable[[], None]) -> None:
        with self._wake:
            self._n += 1
            heapq.heappush(self._due, (when, self._n, do))
            self._wake.notify()

    def _turn(self) -> None:
        with self._wake:
            while not self._over:
                left = self._due[0][0] - time.monotonic() if self._due else 3600.0
                if left > 0:
                    self._wake.wait(left)
                else:
                    self._crew.submit(self._try, heapq.heappop(self._due)[2])

    def _try(self, do: Callable[[], None]) -> None:
        try:
            do()
        except Retry:  # As a kubelet: until it is answered.
            self._at(time.monotonic() + 1.0, do)
        except PilotlightError as error:
            self.failed.append(str(error))

    def _join(self, one: Machine) -> None:
        """As a kubelet registers: not ready yet, with its pool's labels and taints."""
        if one.name not in self.machines:
            return
        offering = self.comes_as(one)
        meta = {"name": one.name, "labels": {**offering.labels, HOSTNAME: one.name, "homes-live": self.mark}}
        taints = [msgspec.to_builtins(taint) for taint in self.policy.pools[one.pool].taints]
        room = room_of(offering)
        starting = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", **_now()}
        body = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
        spec = {"providerID": f"world:///{one.name}", "taints": taints}
        status = {"capacity": room, "allocatable": room, "conditions": [starting]}
        with suppress(Conflict):  # Its first answer was lost.
            self.api.ask("POST", NODES, NOTHING, {**body, "spec": spec, "status": status}, JSON)
        one.joined = True

    def _ready(self, one: Machine) -> None:
        if not one.joined:
            self._at(time.monotonic() + 0.1, lambda: self._ready(one))
        elif one.name in self.machines:
            self._patch(one, {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", **_now()}]})
            self._tell(one, "NodeReady")
            one.ready = True

    def _plug_in(self, one: Machine) -> None:
        if not one.ready:
            self._at(time.monotonic() + 0.1, lambda: self._plug_in(one))
        elif one.name in self.machines:
            offering = self.comes_as(one)
            full = {**room_of(offering), offering.resource: str(offering.gpus)}
            self._patch(one, {"capacity": full, "allocatable": full})

    def _tell(self, one: Machine, reason: str) -> None:
        """An Event, as a kubelet writes it; that of the registration comes from the controller manager."""
        about, now = {"kind": "Node", "name": one.name, "uid": one.name}, _now()["lastTransitionTime"]
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{one.name}.", "namespace": "default"},
        }
        said = {"involvedObject": about, "reason": reason, "type": "Normal", "message": f"Node {one.name}: {reason}"}
        seen = {"firstTimestamp": now, "lastTimestamp": now, "count": 1, "source": {"component": "kubelet"}}
        self.api.ask("POST", "/api/v1/namespaces/default/events", NOTHING, {**body, **said, **seen}, JSON)

    def _patch(self, one: Machine, status: Object) -> None:
        self.api.ask("PATCH", f"{NODES}/{one.name}/status", NOTHING, {"status": status}, MERGE_PATCH)


def room_of(offering: Offering) -> dict[str, str]:
    """CPU, memory and pods of a node, beside its GPUs, as quantities."""
    free = offering.resources
    return {"cpu": f"{free.cpu_milli}m", "memory": str(free.memory), "pods": str(free.pods)}


def _now() -> dict[str, str]:
    return {"lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


@contextmanager
def account(api: Api, access: Access, pools: Sequence[str], folder: Path) -> Iterator[str]:
    """Pilotlight's account with its limits, let in by a token; gives the path of its kubeconfig.

    What is there already stays as it is, afterwards too. The watchman's round is only noted: nothing opens nodes.
    """
    made: list[str] = []
    for name in FILES:
        found = [each for each in yaml.safe_load_all((MANIFESTS / f"{name}.yaml").read_text("utf-8")) if each]
        limit_to(found, pools)
        for each in found:
            if (path := _PATHS.get(each["kind"], "")) and eventually(partial(_create, api, path, each)):
                made.append(f"{path.format(each['metadata'].get('namespace'))}/{each['metadata']['name']}")
    watched = {"metadata": {"annotations": {WATCHED_AT: datetime.now(UTC).isoformat()}}}
    api.ask("PATCH", LEASE, NOTHING, watched, MERGE_PATCH)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    where = "/api/v1/namespaces/pilotlight/serviceaccounts/pilotlight/token"
    token = api.ask("POST", where, ANY, body, JSON)["status"]["token"]
    file = folder / "account.kubeconfig"
    authority = folder / "ca.crt"
    authority.write_text(access.ca)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": access.server, "certificate-authority": str(authority)}}],
        "users": [{"name": "it", "user": {"token": token}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    file.touch(0o600)
    file.write_text(json.dumps(config))
    try:
        ours = Api(of_file(file))
        eventually(partial(_limited, ours, api))
        yield str(file)
    finally:
        for each in reversed(made):
            with suppress(Missing):
                api.ask("DELETE", each, NOTHING)
        eventually(partial(_gone, api, made))


def _gone(api: Api, made: Sequence[str]) -> None:
    """Raises while one is still there: a namespace goes in its own time."""
    for each in made:
        with suppress(Missing):
            api.get(each, NOTHING)
            raise Busy(f"{each} is still there")


def _create(api: Api, path: str, found: Object) -> bool:
    """True where it was not there before."""
    with suppress(Conflict):
        api.ask("POST", path.format(found["metadata"].get("namespace")), NOTHING, found, JSON)
        return True
    return False


def _limited(ours: Api, admin: Api) -> None:
    """Raises while the account may do what its policies refuse, or may not do what they let it."""
    spec = {"containers": [{"name": "c", "image": "x"}], "schedulerName": "nobody"}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    path = "/api/v1/namespaces/default/pods"
    admin.ask("POST", path, NOTHING, probe, JSON)
    try:
        ours.get("/api/v1/nodes", NOTHING)
        said = refusal(ours, Pod(metadata=Metadata(name="probe", namespace="default")))
        if LIMIT not in str(said):
            raise Busy(f"the policy {LIMIT} does not act yet: {said}")
    finally:
        admin.ask("DELETE", f"{path}/probe", NOTHING, {"gracePeriodSeconds": 0}, JSON)


def eventually(do: Callable[[], T]) -> T:
    """What it gives once it succeeds: objects, roles and policies reach every part of a server within seconds."""
    ends = time.monotonic() + 120
    while True:
        try:
            return do()
        except PilotlightError:
            if time.monotonic() > ends:
                raise
        time.sleep(0.3)


def watch(access: Access, path: str, over: threading.Event) -> Iterator[Object]:
    """Events of a list, what is there first, until it is ``over``. A watch that breaks begins anew, with all of it."""
    where = urlsplit(access.server)
    while not over.is_set():
        connection = http.client.HTTPSConnection(where.hostname or "", where.port, context=access.context(), timeout=30)
        try:
            connection.request("GET", f"{path}?watch=1&timeoutSeconds=600")
            answer = connection.getresponse()
            while not over.is_set() and (line := answer.readline()):
                event = json.loads(line)
                if event.get("type") in ("ADDED", "MODIFIED", "DELETED"):  # Else a refusal, or an end, of the server's.
                    yield event
            over.wait(0.2)
        except (OSError, ValueError, http.client.HTTPException):
            over.wait(0.2)
        finally:
            connection.close()


def kubeconfig() -> str:
    """The admin's, as KUBECONFIG names it; empty where it does not."""
    return os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]


def access_of(path: str) -> Access:
    """Access that a kubeconfig gives."""
    return of_file(Path(path)).access()
