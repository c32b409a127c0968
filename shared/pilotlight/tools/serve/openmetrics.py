"""Figures as the page that Prometheus reads: OpenMetrics, or its older text where that is asked for."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from pilotlight.facts.alerts.figures import FAMILIES, Family, Sample
from pilotlight.facts.memory import BOUNDS


class Page:
    """The collector that prometheus_client asks for figures: each family once, in its order."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Any]:
        """The families that have a value."""
        for family in FAMILIES:
            own = [sample for sample in self._samples if sample.family == family.name]
            if own:
                yield _metric(family, own)


def page(samples: Iterable[Sample], accepts: str) -> tuple[bytes, str]:
    """The body and its content type, for an Accept header."""
    from prometheus_client.exposition import choose_encoder

    encode, kind = choose_encoder(accepts)
    return encode(Page(list(samples))), kind


def _metric(family: Family, samples: Iterable[Sample]) -> Any:
    from prometheus_client import core

    kinds = {
        "gauge": core.GaugeMetricFamily,
        "counter": core.CounterMetricFamily,
        "histogram": core.HistogramMetricFamily,
    }
    made: Any = kinds[family.kind](family.name, family.what, labels=family.labels)
    for sample in samples:
        if family.kind == "histogram":
            made.add_metric(sample.labels, _buckets(sample.counts), sample.value)
        else:
            made.add_metric(sample.labels, sample.value)
    return made


def _buckets(counts: Sequence[int]) -> list[tuple[str, int]]:
    """Counts up to each bound, each with all below it."""
    bounds = [*(str(float(bound)) for bound in BOUNDS), "+Inf"]
    return list(zip(bounds, accumulate(counts), strict=True))
