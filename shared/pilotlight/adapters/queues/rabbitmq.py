"""RabbitMQ's management API: ``GET /api/queues/VHOST/NAME``, whose ``messages`` are those ready and unacknowledged.

An unacknowledged message is with a worker: while it works, its worker must stay. The secret is "user:password".
"""

from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import msgspec

from pilotlight.adapters.queues.asking import ask, length_of
from pilotlight.errors import BadInput


class _Queue(msgspec.Struct):
    messages: float | None = None


def read(where: str, secret: str, environ: Mapping[str, str]) -> float:
    """``where`` is HTTP(S)://HOST:PORT/VHOST/NAME; the vhost "/" is written %2F."""
    parts = urlsplit(where)
    names = [unquote(name) for name in parts.path.strip("/").split("/")]
    if len(names) != 2 or parts.scheme not in ("http", "https"):
        raise BadInput("a rabbitmq source is written rabbitmq:http://HOST:15672/VHOST/QUEUE; the vhost / is %2F")
    path = "/api/queues/" + "/".join(quote(name, safe="") for name in names)
    url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    headers = {"Authorization": f"Basic {b64encode(secret.encode()).decode()}"} if secret else {}
    return length_of(ask(url, headers, _Queue, "RabbitMQ").messages, "RabbitMQ")
