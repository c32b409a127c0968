"""Civo's charges as a bill: asked for in windows, priced by the price file."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from pilotlight.adapters.civo_api import CivoApi
from pilotlight.codec.bills.charges import merged, read_charges
from pilotlight.codec.bills.rates import Rates
from pilotlight.facts.bill import Bill
from pilotlight.ports import Clock

WINDOW = timedelta(days=31)
"""The most that Civo answers at once."""


class CivoBills:
    """The Bills port of a Civo account, in one region."""

    def __init__(self, api: CivoApi, rates: Rates, clock: Clock) -> None:
        self._api, self._rates, self._clock = api, rates, clock

    def read(self, start: datetime, end: datetime) -> Bill:
        """The charges of the period, billed as far as all of them can be counted."""
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
        # What is missing from a day would make it look cheaper than it was: that day is not billed yet.
        horizon = min(end, now, found.doubtful_from or end)
        return Bill(
            source=f"civo-{self._api.region}", days=found.rows, horizon=horizon, findings=merged(found.findings)
        )


def _windows(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    while start < end:
        until = min(start + WINDOW, end)
        yield start, until
        start = until


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
