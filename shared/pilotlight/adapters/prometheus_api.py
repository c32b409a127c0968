"""A Prometheus HTTP API, one's own or a managed one, with the credential that it wants.

Google's (monitoring.googleapis.com) wants an access token of this process's account (roles/monitoring.viewer), Amazon's
(aps-workspaces.REGION.amazonaws.com) a signature (aps:QueryMetrics). Either is told by the host; where a proxy or a
private endpoint stands before it, ``auth`` says it: "google", "aws:REGION", "env:NAME" for a bearer token, or "none".
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote, urlsplit

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.signing import signed_query
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes, target_of
from pilotlight.codec.redact import without_login
from pilotlight.errors import BadInput, Forbidden, Throttled, Unavailable
from pilotlight.units import Seconds

GOOGLE = "monitoring.googleapis.com"
AMAZON = re.compile(r"aps-workspaces\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
WAYS = "google, aws:REGION, env:VARIABLE or none"
WITHIN_S: Seconds = 60.0
PAUSE_S: Seconds = 30.0
LARGEST = 256 * 1024 * 1024

Labels = Mapping[str, str]


class PrometheusApi:
    """``url`` is the API's root, to which ``/api/v1`` is added. Raises ``BadInput`` for what names none."""

    def __init__(self, url: str, environ: Mapping[str, str], auth: str = "", token: str = "") -> None:
        self._url, self._environ, self._token = url.rstrip("/"), environ, token
        self._way, self._rest = _way(self._url, auth, environ) if not token else ("bearer", "")
        self._site = Site(self._url)
        self._told = without_login(self._url)
        self._aws: Credentials | None = None

    def matrix(self, query: str, start_s: float, end_s: float, step_s: Seconds) -> Iterator[tuple[Labels, list[Any]]]:
        """Each series' labels and its (Unix seconds, text) pairs. Raises kinds of ``Retry`` and ``Denied``."""
        asked = {"query": query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:.3f}"}
        yield from ((one["metric"], one["values"]) for one in self._result("query_range", asked))

    def vector(self, query: str, at_s: float) -> Iterator[tuple[Labels, str]]:
        """Each series' labels and its value, as it is written."""
        asked = {"query": query, "time": f"{at_s:.3f}"}
        yield from ((one["metric"], one["value"][1]) for one in self._result("query", asked))

    def _result(self, what: str, asked: Mapping[str, str]) -> Any:
        where = f"{self._told}/api/v1/{what}"
        answer = self.get(what, asked, WITHIN_S)
        try:
            body = json.loads(answer.body)
            if answer.status != 200 or body["status"] != "success":
                raise Unavailable(f"{where}: {body.get('errorType', 'error')}: {str(body.get('error', ''))[:200]}")
            return [one for one in body["data"]["result"] if one["metric"] is not None]
        except (ValueError, TypeError, KeyError):
            raise Unavailable(f"{where}: answered {answer.status} with no series; is that a Prometheus?") from None

    def get(self, what: str, asked: Mapping[str, str], within_s: Seconds) -> HttpAnswer:
        """Answer of ``/api/v1/WHAT``, whatever its status but a refusal of the credential or of so many calls."""
        url, headers = self.request(what, asked)
        try:
            with Deadline(within_s) as deadline:
                answer = self._site.ask(
                    deadline, "GET", target_of(url), headers=headers, repeatable=True, takes=Takes(LARGEST)
                )
        except Broken as error:
            raise Unavailable(f"{self._told}/api/v1/{what}: {error}; is that a Prometheus?") from None
        if answer.status in (401, 403):
            raise Forbidden(f"{self._told} answers {answer.status}: {self._needed()}")
        if answer.status == 429:
            raise Throttled(f"{self._told} answers 429", PAUSE_S)
        return answer

    def request(self, what: str, asked: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        """The URL and the headers that show the credential, for one GET within the next minutes."""
        fields = sorted((quote(k, safe=""), quote(v, safe="")) for k, v in asked.items())
        url = f"{self._url}/api/v1/{what}?{'&'.join(f'{k}={v}' for k, v in fields)}"
        return url, self._shown(url)

    def _shown(self, url: str) -> Mapping[str, str]:
        if self._way == "google":
            return _google(bool(self._environ.get("GOOGLE_APPLICATION_CREDENTIALS"))).header()
        if self._way == "aws":
            self._aws = self._aws or Credentials(self._rest, self._environ, "")
            return signed_query(url, self._aws.keys(), "aps", self._rest, datetime.now(UTC))
        if self._way == "env":
            return {"Authorization": f"Bearer {self._environ[self._rest]}"}
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def _needed(self) -> str:
        return {
            "google": "give this account roles/monitoring.viewer in the project",
            "aws": "give this role aps:QueryMetrics on the workspace",
            "none": f"it wants a credential; name one by --auth: {WAYS}",
        }.get(self._way, "check the token and its rights")


def _way(url: str, auth: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Way that the credential is shown, and the party that it is shown for."""
    try:
        where = urlsplit(url)
        host = where.hostname or "" if where.port != 0 else ""
    except ValueError:
        host = ""
    if not host or not url.startswith(("http://", "https://")):
        raise BadInput(f"{without_login(url)!r} names no Prometheus: write its address, as http://prometheus:9090")
    way, _, rest = auth.partition(":")
    if not auth:
        amazon = AMAZON.fullmatch(host)
        return ("aws", amazon[1]) if amazon else ("google" if host == GOOGLE else "none", "")
    if way not in ("google", "aws", "env", "none") or bool(rest) != (way in ("aws", "env")):
        raise BadInput(f"auth {auth!r}: write {WAYS}")
    if way == "env" and not environ.get(rest):
        raise BadInput(f"{rest} is not set: put the token in it, or leave env:{rest} out")
    return way, rest


@cache
def _google(file: bool) -> GoogleToken:
    return GoogleToken(file=file)
