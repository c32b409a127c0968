"""A pod's volumes: whether the scheduler can have them, and from where they can be reached."""

from pilotlight.codec.kubernetes.companions import Claim
from pilotlight.codec.kubernetes.lists import Objects
from pilotlight.codec.kubernetes.objects import Pod
from pilotlight.codec.kubernetes.placement import Terms, selector_terms
from pilotlight.codec.kubernetes.requests import Unreadable

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def reach_of(pod: Pod, objects: Objects) -> list[Terms]:
    """Where the pod's bound volumes can be reached from: one set of terms a volume that restricts it.

    Raises Unreadable (a finding) for a claim that is missing or cannot be bound: no node would help.
    A claim that waits for its first consumer is ordinary.
    """
    if not objects.storage_known:
        return []
    names = [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim]
    return [terms for name in names if (terms := _claim_reach(pod.metadata.namespace, name, objects))]


def _claim_reach(namespace: str, name: str, objects: Objects) -> Terms:
    claim = objects.claims.get(f"{namespace}/{name}")
    if claim is None:
        raise Unreadable("pvc-missing", f"PersistentVolumeClaim {name} does not exist in {namespace}: create it")
    if claim.metadata.deletion_timestamp:
        raise Unreadable("pvc-missing", f"PersistentVolumeClaim {name} is being deleted: create it anew")
    if claim.status.phase == "Lost":
        raise Unreadable("pvc-lost", f"PersistentVolumeClaim {name} has lost its volume: restore or replace it")
    if claim.status.phase != "Bound":
        _must_wait_for_consumer(name, claim, objects)
        return ()
    volume = objects.volumes.get(claim.spec.volume_name)
    affinity = volume and volume.spec.node_affinity
    return selector_terms(affinity.required) if affinity and affinity.required else ()


def _must_wait_for_consumer(name: str, claim: Claim, objects: Objects) -> None:
    """Raise unless the claim will be bound when its pod is placed. Storage classes not listed are not judged."""
    wanted = claim.spec.storage_class_name
    if wanted == "":
        raise Unreadable("pvc-unbound", f"PersistentVolumeClaim {name} waits for a volume made by hand: make one")
    if not objects.storage_classes:
        return
    if wanted is None:
        wanted = next((n for n, c in objects.storage_classes.items() if _is_default(c.metadata.annotations)), None)
    storage_class = objects.storage_classes.get(wanted or "")
    if storage_class is None:
        what = f"storage class {wanted} does not exist" if wanted else "there is no default storage class"
        raise Unreadable("pvc-unbound", f"PersistentVolumeClaim {name} is unbound: {what}")
    if storage_class.volume_binding_mode != "WaitForFirstConsumer":
        raise Unreadable(
            "pvc-unbound",
            f"PersistentVolumeClaim {name} is unbound though class {wanted} binds immediately: see its events",
        )


def _is_default(annotations: dict[str, str]) -> bool:
    return annotations.get(DEFAULT_CLASS) == "true"
