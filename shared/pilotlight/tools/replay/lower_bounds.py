"""The least that a trace can cost: in shares of GPUs (fluid), and in whole nodes with no job waiting (integral)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import msgspec

from pilotlight.errors import BadInput
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.cover import Cover, Machine
from pilotlight.tools.replay.traces.trace_file import types_for
from pilotlight.tools.replay.traces.trace_job import Bounds, Job
from pilotlight.units import MILLI_PER_GPU, Seconds, Usd, count_of

_MICROS_PER_HOUR = 3_600_000_000

Groups = Mapping[int, Sequence[Job]]
"""Jobs by the set of types they may use: a bit mask over the machines."""


def bounds(jobs: Sequence[Job], catalog: Catalog, capacity_type: CapacityType = "on-demand") -> Bounds:
    """A trace's bounds, exact to the microsecond. Raises ``BadInput`` for a job that no priced type can hold."""
    found = _bounds(jobs, catalog, capacity_type)
    if capacity_type == "on-demand":
        return found
    return msgspec.structs.replace(found, on_demand=_bounds(jobs, catalog, "on-demand").integral)


def _bounds(jobs: Sequence[Job], catalog: Catalog, capacity_type: CapacityType) -> Bounds:
    prices = {
        name: offered.prices[capacity_type].usd_per_hour + offered.extra_usd_per_hour
        for name, offered in catalog.instance_types.items()
        if capacity_type in offered.prices
    }
    groups = _groups(jobs, catalog, list(prices))
    # Whole numbers throughout: ``unit`` of them are a dollar.
    unit = 10 ** max((_decimals(price) for price in prices.values()), default=0)
    machines = tuple(Machine(catalog.instance_types[n].gpus, int(p * unit)) for n, p in prices.items())
    return Bounds(fluid=_usd(_fluid(groups, machines), unit), integral=_usd(_integral(groups, machines), unit))


def _decimals(price: Decimal) -> int:
    exponent = price.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _usd(units: Fraction, unit: int) -> Usd:
    exact = units / unit / _MICROS_PER_HOUR
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def _groups(jobs: Iterable[Job], catalog: Catalog, priced: Sequence[str]) -> Groups:
    bits = {name: 1 << i for i, name in enumerate(priced)}
    masks: dict[tuple[tuple[str, ...], int], int] = {}
    groups: defaultdict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        kind = (job.models, job.gpus)
        if kind not in masks:
            masks[kind] = sum(bits.get(name, 0) for name in types_for(job, catalog))
        if not masks[kind]:
            wanted = "|".join(job.models) or "any model"
            raise BadInput(
                f"job {job.job_id}: {count_of(job.gpus, 'GPU')} of {wanted}: no priced type of catalogue {catalog.name}"
            )
        groups[masks[kind]].append(job)
    return groups


def _fluid(groups: Groups, machines: Sequence[Machine]) -> Fraction:
    total = Fraction(0)
    for mask, jobs in groups.items():
        rate = min(Fraction(m.price, m.gpus) for i, m in enumerate(machines) if mask >> i & 1)
        total += rate * Fraction(sum(_milli(j) * _micros(j.duration_s) for j in jobs), MILLI_PER_GPU)
    return total


def _integral(groups: Groups, machines: tuple[Machine, ...]) -> Fraction:
    """Price x time, summed over the stretches between two events (a submit or an end)."""
    cover = Cover(machines)
    in_use = dict.fromkeys(groups, 0)
    total = before = price = 0
    for at, changes in sorted(_changes(groups).items()):
        total += price * (at - before)
        for mask, milli in changes:
            in_use[mask] += milli
        before, price = at, cover.price(in_use)
    return Fraction(total)


def _changes(groups: Groups) -> Mapping[int, Sequence[tuple[int, int]]]:
    """Demand that begins (positive) and ends (negative), in thousandths of a GPU, by the microsecond it happens at."""
    changes: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for mask, jobs in groups.items():
        for job in jobs:
            start = _micros(job.submit_s)
            changes[start].append((mask, _milli(job)))
            changes[start + _micros(job.duration_s)].append((mask, -_milli(job)))
    return changes


def _milli(job: Job) -> int:
    return job.gpus * job.gpu_milli


def _micros(seconds: Seconds) -> int:
    return round(seconds * 1_000_000)
