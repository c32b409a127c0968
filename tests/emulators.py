"""Managed services on this machine: the Google Cloud SDK's Firestore and Pub/Sub emulators, and moto's server."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from fleet import free_port

OPENS_WITHIN_S = 600
EMULATOR = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")
PUBSUB = Path("platform/pubsub-emulator/lib")

# One request at a time: moto checks a condition and writes in two steps, which DynamoDB does in one.
MOTO = """
import sys
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
# It knows no instance refresh: none runs.
AutoScalingResponse.describe_instance_refreshes = lambda self: ActionResult({"InstanceRefreshes": []})
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


@pytest.fixture(scope="session")
def firestore_emulator() -> Iterator[str]:
    """Host and port of an emulator, for this run; the test is skipped where there is none to start."""
    java, jar = shutil.which("java"), of_the_sdk(EMULATOR)
    if jar is None or java is None:
        pytest.skip("no Firestore emulator: install google-cloud-cli-firestore-emulator and Java 17")
    port = free_port()
    flags = ["-Duser.language=en", "-Xmx384m", "-XX:+UseSerialGC"]
    main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
    yield from _served([java, *flags, "-cp", str(jar), main, "--host=127.0.0.1", f"--port={port}"], port)


@pytest.fixture(scope="session")
def pubsub_emulator() -> Iterator[str]:
    """Host and port of an emulator, for this run; the test is skipped where there is none to start."""
    java, folder = shutil.which("java"), of_the_sdk(PUBSUB)
    jars = sorted(folder.glob("*.jar")) if folder is not None else []
    if not jars or java is None:
        pytest.skip("no Pub/Sub emulator: install google-cloud-cli-pubsub-emulator and Java 17")
    port = free_port()
    flags = ["-Duser.language=en", "-Xmx256m", "-XX:+UseSerialGC"]
    yield from _served([java, *flags, "-jar", str(jars[0]), "--host=127.0.0.1", f"--port={port}"], port)


def of_the_sdk(path: Path) -> Path | None:
    """A file or folder of the Google Cloud SDK, wherever that is; None where it is not."""
    gcloud = shutil.which("gcloud")
    found = Path(gcloud).resolve().parents[1] / path if gcloud else path
    return found if found.exists() else None


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[str]:
    """The address of a DynamoDB for this run, with credentials set as boto3 wants some."""
    if find_spec("moto") is None:
        pytest.skip("no moto: install pilotlight[dev]")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ.setdefault(name, "testing")
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    port = free_port()
    for served in _served([sys.executable, "-c", MOTO, str(port)], port):
        yield f"http://{served}"


def _served(command: list[str], port: int) -> Iterator[str]:
    """Run a server until the tests are over, in a process group of its own; its address once it takes connections."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(server, port)
        yield f"127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(OPENS_WITHIN_S * 10):
        if server.poll() is not None:
            pytest.fail(f"{server.args!r} ended with {server.returncode} before it opened port {port}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail(f"{server.args!r} did not open port {port} within {OPENS_WITHIN_S} s")
