"""Changes that would have turned a decision about pods: a price, a cap, a label; from its record alone."""

from collections.abc import Iterator
from decimal import Decimal

from pilotlight.facts.place.pod_verdicts import Code, PodGroup, Rejected
from pilotlight.units import cents

CAPS: tuple[Code, ...] = ("cap", "budget", "unpaid", "step", "quota")
LABELS: tuple[Code, ...] = (
    "selector",
    "toleration",
    "device",
    "model",
    "gpu-memory",
    "volume",
    "neighbours",
    "class",
    "spot",
    "which-gpu",
    "no-pool",
)
"""What the pod asks for, or what the policy says of its class."""


def would_change(group: PodGroup, reasons: bool = True) -> Iterator[str]:
    """A line each for the cheapest offering that a price, more room, or another request would have made the choice;
    without ``reasons`` where they stand above.
    """
    paid = group.usd_per_useful_hour
    dearer = [one for one in group.rejected if one.code == "dearer" and one.usd_per_useful_hour is not None]
    if paid is not None and dearer:
        nearest = min(dearer, key=_price)
        yield f"price: {nearest.offering}, below {cents(paid)} per useful hour (it was {cents(_price(nearest))})"
    for kind, codes in (("cap", CAPS), ("label", LABELS)):
        options = [one for one in group.rejected if one.code in codes and _cheaper(one, paid)]
        if options:
            best = min(options, key=_price)
            yield f"{kind}: {best.offering}, but for {f'this: {best.why}' if reasons else 'its reason above'}"
        elif group.code in codes and reasons:
            yield f"{kind}: {group.why}"


def _cheaper(option: Rejected, paid: Decimal | None) -> bool:
    known = option.usd_per_useful_hour
    return paid is None or known is None or known < paid


def _price(option: Rejected) -> Decimal:
    known = option.usd_per_useful_hour
    return Decimal("Infinity") if known is None else known
