"""Waiting pods that capacity was asked for before, beside the nodes on their way that each request asked for."""

from collections.abc import Sequence
from typing import NamedTuple

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.place.purchase import Group, by_age, in_order
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.workload import PodDemand


class AskedFor(NamedTuple):
    """Waiting pods of one shape that capacity was asked for, and the nodes of that request."""

    entry: InFlight
    group: Group
    bins: list[Bin]


def asked_for(
    pending: Sequence[PodDemand], in_flight: Sequence[InFlight], booting: Sequence[Bin]
) -> tuple[list[AskedFor], list[Bin]]:
    """The pods that were asked for, in the order of requests and in a plan's; and ``booting``, the newest last.

    So who was told of room on its way finds it in a later look too: what was asked for since is taken last.
    """
    entries = sorted(in_flight, key=lambda e: (e.requested_at, e.decision, e.n, e.offering))
    flight = {uid: index for index, entry in enumerate(entries) for uid in entry.demands}
    groups: dict[tuple[int, str], Group] = {}
    for pod in sorted(pending, key=by_age) if flight else ():
        if (index := flight.get(pod.uid)) is not None:
            groups.setdefault((index, pod.shape.key), Group(pod.shape, [])).pods.append(pod)
    own = _by_entry(entries, booting)
    order = sorted(groups.items(), key=lambda item: (item[0][0], in_order(item[1])))
    asked = [AskedFor(entries[index], group, own[index]) for (index, _), group in order]
    newest = [bin_ for bins in own for bin_ in bins]
    owned = set(map(id, newest))
    return asked, [*(bin_ for bin_ in booting if id(bin_) not in owned), *newest]


def _by_entry(entries: Sequence[InFlight], booting: Sequence[Bin]) -> list[list[Bin]]:
    """The nodes on their way that each entry asked for: of its pool the newest entry has the last."""
    left: dict[str, list[Bin]] = {}
    for bin_ in booting:
        left.setdefault(bin_.pool, []).append(bin_)
    own: list[list[Bin]] = []
    for entry in reversed(entries):
        there = left.get(entry.pool, [])
        first = max(0, len(there) - entry.count)
        own.append(there[first:])
        left[entry.pool] = there[:first]
    return own[::-1]
