"""Pages that ``serve`` has of itself: ``/healthz``, ``/readyz``, ``/metrics``, and the live page."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pilotlight.errors import PilotlightError
from pilotlight.tools.serve import acknowledging, request_gate
from pilotlight.tools.serve.live import live_stream
from pilotlight.tools.serve.live.live_view import Live
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from pilotlight.facts.alerts.figures import Sample
    from pilotlight.wiring import App

LOOK_S: Seconds = 2.0
"""A page of figures waits so long for a look at the cluster; without one it has the figures of the state alone."""

Tell = Callable[["App", "WSGIEnvironment", "StartResponse"], Iterable[bytes]]


def pages(app: "App") -> "dict[str, WSGIApplication]":
    """The pages by their paths."""
    looks = live_stream.SharedLooks(app)
    found = {path: _page(app, tell) for path, tell in _PAGES.items()} | live_stream.of_looks(looks)
    found["/metrics"] = _told(lambda environ, start: _metrics(looks, environ, start))
    found |= {path: _told(page) for path, page in acknowledging.pages(app).items()}
    if any(app.for_cluster(cluster).policy.queues for cluster in app.clusters):
        from pilotlight.tools.cli.watch import queue_commands

        found |= {path: _told(page) for path, page in queue_commands.pages(app).items()}
    return found


def _page(app: "App", tell: Tell) -> "WSGIApplication":
    return _told(lambda environ, start: tell(app, environ, start))


def _told(page: "WSGIApplication") -> "WSGIApplication":
    """A page, and 503 with the reason where it cannot be told."""

    def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        try:
            return page(environ, start)
        except PilotlightError as error:
            return request_gate.answer(start, 503, {"error": str(error)})

    return answer


def _healthy(app: "App", environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    """This process answers; nothing is asked of anybody else, so that their faults restart nothing."""
    return request_gate.answer(start, 200, {"ok": True})


def _ready(app: "App", environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    """Policy and settings are read, and the state answers: a record of each cluster is read of it."""
    from pilotlight.state_schema.lease_records import FENCE

    for cluster in app.clusters:
        deps = app.for_cluster(cluster).deps
        deps.now()
        FENCE.get(deps.state, deps.name)
    return request_gate.answer(start, 200, {"ok": True, "clusters": list(app.clusters)})


def _metrics(looks: live_stream.SharedLooks, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    from werkzeug.wrappers import Request

    from pilotlight.tools.serve.openmetrics import page

    body, kind = page(_samples(looks), Request(environ).headers.get("Accept", ""))
    start("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _samples(looks: live_stream.SharedLooks) -> "Iterator[Sample]":
    from pilotlight.facts.alerts.figures import Sample
    from pilotlight.flow import figures
    from pilotlight.flow.abreast import abreast
    from pilotlight.tools.glance.look_at_cluster import kept_letters

    app = looks.app
    seen = abreast({name: lambda name=name: looks.looks_at(name).newest() for name in app.clusters}, LOOK_S)  # type: ignore[misc]
    for look in seen.values():
        if isinstance(look, Live) and not look.unseen:
            yield from _looked(look)
    for cluster in app.clusters:
        yield from figures.of_cluster(app.for_cluster(cluster).deps)
    yield from figures.of_alerts(app.alerts)
    if (letters := kept_letters(app.outbox)) is not None:
        yield Sample("pilotlight_dead_letters", (), letters)


def _looked(look: Live) -> "Iterator[Sample]":
    """What the newest look saw: the figures that the live page shows too."""
    from pilotlight.facts.alerts.figures import Sample

    for pool, count in Counter(tile.pool for tile in look.nodes.values()).items():
        yield Sample("pilotlight_nodes", (look.cluster, pool), count)
    yield Sample("pilotlight_usd_per_hour", (look.cluster,), float(look.usd_per_hour))
    yield Sample("pilotlight_nodes_unpriced", (look.cluster,), look.unpriced)
    yield Sample("pilotlight_pods_waiting", (look.cluster,), sum(wait.pods for wait in look.waiting))


_PAGES: dict[str, Tell] = {"/healthz": _healthy, "/readyz": _ready}
