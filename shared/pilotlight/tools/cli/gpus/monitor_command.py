"""``pilotlight monitor``: a small exporter of a node's GPUs for clusters without DCGM, in DCGM's names. One a node."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.errors import Failed, PilotlightError
from pilotlight.tools.node_agent.kubelet import SOCKET

if TYPE_CHECKING:
    from pilotlight.tools.node_agent.dcgm_page import Holders
    from pilotlight.tools.node_agent.nvml import Nvml

TEXT = "text/plain"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(monitor)


def monitor(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where /metrics is served; 0 takes a free one.")] = 9400,
    host: Annotated[str, typer.Option(help="The address that it listens on.")] = "0.0.0.0",
    node: Annotated[str, typer.Option(help="The node's name, as Hostname; left out: this machine's.")] = "",
    socket: Annotated[str, typer.Option(help="Kubelet's pod-resources socket.")] = SOCKET,
    recorded: Annotated[
        Path | None,
        typer.Option(help="Recorded answers of NVML and kubelet, a look after the other; no GPU is needed."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one look, and end.")] = False,
) -> None:
    """Serve what this node's GPUs do and which pods hold them, as dcgm-exporter would. Runs on and on.

    Each scrape asks NVML (nvidia-ml-py) and kubelet anew: what cannot be asked is answered 503, never an old figure.

    --recorded takes looks as pilotlight show examples/cluster/gpu_looks.json prints them.

    Example: [bold]pilotlight monitor --recorded looks.json --once[/bold]
    """
    look = Looks(_nvml(recorded), node or gethostname(), socket)
    if once:
        typer.echo(look.page(TEXT)[0].decode(), nl=False)
        return
    try:
        serving = server(look, host, port)
    except OSError as error:
        raise Failed(f"{host}:{port}: {error.strerror}; name another --host or --port") from None
    with serving:
        typer.echo(f"http://{host}:{serving.server_port}/metrics", err=True)
        serving.serve_forever()


class Looks:
    """Looks at one node's GPUs."""

    def __init__(self, nvml: "Nvml", node: str, socket: str) -> None:
        self._nvml, self._node, self._socket = nvml, node, socket

    def page(self, accepts: str) -> tuple[bytes, str]:
        """A new look as the page that Prometheus reads. Raises ``Unavailable``."""
        from pilotlight.tools.node_agent.dcgm_page import page
        from pilotlight.tools.node_agent.nvml import readings

        held = self._held()
        return page(readings(self._nvml), held, self._node, accepts)

    def _held(self) -> "Holders":
        from pilotlight.tools.node_agent.nvml import RecordedNvml

        if isinstance(self._nvml, RecordedNvml):
            return self._nvml.turn().held
        from pilotlight.tools.node_agent.kubelet import holders

        return holders(self._socket)


def server(look: Looks, host: str, port: int) -> ThreadingHTTPServer:
    """Serves looks at /metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self._say(404, b"see /metrics\n", TEXT)
                return
            try:
                body, kind = look.page(self.headers.get("Accept", ""))
            except PilotlightError as error:
                typer.echo(f"error: {error}", err=True)
                self._say(503, f"{error}\n".encode(), TEXT)
            else:
                self._say(200, body, kind)

        def _say(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Scrapes are not logged."""

    return ThreadingHTTPServer((host, port), Handler)


def _nvml(recorded: Path | None) -> "Nvml":
    from pilotlight.tools.node_agent.nvml import RealNvml, RecordedNvml

    return RecordedNvml(recorded) if recorded else RealNvml()
