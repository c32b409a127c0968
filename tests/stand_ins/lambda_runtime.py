"""Lambda on this machine: its Runtime API over HTTP, and SQS's event source as Lambda runs it.

The API is the documented one (docs.aws.amazon.com/lambda, "Using the Lambda runtime API", 2018-06-01): the process asks
for the next invocation, and posts its response or its error. AWS's own client (awslambdaric) runs the handler.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

API = "/2018-06-01/runtime"
OPENS_WITHIN_S = 300


class Failed(Exception):
    """What a function posted as its error."""


class Invocation(NamedTuple):
    """One that waits for the process."""

    id: str
    event: Any
    left_s: float


class Lambda:
    """One function's process. ``invoke`` is a synchronous invocation."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[Invocation] = queue.Queue()
        self.answers: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.process: subprocess.Popen[bytes] | None = None

    def invoke(self, event: Any, left_s: float = 60.0) -> Any:
        """What the handler returns. Raises ``Failed`` with what it raised."""
        self.waiting.put(Invocation(str(uuid4()), event, left_s))
        kind, said = self.answers.get(timeout=OPENS_WITHIN_S)
        if kind != "response":
            raise Failed(json.dumps(said))
        return said


@contextmanager
def running(
    handler: str, environ: Mapping[str, str], path: Sequence[Path], python: Sequence[str] = (sys.executable,)
) -> Iterator[Lambda]:
    """A handler under awslambdaric, with these folders first on its path and nothing of this process's environment."""
    made = Lambda()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    made.process = subprocess.Popen(
        [*python, "-m", "awslambdaric", handler],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
            "AWS_LAMBDA_FUNCTION_NAME": handler.rpartition(".")[2],
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.11",
            **environ,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield made
    finally:
        os.killpg(made.process.pid, signal.SIGKILL)
        made.process.wait()
        server.shutdown()
        server.server_close()


def _handler(of: Lambda) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            assert self.path == f"{API}/invocation/next"
            one = of.waiting.get()
            body = json.dumps(one.event).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Lambda-Runtime-Aws-Request-Id", one.id)
            self.send_header("Lambda-Runtime-Deadline-Ms", str(int((time.time() + one.left_s) * 1000)))
            self.send_header("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:123456789012:function:f")
            self.send_header("Lambda-Runtime-Trace-Id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            said = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            of.answers.put((self.path.rpartition("/")[2], said))
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    return Handler


def records(messages: Sequence[Mapping[str, Any]], queue_name: str = "q") -> dict[str, Any]:
    """What Lambda is handed of messages that SQS gave."""
    return {
        "Records": [
            {
                "messageId": one["MessageId"],
                "receiptHandle": one["ReceiptHandle"],
                "body": one["Body"],
                "attributes": one.get("Attributes", {}),
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:eu-west-1:123456789012:{queue_name}",
                "awsRegion": "eu-west-1",
            }
            for one in messages
        ]
    }


def polled(sqs: Any, url: str, function: Lambda) -> list[str]:
    """One batch of a queue to a function, as Lambda does it: what it took is deleted; the others' ids."""
    got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"]).get("Messages", [])
    if not got:
        return []
    failed = {one["itemIdentifier"] for one in function.invoke(records(got))["batchItemFailures"]}
    for one in got:
        if one["MessageId"] not in failed:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
    return sorted(failed)
