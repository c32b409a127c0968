"""Bounds: how far each field of an object may go before it is refused, in one table with the reason for each.

Kubernetes lets whoever writes an object write an int64 of seconds and 256 KiB of annotations. A pod that waits and is
beyond a bound is refused by a finding: nothing is bought for it. One that is on a node already keeps its node, and a
safe value stands in: never one that holds a node for longer, nor that stops a pod sooner than Kubernetes stops any.
"""

import hashlib
import re
from decimal import Decimal
from typing import NamedTuple

from pilotlight.units import HOUR, Seconds, one_line

CODE = "out-of-bounds"
"""The code of a finding about a field that is beyond its bound."""


class Unreadable(ValueError):
    """A request that cannot be honoured. ``code`` is a finding's, ``str()`` its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Bound(NamedTuple):
    """Bound of a field. ``mend`` says what to write instead, ``why`` is the reason for the bound."""

    least: float
    most: float
    mend: str
    why: str

    def takes(self, value: float | Decimal) -> bool:
        """True where a value is within; NaN is not."""
        return self.least <= value <= self.most


DAY: Seconds = 24 * HOUR

GRACE = Bound(0, DAY, "give at most a day", "all stops are planned by it; no calendar has the moment 1e12 s from now")
CHECKPOINT_TAKES = Bound(0, DAY, "give seconds, at most a day", "as grace: it is added to it")
CHECKPOINT_EVERY = Bound(0, 31 * DAY, "give seconds, at most 31 days", "work since the last one is reckoned by it")
CHECKPOINT_SOONEST: Seconds = 1
"""Nobody saves more often: a shorter interval would make spot look free of loss."""
RUN = Bound(0, 366 * DAY, "", "a longer run is as good as one without end: a year of dollars is held for either")
DEVICES = Bound(0, 1024, "ask for what one node has", "no node has more; each device of a node is an entry of a list")
CORES = Bound(0, 1_000_000, "ask for what one node has", "a node without a known limit counts as that large")
AMOUNT = Bound(0, 2**53, "ask for what one node has", "bytes and counts stay whole numbers in JSON of any reader")
GPU_MEMORY = Bound(0, 1 << 20, "give a quantity, as 40Gi", "a pebibyte on one GPU is nobody's")
GANG_PODS = Bound(0, 10_000, "make the gang smaller", "a gang is placed whole or not at all, pod by pod")
COMING_PODS = Bound(0, 10_000, "let fewer pods in at once", "each pod of queued work is planned; a count is an int32")

KINDS = Bound(0, 64, "ask for fewer resources", "each is compared on each node")
MODELS = Bound(0, 64, "name fewer models", "each is compared with each offering, and told")
NAME = Bound(0, 253, "give a shorter name", "Kubernetes' own names have no more; it is a key of records and alerts")
TERMS = Bound(0, 256, "use fewer volumes or fewer alternatives", "alternatives multiply: 8 volumes of 6 are 1,679,616")
REQUIREMENTS = Bound(0, 4_096, "use fewer expressions", "each is held against each node and offering")
VALUES = Bound(0, 10_000, "name fewer values", "each is compared with a label of each node and offering")
TOLERATIONS = Bound(0, 256, "use fewer tolerations", "each is held against each taint of each node")
HOMES = Bound(0, 64, "use fewer tolerations", "each is compared with the home of each node; a pod needs one")
NEIGHBOURS = Bound(0, 32, "use fewer terms of pod affinity and spread", "each is held against every pod there is")
PORTS = Bound(0, 128, "use fewer host ports", "each is compared with those taken on each node")
SHARING = 2_000
"""So many claims that compete for volumes are matched with them in a look, the oldest first; the others get none."""
RULES = 1_000
"""So many different rules on pods near by are counted in a look; pods of namespaces that have the most wait."""
VOLUMES = Bound(0, 256, "use fewer volumes", "no node attaches as many")
CLAIMS = Bound(0, 64, "use fewer claims", "each is looked up among all that were made for the pod")
DEVICE_TEXT = Bound(0, 8_192, "use shorter selectors", "each is evaluated on each kind of devices")
DEVICE_ASKS = Bound(0, 256, "use fewer requests, alternatives or selectors", "each is tried on each kind of devices")
WORDS = 20_000
"""So many characters of commands, arguments and images tell a pod's class; what follows is not read."""
SAID = 500
"""So many characters of what a scheduler or a controller says are kept."""
TOLD = 1_000
"""So many characters of a finding are told."""
SHOWN = 60
"""So many characters of a value are told."""

SAFE_GRACE: Seconds = 30
"""What a grace beyond its bound counts as: Kubernetes' own, which budgets hold for every pod."""

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""Values of labels and taints, as Kubernetes takes them; the empty one is left out."""


def quote_value(value: object) -> str:
    """A value as it may be told: one short line of printable characters."""
    return one_line(str(value), SHOWN)


def beyond_bound(field: str, value: object, bound: Bound) -> str:
    """Words of a finding of a field that is beyond its bound."""
    return f"{field} is {quote_value(value)}, beyond {bound.least:g} to {bound.most:,g}: {bound.mend}"


def too_many(what: str, count: int, bound: Bound) -> Unreadable:
    """The refusal of more of something than is planned with."""
    many = f"{count:,}" if count < 10**12 else "a trillion or more"
    return Unreadable(CODE, f"has {many} {what}, and at most {bound.most:,g} are planned with: {bound.mend}")


def whole_name(text: str) -> str:
    """A name of any length and any characters as a key that may be kept and told: two that differ stay different."""
    if len(text) <= NAME.most and text.isascii() and text.isprintable():
        return text
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{quote_value(text)}~{digest}"
