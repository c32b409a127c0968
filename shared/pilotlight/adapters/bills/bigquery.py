"""A FOCUS export in BigQuery: one query, submitted, waited for and read page by page over its REST interface.

https://cloud.google.com/bigquery/docs/reference/rest/v2/jobs/query and .../jobs/getQueryResults
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.bills import warehouse
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes, target_of
from pilotlight.decide.money.bills.bill_scope import Rules, scope_bill
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Unavailable
from pilotlight.facts.money.bill import Bill
from pilotlight.units import Seconds

URL = "https://bigquery.googleapis.com"
ADDRESS = "bigquery:PROJECT.DATASET.TABLE"
_TABLE = re.compile(r"(?P<project>[a-z][a-z0-9:.-]{4,80})\.(?P<dataset>\w{1,1024})\.(?P<table>[\w-]{1,1024})", re.ASCII)
CALL_S: Seconds = 15
HELD_MS = 5_000
"""For so long BigQuery holds an answer back while a query runs."""
PAGE = 5_000
MOST_BYTES = 200 * 10**9
"""BigQuery refuses a query that would read more, and charges nothing for it."""


class _Cell(msgspec.Struct, frozen=True):
    v: Any = None


class _Row(msgspec.Struct, frozen=True):
    f: tuple[_Cell, ...] = ()


class _Job(msgspec.Struct, frozen=True, rename="camel"):
    project_id: str = ""
    job_id: str = ""
    location: str = ""


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A page, or that the query still runs."""

    job_complete: bool = False
    job_reference: _Job = _Job()
    rows: tuple[_Row, ...] = ()
    page_token: str = ""


class _Error(msgspec.Struct, frozen=True):
    message: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: _Error = _Error()


class BigQueryBills:
    """The Bills port of a table. ``url`` stands in for the service, as an emulator does, and is shown no token."""

    def __init__(
        self,
        table: str,
        rules: Rules,
        *,
        url: str = "",
        credentials_file: bool = False,
        sleep: Callable[[Seconds], None] = time.sleep,
    ) -> None:
        found = _TABLE.fullmatch(table)
        if found is None:
            raise BadInput(f"PILOTLIGHT_BILLS is 'bigquery:{table}': use {ADDRESS}")
        self._table, self._project, self._rules, self._sleep = table, found["project"], rules, sleep
        self._url, self._token = url or URL, None if url else GoogleToken(file=credentials_file)
        self._site = Site(self._url)

    def read(self, start: datetime, end: datetime) -> Bill:
        """The cluster's rows of the period. Raises ``Unavailable`` while the query still runs: ask again."""
        tags = tuple(self._rules.scope.tags) if self._rules.scope else ()
        asked = warehouse.query("bigquery", self._table, tags, start, end)
        return scope_bill(SOURCE, warehouse.lines(self._rows(asked), len(tags)), self._rules, end)

    def _rows(self, asked: warehouse.Query) -> Iterator[tuple[str | None, ...]]:
        answer = self._submitted(asked)
        while True:
            yield from (tuple(None if cell.v is None else str(cell.v) for cell in row.f) for row in answer.rows)
            if not answer.page_token:
                return
            answer = self._results(answer.job_reference, answer.page_token)

    def _submitted(self, asked: warehouse.Query) -> _Answer:
        """The first page, once the query is done."""
        body = {
            "query": asked.text,
            "useLegacySql": False,
            "maxResults": PAGE,
            "timeoutMs": HELD_MS,
            "maximumBytesBilled": str(MOST_BYTES),
            "requestId": asked.name,
        }
        answer = self._call("POST", f"/bigquery/v2/projects/{quote(self._project)}/queries", msgspec.json.encode(body))
        job, waited = answer.job_reference, 0.0
        while not answer.job_complete:
            if waited >= warehouse.WAIT_S or not job.job_id:
                raise Unavailable("BigQuery still works on the bill's query: it is asked for again later")
            self._sleep(PAUSE_S)
            waited += PAUSE_S + HELD_MS / 1000
            answer = self._results(job, "")
        return answer if answer.job_reference.job_id else msgspec.structs.replace(answer, job_reference=job)

    def _results(self, job: _Job, token: str) -> _Answer:
        asked = {"maxResults": PAGE, "timeoutMs": HELD_MS, "location": job.location, "pageToken": token}
        path = f"/bigquery/v2/projects/{quote(job.project_id or self._project)}/queries/{quote(job.job_id)}"
        page = self._call("GET", f"{path}?{urlencode({k: v for k, v in asked.items() if v})}")
        if token and not page.job_complete:
            raise Unavailable("BigQuery lost the bill's query between two pages: it is asked for again later")
        return msgspec.structs.replace(page, job_reference=job)

    def _call(self, method: str, path: str, body: bytes | None = None) -> _Answer:
        headers: Mapping[str, str] = self._token.header() if self._token else {}
        try:
            with Deadline(CALL_S) as deadline:
                answer = self._site.ask(
                    deadline,
                    method,
                    target_of(self._url + path),
                    body,
                    {**headers, "Content-Type": "application/json"},
                    repeatable=True,
                    takes=Takes(LARGEST),
                )
        except Broken as error:
            raise Unavailable(f"BigQuery does not answer ({error})") from None
        if answer.status != 200:
            raise _refused(answer)
        try:
            return typed_json.decode(answer.body, _Answer)
        except msgspec.DecodeError:
            raise Unavailable("BigQuery's answer cannot be read") from None


SOURCE = "focus"
"""As an export that lies in files: the same days are not billed twice."""
PAUSE_S: Seconds = 0.5
LARGEST = 24 * 1024 * 1024
"""BigQuery's pages have 10 MB at most, before what JSON adds."""


def _refused(answer: HttpAnswer) -> PilotlightError:
    try:
        words = " ".join(typed_json.decode(answer.body, _Refusal).error.message.split())[:240]
    except msgspec.DecodeError:
        words = ""
    line = f"BigQuery answers {answer.status}" + (f" ({words})" if words else "")
    if answer.status in (401, 403) and "quota" not in words.lower():
        return Forbidden(
            f"{line}: give the function's account bigquery.jobUser, and dataViewer on the export's dataset"
        )
    if answer.status in (403, 429) or answer.status >= 500:
        return Unavailable(line)
    return BadRequest(f"{line}; check {ADDRESS} and the table's columns")
