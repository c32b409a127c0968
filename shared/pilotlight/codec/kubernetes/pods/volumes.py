"""A pod's volumes: whether the scheduler can have them, and from where they can be reached."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from pilotlight import typed_json
from pilotlight.codec.kubernetes.bounds import SHARING, Unreadable
from pilotlight.codec.kubernetes.companions import Objects, PersistentVolume, StorageCapacity, StorageClass, VolumeClaim
from pilotlight.codec.kubernetes.pods.pod_placement import Terms, expression_terms, label_term, selector_terms
from pilotlight.codec.kubernetes.pods.requests import known_quantity
from pilotlight.codec.kubernetes.selectors import covers
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts.labels import NODE_NAME, REGION, ZONE, ZONE_ALIASES
from pilotlight.facts.workload import ATTACHABLE, Requirement

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ONE_POD = "ReadWriteOncePod"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the scheduler's choice of its node. While it stands, the scheduler tries no other node."""
MOST = 50
"""So many alternatives of a volume's place are kept: the terms of a pod are every choice of one for each volume."""


def claims_of(pod: Pod) -> list[str]:
    """The names of the claims that a pod's volumes are."""
    return [
        v.persistent_volume_claim.claim_name if v.persistent_volume_claim else f"{pod.metadata.name}-{v.name}"
        for v in pod.spec.volumes
        if v.persistent_volume_claim or v.ephemeral is not None
    ]


def of_one_pod(claims: Iterable[VolumeClaim]) -> set[str]:
    """The claims that only one pod may have at a time, as "namespace/name"."""
    return {f"{c.metadata.namespace}/{c.metadata.name}" for c in claims if ONE_POD in c.spec.access_modes}


def with_holders(objects: Objects, pods: Iterable[Pod]) -> Objects:
    """The objects, with the pod that has or gets each claim of one pod: the one on a node, else the oldest."""
    alone = of_one_pod(objects.claims.values())
    if not alone:
        return objects
    using: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        for name in claims_of(pod) if not pod.is_finished else ():
            if (key := f"{pod.metadata.namespace}/{name}") in alone:
                using[key].append(pod)
    first = {key: min(users, key=_first) for key, users in using.items()}
    return msgspec.structs.replace(objects, holders={key: pod.name for key, pod in first.items()})


def with_shares(objects: Objects, waiting: Iterable[Pod]) -> Objects:
    """The objects, with the one volume for each claim that shares the free ones of its class with other claims.

    Only of classes that make no volumes; a claim gets none ("") where the older ones take all that would do.
    """
    rows = [(pod, name) for pod in sorted(waiting, key=_first) for name in claims_of(pod)]
    wanted: dict[str, list[str]] = {}
    for pod, name in rows:
        key = f"{pod.metadata.namespace}/{name}"
        claim = objects.claims.get(key)
        kind = objects.storage_classes.get((claim.spec.storage_class_name or "") if claim else "")
        if claim is None or kind is None or kind.provisioner != NO_PROVISIONER or claim.spec.volume_name:
            continue
        found = [v for v in objects.volumes.values() if _would_do(v, kind.metadata.name, claim)]
        wanted[key] = [v.metadata.name for v in sorted(found, key=lambda v: v.metadata.name)]
    if len(wanted) < 2:
        return objects
    owner: dict[str, str] = {}
    has: dict[str, str] = {}
    for key in islice(wanted, SHARING):
        _give(key, wanted, owner, has)
    shares = dict.fromkeys(wanted, "") | {key: volume for volume, key in owner.items()}
    return msgspec.structs.replace(objects, shares=shares)


def _give(key: str, wanted: Mapping[str, Sequence[str]], owner: dict[str, str], has: dict[str, str]) -> None:
    """Give a claim a volume where there is one for it, others being moved to another where that helps."""
    wants: dict[str, str] = {}
    waiting = deque([key])
    while waiting:
        claim = waiting.popleft()
        for volume in wanted[claim]:
            if volume in wants:
                continue
            wants[volume] = claim
            if volume not in owner:
                _hand_over(volume, wants, owner, has)
                return
            waiting.append(owner[volume])


def _hand_over(free: str, wants: Mapping[str, str], owner: dict[str, str], has: dict[str, str]) -> None:
    """Give a free volume to the claim that wants it, what that one had to the next, and so on."""
    volume: str | None = free
    while volume is not None:
        claim = wants[volume]
        left = has.get(claim)
        owner[volume], has[claim] = claim, volume
        volume = left


def _first(pod: Pod) -> tuple[bool, object, str]:
    return not pod.spec.node_name, pod.metadata.created_at, pod.name


def attached_volumes(pods: Iterable[Pod], objects: Objects) -> dict[str, int]:
    """Number of volumes that pods attach, by resource; one that several have counts once. Empty where no limit is
    known."""
    if not objects.csi_nodes:
        return {}
    names = {(pod.metadata.namespace, name) for pod in pods for name in claims_of(pod)}
    drivers = (_driver(objects.claims.get(f"{space}/{name}"), objects) for space, name in sorted(names))
    return dict(Counter(f"{ATTACHABLE}{driver}" for driver in drivers if driver))


def _driver(claim: VolumeClaim | None, objects: Objects) -> str:
    """The driver of a claim's volume, or of the one that its class will make; empty where that is not known."""
    if claim is None:
        return ""
    volume = objects.volumes.get(claim.spec.volume_name)
    if volume is not None:
        return volume.spec.csi.driver if volume.spec.csi else ""
    kind = objects.storage_classes.get(claim.spec.storage_class_name or "")
    return kind.provisioner if kind is not None and kind.provisioner != NO_PROVISIONER else ""


def attach_limits(node: str, objects: Objects) -> dict[str, int]:
    """Number of volumes that a node takes in all, by resource, where its drivers say it."""
    found = objects.csi_nodes.get(node)
    drivers = found.spec.drivers if found is not None else ()
    limits = ((d.name, d.allocatable.count) for d in drivers if d.allocatable is not None)
    return {f"{ATTACHABLE}{name}": count for name, count in limits if count is not None}


def reach_of(pod: Pod, objects: Objects) -> list[Terms]:
    """Where the pod's volumes can be, or be reached from: one set of terms a volume that restricts it.

    Raises Unreadable (a finding) for a claim that is missing, in use or cannot be bound: no node would help.
    A claim that waits for its first consumer is ordinary.
    """
    if not objects.storage_known:
        return []
    return [terms for name in claims_of(pod) if (terms := _claim_reach(pod, name, objects))]


def _claim_reach(pod: Pod, name: str, objects: Objects) -> Terms:
    key = f"{pod.metadata.namespace}/{name}"
    claim = objects.claims.get(key) or _to_be_made(pod, name)
    if claim is None:
        raise Unreadable(
            "pvc-missing", f"PersistentVolumeClaim {name} does not exist in {pod.metadata.namespace}: create it"
        )
    if claim.metadata.deletion_timestamp:
        raise Unreadable("pvc-missing", f"PersistentVolumeClaim {name} is being deleted: create it anew")
    if claim.status.phase == "Lost":
        raise Unreadable("pvc-lost", f"PersistentVolumeClaim {name} has lost its volume: restore or replace it")
    holder = objects.holders.get(key, pod.name)
    if holder != pod.name:
        raise Unreadable(
            "pvc-in-use",
            f"PersistentVolumeClaim {name} is {ONE_POD} and pod {holder} has it: give this pod a claim of its own, or "
            "let that one end first",
        )
    volume = objects.volumes.get(claim.spec.volume_name)
    if claim.status.phase == "Bound" or volume is not None:
        return _volume_reach(volume) if volume is not None else ()
    return _reach_to_come(name, claim, objects)


def _to_be_made(pod: Pod, name: str) -> VolumeClaim | None:
    """The claim of an ephemeral volume that its controller has not made yet."""
    found = next(
        (v.ephemeral for v in pod.spec.volumes if v.ephemeral and f"{pod.metadata.name}-{v.name}" == name), None
    )
    template = found.get("volumeClaimTemplate") if found else None
    if not isinstance(template, dict):
        return None
    meta = {"name": name, "namespace": pod.metadata.namespace}
    try:
        return typed_json.convert({"metadata": meta, "spec": template.get("spec", {})}, VolumeClaim)
    except msgspec.ValidationError:
        raise Unreadable("pvc-unbound", f"the claim of its ephemeral volume {name} cannot be read: mend it") from None


def _volume_reach(volume: PersistentVolume) -> Terms:
    """By its node affinity, and by its labels of zone and region, which may name several: "a__b"."""
    affinity = volume.spec.node_affinity
    terms = selector_terms(affinity.required) if affinity and affinity.required else ()
    places = tuple(
        Requirement(key=ZONE if key in ZONE_ALIASES else key, operator="In", values=tuple(sorted(value.split("__"))))
        for key, value in sorted(volume.metadata.labels.items())
        if key in (ZONE, REGION, ZONE_ALIASES[0])
    )
    return tuple((*term, *(p for p in places if p not in term)) for term in terms or ((),)) if places else terms


def _reach_to_come(name: str, claim: VolumeClaim, objects: Objects) -> Terms:
    """Where an unbound claim's volume can be: volumes that are there and free, or zones its class makes them in."""
    wanted, storage_class = _class_of(name, claim, objects)
    if storage_class is None:
        return ()
    if chosen := claim.metadata.annotations.get(SELECTED_NODE):
        return ((Requirement(key=NODE_NAME, operator="In", values=(chosen,)),),)
    key = f"{claim.metadata.namespace}/{claim.metadata.name}"
    if (only := objects.shares.get(key)) is not None:
        free = [_volume_reach(objects.volumes[only])] if only else []
    else:
        free = [_volume_reach(v) for v in objects.volumes.values() if _would_do(v, wanted, claim)]
    if storage_class.provisioner != NO_PROVISIONER:
        made = tuple(expression_terms(t.match_label_expressions) for t in storage_class.allowed_topologies)
        if (rooms := _rooms(claim, storage_class, objects)) is not None:
            made = tuple((*m, *room) for m in made or ((),) for room in rooms)
            if not made and not free:
                raise Unreadable(
                    "pvc-no-capacity",
                    f"PersistentVolumeClaim {name} is of class {wanted}, whose driver tells room enough for it nowhere "
                    "(kubectl get csistoragecapacities -A): free some, or use another class",
                )
            return _any_of([*free, made] if made else free) if all(made) else ()
        return _any_of([*free, made]) if made else ()
    if not free:
        raise Unreadable(
            "pvc-no-volume",
            f"PersistentVolumeClaim {name} is of class {wanted}, which makes no volumes, and no PersistentVolume of it "
            "is free and would do. Make one on a node that is there (a node to come has no local volume), or use "
            "another class",
        )
    return _any_of(free)


def _rooms(claim: VolumeClaim, kind: StorageClass, objects: Objects) -> Terms | None:
    """Where a driver tells room enough for a claim, as alternatives; None where it need not tell any."""
    driver, size = objects.csi_drivers.get(kind.provisioner), claim.spec.resources.requests.get("storage")
    if driver is None or not driver.spec.storage_capacity or size is None:
        return None
    told = (one for one in objects.capacities.values() if one.storage_class_name == kind.metadata.name)
    return tuple(label_term(one.node_topology) for one in told if one.node_topology and _holds(one, size))


def _holds(room: StorageCapacity, size: str | float) -> bool:
    most = room.capacity if room.maximum_volume_size is None else room.maximum_volume_size
    try:
        return most is not None and known_quantity(most) >= known_quantity(size)
    except ValueError:
        return False


def _any_of(alternatives: Sequence[Terms]) -> Terms:
    """Terms of which any will do; those that differ in the values of one label are one. An empty one is anywhere."""
    if not all(alternatives):
        return ()
    values: dict[str, set[str]] = defaultdict(set)
    others: dict[tuple[Requirement, ...], None] = {}
    for term in (term for terms in alternatives for term in terms):
        if len(term) == 1 and term[0].operator == "In":
            values[term[0].key].update(term[0].values)
        else:
            others[term] = None
    one = ((Requirement(key=k, operator="In", values=tuple(sorted(v))),) for k, v in sorted(values.items()))
    return (*one, *others)[:MOST]


def _would_do(volume: PersistentVolume, wanted: str, claim: VolumeClaim) -> bool:
    """True where a volume is free, and of the class, size and access that a claim asks for."""
    spec, asked, owner = volume.spec, claim.spec, volume.spec.claim_ref
    ours = owner is not None and (owner.namespace, owner.name) == (claim.metadata.namespace, claim.metadata.name)
    if spec.storage_class_name != wanted or volume.metadata.deletion_timestamp:
        return False
    if not (ours or (owner is None and volume.status.phase in ("Available", "Pending", ""))):
        return False
    if spec.volume_mode != asked.volume_mode or not set(asked.access_modes) <= set(spec.access_modes):
        return False
    if asked.selector and not covers(asked.selector, volume.metadata.labels):
        return False
    try:
        room, wants = spec.capacity.get("storage", "0"), asked.resources.requests.get("storage", "0")
        return known_quantity(room) >= known_quantity(wants)
    except ValueError:
        return True


def _class_of(name: str, claim: VolumeClaim, objects: Objects) -> tuple[str, StorageClass | None]:
    """The class of a claim that is bound when its pod is placed; None where no classes are listed: not judged.

    Raises for a claim that will not be bound.
    """
    wanted = claim.spec.storage_class_name
    if wanted == "":
        raise Unreadable("pvc-unbound", f"PersistentVolumeClaim {name} waits for a volume made by hand: make one")
    if not objects.storage_classes:
        return "", None
    if wanted is None:
        wanted = next((n for n, c in objects.storage_classes.items() if _is_default(c.metadata.annotations)), None)
    storage_class = objects.storage_classes.get(wanted or "")
    if wanted is None or storage_class is None:
        what = f"storage class {wanted} does not exist" if wanted else "there is no default storage class"
        raise Unreadable("pvc-unbound", f"PersistentVolumeClaim {name} is unbound: {what}")
    if storage_class.volume_binding_mode != "WaitForFirstConsumer":
        raise Unreadable(
            "pvc-unbound",
            f"PersistentVolumeClaim {name} is unbound though class {wanted} binds immediately: see its events",
        )
    return wanted, storage_class


def _is_default(annotations: dict[str, str]) -> bool:
    return annotations.get(DEFAULT_CLASS) == "true"
