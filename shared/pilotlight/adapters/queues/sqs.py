"""SQS: ``GetQueueAttributes``. Messages that a worker has in hand are counted: while it works, it must stay."""

import re
from collections.abc import Mapping

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi
from pilotlight.adapters.queues.asking import length_of
from pilotlight.errors import BadInput

WHERE = re.compile(r"https?://(?:sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?|[^/]+)/\d{12}/[A-Za-z0-9_.-]{1,80}")
WAITING, IN_HAND = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


class _Answer(msgspec.Struct):
    attributes: dict[str, str] = msgspec.field(default_factory=dict, name="Attributes")


def read(where: str, secret: str, environ: Mapping[str, str]) -> float:
    """``where`` is the queue's URL. Credentials are those that AWS gives the process."""
    named = WHERE.fullmatch(where)
    region = (named[1] or environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION", "")) if named else ""
    if not region:
        raise BadInput("an sqs source is written sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/NAME")
    api = JsonApi("sqs", region, Credentials(region, environ, ""), environ)
    asked = {"QueueUrl": where, "AttributeNames": [WAITING, IN_HAND]}
    told = api.read("GetQueueAttributes", _Answer, asked).attributes
    return sum(length_of(told.get(name), "SQS") for name in (WAITING, IN_HAND))
