"""What is read of devices by claim (DRA): slices, classes, claims and templates of ``resource.k8s.io/v1``."""

from typing import TypeVar

from pilotlight.adapters.cluster.kubernetes.reads import DEVICES, Reads
from pilotlight.codec.kubernetes.nodes.devices import (
    DeviceClass,
    Devices,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.errors import Forbidden

D = TypeVar("D", ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate)


def read_devices(reads: Reads, *, claiming: bool) -> Devices:
    """All of it. Where nothing is claimed and nothing published, that is all that is read. Raises ``Missing``."""
    try:
        slices = _all(reads, "resourceslices", ResourceSlice)
        if not slices and not claiming:
            return Devices()
        return Devices(
            slices={each.metadata.name: each for each in slices},
            classes={each.metadata.name: each for each in _all(reads, "deviceclasses", DeviceClass)},
            claims={_named(each): each for each in _all(reads, "resourceclaims", ResourceClaim)},
            templates={_named(each): each for each in _all(reads, "resourceclaimtemplates", ResourceClaimTemplate)},
        )
    except Forbidden:  # The account's role is of before this was read.
        return Devices(readable=False)


def _all(reads: Reads, what: str, model: type[D]) -> list[D]:
    return reads.all(f"{DEVICES}/{what}", listing(model))


def _named(each: ResourceClaim | ResourceClaimTemplate) -> str:
    return f"{each.metadata.namespace}/{each.metadata.name}"
