"""Taking out what ``connecting`` put on a cluster: nothing of ours stays in force.

The rights go first, so that nobody acts while the rest goes; then our marks on nodes, which nobody would lift any more;
then what limited the rights. The namespace goes only with nothing of anybody's in it.
"""

import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.listing import NODES
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api, Missing
from pilotlight.codec.kubernetes.nodes.gpu_models import pool_label
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Metadata, Wire
from pilotlight.errors import BadInput, Denied, Forbidden, PilotlightError, Retry
from pilotlight.facts.labels import DRAINING, HOME
from pilotlight.tools.checkup.rights import EVICTION_LIMIT, LIMIT, POD_LIMIT
from pilotlight.tools.install.cloud_users import EXTRAS, binding_of
from pilotlight.tools.install.connect_account import ACCOUNT, LABEL, NAMESPACE, PLACES, READER, Step, is_ours, place_of
from pilotlight.tools.install.evicting_roles import EVICTIONS
from pilotlight.tools.install.left_manifests import manifests_left

T = TypeVar("T")

_EXTRAS = [role for extra in EXTRAS.values() if not extra.namespaced for role in extra.roles]
_ROLES = ("annotate", *_EXTRAS, "act", "observe")
_BINDINGS = (*(name for role in _ROLES for name in (binding_of(role), f"{ACCOUNT}-{role}")), READER)
_WATCHMEN = (f"{ACCOUNT}-watchman", f"{ACCOUNT}-handback")
"""Who opens nodes that we keep, and who gives pools back, in our silence."""
_LEAVING = f"{ACCOUNT}-uninstall"
"""Who opens nodes while a Helm release goes; one that could not end stays."""
_PLACES = ("pilotlight-placement", "pilotlight-alive", f"{ACCOUNT}-handback")
"""What the watchmen, and we beside them, may do in our namespace."""
_INSIDE = [role for extra in EXTRAS.values() if extra.namespaced for role in extra.roles]
"""Roles in our namespace, as those of GKE's queue."""
_RIGHTS = (
    *(("CronJob", name) for name in _WATCHMEN),
    *(("ClusterRoleBinding", name) for name in (*_BINDINGS, f"{ACCOUNT}-watchman", _LEAVING)),
    *(("RoleBinding", name) for name in _PLACES),
    *(("RoleBinding", name) for role in _INSIDE for name in (binding_of(role), f"{ACCOUNT}-{role}")),
)
_EVICTIONS = (EVICTION_LIMIT, f"{EVICTION_LIMIT}-pods", f"{EVICTION_LIMIT}-nodes")
_LIMITS = tuple(
    (kind, name)
    for name in (LIMIT, POD_LIMIT, *_EVICTIONS, "pilotlight-homes", "pilotlight-pods", f"{ACCOUNT}-watchman")
    for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy")
)
_REST = (
    *(("ClusterRole", f"{ACCOUNT}-{role}") for role in _ROLES),
    *(("ClusterRole", name) for name in (f"{ACCOUNT}-watchman", _LEAVING)),
    *(("Role", name) for name in (*_PLACES, *(f"{ACCOUNT}-{role}" for role in _INSIDE))),
    ("Lease", "pilotlight-placement"),
    *(("ServiceAccount", name) for name in (*_WATCHMEN, _LEAVING, READER, ACCOUNT)),
)
_HOLDS = (
    "/api/v1/{}/pods",
    "/api/v1/{}/services",
    "/api/v1/{}/persistentvolumeclaims",
    "/api/v1/{}/configmaps",
    "/api/v1/{}/secrets",
    "/api/v1/{}/serviceaccounts",
    "/apis/apps/v1/{}/deployments",
    "/apis/apps/v1/{}/statefulsets",
    "/apis/apps/v1/{}/daemonsets",
    "/apis/batch/v1/{}/cronjobs",
    "/apis/batch/v1/{}/jobs",
)
"""What a namespace is looked through for, before it goes with all that is in it."""
_OURS = {
    *(("serviceaccounts", name) for name in (ACCOUNT, READER, _LEAVING, *_WATCHMEN)),
    *(("cronjobs", name) for name in _WATCHMEN),
}
_EVERY_NAMESPACE_HAS = re.compile(r"serviceaccounts/(default|builder|deployer)|configmaps/\S+(-ca\.crt|-root-cert)")
"""What a cluster itself puts into each: its own accounts, and the certificates of its authorities."""

_ANY = typed_json.decoder(dict[str, Any])


class _Named(Wire, frozen=True):
    metadata: Metadata


def remove(api: Api, *, dry_run: bool, then: Iterable[Step] = ()) -> Iterator[Step]:
    """Take out everything, a step at a time; what is gone already is left out. ``then`` comes before the namespace."""
    yield from _each(api, _RIGHTS, dry_run=dry_run)
    yield from _evictions(api, dry_run=dry_run)
    yield from reopen(api, dry_run=dry_run)
    yield from _each(api, _LIMITS, dry_run=dry_run)
    yield from _each(api, _REST, dry_run=dry_run)
    yield from manifests_left(api, _LIMITS)
    gone = set()
    for step in then:
        gone.add(f"{step.kind.lower()}s/{step.name}")
        yield step
    yield from _namespace(api, gone, dry_run=dry_run)


def leave(api: Api, *, dry_run: bool) -> Iterator[Step]:
    """Open nodes and name what stays, as a Helm release does as it goes, by an account that may do no more."""
    yield from reopen(api, dry_run=dry_run)
    yield from manifests_left(api, _LIMITS)
    yield from _queues_left(api)


def _queues_left(api: Api) -> Iterator[Step]:
    """Queues of Kueue that wait for us: they admit nothing once we are gone."""
    from pilotlight.tools.install.queue_checks import names_with_check

    try:
        names = names_with_check(api)
    except (BadInput, Forbidden):
        return  # There is no Kueue, or nobody may look.
    for name in names:
        why = "our check is on it, and without an answer it admits nothing: `pilotlight kueue handback` takes it off"
        yield Step("keep", "ClusterQueue", name, why)


def _each(api: Api, objects: tuple[tuple[str, str], ...], *, dry_run: bool) -> Iterator[Step]:
    for kind, name in objects:
        if _there(api, kind, name):
            yield _drop(api, kind, name, dry_run=dry_run)


def _evictions(api: Api, *, dry_run: bool) -> Iterator[Step]:
    """The rights to evict that stand in namespaces of their own."""
    for kind in ("RoleBinding", "Role"):
        every = PLACES[kind].replace(f"/namespaces/{NAMESPACE}", "")
        for meta in (one.metadata for one in _all(api, every, _Named) if one.metadata.name == EVICTIONS):
            if meta.labels.get(LABEL) != ACCOUNT:
                continue
            if not dry_run:
                place = place_of({"kind": kind, "metadata": {"namespace": meta.namespace}})
                with suppress(Missing):
                    api.ask("DELETE", f"{place}/{EVICTIONS}", NOTHING)
            yield Step("remove", kind, f"{meta.namespace}/{EVICTIONS}")


def reopen(api: Api, *, dry_run: bool, pools: Container[str] | None = None) -> Iterator[Step]:
    """Lift our taints from every node that carries one, and name the pools whose nodes are born with one.

    ``pools`` are the clouds' names of those whose nodes are meant; None for every node. One that cannot be opened keeps
    no other closed: what it raised is raised at the end.
    """
    born, failed = set[str](), list[PilotlightError]()
    for node in _all(api, NODES, KubeNode):
        if pools is not None and pool_label(node.metadata.labels) not in pools:
            continue
        carried = {taint.key for taint in node.spec.taints}
        born |= {pool_label(node.metadata.labels)} if HOME in carried else set()
        for key, lift in ((DRAINING, writes.uncordon), (HOME, writes.open)):
            if key not in carried:
                continue
            try:
                if not dry_run:
                    lift(api, node.metadata.name)
            except Missing:
                break  # It went meanwhile.
            except (Denied, Retry) as error:
                failed.append(error)
                continue
            yield Step("reopen", "Node", node.metadata.name, f"it had the taint {key}")
    for pool in sorted(born - {""}):
        yield Step(
            "keep", "Pool", pool, f"its nodes are born with the taint {HOME}: take it out of the pool, at its cloud"
        )
    if failed:
        raise failed[0]


def _namespace(api: Api, gone: Container[str], *, dry_run: bool) -> Iterator[Step]:
    if not _there(api, "Namespace", NAMESPACE):
        return
    try:
        held = sorted(name for name in _held(api) if name not in gone)
    except PilotlightError as error:
        held = [f"what could not be read ({error})"]
    if held:
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        what = f"it holds {', '.join(held[:5])}{more}"
        yield Step("keep", "Namespace", NAMESPACE, f"{what}; kubectl delete namespace {NAMESPACE} takes all that out")
    else:
        yield _drop(api, "Namespace", NAMESPACE, dry_run=dry_run)


def _held(api: Api) -> Iterator[str]:
    """Objects in the namespace beside our account and what every namespace has: "deployments/NAME"."""
    for path in _HOLDS:
        plural = path.rpartition("/")[2]
        for each in _all(api, path.format(f"namespaces/{NAMESPACE}"), _Named):
            name = f"{plural}/{each.metadata.name}"
            if (plural, each.metadata.name) not in _OURS and not _EVERY_NAMESPACE_HAS.fullmatch(name):
                yield name


def _all(api: Api, path: str, model: type[T]) -> list[T]:
    """The objects of a list; none where the API server does not know the kind."""
    decoder = listing(model)
    try:
        return list(api.get(path, decoder).items or ())
    except Missing:
        return []


def _there(api: Api, kind: str, name: str) -> bool:
    """True where there is such an object, and it is ours."""
    try:
        return is_ours(api.get(f"{PLACES[kind]}/{name}", _ANY))
    except Missing:
        return False


def _drop(api: Api, kind: str, name: str, *, dry_run: bool) -> Step:
    if not dry_run:
        with suppress(Missing):  # Somebody else was faster.
            api.ask("DELETE", f"{PLACES[kind]}/{name}", NOTHING)
    return Step("remove", kind, name)
