"""One service of AWS in one region by its JSON interface: JSON goes out and comes back, the call's name in a header."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.reading import AwsService, read_again
from pilotlight.adapters.aws_api.signing import signed_headers
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken
from pilotlight.errors import Unavailable
from pilotlight.units import Seconds

T = TypeVar("T")

READ_S: Seconds = 5
PAUSES_S: tuple[Seconds, ...] = (0.5, 1.0)
"""Between the tries of a read."""
KINDS = {"sqs": "application/x-amz-json-1.0"}
KIND = "application/x-amz-json-1.1"
TARGETS = {
    "athena": "AmazonAthena",
    "ce": "AWSInsightsIndexService",
    "pricing": "AWSPriceListService",
    "servicequotas": "ServiceQuotasV20190624",
    "sqs": "AmazonSQS",
}
"""What calls of a service are named by, where that is not the service."""


class JsonApi(AwsService):
    """A service with a JSON interface."""

    def read(self, action: str, shape: type[T], asked: Mapping[str, Any]) -> T:
        """Read. Tried again within bounds: reading changes nothing. Raises what AWS refuses with, in our words."""
        return read_again(lambda: self._call(action, shape, asked), PAUSES_S, self.sleep)

    def _call(self, action: str, shape: type[T], asked: Mapping[str, Any]) -> T:
        body = msgspec.json.encode(asked)
        keys, target = self._credentials.keys(), f"{TARGETS.get(self._service, self._service)}.{action}"
        now = datetime.now(UTC)
        kind = KINDS.get(self._service, KIND)
        headers = signed_headers(self._url, body, keys, self._service, self.region, now, kind=kind, target=target)
        try:
            with Deadline(READ_S) as deadline:
                answer = self._site.ask(deadline, "POST", "/", body, headers, repeatable=True)
        except Broken as error:
            raise Unavailable(f"AWS does not answer {action} ({error})") from None
        if answer.status != 200:
            code, words = refusals.said_in_json(answer.body)
            raise refusals.problem(action, answer.status, code, words, keys.hide, Unavailable)
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Unavailable(f"AWS's answer to {action} cannot be read") from None
