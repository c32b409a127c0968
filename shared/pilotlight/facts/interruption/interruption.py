"""Interruptions at work: what a cloud said of an instance, what was done about it, and what it cost."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

import msgspec

from pilotlight.facts.messages import NoticeKind, Outgoing
from pilotlight.units import Seconds, Usd, cents

Truth = Literal["verified", "unverified", "disproved"]
"""``verified``: the node or its cloud says so too, or it is our own word. ``disproved``: they say otherwise."""

StopKind = Literal["hard-cap", "max-runtime"]
"""Stops of our own: what a hard budget holds ends, or the longest run that a class's policy allows."""
STOP_KINDS: tuple[StopKind, ...] = ("hard-cap", "max-runtime")

OwnKind = Literal["deadline", "node-age", "back-to-spot", "sick-gpu", "off-hours", "out-of-budget", "preemption"]
"""Moves and ends of our own that stop no node for its budget."""

MOVE: Literal["deadline"] = "deadline"
"""A move of our own making off spot: a job on the node ends in time only on on-demand."""
RENEW: Literal["node-age"] = "node-age"
"""A replacement of our own: the node is too old, or its launch template has changed, and its pods may be moved."""

BACK: Literal["back-to-spot"] = "back-to-spot"
"""A move of our own to spot: a job with a deadline runs on demand, and would cost less there and be in time."""
SICK: Literal["sick-gpu"] = "sick-gpu"
"""A move of our own: the node's GPUs are not well, and the classes of its pods say that they move then."""
OFF_HOURS: Literal["off-hours"] = "off-hours"
"""An end of our own: a rule's time has come, in which pods of some classes leave a pool, and nothing replaces it."""
UNFUNDED: Literal["out-of-budget"] = "out-of-budget"
"""An end of our own: some pods leave a node whose other holders pay for it; the node stays, and nothing replaces it."""
PREEMPTION: Literal["preemption"] = "preemption"
"""A move of our own: a pod that consents gives way to one of a higher priority that waits; its node stays."""
PODS_LEAVE: tuple[Literal["out-of-budget", "preemption"], ...] = (UNFUNDED, PREEMPTION)
"""Some pods leave, and their node stays."""
AT_LEISURE: tuple[Literal["node-age", "back-to-spot", "sick-gpu"], ...] = (RENEW, BACK, SICK)
"""Nothing ends these: who has no ready room elsewhere goes on working."""
OUR_OWN: tuple[str, ...] = (*STOP_KINDS, MOVE, OFF_HOURS, *PODS_LEAVE, *AT_LEISURE)
"""Nobody takes the instance: we began these ourselves."""

Do = Literal["replace", "cordon", "checkpoint", "evict", "release", "uncordon"]

SOONER = timedelta(seconds=5)
"""What is said of one end twice differs by less."""

STAYS = {
    "freeze": "it is frozen, or without its network, for seconds, and goes on",
    "reboot": "it is rebooted and comes back: what runs on it begins again at its last checkpoint",
    "unknown": "what becomes of it is not said in a way that is known here: nothing is guessed",
}
"""Actions after which an instance is still there, and what is said of them."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a rescue: what to do from ``at`` on. ``subject`` is a pod's uid, or the node.

    ``by`` is when an eviction is tried whether or not a replacement was asked for. ``usd`` is what is lost where the
    step comes too late.
    """

    at: datetime
    do: Do
    subject: str
    why: str
    by: datetime | None = None
    usd: Usd = Decimal(0)


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """Work of one pod that has to be done again, at its node's price."""

    pod: str
    gpu_hours: float
    usd: Usd


RescueOutcome = Literal[
    "not ours",
    "unknown",
    "disproved",
    "stayed",
    "advised",
    "released",
    "gone",
    "stopped first",
    "uncordoned",
    "after the fact",
]
"""How an interruption ended."""


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """A verified end, and who was asked to save for it, while it is not known whether an earlier one is true."""

    deadline: datetime
    asked: dict[str, datetime] = {}


class Preempts(msgspec.Struct, frozen=True, kw_only=True):
    """The pod that waits for a place, and the owner of the one that gives way: it is asked once a day."""

    uid: str  # Of the pod that waits.
    pod: str  # The same, as namespace/name.
    owner: str  # Of the pod that gives way, as namespace/owner; its own name where it has none.


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """One instance's interruption, from its notice until all is done that can be. The record a rescue goes on from."""

    cluster: str  # Its name.
    instance: str  # The cloud's id.
    # A notice's kind, or a stop or move of our own.
    kind: NoticeKind | StopKind | OwnKind
    cloud: str = ""  # Who is said to take it.
    received_at: datetime  # When its notice came in.
    said_at: datetime | None = None  # The notice's own time.
    begin: datetime  # When to start.
    leaving: tuple[str, ...] = ()  # Pods (by uid) that leave, where the others stay with their node.
    preempts: Preempts | None = None  # For whom a pod gives way, where it does.
    deadline: datetime | None = None  # When the instance goes; None after the fact and for a mere probability.
    named: bool = True  # The notice itself said the deadline.
    until: datetime | None = None  # When a cordon ends that no deadline does.
    pool: str = ""  # The policy's pool, where known.
    node: str = ""  # Its name, where known.
    ours: bool = False  # We act on it.
    why: str = ""  # In words.
    outcome: RescueOutcome | Literal[""] = ""  # How it ended; empty while it goes on.
    ended_at: datetime | None = None  # When it ended.
    replaced: bool = False  # A replacement was asked for.
    decision: str = ""  # The decision that is behind it, or empty.
    asked: dict[str, datetime] = {}  # When each pod (by uid) was asked to save.
    evicted: dict[str, datetime] = {}  # When each pod (by uid) was evicted.
    lost: dict[str, Lost] = {}  # Work to be done again, by pod uid.
    priced: bool = True  # False where its price is not known: dollars mean nothing then.
    messages: tuple[Outgoing, ...] = ()  # Alerts still to be published.
    told: bool = False  # Its opening may have arrived: one message has one content.
    truth: Truth = "verified"  # What is known of the notice.
    proof: str = ""  # By what it is known.
    asked_cloud_at: datetime | None = None  # When its cloud was last asked.
    cordoned: bool = False  # It takes no pods for our sake.
    confirmed: Confirmed | None = None  # Verified before an earlier end was said, which nobody has confirmed yet.
    later: "Interruption | None" = None  # An end of the node itself that is far off, while some pods leave it.

    @property
    def of_node(self) -> "Interruption":
        """The end of the node itself, where one is known: pods that leave alone end nothing."""
        return self.later or self

    @property
    def is_over(self) -> bool:
        """True where nothing is left to do."""
        return bool(self.outcome)

    @property
    def lost_usd(self) -> Usd:
        """Dollars of work to be done again."""
        return sum((lost.usd for lost in self.lost.values()), Decimal(0))

    @property
    def loss(self) -> str:
        """Work to be done again, in words."""
        usd = cents(self.lost_usd) if self.priced else "an unknown price"
        return f"{self.lost_gpu_hours:.2f} GPU-hours of work ({usd})"

    @property
    def lost_gpu_hours(self) -> float:
        """GPU-hours of work to be done again."""
        return sum(lost.gpu_hours for lost in self.lost.values())


MOST_LOST = 500
"""Losses that one record keeps by pod; what the others lost is kept as two sums."""

MOST_DONE = 1500
"""Pods of which one record knows that they were asked or evicted: both may be done again and harm nobody."""

GONE, STAYING = "other pods, evicted", "other pods, on it"
"""Under these, instead of a uid, is what other pods lost together: what was evicted is not counted again."""


def bound_interruption(found: Interruption) -> Interruption:
    """An interruption as one record holds it: a gang may have more pods than fit, and the dearest are kept by name."""
    if max(len(found.lost), len(found.asked), len(found.evicted)) <= MOST_LOST:
        return found
    own = (item for item in found.lost.items() if item[0] not in (GONE, STAYING))
    named = sorted(own, key=lambda item: (-item[1].usd, item[0]))
    kept, rest = dict(named[:MOST_LOST]), named[MOST_LOST:]
    gone = [lost for uid, lost in rest if uid in found.evicted]
    staying = [lost for uid, lost in rest if uid not in found.evicted]
    for name, more in ((GONE, gone), (STAYING, staying)):
        more += [found.lost[name]] if name in found.lost else []
        if more:
            hours, usd = sum(lost.gpu_hours for lost in more), sum((lost.usd for lost in more), Decimal(0))
            kept[name] = Lost(pod=name, gpu_hours=hours, usd=usd)
    return msgspec.structs.replace(found, lost=kept, asked=_latest(found.asked), evicted=_latest(found.evicted))


def _latest(done: dict[str, datetime]) -> dict[str, datetime]:
    return dict(sorted(done.items(), key=lambda item: item[1])[-MOST_DONE:])


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance was last seen, for notices that come when it is gone. ``node`` is empty while it boots."""

    pool: str
    node: str = ""
    seen_at: datetime


NOTICE_S: dict[NoticeKind, Seconds] = {
    "spot-interruption": 120.0,
    "capacity-reservation": 120.0,
    "scheduled-change": 120.0,
    "lifecycle": 120.0,
}
"""What is left after a notice that names no deadline. EC2 gives two minutes; the others are taken for as little."""

LEAD_S: Seconds = 1800.0
"""A rescue begins at most so long before the deadline: maintenance is announced days ahead."""

STILL_THERE: tuple[RescueOutcome, ...] = ("disproved", "stayed", "uncordoned")
"""Outcomes after which the instance is there as before: what is said of it then is of another end."""
