"""Managed stores on this machine: the Google Cloud SDK's Firestore emulator, and moto's server as DynamoDB."""

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

OPENS_WITHIN_S = 40
EMULATOR = Path("platform/cloud-firestore-emulator/cloud-firestore-emulator.jar")

# One request at a time: moto checks a condition and writes in two steps, which DynamoDB does in one.
MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""


@pytest.fixture(scope="session")
def firestore_emulator() -> Iterator[str]:
    """Host and port of an emulator, for this run; the test is skipped where there is none to start."""
    gcloud, java = shutil.which("gcloud"), shutil.which("java")
    roots = [Path(gcloud).resolve().parents[1]] if gcloud else []
    jar = next((root / EMULATOR for root in roots if (root / EMULATOR).exists()), None)
    if jar is None or java is None:
        pytest.skip("no Firestore emulator: install google-cloud-cli-firestore-emulator and Java 17")
    port = free_port()
    flags = ["-Duser.language=en", "-Xmx384m", "-XX:+UseSerialGC"]
    main = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
    yield from _served([java, *flags, "-cp", str(jar), main, "--host=127.0.0.1", f"--port={port}"], port)


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


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


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
