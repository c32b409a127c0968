"""Objects of S3 and Cloud Storage: large ones, patterns, and services that drip."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from answering import answering
from aws_server import KEY, KEYS, SECRET, SESSION
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st
from odd_server import Line, talking

from pilotlight.adapters import object_store
from pilotlight.adapters.aws_api.signing import Keys, signed_get
from pilotlight.adapters.object_store import Objects
from pilotlight.errors import BadInput, Conflict, Unavailable

LARGE = bytes(range(256)) * 40_000
"""More than is held in memory."""


@pytest.fixture
def bucket(dynamodb_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket on moto's server with a few objects."""
    boto3: Any = pytest.importorskip("boto3", reason="needs pilotlight[aws]")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", dynamodb_server)
    name, client = f"b-{uuid4()}", boto3.client("s3")
    client.create_bucket(Bucket=name)
    for key in ("day/1.csv", "day/2.csv", "day/2.json"):
        client.put_object(Bucket=name, Key=key, Body=key.encode())
    client.put_object(Bucket=name, Key="large", Body=LARGE)
    return name


@pytest.fixture
def in_a_lambda(bucket: str, dynamodb_server: str) -> dict[str, str]:
    """The environment of a function beside that bucket; without boto3 anything is found."""
    return {**KEYS, "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": dynamodb_server}


def test_a_function_reads_an_object_without_boto3(
    bucket: str, in_a_lambda: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small or large, in its own region."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    found = Objects(environ=in_a_lambda)
    assert found.read(f"s3://{bucket}/day/1.csv") == b"day/1.csv"
    found.copy(f"s3://{bucket}/large", tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == LARGE
    with pytest.raises(BadInput, match="404; check the address"):
        found.read(f"s3://{bucket}/other")


@pytest.mark.parametrize("status", [301, 400])
def test_a_bucket_of_another_region_is_left_to_boto3(status: int, bucket: str, in_a_lambda: dict[str, str]) -> None:
    """It knows how to find the region."""
    with answering(lambda *_: (status, b"<Error/>")) as host:
        elsewhere = {**in_a_lambda, "AWS_ENDPOINT_URL_S3": f"http://{host}"}
        assert Objects(environ=elsewhere).read(f"s3://{bucket}/day/1.csv") == b"day/1.csv"


def test_an_outage_of_s3_is_for_later(in_a_lambda: dict[str, str]) -> None:
    """And no reason to dead-letter anything."""
    with answering(lambda *_: (503, b"")) as host, pytest.raises(Unavailable, match="S3 answers 503"):
        Objects(environ={**in_a_lambda, "AWS_ENDPOINT_URL_S3": f"http://{host}"}).read("s3://b/policy.yaml")


@given(key=st.text(min_size=1, max_size=60), session=st.sampled_from(["", SESSION]))
def test_every_signature_of_an_object_is_botocores(key: str, session: str) -> None:
    """Whatever an object is called."""
    url = f"https://s3.us-east-1.amazonaws.com/b/{quote(key.encode('utf-8', 'replace'), safe='/-_.~')}"
    headers = dict(signed_get(url, Keys(KEY, SECRET, session), "us-east-1", datetime(2026, 11, 22, tzinfo=UTC)))
    said = dict(part.split("=", 1) for part in headers["authorization"].split(" ", 1)[1].split(", "))
    request = AWSRequest("GET", url, headers={k: v for k, v in headers.items() if k != "authorization"})
    request.context["timestamp"] = headers["x-amz-date"]
    auth = S3SigV4Auth(Credentials(KEY, SECRET, session or None), "s3", "us-east-1")
    to_sign = auth.string_to_sign(request, auth.canonical_request(request))
    assert auth.signature(to_sign, request) == said["Signature"]


def test_a_large_object_is_copied_whole(bucket: str, tmp_path: Path) -> None:
    """Byte for byte, over our own connections."""
    Objects().copy(f"s3://{bucket}/large", tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == LARGE


def test_a_pattern_names_objects(bucket: str) -> None:
    """Their addresses, and when they were written."""
    found = Objects()
    named = found.list_matching(f"s3://{bucket}/day/*.csv")
    assert [uri for uri, _ in named] == [f"s3://{bucket}/day/{n}.csv" for n in (1, 2)]
    assert all(at.tzinfo for _, at in named)
    assert found.read(f"s3://{bucket}/day/1.csv") == b"day/1.csv"


def test_what_is_not_there_is_bad_input(bucket: str) -> None:
    """With the cloud's own word for it."""
    with pytest.raises(BadInput, match="NoSuchKey"):
        Objects().read(f"s3://{bucket}/other")


@pytest.mark.parametrize(
    ("status", "code", "kind", "says"),
    [
        pytest.param(403, "AccessDenied", BadInput, "check the address and its rights", id="no right"),
        pytest.param(403, "RequestTimeTooSkewed", BadInput, "check the clock of this machine", id="a clock"),
        pytest.param(400, "ExpiredToken", BadInput, "the credential has ended", id="an old key"),
        pytest.param(503, "SlowDown", Unavailable, "503", id="slow down"),
    ],
)
def test_what_s3_refuses_is_told_as_what_it_is(
    status: int, code: str, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By boto3 too: a clock and a credential are no address, and a bucket that is busy is for later."""
    said = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with answering(lambda *_: (status, said)) as host:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}")
        with pytest.raises(kind, match=says):
            Objects().read("s3://b/policy.yaml")


def test_every_page_of_cloud_storage_is_read() -> None:
    """A list goes on where its page says."""
    pages = [
        {"items": [{"name": "a", "updated": "2026-11-02T10:00:00Z"}], "nextPageToken": "t"},
        {"items": [{"name": "b", "updated": "2026-11-03T10:00:00Z"}]},
    ]
    asked: list[str] = []

    def answer(path: str, *_: object) -> tuple[int, Any]:
        asked.append(path)
        return 200, pages[len(asked) - 1]

    with answering(answer) as host:
        named = Objects(gcs=f"http://{host}").list_matching("gs://bills/*")
    assert [(uri, at.day) for uri, at in named] == [("gs://bills/a", 2), ("gs://bills/b", 3)]
    assert ["pageToken=t" in path for path in asked] == [False, True]


@pytest.mark.parametrize("uri", ["s3://bills/a", "gs://bills/a"])
def test_an_object_that_drips_is_for_later(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline is for the whole object."""

    def drips(line: Line) -> None:
        line.hear()
        line.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        line.drip(b" ")

    monkeypatch.setattr(object_store, "READ_S", 0.2)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with talking(drips) as odd:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", odd.url)
        with pytest.raises(Unavailable, match="timed out"):
            Objects(gcs=odd.url).read(uri)


@pytest.mark.parametrize("uri", ["ftp://bills/a", "s3:///a", "bills/a"])
def test_another_address_says_what_to_use(uri: str) -> None:
    """Only what can be read."""
    with pytest.raises(BadInput, match="use s3://"):
        Objects().read(uri)


def test_a_new_object_of_cloud_storage_is_written_once_and_locked() -> None:
    """As one multipart upload under a precondition; what is there already is a conflict, and a refusal says so."""
    came: list[tuple[str, bytes]] = []
    statuses = [200, 412, 403, 503]

    def answer(path: str, body: bytes, _: dict[str, str]) -> tuple[int, bytes]:
        came.append((path, body))
        return statuses[len(came) - 1], b"{}"

    with answering(answer) as host:
        bucket = Objects(gcs=f"http://{host}")
        bucket.write("gs://b/a/1.jsonl", b"line\n", datetime(2027, 1, 1, tzinfo=UTC))
        for error in (Conflict, BadInput, Unavailable):
            with pytest.raises(error):
                bucket.write("gs://b/a/1.jsonl", b"line\n")
    asked, body = came[0]
    assert asked == "/upload/storage/v1/b/b/o?uploadType=multipart&ifGenerationMatch=0"
    assert b'"retention":{"mode":"Locked","retainUntilTime":"2027-01-01T00:00:00+00:00"}' in body
    assert b"\r\n\r\nline\n\r\n--" in body
    assert b"retention" not in came[1][1]


def test_a_new_object_of_s3_is_written_once(bucket: str) -> None:
    """What is there already stays as it is."""
    Objects().write(f"s3://{bucket}/new", b"one")
    with pytest.raises(Conflict):
        Objects().write(f"s3://{bucket}/new", b"two")
    assert Objects().read(f"s3://{bucket}/new") == b"one"
