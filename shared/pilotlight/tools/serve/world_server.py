"""The world over local HTTP: a cluster, a cloud and a clock that outlive whoever calls them.

===========================  ==========================================================================
``POST /cluster/<method>``   the Cluster port's methods, their arguments as a JSON object
``POST /pools/<method>``     the Pools port's
``POST /pods``               create pods: ``{"demands": [...], "run_s": 600}``; those there are stay
``GET /pods``                every pod, its state and its node
``POST /interrupt``          the cloud takes an instance: ``{"instance": "n1", "notice_s": 120}``
``GET /told``                the Events written on pods
``GET /clock``               the moment, and the speed
``GET /report``              cost, launches, resizes, pods by state, nodes bought twice
``GET``, ``PUT /faults``     what goes wrong from now on
===========================  ==========================================================================

An error is ``{"error": kind, "message": line}`` under the status that ``_status_of`` gives its kind.
"""

import sys
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from pilotlight import typed_json
from pilotlight.codec.world_wire import (
    Created,
    Doomed,
    PodStatus,
    Problem,
    Time,
    error_of,
)
from pilotlight.decide.limits.request_routes import Refusal
from pilotlight.errors import BadInput, Denied, PilotlightError, Reject, Retry, Throttled
from pilotlight.tools.demo.world_watch import Watch
from pilotlight.tools.serve.request_access import Knock, at_world
from pilotlight.tools.serve.world_calls import CALLS, Interrupt, NewPods
from pilotlight.tools.serve.world_pods import create, statuses
from pilotlight.world.faults import Faults
from pilotlight.world.simulation import World
from pilotlight.world.world_cluster import WorldCluster

HOST = "127.0.0.1"
LARGEST_BODY = 64_000_000
"""Bytes of a request: a world is given thousands of pods at once."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An Event written on a pod ("namespace/name")."""

    at: datetime
    pod: str
    reason: str
    message: str


class Service:
    """A world's answers to requests. Safe to ask from many threads."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cluster = WorldCluster(world)
        self.pools = Watch(world)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """The status and the JSON of one request."""
        try:
            return 200, msgspec.json.encode(self._route(method, path.strip("/"), body), enc_hook=_from_error)
        except PilotlightError as error:
            problem = error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = BadInput(f"/{path.strip('/')}: {error}")
        return _status_of(problem), msgspec.json.encode(_problem_of(problem))

    def _route(self, method: str, path: str, body: bytes) -> object:
        match method, path:
            case "GET", "clock":
                return Time(now=self.world.clock.now(), speed=self.world.clock.speed)
            case "GET", "report":
                return self.pools.report()
            case "GET", "pods":
                return self._pods()
            case "GET", "told":
                return [Told(at=t, pod=pod, reason=why, message=text) for t, pod, why, text in tuple(self.cluster.told)]
            case "GET", "faults":
                return self.world.faults
            case "PUT", "faults":
                self.world.set_faults(typed_json.decode(body, Faults, dec_hook=_to_error))
                return self.world.faults
            case "POST", "pods":
                pods = typed_json.decode(body, NewPods)
                return Created(created=tuple(create(self.world, pods.demands, pods.run_s, pods.busy_s)))
            case "POST", "interrupt":
                return self._interrupt(typed_json.decode(body, Interrupt))
            case "POST", _ if path in CALLS:
                return self._call(path, body)
        raise BadInput(
            f"nothing at {method} /{path}; there are /pods, /interrupt, /told, /clock, /report, /faults, {_CALLS}"
        )

    def _pods(self) -> list[PodStatus]:
        with self.world.call("pods"):
            return list(statuses(self.world))

    def _interrupt(self, asked: Interrupt) -> Doomed:
        with self.world.call("interrupt"):
            node = self.world.nodes.get(asked.instance)
            if node is None:
                raise BadInput(f"instance {asked.instance} is not there: see GET /pods for nodes with pods on them")
            deadline = self.world.moment(self.world.interrupt(asked.instance, asked.notice_s))
        return Doomed(instance=node.id, pool=node.pool, zone=node.zone, deadline=deadline)

    def _call(self, path: str, body: bytes) -> object:
        arguments = typed_json.decode(body or b"{}", CALLS[path])
        port, _, name = path.partition("/")
        method = getattr(self.cluster if port == "cluster" else self.pools, name)
        result: object = method(**msgspec.structs.asdict(arguments))
        return result


_CALLS = ", ".join(f"/{path}" for path in CALLS)


def _problem_of(error: PilotlightError) -> Problem:
    """An error as it travels."""
    after_s = error.after_s if isinstance(error, Throttled) else None
    return Problem(error=type(error).__name__, message=str(error), after_s=after_s)


def _status_of(error: PilotlightError) -> int:
    """The HTTP status of an error: a client that knows no kinds still learns whether to come again."""
    match error:
        case Retry():
            return 503
        case Denied():
            return 409
        case Reject():
            return 400
    return 500


def _from_error(value: Any) -> Problem:
    if isinstance(value, PilotlightError):
        return _problem_of(value)
    raise NotImplementedError(f"{type(value).__name__} does not travel")


def _to_error(kind: type, value: Any) -> PilotlightError:
    if kind is PilotlightError:
        return error_of(typed_json.convert(value, Problem))
    raise NotImplementedError(f"{kind.__name__} does not travel")


class WorldServer(ThreadingHTTPServer):
    """Serves one world on a local port; port 0 takes a free one. A port in use raises ``OSError``."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, world: World, port: int) -> None:
        self.service = Service(world)
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that died in the middle is no news here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: WorldServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Head and body leave in one packet.
    wbufsize = -1

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        refusal = at_world(Knock(self.command, self.path, headers))
        length = self.headers.get("Content-Length") or "0"
        if refusal is None and not (length.isdecimal() and int(length) <= LARGEST_BODY):
            refusal = Refusal(413, f"a body needs a Content-Length of at most {LARGEST_BODY:,}")
        if refusal is not None:
            self.close_connection = True
            self._send(refusal.status, msgspec.json.encode(_problem_of(BadInput(refusal.why))))
            return
        self._send(*self.server.service.answer(self.command, self.path, self.rfile.read(int(length))))

    def _send(self, status: int, gives: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(gives)))
        self.end_headers()
        self.wfile.write(gives)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the world's journal tells what happened."""
