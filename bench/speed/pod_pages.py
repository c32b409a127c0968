"""A server of pods as large as a real API server sends them (7.8 KB each), in pages, for measurements of clients."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, urlsplit

PODS_A_NODE = 10
"""Of pods that wait too: so many nodes there are."""
PENDING = 0.114
"""The share of pods that wait, as in the measurements this one follows."""
SIZE = 7_800

Json = dict[str, Any]


def pod(index: int, pods: int, nodes: int) -> Json:
    """One pod: a container with its environment, volumes, probes and statuses, and what servers add."""
    waits = index < pods * PENDING
    name = f"train-{index // 16}-{index:06d}"
    value: Json = {
        "metadata": {
            "name": name,
            "generateName": f"train-{index // 16}-",
            "namespace": f"team-{index // 16 % 40}",
            "uid": f"{index:08x}-8f3e-4b55-9d2e-3a1f0f7a{index % 10000:04d}",
            "resourceVersion": str(10_000 + index),
            "creationTimestamp": "2026-11-20T08:00:00Z",
            "labels": {
                "app": f"train-{index // 16}",
                "pod-template-hash": "6d4cf56db6",
                "team": f"team-{index // 16 % 40}",
            },
            "annotations": {"cni.projectcalico.org/podIP": "10.1.2.3/32", "kubernetes.io/config.seen": "2026-11-20"},
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": f"train-{index // 16}",
                    "uid": "u",
                    "controller": True,
                }
            ],
            "managedFields": [],
        },
        "spec": {
            "containers": [_container(index)],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "volumes": [
                {"name": "kube-api-access", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
            ],
        },
        "status": _status(waits),
    }
    if not waits:
        value["spec"]["nodeName"] = f"gpu-{index % nodes}"
    return _padded(value)


def _container(index: int) -> Json:
    return {
        "name": "main",
        "image": "registry.example.com/research/train@sha256:9b2c1d4b3e5f60718293a4b5c6d7e8f9",
        "command": ["python", "-m", "train"],
        "args": ["--config", f"/config/{index // 16}.yaml", "--resume"],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}-{index % 16}"} for n in range(20)],
        "resources": {
            "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
            "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
        },
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _status(waits: bool) -> Json:
    when = "2026-11-20T08:00:05Z"
    if waits:
        message = "0/103 nodes are available: 100 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint(s)."
        no = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        return {"phase": "Pending", "conditions": [{**no, "lastTransitionTime": when}], "qosClass": "Guaranteed"}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [{"type": k, "status": "True", "lastProbeTime": None, "lastTransitionTime": when} for k in kinds],
        "hostIP": "10.0.0.7",
        "podIP": "10.1.2.3",
        "startTime": when,
        "containerStatuses": [
            {"name": "main", "state": {"running": {"startedAt": when}}, "lastState": {}, "ready": True,
             "restartCount": 0, "image": "registry.example.com/research/train", "imageID": "sha256:9b2c",
             "containerID": "containerd://9b2c1d4b3e5f", "started": True}
        ],
        "qosClass": "Guaranteed",
    }  # fmt: skip


def _padded(value: Json) -> Json:
    """Fill it to size with what fills real ones: who manages which field."""
    fields = value["metadata"]["managedFields"]
    size, n = len(json.dumps(value)), 0
    while size < SIZE:
        entry = {
            "manager": "kube-controller-manager",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-11-20T08:00:05Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {f"f:field-{n}-{m}": {".": {}, "f:name": {}, "f:value": {}} for m in range(12)}},
        }
        fields.append(entry)
        size, n = size + len(json.dumps(entry)), n + 1
    return value


def node(index: int) -> Json:
    """A node with more GPUs than its pods need."""
    room = {"cpu": "960", "memory": "4Ti", "pods": "250", "nvidia.com/gpu": "128"}
    labels = {"pilotlight.dev/pool": "a100", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-20T07:00:00Z"}
    meta = {"name": f"gpu-{index}", "uid": f"n{index}", "creationTimestamp": "2026-11-20T07:00:00Z", "labels": labels}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": room, "capacity": room, "conditions": [ready]}}


class _Pages:
    """Lists as bytes, made once; a page of them is a join."""

    def __init__(self, pods: int, nodes: int) -> None:
        made = [pod(i, pods, nodes) for i in range(pods)]
        text = [json.dumps(p).encode() for p in made]
        waiting = [t for t, p in zip(text, made, strict=True) if "nodeName" not in p["spec"]]
        bound = [t for t, p in zip(text, made, strict=True) if "nodeName" in p["spec"]]
        self._pods = {"": text, "spec.nodeName=": waiting, "spec.nodeName!=": bound}
        self._nodes = [json.dumps(node(i)).encode() for i in range(nodes)]

    def page(self, kind: str, query: dict[str, list[str]]) -> bytes:
        """One answer."""
        if kind == "pods":
            items = self._pods[query.get("fieldSelector", [""])[0]]
        else:
            items = self._nodes if kind == "nodes" else []
        start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["0"])[0]) or len(items)
        after = f', "continue": "{start + limit}"' if start + limit < len(items) else ""
        head = f'{{"kind": "List", "apiVersion": "v1", "metadata": {{"resourceVersion": "1"{after}}}, "items": ['
        return head.encode() + b",".join(items[start : start + limit]) + b"]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, pages: _Pages, *args: Any) -> None:
        self._pages = pages
        super().__init__(*args)

    def do_GET(self) -> None:
        where = urlsplit(self.path)
        data = self._pages.page(where.path.rpartition("/")[2], parse_qs(where.query, keep_blank_values=True))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


def _serve(pods: int, nodes: int, told: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, _Pages(pods, nodes)))
    told.send(server.server_port)
    server.serve_forever()


@contextmanager
def serving(pods: int, nodes: int) -> Iterator[str]:
    """The URL of such a server in a process of its own."""
    ours, theirs = Pipe()
    process = Process(target=_serve, args=(pods, nodes, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()
