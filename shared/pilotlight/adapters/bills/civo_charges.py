"""Civo's charges as a bill: asked for in windows, priced by the price file."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from pilotlight.adapters.civo_api import CivoApi
from pilotlight.codec.bills.charges import merge_findings, read_charges
from pilotlight.codec.bills.rates import Rates
from pilotlight.facts.money.bill import Bill, BilledDay
from pilotlight.ports.state import Clock
from pilotlight.units import cents

WINDOW = timedelta(days=31)
"""The most that Civo answers at once."""


class CivoBills:
    """The Bills port of a Civo account, in one region."""

    def __init__(self, api: CivoApi, rates: Rates, clock: Clock, services: Collection[str] = ()) -> None:
        """``services`` are the codes that are this cluster's; none are all."""
        self._api, self._rates, self._clock, self._services = api, rates, clock, services

    def read(self, start: datetime, end: datetime) -> Bill:
        """The cluster's charges of the period: of those codes; else those of pools, where the prices name pools."""
        now = self._clock.now()
        documents = [
            self._api.get("/v2/charges", Any, **{"from": _text(since), "to": _text(until)})
            for since, until in _windows(start, min(end, now))
        ]
        broken = [document for document in documents if not isinstance(document, list)]
        told = [charge for document in documents if isinstance(document, list) for charge in document]
        # What lies in two windows is told twice.
        charges = list({msgspec.json.encode(charge): charge for charge in told}.values())
        found = read_charges(broken[0] if broken else charges, self._rates, self._api.region, start, end)
        own = self._own(found.rows)
        left_out = sum((row.usd for row in found.rows), Decimal(0)) - sum((row.usd for row in own), Decimal(0))
        return Bill(
            source=f"civo-{self._api.region}",
            days=own,
            horizon=min(end, now) if found.readable else start,
            findings=merge_findings(found.findings),
            notes=(f"{cents(left_out)} of charges of no pool or of other codes are left out",) if left_out else (),
            doubtful=found.doubtful,
        )

    def _own(self, rows: Sequence[BilledDay]) -> tuple[BilledDay, ...]:
        if self._services:
            return tuple(row for row in rows if row.service in self._services)
        named = any(row.pool for row in rows)
        return tuple(row for row in rows if row.pool or not named)


def _windows(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    while start < end:
        until = min(start + WINDOW, end)
        yield start, until
        start = until


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
