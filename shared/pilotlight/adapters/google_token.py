"""Access tokens for Google's REST interfaces.

Where code runs on Google Cloud the metadata server gives one, at no import's cost; elsewhere google-auth finds the
credentials of the person or the service account.
"""

import time
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.http import Broken, HttpAnswer, fetch
from pilotlight.errors import Forbidden, Unavailable
from pilotlight.units import Seconds

METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
IDENTITY = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
METADATA_WAIT_S: Seconds = 2
LIBRARY_WAIT_S: Seconds = 10
"""For one call of google-auth's, whatever it asks for itself."""
EARLY_S: Seconds = 120
"""A token is taken anew so long before it ends; the metadata server has a new one 5 minutes before."""


class _Answer(msgspec.Struct, frozen=True):
    access_token: str
    expires_in: float


def identity_token(audience: str) -> str:
    """Token of this function's identity at Google, signed for one audience. Raises ``Forbidden`` where no metadata
    server is."""
    try:
        url = f"{IDENTITY}?{urlencode({'audience': audience, 'format': 'full'})}"
        answer = fetch(url, METADATA_WAIT_S, headers={"Metadata-Flavor": "Google"})
    except Broken:
        raise Forbidden(
            "no metadata server here to say who this is: run on Google Cloud, or name a token file"
        ) from None
    if answer.status != 200:
        raise Unavailable(f"the metadata server answers {answer.status}: does the function have a service account?")
    return answer.body.decode().strip()


class GoogleToken:
    """The token of this process, kept while it lasts. ``file`` says that a credentials file is named."""

    def __init__(self, *, file: bool = False) -> None:
        self._file = file
        self._token, self._ends = "", 0.0
        self._lock = Lock()

    def header(self) -> dict[str, str]:
        """The header that shows it. Raises ``Forbidden`` where there are no credentials, ``Unavailable`` for later."""
        with self._lock:
            if time.monotonic() >= self._ends:
                answer = (None if self._file else self._of_metadata()) or self._of_library()
                self._token, self._ends = answer.access_token, time.monotonic() + answer.expires_in - EARLY_S
            return {"Authorization": f"Bearer {self._token}"}

    def forget(self, shown: Mapping[str, str]) -> None:
        """A server refuses the token of this header: it ended early, or while this machine slept. The next is new."""
        with self._lock:
            if shown.get("Authorization") == f"Bearer {self._token}":
                self._ends = 0.0

    def _of_metadata(self) -> _Answer | None:
        """The metadata server's answer, or None where there is no such server."""
        try:
            answer = fetch(METADATA, METADATA_WAIT_S, headers={"Metadata-Flavor": "Google"})
        except Broken:
            return None
        if answer.status != 200:
            raise Unavailable(f"the metadata server answers {answer.status}: does the function have a service account?")
        try:
            return typed_json.decode(answer.body, _Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Unavailable(
                f"the metadata server answers 200 without a token: see who answers at {METADATA}"
            ) from None

    def _of_library(self) -> _Answer:
        try:
            import google.auth
            from google.auth.exceptions import GoogleAuthError, TransportError
        except ImportError:
            raise Forbidden("no metadata server here: run on Google Cloud, or pip install 'pilotlight[gcp]'") from None
        try:
            credentials, _ = google.auth.default(scopes=[SCOPE], request=_ask)  # type: ignore[arg-type]
            credentials.refresh(_ask)  # type: ignore[no-untyped-call]
        except TransportError as error:
            raise Unavailable(f"Google's token service: {error}") from None
        except GoogleAuthError as error:
            raise Forbidden(f"Google: {str(error).rstrip('.')}; run `gcloud auth application-default login`") from None
        # google-auth tells the end as a naive time of its own clock; tokens last an hour, and it keeps none for us.
        return _Answer(access_token=str(credentials.token), expires_in=1800)


class _Said:
    """An answer as google-auth reads it."""

    def __init__(self, answer: HttpAnswer) -> None:
        self.status, self.headers, self.data = answer.status, answer.headers, answer.body


def _ask(
    url: str, method: str = "GET", body: Any = None, headers: Mapping[str, str] | None = None, **_: object
) -> _Said:
    """google-auth's ``transport.Request``."""
    from google.auth.exceptions import TransportError

    try:
        data = body.encode() if isinstance(body, str) else body
        return _Said(fetch(url, LIBRARY_WAIT_S, method=method, body=data, headers=headers))
    except Broken as error:
        raise TransportError(str(error)) from None  # type: ignore[no-untyped-call]
