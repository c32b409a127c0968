"""Plain HTTP as a person's machine has it: by ``requests``, with its proxies and its certificate authorities.

HTTPS_PROXY, NO_PROXY and REQUESTS_CA_BUNDLE are read; this machine is reached without a proxy. Redirects are not
followed, and no password of ~/.netrc is shown.
"""

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import ALL, CHUNK, Broken, HttpAnswer, Site, Takes, reason
from pilotlight.codec.redact import without_login
from pilotlight.ports.clouds import Gate
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from requests import PreparedRequest, Session

ANSWER_S: Seconds = 60
"""A person waits so long for an answer."""
CONNECT_S: Seconds = 10


class Unanswered(Broken):
    """No whole answer came. ``str()`` says why and what helps, and holds nothing of the request.

    ``refused``: nothing listens at the address itself.
    """

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why, sent=not refused)
        self.refused = refused


class ProxiedSite(Site):
    """One server, by scheme, host and port of a URL. A login in the URL is shown where the headers show none."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._url = url
        self._session: Session | None = None

    def ask(
        self,
        deadline: Deadline,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        gate: Gate | None = None,
        repeatable: bool = False,
        takes: Takes = ALL,
    ) -> HttpAnswer:
        """Whatever the server answers, as far as it ``takes`` that. Raises ``Unanswered``."""
        import requests
        from requests.auth import HTTPBasicAuth
        from requests.utils import get_auth_from_url

        assert gate is None, "changes that ask a gate go by Site, which opens the connection first"
        assert takes.into is None
        if self._session is None:
            self._session = requests.Session()
        where = urlsplit(self._url)
        host = where.hostname or ""
        login = ("", "") if "Authorization" in (headers or {}) else get_auth_from_url(self._url)
        try:
            with self._session.request(
                method,
                f"{where.scheme}://{self._named}{target}",
                data=body,
                headers=dict(headers or {}),
                # Without one of ours, requests shows what ~/.netrc has for the host.
                auth=HTTPBasicAuth(*login) if any(login) else _as_it_is,
                timeout=(min(CONNECT_S, deadline.seconds_left()), min(takes.piece_s, deadline.seconds_left())),
                allow_redirects=False,
                proxies={"no_proxy": host} if _is_here(host) else None,
                stream=True,
            ) as answer:
                body = b""
                for piece in answer.iter_content(CHUNK):
                    deadline.seconds_left()
                    body += piece
                    if len(body) > takes.largest:
                        raise OSError("the answer does not end")
                return HttpAnswer(answer.status_code, {k.lower(): v for k, v in answer.headers.items()}, body)
        except (OSError, ValueError) as error:
            raise _unanswered(error, f"{where.scheme}://{self._named}") from None


def _as_it_is(request: "PreparedRequest") -> "PreparedRequest":
    return request


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unanswered(error: Exception, url: str) -> Unanswered:
    from requests.exceptions import ConnectionError as NoConnection
    from requests.exceptions import InvalidProxyURL, InvalidSchema, ProxyError, RequestException, SSLError, Timeout
    from requests.utils import get_environ_proxies, select_proxy

    proxy = without_login(select_proxy(url, get_environ_proxies(url)) or "")
    why = _root(error)
    if isinstance(error, ProxyError):
        return Unanswered(f"the proxy {proxy} does not let it through: {reason(why)}; check HTTPS_PROXY and NO_PROXY")
    if isinstance(error, SSLError):
        return Unanswered(f"{reason(why)}; name the authority of its certificate in REQUESTS_CA_BUNDLE")
    if isinstance(error, Timeout | TimeoutError):
        return Unanswered("timed out")
    if isinstance(error, NoConnection):
        return Unanswered(reason(why), refused=isinstance(why, ConnectionRefusedError))
    if isinstance(error, InvalidSchema | InvalidProxyURL):
        return Unanswered(f"the proxy {proxy} is none that requests can use; write it as http://proxy:3128")
    if isinstance(error, RequestException | ValueError):  # It quotes what it refuses, which may be a secret.
        return Unanswered("the request holds what HTTP cannot carry, or half an answer came")
    return Unanswered(reason(error))  # As an authority's file that is not there.


def _root(error: BaseException) -> Exception:
    """The system's own error below those of requests and urllib3."""
    found, below = error, [error]
    while below:
        one = below.pop()
        if type(one).__module__ in ("builtins", "ssl", "socket", "http.client"):
            found = one
        near = [one.__cause__, getattr(one, "reason", None), *one.args]
        below += [each for each in near if isinstance(each, BaseException)]
    return found if isinstance(found, Exception) else OSError("broken off")
