"""Objects of Amazon S3 and Google Cloud Storage: read, listed by a pattern, copied, written once.

Addresses are ``s3://bucket/key`` and ``gs://bucket/name``. Cloud Storage is asked over its REST interface, as Firestore
is (ADR 6): Google's library would be most of a cold start. So is one object of S3 where the environment names a region,
as a Lambda's does; else, and for lists, boto3 finds its region, credentials and endpoint by itself.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address
from pilotlight.adapters.aws_api.refusals import FORBIDDEN, RIGHTS
from pilotlight.adapters.aws_api.signing import signed_get
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, Site, Takes, target_of
from pilotlight.adapters.tunnels import site_at
from pilotlight.errors import BadInput, Conflict, Unavailable
from pilotlight.units import EPOCH, Seconds

if TYPE_CHECKING:
    from pilotlight.adapters.aws_wire import Wire

SCHEMES = ("s3", "gs")
GCS = "https://storage.googleapis.com"
READ_S: Seconds = 10
"""For a list's page, or an object that is read into memory."""
COPY_S: Seconds = 600
"""For one object that is copied, however large it is."""
PIECE = 1024 * 1024
ELSEWHERE = (301, 307, 400)
"""What S3 says of a bucket in another region."""


class _Item(msgspec.Struct, frozen=True):
    name: str
    updated: datetime = EPOCH


class _Items(msgspec.Struct, frozen=True, rename="camel"):
    """A page of Cloud Storage's list."""

    items: tuple[_Item, ...] = ()
    next_page_token: str = ""


class Objects:
    """``gcs`` stands in for Cloud Storage's address, as an emulator does, and is shown no token. ``credentials_file``
    says that google-auth should look for one. Every method raises ``BadInput`` for what is not there or not allowed,
    and ``Unavailable`` where later may work.
    """

    def __init__(
        self, *, gcs: str = "", credentials_file: bool = False, environ: Mapping[str, str] | None = None
    ) -> None:
        self._environ = environ or {}
        self._gcs, self._token = gcs.rstrip("/") or GCS, None if gcs else GoogleToken(file=credentials_file)

    def read(self, uri: str) -> bytes:
        """The bytes of one object."""
        held = io.BytesIO()
        self._fetch(uri, held, READ_S)
        return held.getvalue()

    def copy(self, uri: str, place: Path) -> None:
        """One object into a file."""
        with place.open("wb") as file:
            self._fetch(uri, file, COPY_S)

    def write(self, uri: str, body: bytes, kept_until: datetime | None = None) -> None:
        """One new object, never over one that is there: that raises ``Conflict``. ``kept_until`` locks it: nobody can
        delete or change it before, where its bucket has Object Lock (S3) or object retention (Cloud Storage).
        """
        scheme, bucket, name = _parts(uri)
        if scheme == "gs":
            return self._gcs_write(uri, bucket, name, body, kept_until)
        locked = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": kept_until} if kept_until else {}
        with _s3_explained(uri), Deadline(COPY_S) as deadline, self._wire.limit_requests(deadline):
            self._s3.put_object(Bucket=bucket, Key=name, Body=body, IfNoneMatch="*", **locked)

    def _gcs_write(self, uri: str, bucket: str, name: str, body: bytes, kept_until: datetime | None) -> None:
        about: dict[str, object] = {"name": name, "contentType": "application/octet-stream"}
        if kept_until is not None:
            about["retention"] = {"mode": "Locked", "retainUntilTime": kept_until.isoformat()}
        between = token_hex(16)
        parts = (b"application/json", msgspec.json.encode(about)), (b"application/octet-stream", body)
        whole = b"".join(b"--%s\r\nContent-Type: %s\r\n\r\n%s\r\n" % (between.encode(), *part) for part in parts)
        headers = {"Content-Type": f"multipart/related; boundary={between}", **self._shown()}
        asked = f"{self._gcs}/upload/storage/v1/b/{bucket}/o?uploadType=multipart&ifGenerationMatch=0"
        try:
            with Deadline(COPY_S) as deadline:
                answer = Site(self._gcs).ask(
                    deadline, "POST", target_of(asked), whole + b"--%s--\r\n" % between.encode(), headers
                )
        except Broken as error:
            raise Unavailable(f"{uri}: Cloud Storage does not answer ({error})") from None
        if answer.status == 412:
            raise Conflict(f"{uri} is there already")
        _see(answer.status, uri)

    def _shown(self) -> Mapping[str, str]:
        return self._token.header() if self._token else {}

    def list_matching(self, pattern: str) -> Sequence[tuple[str, datetime]]:
        """The addresses of a bucket that a pattern names, with when each was written; ``*`` stands for any text."""
        scheme, bucket, names = _parts(pattern)
        prefix = names.partition("*")[0]
        found = self._s3_names(bucket, prefix) if scheme == "s3" else self._gcs_names(bucket, prefix)
        return [(f"{scheme}://{bucket}/{name}", at) for name, at in found if fnmatchcase(name, names)]

    def _fetch(self, uri: str, into: BinaryIO, within_s: Seconds) -> None:
        scheme, bucket, name = _parts(uri)
        if scheme == "gs":
            self._gcs_get(f"{bucket}/o/{quote(name, safe='')}?alt=media", uri, into, within_s)
            return
        if self._region and self._s3_get(bucket, name, uri, into, within_s):
            return
        with _s3_explained(uri), Deadline(within_s) as deadline, self._wire.limit_requests(deadline):
            body = self._s3.get_object(Bucket=bucket, Key=name)["Body"]
            for piece in body.iter_chunks(PIECE):
                into.write(piece)

    @property
    def _region(self) -> str:
        return self._environ.get("AWS_REGION", "") or self._environ.get("AWS_DEFAULT_REGION", "")

    @cached_property
    def _credentials(self) -> Credentials:
        return Credentials(self._region, self._environ)

    def _s3_get(self, bucket: str, name: str, uri: str, into: BinaryIO, within_s: Seconds) -> bool:
        """One object of this region; False for a bucket of another, which boto3 finds."""
        url = f"{address('s3', self._region, self._environ)}/{bucket}/{quote(name, safe='/-_.~')}"
        headers = signed_get(url, self._credentials.keys(), self._region, datetime.now(UTC))
        try:
            with Deadline(within_s) as deadline:
                answer = site_at(url, self._environ).ask(
                    deadline, "GET", target_of(url), headers=headers, takes=Takes(into=into)
                )
        except Broken as error:
            raise Unavailable(f"{uri}: S3 does not answer ({error})") from None
        if answer.status in ELSEWHERE:
            return False
        if answer.status >= 500 or answer.status == 429:
            raise Unavailable(f"{uri}: S3 answers {answer.status}")
        if answer.status != 200:
            raise BadInput(f"{uri}: S3 answers {answer.status}; check the address and its rights")
        return True

    @cached_property
    def _s3(self) -> Any:
        try:
            import boto3
        except ImportError:
            raise BadInput("s3:// needs the package boto3; run pip install 'pilotlight[aws]'") from None
        client = boto3.client("s3")
        client.meta.events.register("before-send.s3", self._wire.send)
        return client

    @cached_property
    def _wire(self) -> "Wire":
        from pilotlight.adapters.aws_wire import Wire

        return Wire(READ_S, self._environ)

    def _s3_names(self, bucket: str, prefix: str) -> Iterator[tuple[str, datetime]]:
        with _s3_explained(f"s3://{bucket}"):
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                yield from ((item["Key"], item["LastModified"]) for item in page.get("Contents", ()))

    def _gcs_names(self, bucket: str, prefix: str) -> Iterator[tuple[str, datetime]]:
        token = ""
        while True:
            held = io.BytesIO()
            asked = f"{bucket}/o?prefix={quote(prefix, safe='')}&pageToken={quote(token)}"
            self._gcs_get(asked, f"gs://{bucket}", held, READ_S)
            try:
                page = typed_json.decode(held.getvalue(), _Items)
            except msgspec.DecodeError:
                raise Unavailable(f"gs://{bucket}: Cloud Storage's list cannot be read") from None
            yield from ((item.name, item.updated) for item in page.items)
            token = page.next_page_token
            if not token:
                return

    def _gcs_get(self, asked: str, uri: str, into: BinaryIO, within_s: Seconds) -> None:
        headers = self._shown()
        target = target_of(f"{self._gcs}/storage/v1/b/{asked}")
        try:
            with Deadline(within_s) as deadline:
                answer = Site(self._gcs).ask(deadline, "GET", target, headers=headers, takes=Takes(into=into))
        except Broken as error:
            raise Unavailable(f"{uri}: Cloud Storage does not answer ({error})") from None
        _see(answer.status, uri)


def _see(status: int, uri: str) -> None:
    if status >= 500 or status == 429:
        raise Unavailable(f"{uri}: Cloud Storage answers {status}")
    if status != 200:
        raise BadInput(f"{uri}: Cloud Storage answers {status}; check the address and its rights")


def _parts(uri: str) -> tuple[str, str, str]:
    where = urlsplit(uri)
    if where.scheme not in SCHEMES or not where.netloc:
        raise BadInput(f"{uri}: use s3://bucket/key or gs://bucket/name")
    return where.scheme, where.netloc, where.path.lstrip("/")


@contextmanager
def _s3_explained(uri: str) -> Iterator[None]:
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise BadInput(f"{uri}: needs the package boto3; run pip install 'pilotlight[aws]'") from None
    try:
        yield
    except ClientError as error:
        code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
        if code in ("PreconditionFailed", "ConditionalRequestConflict"):
            raise Conflict(f"{uri} is there already") from None
        if status == 429 or status >= 500:
            raise Unavailable(f"{uri}: S3 answers {status} {code}") from None
        fix = FORBIDDEN.get(code, RIGHTS)
        raise BadInput(f"{uri}: {code}; {'check the address and its rights' if fix == RIGHTS else fix}") from None
    except (BotoCoreError, Broken) as error:
        raise Unavailable(f"{uri}: {error}") from None
