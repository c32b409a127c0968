"""The rooms of the state: what the first part of a key says about the record behind it.

``tick/<cluster>`` is serve's, ``chat/<id>`` the Telegram channel's; every other room belongs to the
flow that its key is made in.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from pilotlight.codec.records import MARK, Format
from pilotlight.errors import Corrupt
from pilotlight.flow import accounts, brakes, instances, lease, ledger, provision
from pilotlight.flow.billing import bill, cloud_budget, ladder, lives, meter, tick
from pilotlight.flow.interruption import notices
from pilotlight.flow.telling import delivery, fan_out, flush, heard
from pilotlight.units import Seconds


class Room(NamedTuple):
    """How records of a room are written, and how long one is kept; None for ever."""

    format: Format[Any]
    ttl_s: Seconds | None = None


ROOMS: Mapping[str, Room] = {
    "approved": Room(brakes.APPROVAL, brakes.APPROVAL_S),
    "bill": Room(bill.BILL, bill.KEEP_BILLS_S),
    "bill-read": Room(MARK, tick.READ_EVERY_S),
    "burst": Room(fan_out.BURST, fan_out.KEEP_BURSTS_S),
    "cap": Room(accounts.ACCOUNT, accounts.KEEP_ACCOUNTS_S),
    "chat": Room(MARK),
    "decision": Room(ledger.RECORD, ledger.KEEP_RECORDS_S),
    "event": Room(MARK, provision.CLAIM_S),
    "fence": Room(lease.FENCE),
    "flush": Room(MARK, flush.EVERY_S),
    "heard": Room(MARK, heard.HEARD_S),
    "hold": Room(accounts.HOLD),
    "inflight": Room(ledger.IN_FLIGHT),
    "instances": Room(instances.INSTANCES),
    "interruption": Room(notices.INTERRUPTION, notices.KEEP_S),
    "ladder": Room(ladder.LADDER),
    "lease": Room(lease.LEASE, lease.LEASE_S),
    "life": Room(lives.LIFE, lives.KEEP_LIVES_S),
    "look-again": Room(MARK),
    "memory": Room(ledger.MEMORY),
    "meter": Room(meter.METER, meter.KEEP_DAYS_S),
    "metered": Room(meter.METERED),
    "metering": Room(meter.METERING, meter.KEEP_PARTS_S),
    "noticed": Room(MARK, cloud_budget.ONCE_S),
    "open": Room(ledger.RECORD),
    "pause": Room(brakes.PAUSE),
    "proof": Room(delivery.TELLING, delivery.KEEP_PROOFS_S),
    "rescue": Room(notices.INTERRUPTION),
    "rest": Room(delivery.REST, delivery.KEEP_RESTS_S),
    "runs": Room(accounts.RUNS),
    "silent": Room(MARK),
    "tick": Room(MARK, 60.0),
    "told": Room(MARK, ledger.TELL_AGAIN_S),
    "waiting": Room(delivery.TELLING),
}


def room_of(key: str) -> Room:
    """The room of a key. Raises ``Corrupt`` for a key that is none of Pilotlight's."""
    name, slash, _ = key.partition("/")
    if not slash or name not in ROOMS:
        raise Corrupt(f"state {key}: no key of Pilotlight's: they begin with {', '.join(f'{room}/' for room in ROOMS)}")
    return ROOMS[name]


def read(key: str, record: bytes) -> msgspec.Struct:
    """The value of any record, by its room. Raises ``Corrupt``."""
    value: msgspec.Struct = room_of(key).format.read(key, record)
    return value
