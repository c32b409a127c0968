"""An export in a warehouse: the SQL that it is asked, and its answer as lines. The export outgrows one machine there.

``focus.sql`` says what a line is; it is compiled to each warehouse's dialect beforehand (``scripts/bill_sql.py``).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from pathlib import Path
from typing import Literal, NamedTuple

from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.money.bill import Commitment
from pilotlight.facts.money.bill_files import Line
from pilotlight.units import Seconds, moment

Dialect = Literal["bigquery", "athena"]

WAIT_S: Seconds = 40
"""A query that runs longer is left running: the next look in the same hour finds it by its name."""
PAUSES_S: Sequence[Seconds] = (0.5, 1, 2, 4)
"""Between two looks at a query; the last one again and again."""
MOST_TAGS = 4
HOUR = timedelta(hours=1)
_COMMITMENTS: Mapping[str, Commitment] = {"used": "used", "unused": "unused", "fee": "fee"}
_TAG = re.compile(r"[\w .:/=+@-]{1,128}")
COLUMNS = 20


class Query(NamedTuple):
    """Query of a warehouse. ``name`` is the same for the same question: asking it again is no second query."""

    text: str
    name: str


def query(dialect: Dialect, export: str, tags: Sequence[str], start: datetime, end: datetime) -> Query:
    """The sums of an export's rows that begin from ``start`` to ``end``, up to the full hour.

    ``export`` is the table as the dialect quotes it, and already checked. Raises ``BadInput`` for tags that no query
    can hold.
    """
    odd = [key for key in tags if not _TAG.fullmatch(key)]
    if odd or len(tags) > MOST_TAGS:
        what = (
            f"{odd[0]!r} is no tag's key" if odd else f"{len(tags)} tags are named, and {MOST_TAGS} at most are asked"
        )
        raise BadInput(f"bill.tags: {what}")
    named = {f"tag_{n}": key for n, key in enumerate([*tags, *[""] * (MOST_TAGS - len(tags))], 1)}
    hour = end.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    until = hour if hour == end else hour + HOUR
    text = Path(__file__).with_name(f"focus.{dialect}.sql").read_text("utf-8").partition("\n")[2]
    for key, value in {"export": export, "start": _text(start), "end": _text(until), **named}.items():
        text = text.replace(f"{{{key}}}", value)
    return Query(text, blake2b(text.encode(), digest_size=16).hexdigest())


def _text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}+00:00"


def lines(rows: Iterable[Sequence[str | None]], tags: int) -> list[Line]:
    """A warehouse's rows, each value as text. ``tags`` is how many were asked for. Raises ``Unavailable``."""
    try:
        return [_line(row, tags) for row in rows]
    except (ValueError, InvalidOperation, IndexError):
        raise Unavailable("the warehouse's answer has rows that cannot be read") from None


def _finite(amount: str | None) -> Decimal | None:
    found = Decimal(amount) if amount else None
    return found if found is not None and found.is_finite() else None


def _line(row: Sequence[str | None], tags: int) -> Line:
    if len(row) != COLUMNS:
        raise ValueError(f"{len(row)} columns")
    *head, currency, doubt, egress, instance, commitment, amount, effective, listed, charges, reach = row
    day, team, pool, service, account, payer, *_ = (value or "" for value in head)
    usd, amortised, full = map(_finite, (amount, effective, listed))
    return Line(
        day=date.fromisoformat(day) if day else None,
        team=team,
        pool=pool,
        service=service,
        account=account,
        payer=payer,
        tags=tuple(head[6 : 6 + tags]),
        currency=currency or "",
        doubt=1 if amount and usd is None else int(doubt or 0),
        amount=usd,
        rows=int(charges or 0),
        reach=moment(float(reach)) if reach else None,
        egress=egress == "1",
        instance=instance or "",
        effective=amortised,
        listed=full,
        commitment=_COMMITMENTS.get(commitment or "", ""),
    )
