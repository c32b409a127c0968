"""Events by which a kubelet tells of the images that it pulled for a pod, or had already.

Their words: kubelet, ``pkg/kubelet/images/image_manager.go``, v1.27 to v1.36. Those of another reporter say nothing.
Whoever may write Events in a namespace may name the kubelet: what they say is held against the time that the pod was
seen to take.
"""

import re
from collections.abc import Iterable

from pilotlight.codec.kubernetes.typed_objects import Wire
from pilotlight.facts.nodes.first_work import Pull
from pilotlight.units import Seconds

PULLED = "Pulled"
"""The reason of such an Event."""
KUBELET = "kubelet"
"""The reporter of such an Event."""
MOST_EVENTS = 32
"""So many Events of a pod are read: one a container, and again after each restart."""

_PULLED = re.compile(
    r'Successfully pulled image "[^"]{1,1024}" in ([0-9a-zµ.]{1,40})(?: \(([0-9a-zµ.]{1,40}) including waiting\))?'
    r"(?:\. Image size: (\d{1,16}) bytes)?"
)
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|m|s|us|µs|ns)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_THERE = "already present on machine"


class Source(Wire, frozen=True):
    """Reporter of an Event, as API servers before v1.27 have it alone."""

    component: str = ""


class PulledEvent(Wire, frozen=True):
    """An Event of a pod."""

    reason: str = ""
    message: str = ""
    source: Source = Source()
    reporting_component: str = ""

    @property
    def counts(self) -> bool:
        """True of a kubelet's word on a pull."""
        return self.reason == PULLED and KUBELET in (self.source.component, self.reporting_component)


class PulledEvents(Wire, frozen=True):
    """A list of them."""

    items: tuple[PulledEvent, ...] = ()


def pull_of(events: Iterable[PulledEvent]) -> Pull | None:
    """Pull of a pod's images, waiting for other pulls included; None where no Event tells of any."""
    told, seconds, size = False, 0.0, 0
    for event in events:
        if not event.counts:
            continue
        if found := _PULLED.match(event.message):
            told = True
            seconds += _duration_s(found[2] or found[1])
            size += int(found[3] or 0)
        else:
            told = told or _THERE in event.message
    return Pull(seconds=seconds, size=size) if told else None


def _duration_s(text: str) -> Seconds:
    """Seconds of a duration as Go writes it: 1m2.5s, 812ms."""
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text))
