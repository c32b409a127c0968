"""A FOCUS export as a table of Athena: one query, submitted, waited for and read page by page.

https://docs.aws.amazon.com/athena/latest/APIReference/API_StartQueryExecution.html
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from itertools import chain, repeat

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi
from pilotlight.adapters.bills import warehouse
from pilotlight.decide.money.bills.bill_scope import Rules, scope_bill
from pilotlight.errors import BadInput, BadRequest, Unavailable
from pilotlight.facts.money.bill import Bill
from pilotlight.units import Seconds

ADDRESS = "athena:REGION/WORKGROUP/DATABASE.TABLE"
_TABLE = re.compile(
    r"(?P<region>[a-z0-9-]{5,30})/(?P<group>[\w.-]{1,128})/(?P<database>\w{1,255})\.(?P<table>\w{1,255})", re.ASCII
)
PAGE = 1_000
"""The most rows that Athena answers at once."""
SOURCE = "focus"
"""As an export that lies in files: the same days are not billed twice."""


class _Started(msgspec.Struct, frozen=True, rename="pascal"):
    query_execution_id: str


class _Status(msgspec.Struct, frozen=True, rename="pascal"):
    state: str
    state_change_reason: str = ""


class _Execution(msgspec.Struct, frozen=True, rename="pascal"):
    status: _Status


class _Looked(msgspec.Struct, frozen=True, rename="pascal"):
    query_execution: _Execution


class _Datum(msgspec.Struct, frozen=True, rename="pascal"):
    var_char_value: str | None = None


class _Row(msgspec.Struct, frozen=True, rename="pascal"):
    data: tuple[_Datum, ...] = ()


class _Set(msgspec.Struct, frozen=True, rename="pascal"):
    rows: tuple[_Row, ...] = ()


class _Results(msgspec.Struct, frozen=True, rename="pascal"):
    result_set: _Set
    next_token: str | None = None


class AthenaBills:
    """The Bills port of a table. Its workgroup says where Athena lays its results, and how much a query may read."""

    def __init__(
        self,
        where: str,
        rules: Rules,
        environ: Mapping[str, str],
        *,
        sleep: Callable[[Seconds], None] = time.sleep,
    ) -> None:
        found = _TABLE.fullmatch(where)
        if found is None:
            raise BadInput(f"PILOTLIGHT_BILLS is 'athena:{where}': use {ADDRESS}")
        self._named, self._rules, self._sleep = found, rules, sleep
        self._api = JsonApi("athena", found["region"], Credentials(found["region"], environ), environ, sleep=sleep)

    def read(self, start: datetime, end: datetime) -> Bill:
        """The cluster's rows of the period. Raises ``Unavailable`` while the query still runs: ask again."""
        tags = tuple(self._rules.scope.tags) if self._rules.scope else ()
        export = f'{self._named["database"]}"."{self._named["table"]}'
        asked = warehouse.query("athena", export, tags, start, end)
        return scope_bill(SOURCE, warehouse.lines(self._rows(asked), len(tags)), self._rules, end)

    def _rows(self, asked: warehouse.Query) -> Iterator[tuple[str | None, ...]]:
        """The rows after the first, which has the columns' names."""
        query = self._submitted(asked)
        token: str | None = ""
        while token is not None:
            asked_for = {"QueryExecutionId": query, "MaxResults": PAGE, **({"NextToken": token} if token else {})}
            page = self._api.read("GetQueryResults", _Results, asked_for)
            rows = page.result_set.rows if token else page.result_set.rows[1:]
            yield from (tuple(datum.var_char_value for datum in row.data) for row in rows)
            token = page.next_token or None

    def _submitted(self, asked: warehouse.Query) -> str:
        """The name of the query, once it is done. Submitting it again, as after a lost answer, is no second query."""
        what = {"QueryString": asked.text, "ClientRequestToken": asked.name, "WorkGroup": self._named["group"]}
        started = self._api.read("StartQueryExecution", _Started, what).query_execution_id
        waited = 0.0
        for pause_s in chain(warehouse.PAUSES_S, repeat(warehouse.PAUSES_S[-1])):
            status = self._api.read("GetQueryExecution", _Looked, {"QueryExecutionId": started}).query_execution.status
            if status.state == "SUCCEEDED":
                return started
            if status.state in ("FAILED", "CANCELLED"):
                words = " ".join(status.state_change_reason.split())[:240]
                raise BadRequest(f"Athena's query is {status.state.lower()} ({words}); check {ADDRESS} and its columns")
            if waited >= warehouse.WAIT_S:
                break
            self._sleep(pause_s)
            waited += pause_s
        raise Unavailable("Athena still works on the bill's query: it is asked for again later")
