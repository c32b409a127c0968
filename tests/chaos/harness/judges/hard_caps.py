"""Whether hard budgets held: what nodes have really cost in each period, by the world's log alone.

While the store, the API server or the cloud does not answer, or every look at a cluster dies before its end, a limit
may be passed by what is lit meanwhile, and then people are told. Two other exceptions: work that may not be stopped,
and that bound by itself to a node bought for less: its node takes nothing more, and that is told. And nodes that came
and went while every worker stood still. And what the group of a pool made anew while it could not be read (GKE's 403 or
503): that node alone, until its group is read again or it joins.
"""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from harness.faults.luck import Outage, Port
from harness.judges.strangers_books import CENT, SLACK_S, BookedNode, Day, StrangersBooks, days, limit_of
from pilotlight.facts.money.money_policy import Budget
from pilotlight.units import Seconds

BLIND: tuple[Port, ...] = ("state", "cluster", "pools")
"""While one of these does not answer nobody can see to a budget."""

SLOW_S: Seconds = 300
"""Workers that die and stand still, one after another, may give a node back so much later than they should."""

Told = Callable[[str, Day], bool]
"""Whether people were told of a budget, by its name, in a day."""

Stretch = tuple[Seconds, Seconds]


def passed(books: StrangersBooks, now_s: Seconds, down: Sequence[Outage], told: Told) -> Iterator[str]:
    """Every hard limit of dollars or GPU-hours that was passed by more than may be, or of which nobody was told."""
    blind = [(o.start_s, o.end_s + SLACK_S) for o in down if o.port in BLIND]
    for budget in (b for b in books.budgets if b.period != "hour" and b.hard):
        nodes = [node for node in books.of(budget) if not node.glimpsed]
        for day in days(budget, 0.0, now_s):
            if any(node.frozen and not books.stops(node) and node.lived_s(day, now_s) for node in nodes):
                continue
            over = _cost(nodes, budget, day, (0.0, now_s)) - limit_of(budget)
            meanwhile = sum((_unseen_cost(node, budget, day, blind, books) for node in nodes), Decimal(0))
            if budget.usd is None:  # A budget of GPU-hours is worth minutes here.
                meanwhile += sum((node.measure(budget, SLOW_S) for node in nodes), Decimal(0))
            if over > meanwhile + CENT:
                yield f"{budget.name} of {day.name} was passed by {over:.2f}, and {meanwhile:.2f} were lit in outages"
            elif over > CENT and not told(budget.name, day):
                yield f"{budget.name} of {day.name} was passed by {over:.2f}, and nobody was told"


def unseen(looked_s: Sequence[Seconds], now_s: Seconds) -> Iterator[Outage]:
    """When no look came to its end for longer than any orderly stop leaves room for."""
    ends = (0.0, *looked_s, now_s)
    return (Outage("cluster", start_s, end_s) for start_s, end_s in pairwise(ends) if end_s - start_s > SLOW_S)


def _unseen_cost(
    node: BookedNode, budget: Budget, day: Day, blind: Sequence[Stretch], books: StrangersBooks
) -> Decimal:
    """What a node cost while nobody could look, or know of it, and a tick longer; no moment of it twice."""
    known_s, last_s, cost = books.unread.known_s(node.pool, node.launched_s), 0.0, Decimal(0)
    alone = [(node.launched_s, known_s + SLACK_S)] if known_s > node.launched_s else []
    for start_s, end_s in sorted((*blind, *alone)):
        if end_s > last_s:
            cost += _cost([node], budget, day, (max(start_s, last_s), end_s))
            last_s = end_s
    return cost


def _cost(nodes: Sequence[BookedNode], budget: Budget, day: Day, stretch: Stretch) -> Decimal:
    """What nodes cost in what a day and a stretch share."""
    cost = Decimal(0)
    for node in nodes:
        ended_s = stretch[1] if node.ended_s is None else min(stretch[1], node.ended_s)
        cost += node.measure(budget, day.inside(max(stretch[0], node.launched_s), ended_s))
    return cost
