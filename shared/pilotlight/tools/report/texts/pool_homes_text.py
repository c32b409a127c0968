"""Homed and open pools as people read them, one line for those of equal reasons."""

from collections.abc import Iterator, Sequence

from pilotlight.tools.checkup.pool_homes import PoolHome


def section(pools: Sequence[PoolHome]) -> Iterator[str]:
    """A headed part of a plan."""
    yield ""
    yield "Homes"
    for homed, why in dict.fromkeys((one.homed, one.why) for one in sorted(pools, key=lambda one: not one.homed)):
        names = ", ".join(one.pool for one in pools if (one.homed, one.why) == (homed, why))
        yield f"  {'homed' if homed else 'open':<8}  {names}: {why}"
