"""The cheapest whole nodes that cover a demand of GPUs: an exact small integer program.

Demand comes in groups, each allowed a set of machine types (a bit mask). Nodes serve it when, for every set of
types, the GPUs of the nodes in the set cover the groups that fit nowhere else (Hall's condition). Sets that are
unions of overlapping groups are enough: the others are implied by these.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from math import inf
from typing import NamedTuple

from pilotlight.units import MILLI_PER_GPU

Needs = tuple[tuple[int, int], ...]
"""Sets of types (bit masks), each with the whole GPUs its nodes must have."""


class Machine(NamedTuple):
    """One type: GPUs of a node, and its price as a whole number of any unit."""

    gpus: int
    price: int


class Cover:
    """Covers for one list of machines; what it has solved once it remembers."""

    def __init__(self, machines: tuple[Machine, ...]) -> None:
        self._machines = machines
        self._solve = cache(self._solve_anew)
        self._undominated = cache(self._undominated_anew)

    def price(self, demand: Mapping[int, int]) -> int:
        """The least price of nodes for ``demand``: thousandths of GPUs by the mask of types that may serve them."""
        everything = (1 << len(self._machines)) - 1
        return int(self._solve(everything, hall(demand)))

    def _solve_anew(self, allowed: int, needs: Needs) -> float:
        """Settle what is forced (a need that one type alone can meet), then branch."""
        paid = 0
        while needs := _tightened(needs, allowed):
            allowed = self._undominated(allowed, tuple(mask for mask, _ in needs))
            needs = _tightened(needs, allowed)
            if needs[0][0] == 0:
                return inf
            forced = next(((mask, need) for mask, need in needs if mask.bit_count() == 1), None)
            if forced is None:
                return paid + self._branch(allowed, needs)
            machine = self._machines[forced[0].bit_length() - 1]
            count = -(-forced[1] // machine.gpus)
            paid += count * machine.price
            needs = _served(needs, forced[0], count * machine.gpus)
        return paid

    def _branch(self, allowed: int, needs: Needs) -> float:
        """Try every count of one type, from the most that could help down to none, and drop it from the rest."""
        types = _bits(needs[0][0])
        pick = min(types, key=lambda i: self._machines[i].price / self._machines[i].gpus)
        machine, bit = self._machines[pick], 1 << pick
        best = inf
        most = max(need for mask, need in needs if mask & bit)
        for count in range(-(-most // machine.gpus), -1, -1):
            left = _served(needs, bit, count * machine.gpus)
            paid = count * machine.price
            if paid + self._at_least(left, allowed & ~bit) < best:
                best = min(best, paid + self._solve(allowed & ~bit, left))
        return best

    def _at_least(self, needs: Needs, allowed: int) -> float:
        """A lower bound: the dearest single need at its best price for a GPU."""
        return max((need * self._rate(mask & allowed) for mask, need in needs), default=0)

    def _rate(self, mask: int) -> float:
        return min((self._machines[i].price / self._machines[i].gpus for i in _bits(mask)), default=inf)

    def _undominated_anew(self, allowed: int, masks: tuple[int, ...]) -> int:
        """Without the types that are in no need, or that others replace in every need at no higher price."""
        useful = {i: sum(1 << k for k, mask in enumerate(masks) if mask >> i & 1) for i in _bits(allowed)}
        kept = {i: member for i, member in useful.items() if member}
        for i, member in list(kept.items()):
            if any(member & ~other == 0 and self._replaces(j, i) for j, other in kept.items() if j != i):
                del kept[i]
        return sum(1 << i for i in kept)

    def _replaces(self, j: int, i: int) -> bool:
        new, old = self._machines[j], self._machines[i]
        return -(-old.gpus // new.gpus) * new.price <= old.price


def hall(demand: Mapping[int, int]) -> Needs:
    """The whole GPUs that each connected union of the demand's groups needs."""
    unions = connected_unions(frozenset(mask for mask, milli in demand.items() if milli))
    sums = ((union, sum(milli for mask, milli in demand.items() if mask & ~union == 0)) for union in unions)
    return tuple((union, -(-milli // MILLI_PER_GPU)) for union, milli in sums)


@lru_cache(maxsize=4096)
def connected_unions(masks: frozenset[int]) -> tuple[int, ...]:
    """Every union of groups in which each overlaps another, in order."""
    unions, new = set(masks), set(masks)
    while new:
        new = {union | mask for union in new for mask in masks if union & mask} - unions
        unions |= new
    return tuple(sorted(unions))


def _tightened(needs: Needs, allowed: int) -> Needs:
    """Open needs over the types still allowed, the smallest sets first, without those that a smaller set implies."""
    open_needs: dict[int, int] = {}
    for mask, need in needs:
        if need > 0:
            open_needs[mask & allowed] = max(need, open_needs.get(mask & allowed, 0))
    kept: list[tuple[int, int]] = []
    for mask, need in sorted(open_needs.items(), key=lambda item: (item[0].bit_count(), item[0])):
        if not any(inner & ~mask == 0 and has >= need for inner, has in kept):
            kept.append((mask, need))
    return tuple(kept)


def _served(needs: Needs, bit: int, gpus: int) -> Needs:
    return tuple((mask, need - gpus if mask & bit else need) for mask, need in needs)


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
