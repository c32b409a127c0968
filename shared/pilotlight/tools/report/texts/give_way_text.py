"""Which running pods could give way, as people read it: why one waits, then a line for each that could, or why not."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from pilotlight.decide.interruption.give_way import GiveWay
from pilotlight.decide.interruption.time_left import TimeLeft
from pilotlight.units import cents, count_of, human

SHOWN = 3
"""Running pods that are named for one that waits, those that could give way first."""


def section(ways: Sequence[GiveWay], shown: int = SHOWN, more: int = 0) -> Iterator[str]:
    """A headed part of a plan; ``more``: pods that wait so, and are not weighed."""
    yield ""
    consents = any(way.acts for way in ways)
    done = "who consents does, where the pool acts" if consents else "advice: nothing is preempted"
    yield f"Could give way ({done})"
    yield from lines(ways, shown, more)


def lines(ways: Sequence[GiveWay], shown: int, more: int = 0) -> Iterator[str]:
    """Each pod that waits, and ``shown`` of those that run in a place that would hold it; then how many ``more`` are
    not weighed."""
    for _, each in groupby(ways, key=lambda one: one.pod):
        pairs = list(each)
        first = pairs[0]
        needs = f"; needs {_long(first.needs)} by {first.needs.by}" if first.needs else ""
        yield f"  {first.pod} (priority {first.priority}) waits: {first.waits}{needs}"
        for one in pairs[:shown]:
            yield f"    {_verdict(one)}: {_who(one)}"
            yield f"      {one.why}{_costs(one)}"
        if len(pairs) > shown:
            yield f"    and {len(pairs) - shown} more; pilotlight preempt {first.pod} shows all"
    if more:
        yield f"  {count_of(more, 'pod')} more, of no higher priority, not weighed: pilotlight preempt POD weighs one"


def _verdict(one: GiveWay) -> str:
    if not one.give_way:
        return "not"
    return "could, and consents" if one.acts else "could"


def _who(one: GiveWay) -> str:
    left = f", has probably {_long(one.left)} left by {one.left.by}" if one.left else ""
    return f"{one.running} on {one.node} (priority {one.running_priority}), ran {human(one.ran_s)}{left}"


def _long(left: TimeLeft) -> str:
    return human(left.p50_s) + (f" (P90 {human(left.p90_s)})" if left.p90_s > left.p50_s else "")


def _costs(one: GiveWay) -> str:
    """Dollars both ways, where the reason does not say them already."""
    if one.waiting_usd is None or one.preempting_usd is None or "waiting costs" in one.why:
        return ""
    return f"; waiting costs {cents(one.waiting_usd)}, preempting {cents(one.preempting_usd)}"
