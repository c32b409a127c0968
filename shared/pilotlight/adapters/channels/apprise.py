"""Alerts to whatever Apprise knows: e-mail and a hundred others. What they read as markup, nobody knows: none is left.

Apprise is imported with the first alert. It says only whether it worked: a failure is tried again within bounds,
whatever it was. It resolves and connects by itself, also where a redirect or an answer of its own leads it: while it
works every connection of its thread is looked at as it is made, by its address and not by its name.
"""

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import local
from typing import Any

from pilotlight.adapters.webhook_post import refuse_private
from pilotlight.codec.alert_text import inert, links, plain
from pilotlight.errors import BadInput, Forbidden, Unavailable
from pilotlight.facts.messages import Alert

OWN_THREADS = ("xmpp", "xmpps")
"""Schemes whose connections are made where nobody can look."""

_TYPES = {"info": "info", "warning": "warning", "critical": "failure"}


class AppriseChannel:
    """Hands each alert to Apprise. The URL is a secret."""

    def __init__(self, url: str, *, allow_private: bool = False) -> None:
        self._url = url
        self._allow_private = allow_private

    def deliver(self, alert: Alert) -> str:
        try:
            import apprise
        except ImportError:
            raise BadInput("apprise channels need the package apprise; run pip install 'pilotlight[alerts]'") from None
        # Their lines hold addresses and tokens.
        for name in ("apprise", "urllib3", "requests"):
            logging.getLogger(name).disabled = True
        scheme = self._url.partition(":")[0].lower()
        who = f"apprise {scheme}"
        if scheme in OWN_THREADS and not self._allow_private:
            raise BadInput(f"{who} connects where its addresses cannot be looked at; set allow_private: true")
        target = apprise.Apprise()
        if not target.add(self._url):
            raise BadInput("an Apprise URL must be one that Apprise reads: look at github.com/caronc/apprise")
        target[0].redirects = False  # Whatever its URL says.
        host = str(getattr(target[0], "host", "") or "")
        if not self._allow_private:
            _refuse_private(host, who)
        title, text = map(inert, plain(alert))
        text = "\n".join([text, *(f"{name}: {url}" for name, url in links(alert))])
        kind = "success" if alert.resolved else _TYPES[alert.severity]
        with _watched("" if self._allow_private else who):
            if not target.notify(body=text, title=title, notify_type=kind, body_format="text"):
                raise Unavailable(f"{who}: it was not sent; check its URL")
        return ""


class _Watch(local):
    """Of one thread: who connects while it is watched, and why that was refused."""

    who = ""
    refused: Forbidden | None = None


_watch = _Watch()


@contextmanager
def _watched(who: str) -> Iterator[None]:
    """Refuse inner addresses to every connection that this thread makes meanwhile. Raises ``Forbidden``."""
    _look_at_connections()
    _watch.who, _watch.refused = who, None
    try:
        yield
    except Unavailable:
        if _watch.refused is not None:
            raise _watch.refused from None
        raise
    finally:
        _watch.who = ""


@cache
def _look_at_connections() -> None:
    sys.addaudithook(_connecting)


def _connecting(event: str, details: tuple[Any, ...]) -> None:
    """Called before any socket of this process connects or sends somewhere."""
    if event not in ("socket.connect", "socket.sendto", "socket.sendmsg") or not _watch.who:
        return
    address = details[1]
    try:
        if isinstance(address, tuple):
            refuse_private(str(address[0]), _watch.who)
        elif address is not None:
            raise Forbidden(f"{_watch.who} leads to a socket of this machine")
    except ValueError:
        # A name, given to the system to resolve: what it leads to is seen by nobody.
        _watch.refused = Forbidden(f"{_watch.who} connects by a name; name an address, or set allow_private: true")
    except Forbidden as refused:
        _watch.refused = refused
    else:
        return
    raise PermissionError(str(_watch.refused))


def _refuse_private(host: str, who: str) -> None:
    """Look at a host that the URL names; services with a host of their own name none."""
    if not host:
        return
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return  # Often no host at all: a room, a domain of addresses.
    for entry in found:
        refuse_private(str(entry[4][0]), who)
