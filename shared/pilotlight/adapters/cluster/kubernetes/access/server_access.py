"""Access to an API server: its address, the authority to trust, and the credential to show."""

import base64
import binascii
import ssl
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.facts.limits.checks import Token

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """An address with its trust and one credential. ``ca``, ``certificate`` and ``key`` are PEM text; an empty ``ca``
    is the system's. ``server_name`` is whose certificate is expected, where it is not the address's. ``acting_as`` is
    whom to impersonate, ``proxy`` the URL of what carries the connection, or empty. Secrets are in no ``repr``. Raises
    ``BadInput`` where a credential would travel in the clear."""

    server: str
    ca: str = ""
    server_name: str = ""
    token: str = ""
    certificate: str = ""
    key: str = ""
    acting_as: str = ""
    proxy: str = ""

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """The fields that are no secret: a Struct's own tells every one, also to Rich's tracebacks."""
        return [("server", self.server), ("server_name", self.server_name), ("acting_as", self.acting_as)]

    def __repr__(self) -> str:
        return f"Access({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __post_init__(self) -> None:
        where = urlsplit(self.server)
        if where.scheme == "https" and where.hostname:
            return
        if where.scheme != "http" or where.hostname not in LOOPBACK:
            raise BadInput(f"the API server {self.server!r}: use https:// (http:// only to a proxy on this machine)")

    @property
    def way(self) -> tuple[str, ...]:
        """All that a connection depends on."""
        return self.server, self.proxy, self.ca, self.server_name, self.certificate, self.key

    def context(self) -> ssl.SSLContext:
        """A context that verifies always. Raises ``BadInput`` for what is no PEM."""
        try:
            context = ssl.create_default_context(cadata=self.ca or None)
            if self.certificate:
                self._show_certificate(context)
        except (ssl.SSLError, ValueError):
            raise BadInput(f"{self.server}: the CA, certificate or key is no PEM; mend the kubeconfig") from None
        return context

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        # ssl reads a certificate of its own only from a file; this one is its owner's alone, and gone at once.
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(f"{self.certificate}\n{self.key}\n")
            file.flush()
            context.load_cert_chain(file.name)


class Source(Protocol):
    """Where a cluster's access comes from."""

    def access(self, *, anew: bool = False) -> Access:
        """The access as it is now. ``anew`` says that what was given last was refused: nothing kept will do.

        Raises ``BadInput``, ``Forbidden`` or ``Unavailable``.
        """
        ...


class _Claims(msgspec.Struct, frozen=True):
    sub: str = ""
    iat: float | None = None
    exp: float | None = None


def token_of(token: str) -> Token | None:
    """Claims of a JSON Web Token, unverified: the API server judges it. None for what is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = typed_json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), _Claims)
        made, ends = _moment(claims.iat), _moment(claims.exp)
    except (binascii.Error, ValueError, OverflowError, OSError):
        return None
    return Token(subject=claims.sub, made=made, ends=ends)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
