"""Civo's API as it is recorded, over a small world: its cluster's pools, their instances, sizes and the quota.

``faults`` are taken one a call, in order: what the server does instead of, or after, what was asked.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from pilotlight.errors import BadRequest, Busy, NoCapacity, PilotlightError, QuotaExceeded
from pilotlight.world.simulation import World

CLUSTER = "69a23478-a89e-41d2-97b1-6f4c341cee70"
REGION = "LON1"
TOKEN = "civo-planted-secret-7f3a"
PASSWORD = "instance-planted-password-91"

CODES: dict[type[PilotlightError], tuple[int, str]] = {
    NoCapacity: (500, "out_of_capacity"),
    QuotaExceeded: (402, "quota_limit_reached"),
    Busy: (409, "cannot_scale_already_rescaling_cluster"),
    BadRequest: (404, "database_cluster_pool_not_found"),
}


class Fault(NamedTuple):
    """``when`` "before" or "after" the effect; ``what`` is a status with a body, or "hang", "reset", "cut", "drip"."""

    what: str | tuple[int, Any]
    when: str = "before"
    method: str = ""
    retry_after: str = ""


class Civo:
    """The account. ``calls`` are (method, path, body) as they came; ``last_node_stays`` refuses to go to zero.

    ``resets`` ends every connection after its answer without having said so, as load balancers do.

    ``lowered`` has each lowering of a count, with the instances there were: with more, one of them would be chosen.
    """

    def __init__(self, world: World, *, last_node_stays: bool = False, decrements: bool = True) -> None:
        self.world, self.last_node_stays, self.decrements = world, last_node_stays, decrements
        self.calls: list[tuple[str, str, Any]] = []
        self.faults: list[Fault] = []
        self.charges: Any = []
        self.resets = False
        self.lowered: list[tuple[int, int]] = []
        self.marks = {
            name: {"labels": {"gpu": "on-demand"}, "taints": [{"key": "gpu", "value": name, "effect": "NoSchedule"}]}
            for name in world.fleet.pools
        }
        self.lock = threading.RLock()

    def ids(self) -> dict[str, str]:
        """Civo's pool ids by the policy's names."""
        return {name: f"{name}-pool-id" for name in self.world.fleet.pools}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """What Civo says, and does."""
        with self.lock:
            match method, path.strip("/").split("/")[1:]:
                case "GET", ["kubernetes", "clusters", cluster] if cluster == CLUSTER:
                    return 200, self._cluster()
                case "PUT", ["kubernetes", "clusters", cluster, "pools", pool] if cluster == CLUSTER:
                    return self._scale(pool, body)
                case "DELETE", ["kubernetes", "clusters", cluster, "pools", pool, "instances", instance]:
                    return self._delete(pool, instance)
                case "GET", ["sizes"]:
                    return 200, [{"type": "Kubernetes", "name": "g4g.kube.small", "gpu_count": 1, "ram_mb": 98304}]
                case "GET", ["charges"]:
                    return 200, self.charges
                case "GET", ["quota"]:
                    return 200, {"id": "q", "ram_mb_limit": 65536, "ram_mb_usage": 4096, "instance_count_limit": 16}
            return 404, {"code": "database_kubernetes_cluster_not_found", "reason": "not found"}

    def _cluster(self) -> dict[str, Any]:
        pools = [self._pool(name, id_) for name, id_ in self.ids().items()]
        required = [{"id": id_, "count": self.world.fleet.desired[name]} for name, id_ in self.ids().items()]
        return {"id": CLUSTER, "kubeconfig": PASSWORD, "pools": pools, "required_pools": required}

    def _pool(self, name: str, id_: str) -> dict[str, Any]:
        nodes = [n for n in self.world.nodes.values() if n.pool == name]
        return {
            "id": id_,
            "size": "g4g.kube.small",
            "count": self.world.fleet.desired[name],
            "instances": [
                {
                    "id": n.id,
                    "hostname": n.id,
                    "status": "ACTIVE" if n.joined else "BUILDING",
                    "created_at": self.world.moment(n.launched_s).isoformat(),
                    "initial_password": PASSWORD,
                    "civostatsd_token": PASSWORD,
                }
                for n in nodes
            ],
            **self.marks[name],
        }

    def _named(self, id_: str) -> str:
        return next((name for name, pool in self.ids().items() if pool == id_), "")

    def _scale(self, id_: str, body: dict[str, Any]) -> tuple[int, Any]:
        name = self._named(id_)
        if not name:
            return 404, {"code": "database_cluster_pool_not_found", "reason": "pool not found"}
        self.marks[name] = {"labels": body.get("labels") or {}, "taints": body.get("taints") or []}
        desired = self.world.fleet.desired[name]
        try:
            if body["count"] > desired:
                self.world.launch(name, body["count"] - desired)
        except PilotlightError as no:
            status, code = CODES[type(no)]
            return status, {"code": code, "reason": str(no)}
        if body["count"] < desired:
            self.lowered.append((body["count"], sum(n.pool == name for n in self.world.nodes.values())))
            self.world.fleet.desired[name] = body["count"]
        return 200, self._pool(name, id_)

    def _delete(self, id_: str, instance: str) -> tuple[int, Any]:
        name, node = self._named(id_), self.world.nodes.get(instance)
        if node is None or node.pool != name:
            return 404, {"code": "database_cluster_pool_instance_not_found", "reason": "instance not found"}
        if self.last_node_stays and sum(n.pool == name for n in self.world.nodes.values()) == 1:
            return 400, {"code": "parameter_count_invalid", "reason": "a pool has at least one node"}
        self.world.terminate(instance, "released", evict=True)
        if not self.decrements:
            self.world.fleet.desired[name] += 1
        return 200, {"result": "success"}


@contextmanager
def serving(civo: Civo) -> Iterator[str]:
    """The address of a Civo, while it is used."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # Head and body are two writes: with it each answer takes 40 ms more.

        def _any(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            where = urlsplit(self.path)
            body = json.loads(data) if data else None
            civo.calls.append((self.command, where.path, body))
            fault = next((f for f in civo.faults if f.method in ("", self.command)), None)
            if fault is not None:
                civo.faults.remove(fault)
            if self.headers.get("Authorization") != f"bearer {TOKEN}":
                return self._say(401, {"result": "requires_authentication"})
            if parse_qs(where.query).get("region") != [REGION]:
                return self._say(400, {"code": "region_unavailable", "reason": "no region"})
            if fault is None or fault.when == "after":
                said = civo.answer(self.command, where.path, body)
            if fault is None:
                self._say(*said)
                self.close_connection = self.close_connection or civo.resets
                return None
            return self._misbehave(fault)

        do_GET = do_PUT = do_DELETE = _any

        def _misbehave(self, fault: Fault) -> None:
            match fault.what:
                case (int() as status, value):
                    self._say(status, value, {"Retry-After": fault.retry_after} if fault.retry_after else None)
                case "hang":
                    time.sleep(0.4)
                    self.close_connection = True
                case "reset":
                    self.close_connection = True
                    self.connection.close()
                case "cut":
                    self._say_raw(200, b'{"id": "x", "pools": [', 500)
                case "drip":
                    self.send_response(200)
                    self.end_headers()
                    for _ in range(8):
                        self.wfile.write(b" ")
                        time.sleep(0.05)

        def _say(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
            self._say_raw(status, json.dumps(value).encode(), None, headers)

        def _say_raw(self, status: int, data: bytes, length: int | None, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = length is not None

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (OSError, ValueError):
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
