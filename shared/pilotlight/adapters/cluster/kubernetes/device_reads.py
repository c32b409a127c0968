"""Reads of devices by claim (DRA): slices, classes, claims and templates of ``resource.k8s.io/v1``."""

from typing import TypeVar

from pilotlight.adapters.cluster.kubernetes.listing import DEVICES, Lists
from pilotlight.codec.kubernetes.device_objects import (
    DeviceClass,
    Devices,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.errors import Forbidden

D = TypeVar("D", ResourceSlice, DeviceClass, ResourceClaim, ResourceClaimTemplate)


def read_devices(lists: Lists, *, claiming: bool) -> Devices:
    """All of it. Where nothing is claimed and nothing published, that is all that is read. Raises ``Missing``."""
    try:
        slices = _all(lists, "resourceslices", ResourceSlice)
        if not slices and not claiming:
            return Devices()
        return Devices(
            slices={each.metadata.name: each for each in slices},
            classes={each.metadata.name: each for each in _all(lists, "deviceclasses", DeviceClass)},
            claims={_named(each): each for each in _all(lists, "resourceclaims", ResourceClaim)},
            templates={_named(each): each for each in _all(lists, "resourceclaimtemplates", ResourceClaimTemplate)},
        )
    except Forbidden:  # The account's role is of before this was read.
        return Devices(readable=False)


def _all(lists: Lists, what: str, model: type[D]) -> list[D]:
    return lists.all(f"{DEVICES}/{what}", listing(model))


def _named(each: ResourceClaim | ResourceClaimTemplate) -> str:
    return f"{each.metadata.namespace}/{each.metadata.name}"
