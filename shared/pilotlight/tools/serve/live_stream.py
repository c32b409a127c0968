"""The live page over HTTP: ``/``, which holds no figure, and ``/live``, a cluster's stream of what is new.

A stream takes one of a worker's threads. Beyond ``STREAMS`` of them a stream says all once and ends, with the time to
ask again in: whoever watches then polls, and events still find a thread.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from threading import BoundedSemaphore, Event, RLock
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pilotlight.errors import PilotlightError
from pilotlight.tools.serve import live_page, request_gate
from pilotlight.tools.serve.live_look import Looks
from pilotlight.tools.serve.live_view import Live
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from pilotlight.wiring import App

_log = logging.getLogger("pilotlight.page")

STREAMS = 4
"""Of a process: a worker answers eight requests at once."""

LONGEST_S: Seconds = 3600.0
"""A stream ends after so long, and is asked for anew: so whoever's token was taken away sees no more of it."""


def pages(app: "App", *, stop: Event | None = None) -> "dict[str, WSGIApplication]":
    """Both by their paths. ``stop`` ends the streams."""
    return {"/": _page, "/live": _Streams(app, stop or Event()).answer}


def _page(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    body, headers = live_page.page()
    start("200 OK", [*headers, ("Content-Length", str(len(body)))])
    return [body]


class _Streams:
    """Streams of a process, which share each cluster's looks."""

    def __init__(self, app: "App", stop: Event) -> None:
        self._app, self._stop = app, stop
        self._free = BoundedSemaphore(STREAMS)
        self._lock = RLock()
        self._looks: dict[str, Looks] = {}

    def answer(self, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        """The stream of the cluster that is asked for, else of the first."""
        asked = parse_qs(environ.get("QUERY_STRING", "")).get("cluster", [""])[0]
        name = asked or self._app.clusters[0]
        if name not in self._app.clusters:
            known = ", ".join(self._app.clusters)
            return request_gate.answer(start, 404, {"error": f"no cluster of that name; there are {known}"})
        try:
            looks = self._of(name)
        except PilotlightError as error:
            return request_gate.answer(start, 503, {"error": str(error)})
        stays = self._free.acquire(blocking=False)
        kind = ("Content-Type", "text/event-stream; charset=utf-8")
        start("200 OK", [kind, ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"), *live_page.PRIVATE])
        return _Stream(looks, self._stop, self._free.release if stays else None)

    def _of(self, cluster: str) -> Looks:
        with self._lock:
            if cluster not in self._looks:
                site = self._app.for_cluster(cluster)
                self._looks[cluster] = Looks(site, self._app.clusters, site.speed)
            return self._looks[cluster]


class _Stream:
    """One watcher's events. A server closes what it answers with, also where that was never begun."""

    def __init__(self, looks: Looks, stop: Event, free: Callable[[], None] | None) -> None:
        self._looks, self._stop, self._free = looks, stop, free
        self._left = int(LONGEST_S / looks.every_s) if free else 1

    def __iter__(self) -> Iterator[bytes]:
        yield live_page.asks_again(self._looks.every_s)
        sent: Live | None = None
        while self._left > 0 and not self._stop.is_set():
            try:
                seen = self._looks.newest()
                yield live_page.news_of(sent, seen) if sent else live_page.all_of(seen)
                sent = seen
            except PilotlightError as error:
                yield live_page.blind(str(error))
            except Exception as error:  # The stream outlives any look: the next one may do.
                _log.exception("a look for the page failed")
                yield live_page.blind(f"an unexpected {type(error).__name__}, which the log explains")
            self._left -= 1
            if self._left:
                self._stop.wait(self._looks.every_s)

    def close(self) -> None:
        """Another may have its place."""
        free, self._free = self._free, None
        if free is not None:
            free()
