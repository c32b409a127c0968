"""Dollars and GPU-hours of a period by one attribute: the rows of each kind add up to what the nodes cost.

The meter knows pool, machine, team, namespace and class. Pods and their labels are no part of it: what a namespace held
on a node on a day is divided by the GPU-time that kube-state-metrics saw of its pods there, so no sum changes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple, get_args

from pilotlight.facts.money.bill import CostLine, LineKind, MeterDay
from pilotlight.tools.advice.money.month import Amount
from pilotlight.units import shorten_figure

NANO = Decimal("1e-9")
KINDS = get_args(LineKind)
UNKNOWN = "(not known)"
"""What held GPUs that nothing tells more of."""


class PodTime(NamedTuple):
    """GPU-time of a pod on a node on a day, in any one unit; ``name`` is the pod, or its label's value."""

    day: date
    node: str
    namespace: str
    name: str
    weight: float


class SpendRow(NamedTuple):
    """One row: ``kind`` is a line's; only what was used has a name."""

    kind: str
    name: str
    amount: Amount


BY: Mapping[str, Callable[[CostLine], str]] = {
    "namespace": lambda line: line.project,
    "team": lambda line: line.team,
    "class": lambda line: line.workload_class,
    "pool": lambda line: line.pool,
    "machine": lambda line: f"{line.instance_type or line.pool} {line.capacity_type}",
}
"""By what the meter alone can tell it."""


def spend_by(
    metered: Iterable[MeterDay], first: date, last: date, name_of: Callable[[CostLine], str], team: str | None = None
) -> tuple[SpendRow, ...]:
    """What was used by each name, the dearest first; then idle, shared and commitments. Their sum is the period's."""
    return _rows((line, name_of(line), _whole(line)) for _, line in _lines(metered, first, last, team))


def spend_by_pods(
    metered: Sequence[MeterDay], first: date, last: date, times: Iterable[PodTime], team: str | None = None
) -> tuple[SpendRow, ...]:
    """The same by pods, or by a label of theirs."""
    return _rows((line, name, part) for _, line, name, part in parts_by_pod(metered, first, last, times, team))


def parts_by_pod(
    metered: Iterable[MeterDay], first: date, last: date, times: Iterable[PodTime], team: str | None = None
) -> Iterator[tuple[MeterDay, CostLine, str, Amount]]:
    """Every line's parts with the names of the pods that held them; idle and shared lines whole, without a name."""
    there: dict[tuple[date, str, str], dict[str, float]] = defaultdict(dict)
    for each in times:
        for node in (each.node, ""):  # A day of many nodes is kept without their names.
            held = there[each.day, node, each.namespace]
            held[each.name] = held.get(each.name, 0.0) + each.weight
    for day, line in _lines(metered, first, last, team):
        shares = _shares(there.get((day.day, line.node, line.project), {}))
        for name, part in _parted(_whole(line), shares) if line.kind == "used" else [("", _whole(line))]:
            yield day, line, name, part


def whole_lines(
    metered: Iterable[MeterDay], first: date, last: date, team: str | None = None
) -> Iterator[tuple[MeterDay, CostLine, str, Amount]]:
    """Every line as one part, where no pods are told."""
    for day, line in _lines(metered, first, last, team):
        yield day, line, "", _whole(line)


def _lines(
    metered: Iterable[MeterDay], first: date, last: date, team: str | None
) -> Iterator[tuple[MeterDay, CostLine]]:
    for day in metered:
        if first <= day.day <= last:
            mine = (line for line in day.lines if team is None or (line.kind == "used" and line.team == team))
            yield from ((day, line) for line in mine)


def _whole(line: CostLine) -> Amount:
    return Amount(shorten_figure(line.gpu_hours, 9), shorten_figure(line.usd, 9))


def _shares(weights: Mapping[str, float]) -> Sequence[tuple[str, Decimal]]:
    whole = sum(weights.values())
    if whole <= 0:
        return ((UNKNOWN, Decimal(1)),)
    return [(name, Decimal(repr(weight / whole))) for name, weight in sorted(weights.items())]


def _rows(parts: Iterable[tuple[CostLine, str, Amount]]) -> tuple[SpendRow, ...]:
    sums: dict[tuple[str, str], Amount] = defaultdict(Amount)
    for line, name, part in parts:
        sums[line.kind, name if line.kind == "used" else ""] += part
    found = [SpendRow(kind, name, amount) for (kind, name), amount in sums.items()]
    return tuple(sorted(found, key=lambda row: (KINDS.index(row.kind), -row.amount.usd, row.name)))


def _parted(whole: Amount, shares: Sequence[tuple[str, Decimal]]) -> Iterator[tuple[str, Amount]]:
    """The parts of an amount; the last is what the others leave."""
    left = whole
    for name, share in shares[:-1]:
        part = Amount((whole.gpu_hours * share).quantize(NANO), (whole.usd * share).quantize(NANO))
        left = Amount(left.gpu_hours - part.gpu_hours, left.usd - part.usd)
        yield name, part
    yield shares[-1][0], left
