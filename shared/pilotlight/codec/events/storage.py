"""Objects that were written: Cloud Storage (CloudEvent or Pub/Sub notification) and S3 (EventBridge or notification).

Which of them are bills is for the receiver to see. The same name written again is another fact: the object's
generation, sequencer or tag tells them apart.
"""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote_plus

import msgspec

from pilotlight.codec.events.envelope import Envelope, Ignored, convert_shape
from pilotlight.facts.messages import BillExported, Moment

_Full = Annotated[str, msgspec.Meta(min_length=1)]


class _Google(msgspec.Struct, frozen=True, kw_only=True):
    bucket: _Full
    name: _Full
    generation: str | int = ""


class _Notice(msgspec.Struct, frozen=True, kw_only=True):
    bucketId: _Full
    objectId: _Full
    objectGeneration: str = ""


class _Bucket(msgspec.Struct, frozen=True, kw_only=True):
    name: _Full


class _Object(msgspec.Struct, frozen=True, kw_only=True):
    key: _Full
    sequencer: str = ""
    etag: str = ""
    eTag: str = ""


class _S3(msgspec.Struct, frozen=True, kw_only=True):
    bucket: _Bucket
    object: _Object


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    s3: _S3
    eventName: str = ""
    eventTime: Moment | None = None


def read_google(event: Envelope) -> BillExported:
    """The data of Cloud Storage's CloudEvent ``finalized``: the object's own resource."""
    written = convert_shape(event.data, _Google, event.step_into("data", None).path)
    return _written(event, f"gs://{written.bucket}/{written.name}", str(written.generation))


def notifies(attributes: Mapping[str, Any]) -> bool:
    """True where a Pub/Sub message is a Cloud Storage notification."""
    return "bucketId" in attributes and "eventType" in attributes


def read_attributes(event: Envelope) -> BillExported | Ignored:
    """A Cloud Storage notification says all in its attributes."""
    if event.attributes["eventType"] != "OBJECT_FINALIZE":
        return Ignored(reason=f"{event.attributes['eventType']} of an object asks for nothing here")
    written = convert_shape(dict(event.attributes), _Notice, event.path)
    return _written(event, f"gs://{written.bucketId}/{written.objectId}", written.objectGeneration)


def read_s3(event: Envelope) -> BillExported:
    """The detail of EventBridge's "Object Created": its key is written as it is."""
    written = convert_shape(event.data, _S3, event.path)
    return _of_s3(event, written, written.object.key)


def read_record(event: Envelope) -> BillExported | Ignored:
    """A record of an S3 notification: its key is URL-encoded."""
    record = convert_shape(event.data, _Record, event.path)
    if not record.eventName.removeprefix("s3:").startswith("ObjectCreated"):
        return Ignored(reason=f"{record.eventName or 'a change'} of an object asks for nothing here")
    about = msgspec.structs.replace(event, at=record.eventTime or event.at)
    return _of_s3(about, record.s3, unquote_plus(record.s3.object.key))


def read_test(event: Envelope) -> Ignored:
    """S3 tries the way to a queue once, when it is set up."""
    return Ignored(reason="S3 tests its notifications")


def _of_s3(event: Envelope, written: _S3, key: str) -> BillExported:
    version = written.object.sequencer or written.object.etag or written.object.eTag
    return _written(event, f"s3://{written.bucket.name}/{key}", version)


def _written(event: Envelope, uri: str, version: str) -> BillExported:
    identity = f"{uri}#{version}" if version else event.id
    return convert_shape(
        {"cluster": event.cluster, "uri": uri, "identity": identity, "at": event.at}, BillExported, event.path
    )
