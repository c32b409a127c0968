"""Figures as OpenTelemetry's OTLP/HTTP takes them, in its JSON encoding.

Source: opentelemetry-proto, metrics/v1/metrics.proto; the JSON mapping of the OTLP specification (64-bit numbers are
text).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from pilotlight.facts.alerts.figures import FAMILIES, Family, Sample
from pilotlight.facts.memory import BOUNDS
from pilotlight.units import clock_seconds

CUMULATIVE = 2
"""AGGREGATION_TEMPORALITY_CUMULATIVE: sums since they began, as Prometheus has them."""


def metrics(samples: Iterable[Sample], now: datetime) -> bytes:
    """The body of one request."""
    by_family: dict[str, list[Sample]] = {}
    for sample in samples:
        by_family.setdefault(sample.family, []).append(sample)
    at = str(int(clock_seconds(now) * 1e9))
    told = [_metric(family, by_family[family.name], at) for family in FAMILIES if family.name in by_family]
    scope = {"scope": {"name": "pilotlight"}, "metrics": told}
    resource = {"attributes": _attributes({"service.name": "pilotlight"})}
    return msgspec.json.encode({"resourceMetrics": [{"resource": resource, "scopeMetrics": [scope]}]})


def _metric(family: Family, samples: Iterable[Sample], at: str) -> dict[str, Any]:
    points = [_point(family, sample, at) for sample in samples]
    kinds: dict[str, dict[str, Any]] = {
        "gauge": {"gauge": {"dataPoints": points}},
        "counter": {"sum": {"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": True}},
        "histogram": {"histogram": {"dataPoints": points, "aggregationTemporality": CUMULATIVE}},
    }
    return {"name": family.name, "description": family.what, **kinds[family.kind]}


def _point(family: Family, sample: Sample, at: str) -> dict[str, Any]:
    labels = dict(zip(family.labels, sample.labels, strict=True))
    head = {"attributes": _attributes(labels), "timeUnixNano": at}
    if family.kind != "histogram":
        return {**head, "asDouble": float(sample.value)}
    counts = {"count": str(sum(sample.counts)), "bucketCounts": [str(count) for count in sample.counts]}
    return {**head, **counts, "sum": float(sample.value), "explicitBounds": [float(bound) for bound in BOUNDS]}


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in labels.items()]
