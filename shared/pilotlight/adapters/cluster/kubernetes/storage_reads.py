"""Reads of room for volumes: how many nodes attach, and where drivers have room to make more."""

from typing import TypeVar

import msgspec

from pilotlight.adapters.cluster.kubernetes.listing import CAPACITIES, CSI_DRIVERS, CSI_NODES, Lists
from pilotlight.adapters.cluster.kubernetes.transport import Missing
from pilotlight.codec.kubernetes.companions import CsiDriver, CsiNode, Objects, StorageCapacity
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.errors import Forbidden

R = TypeVar("R", CsiNode, CsiDriver, StorageCapacity)


def with_room(lists: Lists, objects: Objects) -> Objects:
    """The objects with it. Of drivers those that tell their room, which is read where one does.

    An account whose role is older than these reads knows of no limits.
    """
    csi_nodes = _all(lists, CSI_NODES, CsiNode) or {}
    found = _all(lists, CSI_DRIVERS, CsiDriver) or {}
    drivers = {name: driver for name, driver in found.items() if driver.spec.storage_capacity}
    rooms = _all(lists, CAPACITIES, StorageCapacity) if drivers else {}
    told = {"csi_drivers": drivers, "capacities": rooms} if rooms is not None else {}
    return msgspec.structs.replace(objects, csi_nodes=csi_nodes, **told)


def _all(lists: Lists, path: str, model: type[R]) -> dict[str, R] | None:
    """Objects by "namespace/name", or by name; None where they may not be read."""
    try:
        found = lists.all(path, listing(model))
    except (Forbidden, Missing):
        return None
    scoped = model is StorageCapacity
    return {f"{o.metadata.namespace}/{o.metadata.name}" if scoped else o.metadata.name: o for o in found}
