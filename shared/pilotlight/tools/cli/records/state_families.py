"""Every family of the state, by what its keys begin with."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotlight.errors import Corrupt
from pilotlight.state_schema import (
    alert_records,
    billing_records,
    cluster_records,
    decision_records,
    flight_records,
    instance_records,
    lease_records,
    marks,
)
from pilotlight.state_schema.parted import Parted
from pilotlight.state_schema.rows import Rows
from pilotlight.state_schema.table import Packed, Table

AREAS = (
    alert_records,
    billing_records,
    cluster_records,
    decision_records,
    flight_records,
    instance_records,
    lease_records,
    marks,
)


def _tables() -> Mapping[str, Table[Any]]:
    found: dict[str, Table[Any]] = {}
    for area in AREAS:
        for value in vars(area).values():
            table = value.table if isinstance(value, Packed | Parted | Rows) else value
            if isinstance(table, Table):
                found[table.prefix] = table
    return dict(sorted(found.items()))


TABLES = _tables()


def table_of(key: str) -> Table[Any]:
    """The family of a key. Raises ``Corrupt`` for a key that is none of Pilotlight's."""
    prefix, slash, _ = key.partition("/")
    if not slash or prefix not in TABLES:
        raise Corrupt(f"state {key}: no key of Pilotlight's: they begin with {', '.join(f'{one}/' for one in TABLES)}")
    return TABLES[prefix]


def read(key: str, record: bytes) -> msgspec.Struct:
    """The value of any record, by its family. Raises ``Corrupt``."""
    value: msgspec.Struct = table_of(key).format.read(key, record)
    return value
