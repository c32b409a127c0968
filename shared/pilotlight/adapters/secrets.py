"""Variables whose values lie in AWS Secrets Manager: looked up when they are asked for, and anew every few minutes."""

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock

import msgspec

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi
from pilotlight.errors import BadInput, Denied, Forbidden
from pilotlight.units import Seconds

KEPT_S: Seconds = 300
"""A secret that was changed is known after so long."""


class _Secret(msgspec.Struct, frozen=True):
    SecretString: str = ""


class WithSecrets(Mapping[str, str]):
    """An environment. A value that begins with ``mark`` names a secret by its ARN or name; a lookup gives its text.

    A lookup raises ``BadInput`` for a secret that is not there or is no text, ``Forbidden`` without the right to it,
    ``Unavailable`` where later may work. No error holds a secret.
    """

    def __init__(
        self, environ: Mapping[str, str], mark: str, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._environ, self._mark, self._monotonic = environ, mark, monotonic
        self._known: dict[str, tuple[str, float]] = {}
        self._apis: dict[str, JsonApi] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> str:
        value = self._environ[name]
        return self._secret(name, value[len(self._mark) :]) if value.startswith(self._mark) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)

    def __contains__(self, name: object) -> bool:
        return name in self._environ

    def _secret(self, name: str, which: str) -> str:
        with self._lock:
            known = self._known.get(which)
            if known is None or self._monotonic() - known[1] >= KEPT_S:
                known = self._known[which] = (self._asked(name, which), self._monotonic())
            return known[0]

    def _asked(self, name: str, which: str) -> str:
        try:
            held = self._api(which).read("GetSecretValue", _Secret, {"SecretId": which}).SecretString
        except Forbidden as error:
            raise Forbidden(
                f"{name}: {error}; allow the function's role secretsmanager:GetSecretValue of {which}"
            ) from None
        except Denied as error:
            raise BadInput(f"{name}: {error}; name a secret that is there: {which} is not") from None
        if not held:
            raise BadInput(f"{name}: the secret {which} holds no text; write its value as a string")
        return held

    def _api(self, which: str) -> JsonApi:
        region = which.split(":")[3] if which.startswith("arn:") and which.count(":") >= 6 else ""
        region = region or self._environ.get("AWS_REGION", "") or self._environ.get("AWS_DEFAULT_REGION", "")
        if region not in self._apis:
            credentials = Credentials(region, self._environ)
            self._apis[region] = JsonApi("secretsmanager", region, credentials, self._environ)
        return self._apis[region]
