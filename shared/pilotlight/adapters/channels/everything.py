"""Alerts to whatever Apprise knows: e-mail, Teams, Discord, PagerDuty and a hundred others.

Apprise is imported with the first alert. It says only whether it worked: a failure is tried again within bounds,
whatever it was. It resolves hosts itself: the address is looked at before, and not again by the connection.
"""

import logging
import socket

from pilotlight.adapters.post import refuse_private
from pilotlight.codec.alerts import plain
from pilotlight.errors import BadInput, Unavailable
from pilotlight.facts.messages import Alert

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
            raise BadInput("apprise channels need the package apprise; install pilotlight[alerts]") from None
        # Their lines hold addresses and tokens.
        for name in ("apprise", "urllib3", "requests"):
            logging.getLogger(name).disabled = True
        target = apprise.Apprise()
        if not target.add(self._url):
            raise BadInput("an Apprise URL must be one that Apprise reads: look at github.com/caronc/apprise")
        scheme, host = self._url.partition(":")[0].lower(), str(getattr(target[0], "host", "") or "")
        if not self._allow_private:
            _refuse_private(host, f"apprise {scheme}")
        title, text = plain(alert)
        kind = "success" if alert.resolved else _TYPES[alert.severity]
        if not target.notify(body=text, title=title, notify_type=kind):
            raise Unavailable(f"apprise {scheme}: it was not sent; check its URL")
        return ""


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
