"""Devices that pods ask for by claim (DRA, ``resource.k8s.io``): what a node has of them, and what a pod wants.

Names are fully qualified, as "gpu.nvidia.com/productName".
"""

import msgspec

CLAIMED = "claim:"
"""A resource of this beginning is devices that are had by claim alone: what follows tells them apart."""


class DeviceKind(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` devices alike of one driver on a node. ``resource`` is by what their room is counted.

    ``attributes`` are texts, numbers and truths, ``versions`` semantic versions, ``capacity`` quantities.
    ``differs`` are attributes in which its devices are not alike. ``seen``: a driver has published it, so that what is
    not here is not there; else it is what such a type's driver is expected to publish. ``plugin``: a device plugin
    offers the same devices, so that pods get them without a claim. ``shares``: one device may be had by several claims.
    """

    driver: str
    resource: str
    count: int
    attributes: dict[str, str | int | bool] = {}
    versions: dict[str, str] = {}
    capacity: dict[str, str] = {}
    differs: tuple[str, ...] = ()
    shares: bool = False
    seen: bool = True
    plugin: bool = False


class DeviceAsk(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` devices that all of ``selectors`` (CEL) choose; ``every``: all that they choose of a node.

    ``named`` is the class and the request, for people; ``amounts`` is what each of them has at least, by name.
    ``untold``: why nobody can tell which devices do; empty where somebody can.
    """

    named: str
    selectors: tuple[str, ...] = ()
    count: int = 1
    every: bool = False
    amounts: tuple[tuple[str, str], ...] = ()
    untold: str = ""


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """Devices that a pod's claims ask for: of each of ``asks`` the first alternative that a node has.

    ``alike`` are attributes in which all that it gets has to agree. ``sharers`` are further pods of the same claim,
    whose requests the pod's own shape includes: (CPU in thousandths, memory and disk in bytes) of each.
    """

    asks: tuple[tuple[DeviceAsk, ...], ...]
    alike: tuple[str, ...] = ()
    sharers: tuple[tuple[int, int, int], ...] = ()
