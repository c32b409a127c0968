"""``pilotlight serve``: every function on one local port, with the embedded world on the wall clock."""

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.doorway import RECEIVES
from pilotlight.errors import BadInput, Failed, PilotlightError, Reject
from pilotlight.settings import default_file
from pilotlight.wiring import App

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
DRAIN_EVERY_S = 1.0
"""How often alerts on the local outbox are handed to alert_fanout."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The local port.")] = 8080,
    tick: Annotated[float, typer.Option(min=1, help="Seconds between ticks of capacity_reconcile.")] = 60.0,
) -> None:
    """Serve every function on one local port, and tick capacity_reconcile.

    Example: [bold]pilotlight serve --port 8080[/bold], then [bold]pilotlight send events/samples/...[/bold]
    """
    from werkzeug.serving import make_server

    from pilotlight.wiring import app

    wired = app()
    _ = wired.deps  # What is set up wrongly stops here, not at the first request.
    try:
        server = make_server(HOST, port, site(wired), threaded=True)
    except (OSError, SystemExit):
        raise Failed(f"port {port} is in use; choose another with --port") from None
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    for path in (*RECEIVES, "world/pods"):
        typer.echo(f"POST http://{HOST}:{port}/{path}")
    _every(stop, tick, lambda: _tick(wired))
    _every(stop, DRAIN_EVERY_S, lambda: _drain(wired))
    server.serve_forever()
    server.server_close()


def site(app: App) -> "WSGIApplication":
    """Each function under functions-framework at its own path, and ``/world/pods`` beside them."""
    from functions_framework import create_app

    folder = default_file("functions")
    if not folder.is_dir():
        raise BadInput(f"{folder}: the functions are not there; run serve from a checkout")
    paths: dict[str, WSGIApplication] = {
        f"/{name}": create_app(name, str(folder / name / "main.py"))  # type: ignore[no-untyped-call]
        for name in RECEIVES
    }
    paths["/world/pods"] = _world_pods(app)

    def route(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        path = "/" + environ.get("PATH_INFO", "").strip("/")
        found = paths.get(path)
        if found is None:
            return _answer(start, "404 Not Found", {"error": f"nothing at {path}; there are {', '.join(paths)}"})
        return found({**environ, "SCRIPT_NAME": path, "PATH_INFO": "/"}, start)

    return route


def _world_pods(app: App) -> "WSGIApplication":
    """Creates in the world the pod that the body is, or that the event in it names."""
    from werkzeug.wrappers import Request

    from pilotlight.cli import world_pods

    def create(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        request = Request(environ)
        if request.method != "POST":
            return _answer(start, "405 Method Not Allowed", {"error": "POST a Pod, or an event that names one"})
        try:
            created = world_pods.create(app, request.get_data(), dict(request.headers))
        except Reject as error:
            return _answer(start, "400 Bad Request", {"error": str(error)})
        return _answer(start, "200 OK", {"created": created})

    return create


def _answer(start: "StartResponse", status: str, body: dict[str, Any]) -> Iterable[bytes]:
    import json

    start(status, [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]


def _every(stop: threading.Event, seconds: float, do: Callable[[], object]) -> None:
    def loop() -> None:
        while not stop.wait(seconds):
            do()

    threading.Thread(target=loop, daemon=True).start()


def _tick(app: App) -> None:
    """One tick, as a scheduler would post it."""
    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import Tick

    now = app.clock.now()
    identity = f"serve-{now:%Y%m%dT%H%M%S}"
    body = encode(Tick(cluster=app.deps.name, identity=identity, at=now), id=identity)
    app.receive("capacity_reconcile", body, {})


def _drain(app: App) -> None:
    """Hand the outbox's alerts to alert_fanout; those it wants again stay."""
    from pilotlight.adapters.outbox.local import LocalOutbox

    if not isinstance(app.outbox, LocalOutbox):
        return
    try:
        app.outbox.drain("alerts", lambda body: app.receive("alert_fanout", body, {}).status != 503)
    except PilotlightError as error:
        logging.getLogger("pilotlight").warning("alerts wait", extra={"data": {"why": str(error)}})
