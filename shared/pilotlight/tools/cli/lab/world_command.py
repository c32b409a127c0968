"""``pilotlight world``: the world in a process of its own, for serve's workers and for tests that kill them."""

import signal
import threading
from datetime import UTC, datetime
from typing import Annotated

import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import Settings, deployed_settings
from pilotlight.tools.serve.while_stdin import end_with_stdin


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(world)


def world(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The local port; 0 takes a free one.")] = 8090,
    clock: Annotated[str, typer.Option(help="wall, or xN: N times as fast.")] = "wall",
    policy: Annotated[
        str, typer.Option(help="The policy file that names the pools; left out: PILOTLIGHT_POLICY.")
    ] = "",
    catalog: Annotated[str, typer.Option(help="The catalogue of instance types.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of chance in the world.")] = 0,
    while_stdin: Annotated[bool, typer.Option("--while-stdin", help="End when stdin does.", hidden=True)] = False,
) -> None:
    """Serve a cluster with its cloud and its clock over local HTTP.

    Example: [bold]pilotlight world --port 8090 --clock x60[/bold], then
    [bold]PILOTLIGHT_WORLD=http://127.0.0.1:8090 pilotlight serve[/bold]
    """
    from pilotlight.tools.serve.world_server import WorldServer
    from pilotlight.wiring import app
    from pilotlight.world.machines import WorldPool
    from pilotlight.world.simulation import World
    from pilotlight.world.world_clock import WallClock

    settings = deployed_settings()
    wired = app(Settings(policy=policy or settings.policy, catalog=catalog or settings.catalog))
    pools = WorldPool.every(wired.policy, wired.catalog)
    ticking = WallClock(datetime.now(UTC), speed=_speed(clock))
    try:
        server = WorldServer(World(wired.catalog, pools, seed=seed, clock=ticking), port)
    except OSError as error:
        raise Failed(f"port {port}: {error.strerror}; choose another with --port") from None

    def end(*_: object) -> None:
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    if while_stdin:
        end_with_stdin()
    typer.echo(f"world {server.url}")
    server.serve_forever()
    server.server_close()


def _speed(text: str) -> float:
    if text == "wall":
        return 1.0
    try:
        speed = float(text.removeprefix("x")) if text.startswith("x") else 0.0
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:
        raise BadInput(f"--clock is {text!r}: use wall, or x60 for sixty times as fast")
    return speed
