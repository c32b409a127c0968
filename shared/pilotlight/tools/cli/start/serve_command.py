"""``pilotlight serve``: every function on one local port, with the world on the wall clock."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.doorway import RECEIVES, Function, web
from pilotlight.errors import BadInput, Failed, Reject, Retry
from pilotlight.settings import Settings, deployed_settings, share
from pilotlight.tools.cli import served
from pilotlight.tools.cli.state_option import tell_state
from pilotlight.tools.serve import local_topics, own_pages, request_gate, tick_schedule
from pilotlight.tools.serve.request_access import loopback
from pilotlight.tools.serve.while_stdin import end_with_stdin
from pilotlight.wiring import App

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
WORLD_S = 3.0
"""Seconds that a world may take to answer for the first time."""
ENDS_S = 5.0
"""Seconds that the process may take to end once it serves no more."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(serve)


def serve(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The local port.")] = 8080,
    tick: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds of the world between ticks of capacity_reconcile.")
    ] = 60,
    workers: Annotated[int, typer.Option(min=1, help="Processes; more than one share a world outside them.")] = 1,
    world: Annotated[
        str, typer.Option(help="A running world's URL, instead of PILOTLIGHT_WORLD or one of its own.")
    ] = "",
    host: Annotated[
        str,
        typer.Option(help="The address to listen at. Beyond this machine, PILOTLIGHT_TOKENS must say who may post."),
    ] = HOST,
    while_stdin: Annotated[bool, typer.Option("--while-stdin", help="End when stdin does.", hidden=True)] = False,
) -> None:
    """Serve every function on one port, and tick capacity_reconcile: of the clusters that are set up, else of a world.

    Example: [bold]pilotlight serve --port 8080[/bold], then [bold]pilotlight send EVENT.json[/bold]
    """
    if world:
        share("PILOTLIGHT_WORLD", world)
    settings = deployed_settings()
    _guarded(host, settings)
    # Two over one state would each act on a world of its own, and commands would find the newcomer.
    served.refuse_second(settings)
    wired = App(settings)  # What cannot be read stops here, before a world begins and anything is written.
    _ = wired.catalog, wired.outbox, [wired.for_cluster(cluster).policy for cluster in wired.clusters]
    _world_answers(settings)
    listener = _listener(host, port)
    with served.alone_over(settings, f"http://{HOST}:{port}"):
        if settings.state.startswith("sqlite:"):
            wired.state.scan("", limit=1)  # A file that cannot be opened stops here; a shared store may come back.
        if while_stdin:
            end_with_stdin()
        if workers == 1:
            _alone(host, listener, port, tick)
        else:
            _together(host, listener, port, tick, workers)


def _embedded(settings: Settings) -> bool:
    """True where no cluster is set up, nor a world outside: then there is a world of serve's own."""
    return not (settings.world or settings.api or settings.clusters)


def _guarded(host: str, settings: Settings) -> None:
    """Events decide what is bought: beyond this machine nobody sends any without a token."""
    if not loopback(host) and not settings.callers:
        raise BadInput(
            f"--host {host} is reached from other machines, and PILOTLIGHT_TOKENS is not set: "
            f"set it to JSON, name -> token, roles, by, or listen at {HOST}"
        )


def _world_answers(settings: Settings) -> None:
    """A world that is named begins beside this serve at most: one that does not answer soon is not there."""
    from pilotlight.adapters.world_client import WorldClient

    until = time.monotonic() + WORLD_S
    while settings.world:
        try:
            WorldClient(settings.world, within_s=WORLD_S).time()
            return
        except Retry as error:
            if time.monotonic() > until:
                raise Failed(
                    f"{error} Start it with pilotlight world, or leave out --world and PILOTLIGHT_WORLD for one of "
                    "serve's own"
                ) from None
        time.sleep(0.2)


def _listener(host: str, port: int) -> socket.socket:
    from pilotlight.tools.serve.http_server import BACKLOG

    try:
        return socket.create_server((host, port), backlog=BACKLOG)
    except socket.gaierror:
        raise BadInput(f"--host is {host!r}: name an address of this machine, or 0.0.0.0 for all") from None
    except OSError:
        raise Failed(f"port {port} is in use; choose another with --port") from None


def _announce(host: str, port: int, settings: Settings) -> None:
    tell_state()
    if local_topics.wire(settings.outbox, f"http://{HOST}:{port}", settings.environ.get(local_topics.EMULATOR, "")):
        typer.echo(f"topics of {settings.outbox} push here")
    worlds = () if settings.api or settings.clusters else ("world/pods",)
    typer.echo("\n".join(f"POST http://{host}:{port}/{path}" for path in (*RECEIVES, *worlds)))
    typer.echo(f"the live page: http://{host}:{port}/")
    if worlds:
        typer.echo("a pretend world: its nodes and its dollars are pretend")
    if served := deployed_settings().world:
        typer.echo(f"the world, for pilotlight drill: export PILOTLIGHT_WORLD={served}")


def _alone(host: str, listener: socket.socket, port: int, tick: float) -> None:
    """One process, with the world in it unless the settings name one."""
    from pilotlight.tools.serve import workers
    from pilotlight.tools.serve.http_server import HttpServer
    from pilotlight.wiring import app

    settings = deployed_settings()
    own = workers.own_world(settings) if _embedded(settings) else None
    if own is not None:
        share("PILOTLIGHT_WORLD", own.url)
    wired = app()
    _ = [
        wired.for_cluster(cluster).deps for cluster in wired.clusters
    ]  # What is set up wrongly stops here, not at a request.
    server, stop = HttpServer(site(wired), listener), threading.Event()
    # In order, and 0; Ctrl-C is answered for every command in one place.
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    tick_schedule.begin(wired, stop, tick)
    _announce(host, port, wired.settings)
    served.leave(deployed_settings(), f"http://{HOST}:{port}")
    try:
        server.serve(lambda: not stop.is_set())
    finally:
        served.forget(wired.settings)
    # Where nobody reads the log, a thread that writes there holds the end for as long.
    last = threading.Timer(ENDS_S, os._exit, (0,))
    last.daemon = True
    last.start()


def _together(host: str, listener: socket.socket, port: int, tick: float, count: int) -> None:
    """Worker processes, and a world of their own unless the settings name one."""
    from pilotlight.tools.serve import workers
    from pilotlight.wiring import app

    settings = deployed_settings()
    own = workers.own_world(settings) if _embedded(settings) else None
    if own is not None:
        share("PILOTLIGHT_WORLD", own.url)
    # What is set up wrongly stops here. Workers begin without this one's connections: those survive no fork.
    tried = App(deployed_settings())
    _ = [tried.for_cluster(cluster).deps for cluster in tried.clusters]
    wired, never = app(), threading.Event()
    routes = site(wired)
    _announce(host, port, settings)
    served.leave(deployed_settings(), f"http://{HOST}:{port}")
    workers.serve(listener, routes, count, on_start=lambda: tick_schedule.begin(wired, never, tick))


def site(app: App) -> "WSGIApplication":
    """Each function at its own path; beside them ``/world/pods``, where there is a world."""
    paths: dict[str, WSGIApplication] = {f"/{name}": _function(app, name) for name in RECEIVES}
    if not (app.settings.api or app.settings.clusters):
        paths["/world/pods"] = _world_pods(app)
    paths |= own_pages.pages(app)
    return request_gate.guard_paths(paths, app.settings.callers)


def _function(app: App, name: Function) -> "WSGIApplication":
    """Answers as the function's ``main.py``, without the framework, whose share of a burst's CPU is a sixth."""
    from werkzeug.wrappers import Request

    def answer(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        said, status, headers = app.respond(name, Request(environ))
        start(f"{status} {HTTPStatus(status).phrase}", [*headers.items(), ("Content-Length", str(len(said)))])
        return [said]

    return answer


def _world_pods(app: App) -> "WSGIApplication":
    """Creates in the world the pod that the body is, or that the event in it names."""
    from werkzeug.wrappers import Request

    from pilotlight.tools.serve import pods_to_world

    def create(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        request = Request(environ)
        body = web.read_body(request, app.settings.max_body)
        if len(body) > app.settings.max_body:
            return request_gate.answer(start, 413, {"error": f"over the limit of {app.settings.max_body:,} bytes"})
        try:
            created = pods_to_world.create(app, body, dict(request.headers))
        except Reject as error:
            return request_gate.answer(start, 400, {"error": str(error)})
        return request_gate.answer(start, 200, {"created": created})

    return create
