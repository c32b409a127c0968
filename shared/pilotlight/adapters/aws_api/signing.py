"""AWS's signature, version 4, of what is posted to a service's root, of calls of REST interfaces, and of objects.

Source: "Create a signed AWS API request", docs.aws.amazon.com/IAM. A test compares every signature with botocore's.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"
FORM = "application/x-www-form-urlencoded; charset=utf-8"


class Keys(NamedTuple):
    """A credential. ``session`` is empty where its keys last for good."""

    key: str
    secret: str
    session: str = ""

    def __repr__(self) -> str:
        """Never the secret, whatever prints it."""
        return f"Keys({self.key[:4]}...)"

    def hide(self, text: str) -> str:
        """The text without any part of the credential that is in it."""
        for part in (self.session, self.secret, self.key):
            text = text.replace(part, "***") if part else text
        return text


def signed_headers(
    url: str, body: bytes, keys: Keys, service: str, region: str, at: datetime, *, kind: str = FORM, target: str = ""
) -> Mapping[str, str]:
    """The headers of ``POST url`` with that body, whose signature holds for some minutes around ``at`` (UTC).

    ``kind`` is the body's; ``target`` names the call where the body does not.
    """
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    headers = {"content-type": kind, "host": urlsplit(url).netloc, "x-amz-date": stamp}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    if target:
        headers["x-amz-target"] = target
    return _authorized("POST", "/", headers, hashlib.sha256(body).hexdigest(), keys, service, region)


def signed_rest(
    method: str, url: str, body: bytes, keys: Keys, service: str, region: str, at: datetime
) -> Mapping[str, str]:
    """The headers of a call of a REST interface: ``url`` has plain names in its path and at most one query value."""
    where = urlsplit(url)
    headers = {"content-type": "application/json", "host": where.netloc, "x-amz-date": f"{at:%Y%m%dT%H%M%SZ}"}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    digest = hashlib.sha256(body).hexdigest()
    return _authorized(method, where.path, headers, digest, keys, service, region, where.query)


def signed_query(url: str, keys: Keys, service: str, region: str, at: datetime) -> Mapping[str, str]:
    """The headers of ``GET url``, whose query is quoted and in order already and whose path has plain names."""
    where, nothing = urlsplit(url), hashlib.sha256(b"").hexdigest()
    headers = {"host": where.netloc, "x-amz-date": f"{at:%Y%m%dT%H%M%SZ}"}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    return _authorized("GET", where.path, headers, nothing, keys, service, region, where.query)


def signed_get(url: str, keys: Keys, region: str, at: datetime) -> Mapping[str, str]:
    """The headers of ``GET url`` of an object of S3, whose path is quoted already."""
    where, stamp, nothing = urlsplit(url), f"{at:%Y%m%dT%H%M%SZ}", hashlib.sha256(b"").hexdigest()
    headers = {"host": where.netloc, "x-amz-content-sha256": nothing, "x-amz-date": stamp}
    if keys.session:
        headers["x-amz-security-token"] = keys.session
    return _authorized("GET", where.path, headers, nothing, keys, "s3", region)


def _authorized(
    method: str,
    path: str,
    headers: Mapping[str, str],
    digest: str,
    keys: Keys,
    service: str,
    region: str,
    query: str = "",
) -> Mapping[str, str]:
    """Those headers with their signature; they are in the order of their names."""
    stamp, names = headers["x-amz-date"], ";".join(headers)
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(_derived(keys.secret, scope), to_sign.encode(), hashlib.sha256).hexdigest()
    said = f"{ALGORITHM} Credential={keys.key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**{name: value for name, value in headers.items() if name != "host"}, "authorization": said}


def _derived(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
