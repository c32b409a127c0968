"""The live page over HTTP: ``/``, which holds no figure, ``/live``, a stream of what is new, and ``/decision``, one.

A stream takes one of a worker's threads. Beyond ``STREAMS`` of them a stream says all once and ends, with the time to
ask again in: whoever watches then polls, and events still find a thread.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from threading import BoundedSemaphore, Event, RLock
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pilotlight.errors import PilotlightError
from pilotlight.facts.decisions import Record
from pilotlight.flow.records import ledger
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.tools.serve import request_gate
from pilotlight.tools.serve.live import live_page
from pilotlight.tools.serve.live.live_decision import decision_of
from pilotlight.tools.serve.live.live_look import Looks
from pilotlight.tools.serve.live.live_view import Live
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from pilotlight.flow.deps import Deps
    from pilotlight.wiring import App

_log = logging.getLogger("pilotlight.page")

STREAMS = 4
"""Of a process: a worker answers eight requests at once."""

ID = re.compile(r"[\w.-]{1,80}")
"""What an id may be made of, before the state is asked for it."""

LONGEST_S: Seconds = 3600.0
"""A stream ends after so long, and is asked for anew: so whoever's token was taken away sees no more of it."""


def pages(app: "App", *, stop: Event | None = None) -> "dict[str, WSGIApplication]":
    """All by their paths. ``stop`` ends the streams."""
    return of_looks(SharedLooks(app), stop=stop)


def of_looks(looks: "SharedLooks", *, stop: Event | None = None) -> "dict[str, WSGIApplication]":
    """The same over looks that others share."""
    streams = _Streams(looks, stop or Event())
    return {"/": _page, "/live": streams.answer, "/decision": lambda environ, start: _decision(looks, environ, start)}


def _page(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    body, headers = live_page.page()
    start("200 OK", [*headers, ("Content-Length", str(len(body)))])
    return [body]


def _decision(looks: "SharedLooks", environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
    """One decision, as JSON; 404 where it was dropped with its age, or never was."""
    asked = parse_qs(environ.get("QUERY_STRING", ""))
    name = looks.name_of(asked.get("cluster", [""])[0])
    if isinstance(name, Unknown):
        return request_gate.answer(start, 404, {"error": name})
    try:
        record = _record(looks.app.for_cluster(name).deps, asked.get("id", [""])[0])
    except PilotlightError as error:
        return request_gate.answer(start, 503, {"error": str(error)})
    if record is None:
        return request_gate.answer(start, 404, {"error": "no decision of that id; records are kept for 30 days"})
    body = live_page.one(decision_of(record))
    start("200 OK", [("Content-Type", "application/json"), ("Cache-Control", "no-store"), *live_page.PRIVATE])
    return [body]


def _record(deps: "Deps", id_: str) -> Record | None:
    """The record of an id, filed or still open."""
    if not ID.fullmatch(id_):
        return None
    filed = DECISION.get(deps.state, f"{deps.name}/{id_}")
    if filed is not None:
        return filed.value
    return next((record for record, _ in ledger.open_records(deps.state, deps.name) if record.id == id_), None)


class Unknown(str):
    """Why a cluster's name is none."""


class SharedLooks:
    """Each cluster's looks of a process, which all who ask share."""

    def __init__(self, app: "App") -> None:
        self.app = app
        self._lock = RLock()
        self._looks: dict[str, Looks] = {}

    def name_of(self, asked: str) -> str:
        """The cluster that is asked for, else the first; ``Unknown`` where there is none of that name."""
        name = asked or self.app.clusters[0]
        known = ", ".join(self.app.clusters)
        return name if name in self.app.clusters else Unknown(f"no cluster of that name; there are {known}")

    def looks_at(self, cluster: str) -> Looks:
        """A cluster's."""
        with self._lock:
            if cluster not in self._looks:
                site = self.app.for_cluster(cluster)
                self._looks[cluster] = Looks(site, self.app.clusters, site.speed)
            return self._looks[cluster]


class _Streams:
    """Streams of a process."""

    def __init__(self, looks: SharedLooks, stop: Event) -> None:
        self._looks, self._stop = looks, stop
        self._free = BoundedSemaphore(STREAMS)

    def answer(self, environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        """The stream of the cluster that is asked for, else of the first."""
        asked = parse_qs(environ.get("QUERY_STRING", "")).get("cluster", [""])[0]
        name = self._looks.name_of(asked)
        if isinstance(name, Unknown):
            return request_gate.answer(start, 404, {"error": name})
        try:
            looks = self._looks.looks_at(name)
        except PilotlightError as error:
            return request_gate.answer(start, 503, {"error": str(error)})
        stays = self._free.acquire(blocking=False)
        kind = ("Content-Type", "text/event-stream; charset=utf-8")
        start("200 OK", [kind, ("Cache-Control", "no-store"), ("X-Accel-Buffering", "no"), *live_page.PRIVATE])
        return _Stream(looks, self._stop, self._free.release if stays else None)


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
