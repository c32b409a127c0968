"""Findings of a pool that nothing is bought from: its type or its price is not known."""

from difflib import get_close_matches

from pilotlight.facts.offers.aws_zones import is_local
from pilotlight.facts.offers.catalog import Catalog, InstanceType
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Finding


def unknown_type(name: str, pool: PoolPolicy, catalog: Catalog) -> Finding:
    """A pool of a type that no catalogue file has, with the nearest name that one has."""
    close = get_close_matches(pool.instance_type, catalog.instance_types, n=1)
    hint = f"did you mean {close[0]}?" if close else "add it to a catalogue file (prices.files)."
    return Finding(
        subject=f"pool {name}",
        code="unknown-instance-type",
        message=f"{pool.instance_type} is not in catalogue {catalog.name}: {hint} Nothing is bought from this pool",
    )


def unknown_price(name: str, pool: PoolPolicy, where: str, machine: InstanceType) -> Finding:
    """A pool without a price in the region ``where`` (empty: not known), and what to write."""
    key = f"{pool.instance_type}/{pool.capacity_type}"
    known = f" (the price file is of {machine.region})" if where and machine.region not in ("", where) else ""
    there = f" in {where}{known}" if where else ""
    unsaid = not where and pool.capacity_type in machine.prices
    remedy = _say_region(pool) if unsaid else _name_a_file(pool, where)
    return Finding(
        subject=f"pool {name}",
        code="unknown-price",
        message=f'no price for {key}{there}: {remedy}prices.overrides["{key}"]. Nothing is bought from this pool',
    )


def _say_region(pool: PoolPolicy) -> str:
    """Advice where price files of several regions differ."""
    names_none = f" (zone {pool.zones[0]} names none)" if pool.zones else ""
    what = "its zones" if pool.cloud in ("eks", "gke") else "its cloud and zones"
    return f"region unknown{names_none}: write {what}, or set PILOTLIGHT_POOLS or "


def _name_a_file(pool: PoolPolicy, where: str) -> str:
    """Advice where no file has the price. AWS tells no prices of a local zone by its region."""
    if pool.cloud == "eks" and is_local(where):
        return "AWS prices a local zone apart from its region: set "
    if pool.cloud != "eks":
        return "set "
    command = f"pilotlight sizes {pool.instance_type} --region {where or 'REGION'} --catalog"
    return f"name a file of `{command}` in prices.files, or set "
