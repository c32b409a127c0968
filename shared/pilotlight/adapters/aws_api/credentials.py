"""Credentials for AWS without keys of our own: a role's, taken anew before they end.

In the order in which boto3 looks, as far as it costs a cold start nothing: the environment (Lambda's role), a role by a
web identity (IRSA's file, or this service account's identity at Google's metadata server), a container's (EKS Pod
Identity). Whatever else there is, a profile or an instance's role, boto3 finds; it is imported only then.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.forms import address, form
from pilotlight.adapters.aws_api.signing import FORM, Keys, signed_headers
from pilotlight.adapters.aws_api.xml_answers import problem, read_answer
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, Site, fetch
from pilotlight.adapters.tunnels import site_at
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from botocore.session import Session

WAIT_S: Seconds = 5
EARLY_S: Seconds = 300
"""A credential is taken anew so long before it ends."""
KEPT_S: Seconds = 900
"""What boto3 found is asked for again after so long: it renews what ends."""
SESSION = "pilotlight"
"""A role's session, where AWS_ROLE_SESSION_NAME names none."""
EXTERNAL = "?external_id="
OWN = ("AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
"""Variables of a credential of its own, and then of a web identity: K_SERVICE is set in every function at Google, and
AWS_ROLE_ARN says that whoever runs elsewhere there shows its identity."""
IDENTITY = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "K_SERVICE")
CONTAINER_HOST = "http://169.254.170.2"
LOCAL_HOSTS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23", "127.0.0.1", "localhost", "::1")
"""Hosts that a container's credential may be asked of without TLS, as AWS's SDKs have them."""


class _Given(msgspec.Struct, frozen=True):
    AccessKeyId: str
    SecretAccessKey: str
    Expiration: datetime
    SessionToken: str = ""
    Token: str = ""


class _Assumed(msgspec.Struct, frozen=True):
    Credentials: _Given


class Credentials:
    """This process's credential for AWS, or that of a ``role`` which it takes, by ``site``. Nothing is asked before it
    is used. The role is its ARN, with ``?external_id=ID`` behind it where its trust asks for one."""

    def __init__(
        self, region: str, environ: Mapping[str, str], role: str = "", site: Callable[[str], Site] | None = None
    ) -> None:
        self._region, self._environ = region, environ
        self._role, _, self._external = role.partition(EXTERNAL)
        self._site = site or (lambda url: site_at(url, environ))
        self._name = environ.get("AWS_ROLE_SESSION_NAME") or SESSION
        self._keys, self._ends = Keys("", ""), 0.0
        self._session: Session | None = None
        self._lock = Lock()

    def keys(self) -> Keys:
        """Those that hold now. Raises ``Forbidden`` where there are none, ``Unavailable`` for later."""
        with self._lock:
            if time.monotonic() >= self._ends:
                self._keys, self._ends = self._taken()
            return self._keys

    def _taken(self) -> tuple[Keys, float]:
        return _until(self._of_role(self._role)) if self._role else self._own()

    def _own(self) -> tuple[Keys, float]:
        own = self._environ
        if own.get("AWS_ACCESS_KEY_ID") and own.get("AWS_SECRET_ACCESS_KEY"):
            keys = Keys(own["AWS_ACCESS_KEY_ID"], own["AWS_SECRET_ACCESS_KEY"], own.get("AWS_SESSION_TOKEN", ""))
            return keys, time.monotonic() + KEPT_S
        if own.get("AWS_ROLE_ARN"):
            return _until(self._of_identity(own["AWS_ROLE_ARN"]))
        if own.get("AWS_CONTAINER_CREDENTIALS_FULL_URI") or own.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            return _until(self._of_container())
        return self._of_boto3(), time.monotonic() + KEPT_S

    def _of_role(self, role: str) -> _Given:
        """Of another account, say: by who this is where that is a web identity, else by its own credential."""
        own = self._environ
        if not any(own.get(name) for name in OWN) and any(own.get(name) for name in IDENTITY):
            return self._of_identity(role)
        try:
            keys, _ = self._own()
        except Forbidden:
            if "KUBERNETES_SERVICE_HOST" not in own:
                raise
            return self._of_identity(role)  # A pod of GKE.
        url, action = address("sts", self._region, self._environ), "AssumeRole"
        asked = {"RoleArn": role, "RoleSessionName": self._name}
        body = form(action, "sts", asked | ({"ExternalId": self._external} if self._external else {}))
        headers = signed_headers(url, body, keys, "sts", self._region, datetime.now(UTC))
        with Deadline(WAIT_S) as deadline:
            return _assumed(deadline, self._site(url), action, body, headers, keys).Credentials

    def _of_identity(self, role: str) -> _Given:
        """AssumeRoleWithWebIdentity. The audience at Google is the role itself: no token for another use does."""
        file = self._environ.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")
        token = _file(file) if file else _google_token(role)
        params = {"RoleArn": role, "RoleSessionName": self._name, "WebIdentityToken": token}
        url, action = address("sts", self._region, self._environ), "AssumeRoleWithWebIdentity"
        body, hidden = form(action, "sts", params), Keys("", "", token)
        with Deadline(WAIT_S) as deadline:  # Asked without a credential, because it gives one.
            return _assumed(deadline, self._site(url), action, body, {"content-type": FORM}, hidden).Credentials

    def _of_container(self) -> _Given:
        own = self._environ
        relative = own.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "")
        url = CONTAINER_HOST + relative if relative else own["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
        where = urlsplit(url)
        if where.scheme != "https" and where.hostname not in LOCAL_HOSTS:
            raise Forbidden(f"AWS_CONTAINER_CREDENTIALS_FULL_URI leads to {where.hostname} without TLS; use https")
        file = own.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
        token = _file(file) if file else own.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        try:
            answer = fetch(url, WAIT_S, headers={"Authorization": token} if token else {})
        except Broken as error:
            raise Unavailable(f"the container's credentials for AWS: {error}") from None
        if answer.status != 200:
            raise Unavailable(f"the container's credentials for AWS: the agent answers {answer.status}")
        try:
            return typed_json.decode(answer.body, _Given)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Unavailable("the container's credentials for AWS: the answer cannot be read") from None

    def _of_boto3(self) -> Keys:
        try:
            from botocore.exceptions import BotoCoreError, ClientError, SSOError
            from botocore.session import Session
        except ImportError:
            raise Forbidden(
                "there is no credential for AWS here: give a role (AWS_ROLE_ARN), or run pip install 'pilotlight[aws]' "
                "for profiles"
            ) from None
        try:
            self._session = self._session or Session()
            found = self._session.get_credentials()
            frozen = found.get_frozen_credentials() if found else None
        except SSOError as error:
            raise Forbidden(f"credentials for AWS: {error}; run aws sso login") from None
        except BotoCoreError as error:
            raise Unavailable(f"credentials for AWS: {error}") from None
        except ClientError as error:
            code, status = error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
            raise refusals.problem(error.operation_name, status, code, "", str, Unavailable) from None
        if frozen is None:
            raise Forbidden("there is no credential for AWS here: give a role (AWS_ROLE_ARN), or a profile")
        return Keys(frozen.access_key, frozen.secret_key, frozen.token or "")


def _assumed(
    deadline: Deadline, site: Site, action: str, body: bytes, headers: Mapping[str, str], hidden: Keys
) -> _Assumed:
    """A role's credential. No error holds what is ``hidden``."""
    try:
        answer = site.ask(deadline, "POST", "/", body, headers)
    except Broken as error:
        raise Unavailable(f"AWS does not answer {action} ({error})") from None
    if answer.status != 200:
        raise problem(action, answer, hidden, Unavailable)
    return read_answer(action, answer, _Assumed, Unavailable)


def _until(given: _Given) -> tuple[Keys, float]:
    left = (given.Expiration - datetime.now(UTC)).total_seconds()
    keys = Keys(given.AccessKeyId, given.SecretAccessKey, given.SessionToken or given.Token)
    return keys, time.monotonic() + max(0.0, left - EARLY_S)


def _file(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeError) as error:
        raise Forbidden(f"{path}: cannot be read ({type(error).__name__}); is the token mounted?") from None


def _google_token(role: str) -> str:
    from pilotlight.adapters.google_token import identity_token

    return identity_token(role)
