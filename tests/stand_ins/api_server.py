"""A Kubernetes API server's HTTP, from memory: what a real one answers, and every way it can fail.

Its shapes are those recorded in ``examples/cluster`` and the API reference: typed lists with ``limit`` and
``continue``, ``resourceVersion`` conflicts, evictions that honour disruption budgets, Status objects. It keeps what it
was asked in ``requests``, runs ``before`` hooks between two requests, and fails where ``fail`` says.
"""

import base64
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from api_store import Json, Refused, Resource, Store, by_name, merged, patched

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "examples" / "cluster"
"""Pods and nodes as a real 1.36 control plane printed them."""

SSAR = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came. ``line`` is what hooks and faults match: "GET /api/v1/pods"."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    headers: dict[str, str]

    @property
    def line(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    def json(self) -> Json:
        """The body."""
        found: Json = json.loads(self.body or b"{}")
        return found


@dataclass(kw_only=True)
class Fault:
    """Something that goes wrong the next ``times`` times a request matches ``on``.

    ``kind`` is an HTTP status, or "timeout", "reset", "cut" (the connection ends in the middle), "truncated" (whole
    answer, half the JSON), "not json", "wrong types", "endless".
    """

    kind: int | str
    on: str
    times: int
    after: str
    seconds: float
    skip: int


@dataclass(frozen=True)
class Access:
    """What a SelfSubjectAccessReview asks about."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""


@dataclass
class ApiServer:
    """The stand-in. ``tokens`` are those let in (empty: everybody); ``allow`` decides reviews, and requests too.

    While it is not ``ready`` it has not read its roles yet. ``admit`` says why a patch or an Eviction is refused whom
    it impersonates.
    """

    store: Store = field(default_factory=Store)
    tokens: set[str] = field(default_factory=set)
    allow: Callable[[Access], bool] = lambda access: True
    ready: bool = True
    admit: Callable[[str, Json, Json], str] = lambda user, before, after: ""
    requests: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _faults: list[Fault] = field(default_factory=list)
    _hooks: list[tuple[str, Callable[[], object], int]] = field(default_factory=list)
    _pages: dict[str, tuple[str, list[Json]]] = field(default_factory=dict)
    _serial: int = 0

    def fail(
        self, kind: int | str, *, on: str = ".", times: int = 1, after: str = "", seconds: float = 5, skip: int = 0
    ) -> None:
        """Plan a fault; ``on`` is a pattern of "METHOD /path", ``after`` a Retry-After header."""
        self._faults.append(Fault(kind=kind, on=on, times=times, after=after, seconds=seconds, skip=skip))

    def forget_faults(self) -> None:
        """All is calm from here on."""
        self._faults.clear()

    def before(self, on: str, do: Callable[[], object], *, times: int = 1) -> None:
        """Run ``do`` before the next ``times`` requests that match ``on`` are answered."""
        self._hooks.append((on, do, times))

    def expire_pages(self) -> None:
        """Every ``continue`` handed out so far is answered 410 from now on."""
        self._pages.clear()

    def lines(self, pattern: str = ".") -> list[str]:
        """What was asked, as "METHOD /path", where it matches."""
        return [asked.line for asked in self.requests if re.search(pattern, asked.line)]

    def add(self, *objects: Json) -> None:
        """Keep objects."""
        with self.lock:
            self.store.add(*objects)

    def add_samples(self) -> None:
        """The recorded cluster: twelve pods, three nodes."""
        for name in ("pods.json", "nodes.json"):
            self.add(*json.loads((SAMPLES / name).read_text())["items"])

    def kubeconfig(self, *, token: str = "planted-token", name: str = "test", ca: bytes = b"") -> str:
        """A kubeconfig of one context for this server."""
        cluster: Json = {"server": self.url}
        if ca:
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": name,
                "clusters": [{"name": name, "cluster": cluster}],
                "users": [{"name": name, "user": {"token": token}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            }
        )

    def fault_for(self, line: str) -> Fault | None:
        """The fault planned for a request, counted off."""
        for fault in self._faults:
            if fault.times and re.search(fault.on, line):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def run_hooks(self, line: str) -> None:
        """Run what was to be done before this request."""
        for index, (on, do, times) in enumerate(self._hooks):
            if times and re.search(on, line):
                self._hooks[index] = (on, do, times - 1)
                do()

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """Status and body of a request. Raises ``Refused``."""
        self._let_in(asked)
        if asked.path == "/version":
            return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
        if asked.path in ("/api", "/apis"):
            return 200, self._discovery(asked.path)
        if asked.path == SSAR and not self.ready:
            raise Refused(403, "Forbidden", "selfsubjectaccessreviews is forbidden: cannot create resource")
        if asked.path == SSAR:
            return 201, self._review(asked.json())
        return self._object_call(asked)

    def _let_in(self, asked: Asked) -> None:
        shown = asked.headers.get("Authorization", "")
        if self.tokens and shown.removeprefix("Bearer ") not in self.tokens:
            raise Refused(401, "Unauthorized", "Unauthorized")

    def _discovery(self, path: str) -> Json:
        groups = sorted({r.group for r in self.store.resources.values() if r.group})
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        return {"kind": "APIGroupList", "groups": [{"name": g} for g in groups]}

    def _review(self, review: Json) -> Json:
        attributes = review["spec"]["resourceAttributes"]
        access = Access(
            verb=attributes.get("verb", ""),
            group=attributes.get("group", ""),
            resource=attributes.get("resource", ""),
            subresource=attributes.get("subresource", ""),
            namespace=attributes.get("namespace", ""),
        )
        return {**review, "status": {"allowed": self.allow(access)}}

    def _object_call(self, asked: Asked) -> tuple[int, Json]:
        resource, namespace, name, sub = self._route(asked.path)
        verb = _verb(asked.method, name)
        if not self.allow(Access(verb, resource.group, resource.plural, sub, namespace)):
            what = f"{resource.plural}/{sub}" if sub else resource.plural
            raise Refused(
                403,
                "Forbidden",
                f'{what} "{name}" is forbidden: User "system:serviceaccount:pilotlight:pilotlight" cannot {verb} '
                f'resource "{what}" in API group "{resource.group}"',
            )
        if sub:
            return self._sub_call(resource, (namespace, name), sub, asked)
        match verb:
            case "list":
                return 200, self._list(resource, namespace, asked.query)
            case "get":
                return 200, self.store.read(resource, (namespace, name))
            case "patch":
                return 200, self._patch(resource, (namespace, name), asked)
            case "update":
                return 200, self._update(resource, (namespace, name), asked.json())
            case "create":
                return 201, self._create(resource, namespace, asked.json())
            case "delete":
                wanted = (asked.json() if asked.body else {}).get("preconditions", {})
                meta = self.store.read(resource, (namespace, name))["metadata"]
                for field_name, value in wanted.items():
                    if meta[field_name] != value:
                        what = f"the {field_name} in the precondition does not match the one in record"
                        raise Refused(409, "Conflict", what)
                return 200, self.store.drop(resource, (namespace, name))
        raise Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")

    def _route(self, path: str) -> tuple[Resource, str, str, str]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        version, rest = ("v1", parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        resource = self.store.resources.get((version, rest[0])) if rest else None
        if resource is None:
            raise Refused(404, "", "404 page not found")
        name, sub = [*rest, "", ""][1:3]
        return resource, namespace, name, sub

    def _list(self, resource: Resource, namespace: str, query: dict[str, str]) -> Json:
        limit, token = int(query.get("limit") or 0), query.get("continue", "")
        if token:
            if token not in self._pages:
                raise Refused(
                    410,
                    "Expired",
                    "The provided continue parameter is too old to display a consistent list result. "
                    "You can start a new list without the continue parameter.",
                )
            version, items = self._pages[token]
        else:
            version = str(self.store.version)
            items = self.store.list(resource, namespace, query.get("fieldSelector", ""), query.get("labelSelector", ""))
        here, rest = (items[:limit], items[limit:]) if limit else (items, [])
        meta: Json = {"resourceVersion": version}
        if rest:
            self._serial += 1
            meta["continue"] = base64.urlsafe_b64encode(f'{{"rv":{version},"n":{self._serial}}}'.encode()).decode()
            self._pages[meta["continue"]] = (version, rest)
            if not (query.get("fieldSelector") or query.get("labelSelector")):
                meta["remainingItemCount"] = len(rest)
        # As on the wire: the items of a typed list carry no kind.
        bare = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in here]
        return {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": meta, "items": bare}

    def _patch(self, resource: Resource, key: tuple[str, str], asked: Asked) -> Json:
        if "apply-patch" in asked.headers.get("Content-Type", "") and not self.store.has(resource, key):
            return self._create(resource, key[0], asked.json())
        before, change = self.store.read(resource, key), asked.json()
        if "json-patch" in asked.headers.get("Content-Type", ""):
            change = patched(before, json.loads(asked.body))
        after = merged(before, change)
        if resource.plural == "pods":
            _only_adds_tolerations(before, after)
        self._admitted(resource, key[1], asked, before, after)
        return after if asked.query.get("dryRun") == "All" else self.store.patch(resource, key, change)

    def _admitted(self, resource: Resource, name: str, asked: Asked, before: Json, after: Json) -> None:
        """Raises what admission says of a change, or of an Eviction of the pod that is there."""
        user = asked.headers.get("Impersonate-User", "")
        if user and not self.allow(Access("impersonate", "", "serviceaccounts")):
            raise Refused(403, "Forbidden", 'serviceaccounts "pilotlight" is forbidden: cannot impersonate resource')
        if why := self.admit(user, before, after):
            raise Refused(422, "Invalid", f"{resource.plural} {name!r} is forbidden: {why}")

    def _update(self, resource: Resource, key: tuple[str, str], value: Json) -> Json:
        self.store.patch(resource, key, {"metadata": {"resourceVersion": value["metadata"].get("resourceVersion")}})
        return self.store.write(resource, value)

    def _create(self, resource: Resource, namespace: str, value: Json) -> Json:
        meta = value.setdefault("metadata", {})
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise Refused(422, "Invalid", f"{resource.kind} is invalid: metadata.name: Required value")
            self._serial += 1
            meta["name"] = f"{meta['generateName']}{self._serial:05d}"
        if resource.namespaced and meta.setdefault("namespace", namespace) != namespace:
            raise Refused(400, "BadRequest", "the namespace of the provided object does not match the namespace sent")
        if self.store.has(resource, (namespace, meta["name"])):
            raise Refused(409, "AlreadyExists", f'{resource.plural} "{meta["name"]}" already exists')
        made = self.store.write(resource, value)
        if resource.plural == "poddisruptionbudgets" and "status" not in made:
            self.store.count(made)
        return made

    def _sub_call(self, resource: Resource, key: tuple[str, str], sub: str, asked: Asked) -> tuple[int, Json]:
        body = asked.json()
        match (resource.plural, sub):
            case ("pods", "eviction"):
                options = body.get("deleteOptions", {})
                dry = "All" in options.get("dryRun", []) or asked.query.get("dryRun") == "All"
                self._admitted(resource, key[1], asked, self.store.read(resource, key), body)
                self.store.evict(key, options.get("preconditions", {}).get("uid", ""), dry=dry)
                return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            case ("pods", "binding"):
                self.store.bind(*key, body["target"]["name"])
                return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            case ("serviceaccounts", "token"):
                return 201, self._token(key, body)
            case (_, "status") if asked.method == "PATCH":
                over = {"resourceVersion": body.get("metadata", {}).get("resourceVersion", "")}
                meta = {"metadata": over} if over["resourceVersion"] else {}
                status = body.get("status", {})
                if "apply-patch" in asked.headers.get("Content-Type", "") and "admissionChecks" in status:
                    status = by_name(self.store.read(resource, key).get("status", {}), status, "admissionChecks")
                return 200, self.store.patch(resource, key, {"status": status, **meta})
            case (_, "status"):
                return 200, self.store.read(resource, key)
        raise Refused(404, "NotFound", "the server could not find the requested resource")

    def _token(self, key: tuple[str, str], body: Json) -> Json:
        self.store.read(self.store.resource("serviceaccounts"), key)
        self._serial += 1
        token = f"minted-{key[1]}-{self._serial}"
        if self.tokens:
            self.tokens.add(token)
        seconds = body.get("spec", {}).get("expirationSeconds", 3600)
        ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": key[1], "namespace": key[0]},
            "spec": {"expirationSeconds": seconds, **body.get("spec", {})},
            "status": {"token": token, "expirationTimestamp": ends},
        }


def _verb(method: str, name: str) -> str:
    if method == "GET":
        return "get" if name else "list"
    return {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, method.lower())


def _status(no: Refused) -> Json:
    details: Json = {}
    if no.after:
        details["retryAfterSeconds"] = no.after
    if no.cause:
        details["causes"] = [{"reason": no.cause, "message": "The disruption budget needs 1 healthy pods and has 1"}]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": no.message,
        "reason": no.reason,
        "code": no.code,
        **({"details": details} if details else {}),
    }


def _only_adds_tolerations(before: Json, after: Json) -> None:
    """As of every pod, bound or not: tolerations that are there stay."""
    kept = after.get("spec", {}).get("tolerations") or []
    if any(each not in kept for each in before.get("spec", {}).get("tolerations") or []):
        raise Refused(422, "Invalid", "spec.tolerations: Forbidden: existing toleration can not be modified except ...")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: ApiServer

    def _handle(self) -> None:
        where = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = {name: values[-1] for name, values in parse_qs(where.query, keep_blank_values=True).items()}
        asked = Asked(method=self.command, path=unquote(where.path), query=query, body=body, headers=dict(self.headers))
        with self.api.lock:
            self.api.requests.append(asked)
            self.api.run_hooks(asked.line)
            fault = self.api.fault_for(asked.line)
            status, after, value = (0, 0, {}) if fault else self._answer(asked)
            data = json.dumps(value).encode()
        if fault is not None:
            self._fail(fault, asked)
        elif status == 404 and not value.get("reason"):
            self._send(404, b"404 page not found\n", "text/plain")
        else:
            self._send(status, data, retry_after=str(after or ""))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _answer(self, asked: Asked) -> tuple[int, int, Json]:
        try:
            status, value = self.api.answer(asked)
        except Refused as no:
            return no.code, no.after, _status(no)
        return status, 0, value

    def _fail(self, fault: Fault, asked: Asked) -> None:
        match fault.kind:
            case int() as status:
                no = Refused(status, "", "the stand-in was told to fail")
                self._send(status, json.dumps(_status(no)).encode(), retry_after=fault.after)
            case "timeout":
                time.sleep(fault.seconds)
                self.close_connection = True
            case "reset":
                # Linger of zero: the kernel answers with RST.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                self.close_connection = True
            case "endless":
                self._endless(fault.seconds)
            case kind:
                self._spoilt(str(kind), asked)

    def _spoilt(self, kind: str, asked: Asked) -> None:
        data = json.dumps(self._answer(asked)[2]).encode()
        if kind == "cut":
            self._send(200, data[: len(data) // 2], length=len(data))
            self.close_connection = True
        elif kind == "truncated":
            self._send(200, data[: len(data) // 2])
        elif kind == "not json":
            self._send(200, b"<html><body>Sign in to continue</body></html>", "text/html")
        elif kind == "wrong types":
            self._send(200, b'{"kind": "PodList", "metadata": {}, "items": [{"metadata": {"name": 7}, "spec": []}]}')
        else:
            raise AssertionError(f"no fault {kind!r}")

    def _endless(self, seconds: float) -> None:
        """A body that goes on, a little at a time, for as long as anybody reads."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        ends = time.monotonic() + seconds
        with suppress(OSError):
            while time.monotonic() < ends:
                self.wfile.write(b"1\r\n \r\n")
                self.wfile.flush()
                time.sleep(0.02)
        self.close_connection = True

    def _send(
        self,
        status: int,
        data: bytes,
        kind: str = "application/json",
        *,
        retry_after: str = "",
        length: int | None = None,
    ) -> None:
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that hung up is no news."""


@contextmanager
def api_server(server: ApiServer | None = None, *, tls: ssl.SSLContext | None = None) -> Iterator[ApiServer]:
    """The stand-in on a free port of this machine, while it is used; over TLS with a context."""
    api = server or ApiServer()
    http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api}))
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    api.url = f"{'https' if tls else 'http'}://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        http.shutdown()
        http.server_close()
