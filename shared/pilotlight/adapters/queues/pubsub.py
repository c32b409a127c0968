"""Pub/Sub: ``num_undelivered_messages`` of a subscription by Cloud Monitoring, a point a minute, two minutes late.

It takes roles/monitoring.viewer. No point in the last ten minutes is no reading: idle subscriptions go on having them.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from urllib.parse import urlencode

import msgspec

from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.queues.asking import ask, length_of
from pilotlight.errors import BadInput, Unavailable

WHERE = re.compile(r"projects/([a-z0-9:.-]+)/subscriptions/([A-Za-z0-9._~%+-]{3,255})")
METRIC = "pubsub.googleapis.com/subscription/num_undelivered_messages"
API = "https://monitoring.googleapis.com"
SPAN = timedelta(minutes=10)


class _Value(msgspec.Struct):
    whole: str = msgspec.field(default="", name="int64Value")


class _Point(msgspec.Struct):
    value: _Value


class _Series(msgspec.Struct):
    points: list[_Point] = []


class _Answer(msgspec.Struct):
    series: list[_Series] = msgspec.field(default_factory=list, name="timeSeries")


def read(where: str, secret: str, environ: Mapping[str, str]) -> float:
    """``where`` is projects/PROJECT/subscriptions/NAME."""
    named = WHERE.fullmatch(where)
    if named is None:
        raise BadInput("a pubsub source is written pubsub:projects/PROJECT/subscriptions/NAME")
    project, name = named.groups()
    now = datetime.now(UTC)
    asked = {
        "filter": f'metric.type = "{METRIC}" AND resource.labels.subscription_id = "{name}"',
        "interval.startTime": f"{now - SPAN:%Y-%m-%dT%H:%M:%SZ}",
        "interval.endTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    stand_in = environ.get("MONITORING_EMULATOR_HOST", "")
    headers = {} if stand_in else _token(bool(environ.get("GOOGLE_APPLICATION_CREDENTIALS"))).header()
    root = f"http://{stand_in}" if stand_in else API
    answer = ask(f"{root}/v3/projects/{project}/timeSeries?{urlencode(asked)}", headers, _Answer, "Cloud Monitoring")
    points = [point for series in answer.series for point in series.points]
    if not points:
        raise Unavailable(f"Cloud Monitoring has no point of subscription {name} in the last ten minutes")
    return length_of(points[0].value.whole, "Cloud Monitoring")  # Newest first.


@cache
def _token(file: bool) -> GoogleToken:
    return GoogleToken(file=file)
