"""A tunnel to a server: a proxy carries the connection, of a kubeconfig or of HTTPS_PROXY, and sees nothing of it."""

import base64
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from urllib.parse import unquote, urlsplit

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import CONNECT_S, Broken, Site
from pilotlight.units import Seconds


class TunnelledSite(Site):
    """One server behind an HTTP proxy. The proxy finds the server by its name."""

    def __init__(
        self, url: str, proxy: str, *, context: ssl.SSLContext | None, server_name: str, connect_s: Seconds
    ) -> None:
        super().__init__(
            url,
            context=context,
            server_name=server_name,
            connect_s=connect_s,
            addresses=lambda host, *_: [host],
        )
        where = urlsplit(proxy)
        self._proxy, self._place = Site(proxy, connect_s=connect_s), where.netloc.rpartition("@")[2]
        login = f"{unquote(where.username or '')}:{unquote(where.password or '')}".encode()
        self._login = f"Proxy-Authorization: Basic {base64.b64encode(login).decode()}\r\n" if where.username else ""

    def _dialled(self, address: str, deadline: Deadline) -> socket.socket:
        try:
            made = self._proxy._connected(deadline)
        except Broken as error:
            raise OSError(f"the proxy {self._place} cannot be reached: {error}") from None
        try:
            self._ask(made, f"[{address}]:{self._port}" if ":" in address else f"{address}:{self._port}", deadline)
        except BaseException:
            made.close()
            raise
        return made

    def _ask(self, made: socket.socket, to: str, deadline: Deadline) -> None:
        deadline.watch(made)
        made.settimeout(deadline.seconds_left())
        made.sendall(f"CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{self._login}\r\n".encode())
        answer = HTTPResponse(made, method="CONNECT")
        try:
            answer.begin()
        except HTTPException:
            raise OSError(f"the proxy {self._place} is none") from None
        finally:
            with suppress(OSError):
                answer.close()
        if answer.status != 200:
            raise OSError(f"the proxy {self._place} answers {answer.status}")


def site_at(url: str, environ: Mapping[str, str]) -> Site:
    """The server of an address: behind ``HTTPS_PROXY``, where that is set and ``NO_PROXY`` does not except it."""
    proxy = environ.get("HTTPS_PROXY") or environ.get("https_proxy", "")
    if not proxy or not url.startswith("https:"):
        return Site(url)
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    host, passed = urlsplit(url).netloc, environ.get("NO_PROXY") or environ.get("no_proxy", "")
    if proxy_bypass_environment(host, {"no": passed}):
        return Site(url)
    return TunnelledSite(url, proxy, context=None, server_name=urlsplit(url).hostname or "", connect_s=CONNECT_S)
