"""One HTTP POST to an address that may be a secret and may lie: what every channel sends with.

The host is resolved once and the connection made to what was found, so that no second answer of the name server leads
elsewhere; TLS checks the name. Redirects are not followed. Errors name the host alone, never the URL.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.http import Broken, HttpAnswer, Site, Takes, addresses_of, target_of
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Throttled, Unavailable, Unsure
from pilotlight.units import Seconds

LARGEST_ANSWER = 64 * 1024
LONGEST_WAIT_S: Seconds = 6 * 3600
"""A receiver that asks for a longer pause is asked again after this."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REFUSED = tuple(
    ipaddress.ip_network(text)
    for text in (
        "64:ff9b:1::/48",  # RFC 8215: a network's own translation, into IPv4 of its choice.
        "::/96",  # IPv4 in IPv6 as it once was (RFC 4291, 2.5.5.1).
        "::ffff:0:0:0/96",  # IPv4 translated (RFC 7915).
        "fec0::/10",  # Site-local, as it once was.
        "168.63.129.16/32",  # What every machine of Azure asks for its own settings.
    )
)
"""Ranges that Python takes for global, and that lead inside."""


class Poster:
    """Posts to one URL. ``who`` is what errors call its receiver."""

    def __init__(self, url: str, who: str, *, timeout_s: Seconds = 10.0, allow_private: bool = False) -> None:
        self._url = check_url(url, who)
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._site = Site(url, addresses=self._addresses)
        self.name = f"{who} at {self._url.hostname}"

    def post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """One attempt. Raises ``Unavailable`` where the request did not arrive, ``Unsure`` where its answer is lost,
        ``Forbidden`` where the address may not be asked. Any status is an answer: see ``refusal``."""
        target, headers = target_of(self._url.geturl()), {**headers, "Connection": "close"}
        try:
            with Deadline(self._timeout_s) as deadline:
                return self._site.ask(deadline, "POST", target, body, headers, takes=Takes(LARGEST_ANSWER))
        except Broken as broken:
            if broken.part is not None:  # Its status is known: that is what counts.
                return broken.part
            if broken.sent:
                raise Unsure(f"{self.name}: no answer to what was sent: {broken}") from None
            raise Unavailable(f"{self.name}: {broken}") from None

    def refusal(self, reply: HttpAnswer, now: datetime, mend: str = "check its URL") -> PilotlightError:
        """Error that an answer other than 2xx means."""
        said = f"{self.name} answered {reply.status}"
        if reply.status in (408, 425, 429) or reply.status >= 500:
            asked = retry_after(reply.headers.get("retry-after", ""), now)
            return Unavailable(said) if asked is None else Throttled(said, asked)
        return (Forbidden if reply.status in (401, 403) else BadRequest)(f"{said}; {mend}")

    def _addresses(self, host: str, port: int, deadline: Deadline) -> Sequence[str]:
        addresses = addresses_of(host, port, deadline)
        if not self._allow_private:
            for address in addresses:
                refuse_private(address, self.name)
        return addresses


def check_url(url: str, who: str) -> SplitResult:
    """The parts of a URL that can be posted to. Raises ``BadInput``, which does not repeat it: it may be a secret."""
    try:
        parts = urlsplit(url)
        # What http.client refuses, it quotes whole.
        clean = url.isascii() and url.isprintable() and " " not in url
        known = clean and parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        known = False
    if not known:
        raise BadInput(f"the URL of a {who} must begin with https:// or http://, name a host and hold no spaces")
    return parts


def refuse_private(address: str, who: str) -> None:
    """Raise ``Forbidden`` for an address that is not of the public internet, or that carries one that is not."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if any(not each.is_global or each.is_multicast or _inside(each) for each in _carried(found)):
        raise Forbidden(
            f"{who} resolves to a loopback, link-local or private address; if that is meant, set allow_private: true"
        )


def _inside(address: Address) -> bool:
    return any(address.version == each.version and address in each for each in _REFUSED)


def retry_after(text: str, now: datetime) -> Seconds | None:
    """Retry-After as seconds: a count, or a date (RFC 9110, 10.2.3); None where it is neither."""
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), LONGEST_WAIT_S))
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max(0.0, (aware - now).total_seconds()), LONGEST_WAIT_S)


def _carried(address: Address) -> Iterator[Address]:
    """The address, and IPv4 ones that it leads to."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        yield from (each for each in inner if each is not None)
        if address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
