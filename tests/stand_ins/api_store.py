"""What the API stand-in keeps: objects by resource with versions, selectors, disruption budgets and merge patches."""

import copy
import itertools
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

Json = dict[str, Any]


class Resource(NamedTuple):
    """A kind of objects as a path names it."""

    group_version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for core."""
        return self.group_version.rpartition("/")[0]


ADMISSION = "admissionregistration.k8s.io/v1"
BUILT_IN = tuple(
    Resource(*each)
    for each in (
        ("v1", "pods", "Pod"),
        ("v1", "nodes", "Node", False),
        ("v1", "namespaces", "Namespace", False),
        ("events.k8s.io/v1", "events", "Event"),
        ("v1", "events", "Event"),
        ("v1", "configmaps", "ConfigMap"),
        ("coordination.k8s.io/v1", "leases", "Lease"),
        ("v1", "secrets", "Secret"),
        ("v1", "podtemplates", "PodTemplate"),
        ("v1", "serviceaccounts", "ServiceAccount"),
        ("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        ("v1", "persistentvolumes", "PersistentVolume", False),
        ("storage.k8s.io/v1", "storageclasses", "StorageClass", False),
        ("storage.k8s.io/v1", "csinodes", "CSINode", False),
        ("storage.k8s.io/v1", "csidrivers", "CSIDriver", False),
        ("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity"),
        ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", False),
        ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        ("apps/v1", "deployments", "Deployment"),
        ("apps/v1", "daemonsets", "DaemonSet"),
        ("apps/v1", "replicasets", "ReplicaSet"),
        ("apps/v1", "statefulsets", "StatefulSet"),
        ("batch/v1", "jobs", "Job"),
        ("batch/v1", "cronjobs", "CronJob"),
        ("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", False),
        ("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", False),
        ("rbac.authorization.k8s.io/v1", "roles", "Role"),
        ("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
        ("resource.k8s.io/v1", "resourceslices", "ResourceSlice", False),
        ("resource.k8s.io/v1", "deviceclasses", "DeviceClass", False),
        ("resource.k8s.io/v1", "resourceclaims", "ResourceClaim"),
        ("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
        (ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
        (ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
    )
)
CUSTOM = {
    "volcano": Resource("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup"),
    "coscheduling": Resource("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup"),
    "kai": Resource("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup"),
    "own-groups": Resource("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup"),
    "leader-worker-set": Resource("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet"),
    "kueue": Resource("kueue.x-k8s.io/v1beta2", "workloads", "Workload"),
    "kueue-flavors": Resource("kueue.x-k8s.io/v1beta2", "resourceflavors", "ResourceFlavor", False),
    "kueue-queues": Resource("kueue.x-k8s.io/v1beta2", "clusterqueues", "ClusterQueue", False),
    "kueue-local-queues": Resource("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueue"),
    "kueue-checks": Resource("kueue.x-k8s.io/v1beta2", "admissionchecks", "AdmissionCheck", False),
    "kueue-v1beta1": Resource("kueue.x-k8s.io/v1beta1", "workloads", "Workload"),
    "jobset": Resource("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet"),
    "karpenter": Resource("karpenter.sh/v1", "nodepools", "NodePool", False),
    "karpenter-claims": Resource("karpenter.sh/v1", "nodeclaims", "NodeClaim", False),
    "notebooks": Resource("kubeflow.org/v1", "notebooks", "Notebook"),
    "gke-queue": Resource("autoscaling.x-k8s.io/v1", "provisioningrequests", "ProvisioningRequest"),
    "keda": Resource("keda.sh/v1alpha1", "scaledobjects", "ScaledObject"),
}
"""Custom resources that a test may have served: a server without them answers 404 in plain text."""


class Refused(Exception):
    """An answer other than 2xx, as a Status has it."""

    def __init__(self, code: int, reason: str, message: str, *, after: int = 0, cause: str = "") -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.after, self.cause = code, reason, message, after, cause


Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""


class Store:
    """Every object with its ``resourceVersion``, which grows with each write."""

    def __init__(self) -> None:
        self.resources = {(r.group_version, r.plural): r for r in BUILT_IN}
        self._kept: dict[Resource, dict[Key, Json]] = {}
        self._version = itertools.count(1000)
        self.version = 1000

    def serve(self, name: str) -> None:
        """Serve one of ``CUSTOM``."""
        resource = CUSTOM[name]
        self.resources[resource.group_version, resource.plural] = resource

    def of_kind(self, group_version: str, kind: str) -> Resource:
        """The resource whose objects are of a kind."""
        return next(r for r in self.resources.values() if (r.group_version, r.kind) == (group_version, kind))

    def resource(self, plural: str) -> Resource:
        """A resource by its plural alone."""
        return next(r for r in self.resources.values() if r.plural == plural)

    def add(self, *objects: Json) -> None:
        """Keep objects as they are, with what a server fills in; an object of the same name is replaced."""
        for given in objects:
            resource = self.of_kind(given.get("apiVersion", "v1"), given["kind"])
            self.write(resource, copy.deepcopy(given))

    def write(self, resource: Resource, value: Json) -> Json:
        """Keep one object under a new version."""
        meta = value["metadata"]
        if resource.namespaced:
            meta.setdefault("namespace", "default")
        meta.setdefault("uid", str(uuid.uuid4()))
        meta.setdefault("creationTimestamp", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        self.version = next(self._version)
        meta["resourceVersion"] = str(self.version)
        value.setdefault("apiVersion", resource.group_version)
        value.setdefault("kind", resource.kind)
        self._of(resource)[meta.get("namespace", "") if resource.namespaced else "", meta["name"]] = value
        return value

    def get(self, plural: str, name: str, namespace: str = "") -> Json:
        """One object. Raises ``Refused`` 404."""
        return self.read(self.resource(plural), (namespace, name))

    def read(self, resource: Resource, key: Key) -> Json:
        """One object. Raises ``Refused`` 404."""
        found = self._of(resource).get(key)
        if found is None:
            raise Refused(404, "NotFound", f'{resource.plural} "{key[1]}" not found')
        return found

    def has(self, resource: Resource, key: Key) -> bool:
        """Whether there is such an object."""
        return key in self._of(resource)

    def remove(self, plural: str, name: str, namespace: str = "") -> None:
        """Delete one object, at once."""
        self.drop(self.resource(plural), (namespace, name))

    def drop(self, resource: Resource, key: Key) -> Json:
        """Delete one object, at once. Raises ``Refused`` 404."""
        found = self.read(resource, key)
        self.version = next(self._version)
        del self._of(resource)[key]
        return found

    def clear(self, plural: str) -> None:
        """Delete all objects of a resource."""
        self._of(self.resource(plural)).clear()

    def list(self, resource: Resource, namespace: str, fields: str, labels: str) -> list[Json]:
        """Objects in order of their names, those that both selectors let through."""
        kept = sorted(self._of(resource).items())
        chosen = [value for (space, _), value in kept if not namespace or space == namespace]
        wanted, labelled = _field_selector(resource, fields), _selector(labels)
        return [v for v in chosen if wanted(v) and labelled(partial(_label, v))]

    def patch(self, resource: Resource, key: Key, change: Json) -> Json:
        """A JSON merge patch; a ``resourceVersion`` in it must be the one that is kept."""
        found = self.read(resource, key)
        expected = change.get("metadata", {}).get("resourceVersion")
        if expected and expected != found["metadata"]["resourceVersion"]:
            raise Refused(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {resource.plural} "{key[1]}": '
                "the object has been modified; please apply your changes to the latest version and try again",
            )
        return self.write(resource, merged(found, change))

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """What a scheduler does: the pod is on the node, and runs."""
        found = self.get("pods", pod, namespace)
        found["spec"]["nodeName"] = node
        found["status"] = {**found.get("status", {}), "phase": "Running", "conditions": []}
        self.write(self.resource("pods"), found)

    def evict(self, key: Key, uid: str, *, dry: bool) -> None:
        """Delete a pod where its disruption budgets allow it, and count it off them."""
        pods, budgets = self.resource("pods"), self.resource("poddisruptionbudgets")
        found = self.read(pods, key)
        if uid and uid != found["metadata"]["uid"]:
            raise Refused(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on Pod "{key[1]}": Precondition failed: UID in precondition: {uid}, '
                f"UID in object meta: {found['metadata']['uid']}",
            )
        over = [b for b in self.list(budgets, key[0], "", "") if _covers(b, found)]
        if len(over) > 1:
            raise Refused(
                500,
                "InternalError",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        for budget in over:
            allowed = budget.get("status", {}).get("disruptionsAllowed")
            if not allowed:
                raise Refused(
                    429,
                    "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    after=10 if allowed is None else 0,  # Its controller has not counted yet.
                    cause="DisruptionBudget",
                )
            if not dry:
                budget["status"]["disruptionsAllowed"] -= 1
                self.write(budgets, budget)
        if not dry:
            self.drop(pods, key)

    def count(self, budget: Json) -> None:
        """What the disruption controller does."""
        pods = self.list(self.resource("pods"), budget["metadata"]["namespace"], "status.phase=Running", "")
        healthy = sum(_covers(budget, pod) for pod in pods)
        allowed = max(0, healthy - int(budget["spec"].get("minAvailable", 0)))
        budget["status"] = {"currentHealthy": healthy, "disruptionsAllowed": allowed}

    def _of(self, resource: Resource) -> dict[Key, Json]:
        return self._kept.setdefault(resource, {})


def merged(value: Json, change: Mapping[str, Any]) -> Json:
    """RFC 7386: null deletes, lists are replaced whole."""
    out = dict(value)
    for name, new in change.items():
        if new is None:
            out.pop(name, None)
        elif isinstance(new, dict):
            there = out.get(name)
            out[name] = merged(there if isinstance(there, dict) else {}, new)
        else:
            out[name] = new
    return out


def by_name(value: Mapping[str, Any], change: Json, field: str) -> Json:
    """A change of which one list is of things with names, as server-side apply takes it: the others of it stay."""
    fresh = {each["name"]: each for each in change[field]}
    there = [each for each in value.get(field) or () if each["name"] not in fresh]
    return {**change, field: sorted([*there, *fresh.values()], key=lambda each: str(each["name"]))}


def patched(value: Json, operations: list[Json]) -> Json:
    """RFC 6902, as far as it is used: tests, and additions to objects and at the end of lists."""
    out = copy.deepcopy(value)
    for each in operations:
        *way, last = each["path"].strip("/").split("/")
        where: Any = out
        for part in way:
            if part not in where:
                raise Refused(422, "Invalid", "the server rejected our request due to an error in our request")
            where = where[part]
        if each["op"] == "test" and where.get(last) != each["value"]:
            raise Refused(422, "Invalid", "the server rejected our request due to an error in our request")
        if each["op"] == "add" and last == "-":
            where.append(each["value"])
        elif each["op"] == "add":
            where[last] = each["value"]
    out["metadata"].pop("resourceVersion", None)
    return out


def _covers(budget: Json, pod: Json) -> bool:
    """Whether a disruption budget selects a pod; in policy/v1 an empty selector selects every pod."""
    labels = pod["metadata"].get("labels", {})
    selector = budget["spec"].get("selector")
    return selector is not None and all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())


POD_FIELDS = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "status.nominatedNodeName")
EVENT_FIELDS = ("metadata.name", "metadata.namespace", "regarding.name", "regarding.uid", "reason", "type")
CORE_EVENT_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "involvedObject.kind",
    "involvedObject.uid",
    "involvedObject.name",
    "reason",
    "type",
)
OTHER_FIELDS = ("metadata.name", "metadata.namespace")


def _label(value: Json, key: str) -> str:
    return str(value["metadata"].get("labels", {}).get(key, ""))


def _field_selector(resource: Resource, text: str) -> Callable[[Json], bool]:
    events = CORE_EVENT_FIELDS if resource.group_version == "v1" else EVENT_FIELDS
    known = {"pods": POD_FIELDS, "events": events, "nodes": ("metadata.name", "spec.unschedulable")}.get(
        resource.plural, OTHER_FIELDS
    )
    for part in filter(None, text.split(",")):
        name = part.partition("=")[0].rstrip("!")
        if name not in known:
            raise Refused(
                400, "BadRequest", f'Unable to find "{resource.group_version}, ...": field label not supported: {name}'
            )
    chosen = _selector(text)
    return lambda value: chosen(lambda path: _at(value, path))


def _at(value: Json, path: str) -> str:
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return str(value)


def _selector(text: str) -> Callable[[Callable[[str], str]], bool]:
    """``a=b,c!=d,e,!f`` over a look-up of values."""
    parts = [part for part in text.split(",") if part]

    def holds(value: Callable[[str], str]) -> bool:
        for part in parts:
            if "!=" in part:
                name, _, wanted = part.partition("!=")
                if value(name) == wanted:
                    return False
            elif "=" in part:
                name, _, wanted = part.replace("==", "=").partition("=")
                if value(name) != wanted:
                    return False
            elif bool(value(part.removeprefix("!"))) == part.startswith("!"):
                return False
        return True

    return holds
