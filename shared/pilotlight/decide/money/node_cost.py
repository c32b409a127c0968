"""Cost of a node once it is over, and the purchase that it came from."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.money.budget_limits import dollars
from pilotlight.decide.money.metering import day_start
from pilotlight.decide.money.node_tally import paid_until
from pilotlight.facts.money.bill import MeteredNode
from pilotlight.facts.money.budgets import Priced
from pilotlight.units import Usd

DAY = timedelta(days=1)

SKEW = timedelta(seconds=5)
"""A node that began so long before a call was sent came of it: the cloud's clock may be behind the store's."""

FAR_BEHIND = timedelta(minutes=5)
"""A cloud's clock may be as far behind as this: of a node that began before every call, the first one is taken."""

MICROPART = Decimal("0.000001")


Lived = tuple[str, datetime]
"""An instance, and since when it was paid for: one that is stopped and started again lives twice."""


class Bought(NamedTuple):
    """A call that grew a pool by so many ``nodes``, and the decision whose ``step`` it was."""

    decision: str
    pool: str
    nodes: int
    at: datetime
    step: int = 0


def metered_usd(node: MeteredNode, prices: Mapping[date, MeteredNode]) -> Usd:
    """Dollars of a node's whole life, all time at the price that the meter counted it with.

    ``prices`` is the node by day; a day that is not kept any more has the price of the next that is. Its own is known.
    """
    end, total, price = paid_until(node), Decimal(0), node.usd_per_hour
    earlier: tuple[Priced, ...] = ()
    day = end.date()
    while day >= node.since.date():
        known = prices.get(day)
        if known is not None and known.usd_per_hour is not None:
            price, earlier = known.usd_per_hour, known.earlier
        assert price is not None
        total += dollars(earlier, price, max(node.since, day_start(day)), min(end, day_start(day + DAY)))
        day -= DAY
    return total.quantize(MICROPART)


def bought_by(nodes: Mapping[Lived, str], calls: Sequence[Bought], within: timedelta) -> dict[Lived, Bought]:
    """The call that bought each node, where one did; ``nodes`` are pools by life.

    The youngest node is first, and takes the newest call of its pool before it that has not got all of its nodes and is
    no older than ``within``: so each call gets its own, also where a node object is younger than its instance.
    """
    left = [call.nodes for call in calls]
    newest = sorted(range(len(calls)), key=lambda i: (calls[i].at, calls[i].decision), reverse=True)
    found: dict[Lived, Bought] = {}

    def take(life: Lived, order: Iterable[int], skew: timedelta) -> None:
        for i in order:
            if calls[i].pool == nodes[life] and left[i] and life[1] - within <= calls[i].at <= life[1] + skew:
                left[i] -= 1
                found[life] = calls[i]
                return

    oldest_first = sorted(nodes, key=lambda life: (life[1], life[0]))
    for life in reversed(oldest_first):
        take(life, newest, SKEW)
    for life in oldest_first:
        if life not in found:
            take(life, reversed(newest), FAR_BEHIND)
    return found
