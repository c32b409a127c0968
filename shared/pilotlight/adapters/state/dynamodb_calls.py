"""One attempt at a call of DynamoDB: JSON over our own HTTP, signed here, its refusals as our errors."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address
from pilotlight.adapters.aws_api.refusals import said_in_json
from pilotlight.adapters.aws_api.signing import signed_headers
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes
from pilotlight.adapters.state.store_time import since_boot_s
from pilotlight.errors import Conflict, Forbidden, PilotlightError, StoreFault, Throttled, Unavailable

_THROTTLED = {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"}
_FORBIDDEN = {
    "AccessDeniedException",
    "UnrecognizedClientException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
}

SERVICE = "DynamoDB_20120810"
KIND = "application/x-amz-json-1.0"
LARGEST = 32 * 1024 * 1024
"""A page of DynamoDB is at most 1 MB of items; in base64 and JSON that is less than this by far."""


class Calls:
    """The calls of one table. ``told`` hears the date of every answer, and when it was asked for.

    ``environ`` names credentials and region; what it does not name boto3 finds, and is imported for that.
    """

    def __init__(
        self, table: str, endpoint: str, environ: Mapping[str, str], told: Callable[[datetime, float], None]
    ) -> None:
        self._table, self._endpoint, self._environ, self._told = table, endpoint.rstrip("/"), environ, told

    def ask(
        self, deadline: Deadline, key: str, action: str, asked: Mapping[str, Any], *, lost: type[Unavailable]
    ) -> Any:
        """One attempt. ``lost`` is raised where it was sent and nobody knows what became of it."""
        where = f"DynamoDB table {self._table}, {key}"
        body = msgspec.json.encode({"TableName": self._table, **asked})
        keys = self._credentials.keys()
        url, target, now = self._url, f"{SERVICE}.{action}", datetime.now(UTC)
        headers = signed_headers(url, body, keys, "dynamodb", self._region, now, kind=KIND, target=target)
        sent_s = since_boot_s()
        try:
            answer = self._site.ask(deadline, "POST", "/", body, headers, takes=Takes(LARGEST))
        except Broken as error:
            raise (lost if error.sent else Unavailable)(f"{where}: {error}") from None
        if said := answer.headers.get("date"):
            self._told(parsedate_to_datetime(said), sent_s)
        if answer.status != 200:
            raise _refused(answer, where, keys.hide, lost)
        try:
            return msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise lost(f"{where}: the answer cannot be read") from None

    @cached_property
    def _credentials(self) -> Credentials:
        return Credentials(self._region, self._environ)

    @cached_property
    def _site(self) -> Site:
        return Site(self._url)

    @cached_property
    def _url(self) -> str:
        return self._endpoint or address("dynamodb", self._region, self._environ)

    @cached_property
    def _region(self) -> str:
        region = self._environ.get("AWS_REGION") or self._environ.get("AWS_DEFAULT_REGION") or _region_of_boto3()
        if not region:
            raise Forbidden(
                f"DynamoDB table {self._table}: no region is known; give the function a role and AWS_REGION"
            )
        return region


def _region_of_boto3() -> str:
    """A profile's, where boto3 is there."""
    try:
        from botocore.session import Session
    except ImportError:
        return ""
    return str(Session().get_config_variable("region") or "")


def _refused(answer: HttpAnswer, where: str, hidden: Callable[[str], str], lost: type[Unavailable]) -> PilotlightError:
    code, words = said_in_json(answer.body)
    code = code or f"status {answer.status}"
    said = f"{where}: {code}: {hidden(words)[:500]}"
    if code == "ConditionalCheckFailedException":
        return Conflict(f"{where}: another version is there")
    if code in _THROTTLED:
        return Throttled(said)
    if code in _FORBIDDEN:
        return StoreFault(f"{said}; allow the function's role to read and write the table")
    if code == "ResourceNotFoundException":
        return StoreFault(f"{where}: there is no such table here; create it, or name another with PILOTLIGHT_STATE")
    if answer.status >= 500:
        return lost(said)
    return StoreFault(said)
