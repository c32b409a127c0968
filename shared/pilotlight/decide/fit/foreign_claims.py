"""Claims beside GPUs for devices of drivers that nobody here has heard of: network cards, channels between nodes.

Whether a node to come will have them shows when it joins. Its GPUs are wanted all the same: the claim is left out of
the plan and told, once a driver, unless the policy ignores that driver.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from pilotlight.decide.fit.expected_devices import GPU_DRIVERS
from pilotlight.facts.fit.claimed_devices import DeviceAsk, DeviceKind
from pilotlight.facts.workload import Finding, PodDemand, PodShape
from pilotlight.units import one_line

_DRIVER = re.compile(r"device\.driver\s*==\s*['\"]([^'\"]{1,63})['\"]")
_NAME = re.compile(r"[\w.-]+")
Asks = tuple[DeviceAsk, ...]


def but_foreign(one: PodShape, known: Iterable[DeviceKind], ignored: Collection[str]) -> PodShape:
    """The shape without claims of drivers that are ``ignored``, or of which no devices are ``known``."""
    if one.claimed is None:
        return one
    others = {kind.driver for kind in known}.difference(GPU_DRIVERS)
    bare = bool(others) or not one.gpu.count  # Beside GPUs of a device plugin a claim of any device is of no GPU.
    mine = tuple(asks for asks in one.claimed.asks if not _names(asks, ignored, bare=False))
    kept = tuple(asks for asks in mine if _names(asks, {*GPU_DRIVERS, *others}, bare=bare))
    if len(kept) == len(one.claimed.asks) or not (kept or one.gpu.count):
        return one
    return replace(one, claimed=replace(one.claimed, asks=kept) if kept else None)


def told_of(before: Iterable[PodDemand], after: Iterable[PodDemand], ignored: Collection[str]) -> list[Finding]:
    """A finding for each driver whose claims were left out, unless it is ignored."""
    pods: dict[str, list[str]] = defaultdict(list)
    for was, now in zip(before, after, strict=True):
        kept = now.shape.claimed.asks if now.shape.claimed else ()
        for asks in was.shape.claimed.asks if was.shape.claimed and now.shape is not was.shape else ():
            if asks not in kept and not _names(asks, ignored, bare=False):
                pods[_driver(asks)].append(was.full_name)
    return [
        Finding(
            subject=f"driver {driver}",
            code="claim-driver",
            message=one_line(
                f"{names[0]}{f' and {len(names) - 1} more' * (len(names) > 1)} claim devices of {driver} beside GPUs, "
                "and no node has published any. Nodes are bought for the GPUs all the same; see that the driver runs "
                "on them, or list it in ignored_drivers",
                600,
            ),
        )
        for driver, names in sorted(pods.items())
    ]


def _names(asks: Asks, drivers: Collection[str], *, bare: bool = True) -> bool:
    """True where a request speaks of one of some drivers; one without selectors may be of any (``bare``)."""
    spoken = {name for ask in asks for text in (ask.named, *ask.selectors) for name in _NAME.findall(text)}
    return not spoken.isdisjoint(drivers) or (bare and any(not ask.selectors for ask in asks))


def _driver(asks: Sequence[DeviceAsk]) -> str:
    """The driver that a request's selectors name, else its class."""
    found = (_DRIVER.search(text) for ask in asks for text in ask.selectors)
    return next((match[1] for match in found if match), asks[0].named.partition(" ")[0])
