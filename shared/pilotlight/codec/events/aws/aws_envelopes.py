"""Envelopes that AWS wraps around events: SQS records, SNS records and SNS notifications, one inside another.

A body may be words: AWS Budgets writes to people, and is read by its list (``aws_costs``).
"""

import re
from typing import Any

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape, parse_content
from pilotlight.facts.messages import Moment

_LINK = r"https://sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/\S{1,2000}"


class _Queued(msgspec.Struct, frozen=True, kw_only=True):
    body: str
    messageId: str = ""


class _Notification(msgspec.Struct, frozen=True, kw_only=True):
    Message: str
    MessageId: str = ""
    Timestamp: Moment | None = None


def open_sqs_record(event: Envelope) -> Envelope:
    """Body of a record of SQS."""
    record = convert_shape(event.data, _Queued, event.path)
    inside = event.step_into("body", None)
    return msgspec.structs.replace(
        inside, data=_inside(record.body, inside.path), id=record.messageId or event.id, type=""
    )


def open_sns_notification(event: Envelope) -> Envelope:
    """Body of an SNS notification: posted, queued, or in a record under ``Sns``."""
    notice = convert_shape(event.data, _Notification, event.path)
    inside = event.step_into("Message", None)
    return msgspec.structs.replace(
        inside,
        data=_inside(notice.Message, inside.path),
        id=notice.MessageId or event.id,
        at=notice.Timestamp or event.at,
    )


def _inside(text: str, path: str) -> Any:
    return {"awsBudget": text} if text.startswith("AWS Budget Notification") else parse_content(text, path)


def read_confirmation(event: Envelope) -> Ignored:
    """SNS asks whether it may send here. A person opens the link: a function follows none that it is sent."""
    link = str(event.data.get("SubscribeURL", ""))
    known = link if re.fullmatch(_LINK, link) else "a link that is none of SNS's"
    return Ignored(reason=f"SNS {event.data['Type']}: to subscribe, open {known}")
