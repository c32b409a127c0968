"""Amazon SNS as the topics ``<arn>-alerts.fifo``, ``<arn>-capacity.fifo`` and ``<arn>-dead-letter.fifo``.

They are FIFO topics: messages of one pool keep their order, and SNS itself drops what was sent again under its id
within five minutes. So publishing may be tried again.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.codec.events import encode_outgoing
from pilotlight.errors import BadInput, BadRequest, Forbidden
from pilotlight.facts.messages import DeadLetter, Outgoing

LARGEST = 200_000
"""Bytes of a message: SNS takes 256 KiB, attributes and all."""
SHORT = 2_000
"""Letters of a body that are kept in a dead letter which would be larger."""
LETTERS = "dead-letter"

_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[A-Za-z0-9!\"#$%&'()*+,./:;<=>?@\[\]^_`{|}~\\-]{1,128}")


class _Published(msgspec.Struct, frozen=True):
    MessageId: str = ""


class SnsOutbox:
    """Publishes one message after another; returns when SNS has each."""

    def __init__(self, arn: str, environ: Mapping[str, str]) -> None:
        if not _ARN.fullmatch(arn):
            raise BadInput(
                "PILOTLIGHT_OUTBOX: name what the topics' ARNs begin with, as in "
                "sns:arn:aws:sns:eu-west-1:123456789012:pilotlight-prod"
            )
        self._arn = arn
        region = arn.split(":")[3]
        self._api = QueryApi("sns", region, Credentials(region, environ), environ)

    def publish(self, messages: Sequence[Outgoing]) -> None:
        for message in messages:
            topic = f"{self._arn}-{message.topic}.fifo"
            try:
                self._api.read("Publish", _Published, _form(topic, message))
            except Forbidden as error:
                raise Forbidden(f"SNS {topic}: {error}; allow the function's role sns:Publish") from None
            except BadRequest as error:
                raise BadRequest(f"SNS {topic}: {error}; run the Terraform that makes the topics") from None


def _form(topic: str, message: Outgoing) -> dict[str, str]:
    """An id begins with its decision's: attributes are for filters of subscriptions."""
    attributes = {"id": message.id, "type": message.type, "decision": message.id.partition(".")[0]}
    form = {
        "TopicArn": topic,
        "Message": _fitting(message).decode(),
        "MessageGroupId": _plain(message.key or message.topic),
        "MessageDeduplicationId": _plain(message.id),
    }
    for n, (name, value) in enumerate(attributes.items(), 1):
        entry = f"MessageAttributes.entry.{n}"
        form |= {f"{entry}.Name": name, f"{entry}.Value.DataType": "String", f"{entry}.Value.StringValue": value}
    return form


def _plain(text: str) -> str:
    """Id that SNS takes: the text, or its hash."""
    return text if _PLAIN.fullmatch(text) else sha256(text.encode()).hexdigest()


def _fitting(message: Outgoing) -> bytes:
    """The message; of a dead letter that is too large, the beginning, as of any body that is too much."""
    whole = encode_outgoing(message)
    if len(whole) <= LARGEST or message.topic != LETTERS:
        return whole
    letter = typed_json.decode(message.data, DeadLetter)
    short = msgspec.structs.replace(letter, body=letter.body[:SHORT])
    return encode_outgoing(msgspec.structs.replace(message, data=msgspec.Raw(msgspec.json.encode(short))))
