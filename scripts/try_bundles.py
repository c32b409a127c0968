"""Each bundle as a cloud would have it: unzipped into an empty folder, its requirements installed, a sample event sent.

Prints what each weighs when installed (functions on Google Cloud), and ends with 1 where one does not answer or weighs
too much. Needs a package index and a few minutes: ``python scripts/try_bundles.py [FUNCTION ...]``.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "events" / "samples"
SAMPLE = {
    "alert_fanout": "pilotlight/alert.json",
    "billing_import": "pilotlight/bill_exported.json",
    "billing_tick": "pilotlight/budget_notice.json",
    "capacity_reconcile": "pilotlight/tick.json",
    "kueue_admission": "pilotlight/quota_reserved.json",
    "pod_pending": "pilotlight/pod_pending.json",
    "spot_interruption": "pilotlight/interruption_notice.json",
}
HEAVIEST = 200_000_000
"""Bytes that a function may weigh, its requirements included."""
START_S = 60.0


def main() -> int:
    """Try the bundles named on the command line, or all; the exit code."""
    names = sys.argv[1:] or list(SAMPLE)
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder, "build")
        subprocess.run([sys.executable, ROOT / "scripts" / "bundle.py", build], check=True, stdout=subprocess.DEVNULL)
        return max(_try(name, build / f"{name}.zip", Path(folder, name)) for name in names)


def _try(name: str, bundle: Path, app: Path) -> int:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(app)
    unzipped = _weight(app)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    installed = subprocess.run([*pip, "--target", app / "site", "-r", app / "requirements.txt"], stderr=subprocess.PIPE)
    if installed.returncode:
        print(f"{name}: its requirements cannot be installed: {installed.stderr.decode()[-300:]}", file=sys.stderr)
        return 1
    weight = _weight(app)
    print(f"{name}: {unzipped / 1e6:.1f} MB unzipped, {weight / 1e6:.0f} MB installed", end=", ", flush=True)
    answer = _answer(name, app)
    print(f"answers {answer}")
    return int(weight > HEAVIEST or not {"why", "ignored", "answers"} & answer.keys())


def _weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _answer(name: str, app: Path) -> dict[str, object]:
    """The function's answer to its sample event, run by nothing but what was installed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(app / "site"), "PILOTLIGHT_HOME": str(app / "home")}
    # -S: no site-packages but the bundle's own.
    serve = f"from functions_framework import create_app; create_app({name!r}, 'main.py').run('127.0.0.1', {port})"
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", serve], cwd=app, env=environ, stdout=quiet, stderr=subprocess.PIPE
    )
    try:
        return _post(f"http://127.0.0.1:{port}/", (SAMPLES / SAMPLE[name]).read_bytes(), process)
    finally:
        process.terminate()
        process.wait(10)


def _post(url: str, body: bytes, process: "subprocess.Popen[bytes]") -> dict[str, object]:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return dict(json.loads(answer.read()))
        except urllib.error.HTTPError as error:
            return {"status": error.code, "body": error.read().decode()[:500]}
        except OSError:
            time.sleep(0.2)
    process.kill()
    said = process.communicate()[1].decode().strip().splitlines()
    return {"error": said[-1] if said else "no answer"}


if __name__ == "__main__":
    sys.exit(main())
