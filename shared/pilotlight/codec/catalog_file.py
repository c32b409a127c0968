"""The catalogue file (YAML) -> ``Catalog``. Every refusal is one line that names the file and the key."""

import math
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from pilotlight import typed_json
from pilotlight.codec.json_text import read_json
from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog, DiskPrice, InstanceType, Price
from pilotlight.facts.workload import WHOLE_DEVICES
from pilotlight.units import quantity

_TABLES: dict[type, tuple[str, type]] = {Catalog: ("instance_types", InstanceType), InstanceType: ("prices", Price)}
"""Tables with free keys, which msgspec's own paths do not name."""

_PLAIN = (
    (r"Object contains unknown field `(.+)`", r"unknown key \1"),
    (r"Object missing required field `(.+)`", r"\1 is missing"),
    (r"Expected `int`, got `str`", "must be a whole number"),
    (r"Expected `float`, got `str`|Invalid decimal string", "must be a number"),
    (
        r"Expected `(?:object|array)`, got `.+`|Expected `object.*",
        "must be a table of keys and values, as pilotlight show data/catalogs/articles.yaml prints",
    ),
    (r"Invalid RFC3339 encoded datetime", "must be a time with its zone, as 2026-07-01T00:00:00Z"),
)

MOST_GPUS, MOST = 1024, 1_000_000
"""More GPUs in one machine, or more seconds, pods, GiB or interruptions an hour, are a slip of the pen."""


def read_catalog(text: str | bytes, where: str) -> Catalog:
    """The catalogue in ``text``; ``where`` is what its errors call it. Raises ``BadInput``."""
    document = _document(text, where)
    try:
        # Not strict: the document holds only strings, so that no price passes through a binary float.
        catalog = typed_json.convert(document, Catalog, strict=False)
    except msgspec.ValidationError:
        raise BadInput(f"{where}: {_explain(document, Catalog, '')}") from None
    for problem in _problems(catalog):
        raise BadInput(f"{where}: {problem}")
    return catalog


def _document(text: str | bytes, where: str) -> Any:
    if (found := read_json(text)) is not None:
        return found
    import yaml

    from pilotlight.codec.bounded_yaml import load

    try:
        return load(text)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadInput(
            f"{where}{line}: not YAML: {error.problem or error.context}; mend that line, or one above it"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise BadInput(
            f"{where}: not YAML: it holds bytes that are not UTF-8 text, or is nested too deep; save it as UTF-8"
        ) from None


def _explain(value: Any, kind: type, path: str) -> str:
    """The first thing in ``value`` that keeps it from being a ``kind``, by its full path."""
    table, inner = _TABLES.get(kind, ("", kind))
    entries = value.get(table) if isinstance(value, dict) else None
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        try:
            typed_json.convert(entry, inner, strict=False)
        except msgspec.ValidationError:
            return _explain(entry, inner, f"{path}{table}.{name}.")
    try:
        typed_json.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        return _plain(str(error), path)
    return f"{path}{table} holds an unknown key"


def _plain(message: str, path: str) -> str:
    reason, _, place = message.partition(" - at ")
    keys = (path + place.rpartition("$")[2].strip("`").lstrip(".")).rstrip(".")
    for pattern, words in _PLAIN:
        reason = re.sub(pattern, words, reason)
    return f"{keys}: {reason}" if keys else reason


def _problems(catalog: Catalog) -> Iterator[str]:
    """Problems that types alone do not rule out."""
    if catalog.as_of.tzinfo is None:
        yield "as_of: must be a time with its zone, as 2026-07-01T00:00:00Z"
    if not catalog.instance_types:
        yield "instance_types: there is none"
    if catalog.elsewhere:
        yield "unknown key elsewhere"
    for name, offered in catalog.instance_types.items():
        yield from (f"instance_types.{name}.{problem}" for problem in _type_problems(offered))
        if offered.disk_gib and offered.standby_usd_per_hour is None and offered.disk not in catalog.disks:
            yield f"instance_types.{name}.disk: no price of {offered.disk} under disks; write disks.{offered.disk}"
    for name, disk in catalog.disks.items():
        yield from _price_problems(f"disks.{name}.", "usd_per_gib_month", disk)
    for workload, speeds in catalog.throughput.items():
        for model, speed in speeds.items():
            if not (math.isfinite(speed) and speed > 0):
                yield f"throughput.{workload}.{model}: must be a positive number"


def _price_problems(path: str, key: str, price: Price | DiskPrice) -> Iterator[str]:
    usd: Decimal = getattr(price, key)
    if not (usd.is_finite() and 0 < usd < MOST):
        yield f"{path}{key}: must be a positive number of dollars, not {usd}"
    if not _is_day(price.date):
        yield f"{path}date: must be a day as 2026-07-01, not {price.date!r}"


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _type_problems(offered: InstanceType) -> Iterator[str]:
    if not 1 <= offered.gpus <= MOST_GPUS:
        yield f"gpus: must be 1 or more, and at most {MOST_GPUS}"
    if offered.gpu_resource not in WHOLE_DEVICES:
        yield f"resource: {offered.resource!r} is not one of {', '.join(WHOLE_DEVICES)}"
    for capacity, price in offered.prices.items():
        yield from _price_problems(f"prices.{capacity}.", "usd_per_hour", price)
    for key in ("cpu", "memory", "ephemeral"):
        try:
            quantity(getattr(offered, key))
        except ValueError as error:
            yield f"{key}: {error}"
    for key in ("gpu_memory_gib", "disk_gib", "pods", "minimum_s", "increment_s", "boot_s", "interruptions_per_hour"):
        if not 0 <= getattr(offered, key) <= MOST:
            yield f"{key}: must be 0 or more, and at most {MOST:,}"
    if not (offered.extra_usd_per_hour.is_finite() and offered.extra_usd_per_hour >= 0):
        yield "extra_usd_per_hour: must be 0 or more dollars"
    if offered.wake_s is not None and not 0 <= offered.wake_s <= MOST:
        yield f"wake_s: must be 0 or more, and at most {MOST:,}"
    disk = offered.standby_usd_per_hour
    if disk is not None and not (disk.is_finite() and disk >= 0):
        yield "standby_usd_per_hour: must be 0 or more dollars"
