"""Anything that a PromQL query brings to one number: Kafka's lag, vLLM's waiting requests. The secret is a token.

No series is no reading, not an empty queue. A managed Prometheus is told by its host, or by ``auth=`` in the address.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

import msgspec

from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.adapters.queues.asking import ask, length_of
from pilotlight.errors import BadInput, Unavailable

WHO = "Prometheus"


class _Data(msgspec.Struct, frozen=True):
    kind: str = msgspec.field(default="", name="resultType")
    result: list[Any] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = _Data()


def read(where: str, secret: str, environ: Mapping[str, str]) -> float:
    """``where`` is URL?query=PROMQL, with &auth=google or &auth=aws:REGION where a proxy hides the host."""
    root, _, asked = where.partition("?")
    fields = parse_qs(asked)
    query = fields.get("query", [""])[0]
    if not query:
        raise BadInput("a prometheus source is written prometheus:http://HOST:9090?query=PROMQL, with + as %2B")
    api = PrometheusApi(root, environ, fields.get("auth", [""])[0], secret)
    url, headers = api.request("query", {"query": query})
    answer = ask(url, headers, _Answer, WHO)
    result = answer.data.result
    if answer.data.kind == "scalar" and len(result) == 2:
        return length_of(result[1], WHO)
    if answer.data.kind != "vector" or len(result) != 1:
        found = "no series" if not result else f"{len(result)} series"
        raise Unavailable(f"{WHO}: the query comes to {found}, and not to one number; wrap it in sum(...)")
    try:
        value = result[0]["value"][1]
    except (KeyError, IndexError, TypeError):
        value = None
    return length_of(value, WHO)
