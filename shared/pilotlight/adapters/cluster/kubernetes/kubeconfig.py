"""A kubeconfig, from a file or a text: one context's server with its token, certificate or exec plugin.

A plugin is run by the official client, which is imported for that only. What cannot be honoured safely is refused:
verification that is turned off, passwords, and proxies.
"""

import base64
import time
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from pilotlight.adapters.cluster.kubernetes.access import Access
from pilotlight.errors import BadInput, Forbidden, Unavailable
from pilotlight.units import Seconds

READ_AGAIN_S: Seconds = 60
EARLY_S: Seconds = 60
"""A plugin is asked anew so long before its token ends."""
PLUGIN_WAIT_S: Seconds = 30

Table = dict[str, Any]


class Kubeconfig:
    """The access of one context; the file's current one where ``context`` is empty.

    ``read`` gives its bytes, each time anew; ``where`` is what errors call it; paths in it are from ``folder``.
    """

    def __init__(self, read: Callable[[], bytes], where: str, *, context: str = "", folder: Path = Path()) -> None:
        self._read, self._where, self._context, self._folder = read, where, context, folder
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

    def _resolve(self) -> tuple[Access, Seconds]:
        config = self._parsed()
        name = self._context or config.get("current-context", "")
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
        if user.get("exec") and not shown["token"]:
            shown, lasts = self._plugin(user["exec"], cluster)
        server = {"server": str(cluster.get("server", "")), "server_name": str(cluster.get("tls-server-name", ""))}
        return Access(**server, ca=self._data(cluster, "certificate-authority"), **shown), lasts

    def _parsed(self) -> Table:
        import yaml

        from pilotlight.codec.bounded_yaml import SafeLoader, load

        try:
            config = load(self._read(), SafeLoader)
        except OSError as error:
            raise BadInput(f"{self._where}: {error.strerror}; name a kubeconfig that can be read") from None
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):  # Its text may quote a secret.
            raise BadInput(f"{self._where}: is no YAML; give a kubeconfig") from None
        if not isinstance(config, dict) or not isinstance(config.get("clusters"), list):
            raise BadInput(f"{self._where}: is no kubeconfig: it has no list of clusters")
        return config

    def _named(self, config: Table, kind: str, name: str) -> Table:
        for entry in config.get(f"{kind}s") or ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return dict(entry[kind])
        names = sorted(str(e.get("name")) for e in config.get(f"{kind}s") or () if isinstance(e, dict))
        raise BadInput(f"{self._where}: has no {kind} {name!r}; it has {', '.join(names) or 'none'}")

    def _refuse(self, cluster: Table, user: Table) -> None:
        if cluster.get("insecure-skip-tls-verify"):
            raise BadInput(f"{self._where}: insecure-skip-tls-verify: give certificate-authority-data instead")
        if cluster.get("proxy-url"):
            raise BadInput(f"{self._where}: proxy-url is not supported; name a server that can be reached directly")
        for key in ("username", "auth-provider"):
            if user.get(key):
                raise BadInput(f"{self._where}: {key} is gone from Kubernetes; use a token, a certificate or exec")

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

    def _plugin(self, plugin: Table, cluster: Table) -> tuple[dict[str, str], Seconds]:
        status = _run(plugin, cluster, self._folder, f"{self._where}: exec {plugin.get('command', '')}")
        shown = {
            "token": status.get("token", ""),
            "certificate": status.get("clientCertificateData", ""),
            "key": status.get("clientKeyData", ""),
        }
        return shown, _lasts(status.get("expirationTimestamp", ""))


def _lasts(ends: str) -> Seconds:
    """How long a plugin's credential may be shown; one that names no end is asked for again when it is refused."""
    if not ends:
        return float("inf")
    try:
        return (datetime.fromisoformat(ends) - datetime.now(UTC)).total_seconds() - EARLY_S
    except (ValueError, TypeError):
        return 0


def _run(plugin: Table, cluster: Table, folder: Path, where: str) -> Mapping[str, str]:
    """An exec plugin's answer, within a time. What it says on stderr may hold secrets, and is not passed on."""
    try:
        from kubernetes.config.config_exception import ConfigException
        from kubernetes.config.exec_provider import ExecProvider
        from kubernetes.config.kube_config import ConfigNode
    except ImportError:
        raise BadInput(f"{where}: needs the package kubernetes; run pip install 'pilotlight[kubernetes]'") from None
    answers: list[Mapping[str, str]] = []

    def ask() -> None:
        try:
            node, about = ConfigNode("exec", dict(plugin)), ConfigNode("cluster", dict(cluster))
            answers.append(ExecProvider(node, str(folder), about).run())
        except (ConfigException, OSError, ValueError, LookupError, TypeError):
            return  # There is no answer, and its words are not ours to repeat.

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PLUGIN_WAIT_S)
    if thread.is_alive():
        raise Unavailable(f"{where}: has not answered within {PLUGIN_WAIT_S:g} s")
    if not answers or not isinstance(answers[0], dict):
        raise Forbidden(f"{where}: gives no credential; run it by hand to see why")
    return answers[0]
