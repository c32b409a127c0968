"""A kubeconfig, from a file or a text: one context's server with its token or certificate.

A person's file may also name a login (an exec plugin, OIDC) or a proxy; a text, which functions have, may not. What
cannot be honoured safely is refused: verification that is turned off, and passwords.
"""

import base64
import time
from binascii import Error as NotBase64
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.codec.json_text import read_json
from pilotlight.errors import BadInput
from pilotlight.units import Seconds

READ_AGAIN_S: Seconds = 60

Table = dict[str, Any]
Login = Callable[[str, Table, Table], tuple[dict[str, str], Seconds]]
"""A context's name, its user and its cluster to what is shown for it, and how long that may be."""


class Kubeconfig:
    """The access of one context; the file's current one where ``context`` is empty.

    ``read`` gives its bytes, each time anew; ``where`` is what errors call it; paths in it are from ``folder``. Without
    a ``login`` neither a plugin, nor OIDC, nor a proxy will do.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        where: str,
        *,
        context: str = "",
        folder: Path = Path(),
        login: Login | None = None,
    ) -> None:
        self._read, self._where, self._context, self._folder = read, where, context, folder
        self._login = login
        self._kept: Access | None = None
        self._ends = 0.0
        self._lock = Lock()

    def access(self, *, anew: bool = False) -> Access:
        with self._lock:
            now = time.monotonic()
            if anew or self._kept is None or now >= self._ends:
                self._kept, lasts = self._resolve()
                self._ends = now + lasts
            return self._kept

    def current(self) -> str:
        """The context that kubectl would take; empty where the file names none. Raises ``BadInput``."""
        return self._current(self._parsed())

    @staticmethod
    def _current(config: Table) -> str:
        found = config.get("current-context")
        return found if isinstance(found, str) else ""

    def _resolve(self) -> tuple[Access, Seconds]:
        config = self._parsed()
        name = self._context or self._current(config)
        context = self._named(config, "context", name)
        cluster = self._named(config, "cluster", context.get("cluster", ""))
        user = self._named(config, "user", context.get("user", "")) if context.get("user") else {}
        self._refuse(cluster, user)
        shown = {
            "token": user.get("token") or self._file(user.get("tokenFile", "")).strip(),
            "certificate": self._data(user, "client-certificate"),
            "key": self._data(user, "client-key"),
        }
        lasts = READ_AGAIN_S
        if self._login and (user.get("exec") or user.get("auth-provider")) and not shown["token"]:
            shown, lasts = self._login(name, user, cluster)
        server = {"server": str(cluster.get("server", "")), "server_name": str(cluster.get("tls-server-name", ""))}
        server["proxy"] = self._proxy(str(cluster.get("proxy-url") or ""))
        return Access(**server, ca=self._data(cluster, "certificate-authority"), **shown), lasts

    def _parsed(self) -> Table:
        try:
            text = self._read()
        except OSError as error:
            raise BadInput(f"{self._where}: {error.strerror}; name a kubeconfig that can be read") from None
        config: Any = read_json(text)  # As `pilotlight connect` writes it.
        config = self._of_yaml(text) if config is None else config
        if not isinstance(config, dict) or not isinstance(config.get("clusters"), list):
            raise BadInput(f"{self._where}: is no kubeconfig: it has no list of clusters; name another by --kubeconfig")
        return config

    def _of_yaml(self, text: bytes) -> Any:
        import yaml

        from pilotlight.codec.bounded_yaml import SafeLoader, load

        try:
            return load(text, SafeLoader)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):  # Its text may quote a secret.
            raise BadInput(f"{self._where}: is no YAML; give a kubeconfig") from None

    def _named(self, config: Table, kind: str, name: str) -> Table:
        for entry in config.get(f"{kind}s") or ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return dict(entry[kind])
        names = sorted(str(e.get("name")) for e in config.get(f"{kind}s") or () if isinstance(e, dict))
        if kind == "context" and not names:
            raise BadInput(f"{self._where}: has no context; name another by --kubeconfig")
        lacks = f"has no {kind} {name!r}" if name or kind != "context" else "names no current context: name one"
        raise BadInput(f"{self._where}: {lacks}; it has {', '.join(names) or 'none'}")

    def _refuse(self, cluster: Table, user: Table) -> None:
        if cluster.get("insecure-skip-tls-verify"):
            raise BadInput(f"{self._where}: insecure-skip-tls-verify: give certificate-authority-data instead")
        provider = user.get("auth-provider")
        if user.get("username") or (provider and not (isinstance(provider, dict) and provider.get("name") == "oidc")):
            key = "username" if user.get("username") else "this auth-provider"
            raise BadInput(f"{self._where}: {key} is gone from Kubernetes; use a token, a certificate or exec")
        logins = () if user.get("token") or user.get("tokenFile") else ("exec", "auth-provider")
        named = [key for key in (*logins, "proxy-url") if user.get(key) or cluster.get(key)]
        if named and self._login is None:
            raise BadInput(
                f"{self._where}: {named[0]} is for a person's kubeconfig, as kubeconfig:PATH names it; a function "
                "needs a token or a certificate, and no proxy: pilotlight connect writes such a kubeconfig"
            )

    def _proxy(self, url: str) -> str:
        try:
            where = urlsplit(url)
            if not url or (where.scheme == "http" and where.hostname and where.port != 0):
                return url
        except ValueError:  # It quotes what it refuses, which may be a password.
            pass
        raise BadInput(f"{self._where}: proxy-url is none that can be used: write it as http://HOST:PORT")

    def _data(self, table: Table, key: str) -> str:
        """The text under ``<key>-data``, or of the file under ``key``."""
        inline = table.get(f"{key}-data")
        if not inline:
            return self._file(table.get(key, ""))
        try:
            return base64.b64decode(inline, validate=True).decode()
        except (NotBase64, UnicodeDecodeError, ValueError, TypeError):
            raise BadInput(f"{self._where}: {key}-data is no base64 of a PEM") from None

    def _file(self, name: str) -> str:
        if not name:
            return ""
        try:
            return (self._folder / name).read_text()
        except (OSError, UnicodeDecodeError):
            raise BadInput(f"{self._where}: the file {name} it names cannot be read") from None
