"""The bridge from EventBridge to Pub/Sub, against stand-ins of Google's token service and of Pub/Sub."""

import base64
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from answering import Answer, answering

pytest.importorskip("botocore", reason="needs pilotlight[aws]")

from pilotlight.adapters.bridge import Bridge
from pilotlight.codec.events import Delivery, decode
from pilotlight.doorway import Function, takes
from pilotlight.errors import BadInput, Forbidden, Unavailable

ROOT = Path(__file__).resolve().parents[2]
AUDIENCE = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws"
SPOT = "EC2 Spot Instance Interruption Warning"
EVENT = {"id": "e-1", "detail-type": SPOT, "source": "aws.ec2", "detail": {"instance-id": "i-1"}}


class Google:
    """What came in, and what is answered; ``host`` is where."""

    def __init__(self) -> None:
        self.exchanged: list[dict[str, str]] = []
        self.published: list[tuple[str, str, dict[str, Any]]] = []
        self.status, self.host = 200, ""

    def post(self, path: str, body: bytes, token: str) -> dict[str, Any]:
        """The answer to one request."""
        if path == "/token":
            self.exchanged.append({key: values[0] for key, values in parse_qs(body.decode()).items()})
            return {"access_token": "t-1", "expires_in": 3600}
        self.published.append((path, token, json.loads(body)))
        return {"messageIds": ["42"]}


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """Google on a local port, and the credentials that a Lambda finds in its environment."""
    held = Google()

    def door(path: str, body: bytes, headers: dict[str, str]) -> Answer:
        answer = held.post(path, body, headers.get("Authorization", ""))
        return held.status, answer

    lambdas = {"ACCESS_KEY_ID": "ASIAEXAMPLE", "SECRET_ACCESS_KEY": "s3cret", "SESSION_TOKEN": "session"}
    for name, value in {**lambdas, "DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with answering(door) as held.host:
        yield held


def _bridge(google: Google) -> Bridge:
    base = f"http://{google.host}"
    topics = json.dumps({SPOT: "projects/acme/topics/interruptions"})
    environ = {"BRIDGE_AUDIENCE": AUDIENCE, "BRIDGE_TOPICS": topics}
    return Bridge({**environ, "BRIDGE_STS": f"{base}/token", "BRIDGE_PUBSUB": f"{base}/v1"})


def test_an_event_is_published_as_it_is(google: Google) -> None:
    """The topic of its kind gets the event whole, under the token that was exchanged."""
    assert _bridge(google).forward(EVENT) == "42"
    path, token, body = google.published[0]
    assert (path, token) == ("/v1/projects/acme/topics/interruptions:publish", "Bearer t-1")
    assert json.loads(base64.b64decode(body["messages"][0]["data"])) == EVENT


def test_the_identity_is_a_signed_request_and_no_key(google: Google) -> None:
    """Google gets a GetCallerIdentity request, signed over the audience; the secret is not in it."""
    _bridge(google).forward(EVENT)
    form = google.exchanged[0]
    shown = json.loads(unquote(form["subject_token"]))
    headers = {entry["key"]: entry["value"] for entry in shown["headers"]}
    assert form["audience"] == headers["x-goog-cloud-target-resource"] == AUDIENCE
    assert shown["url"] == "https://sts.eu-west-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
    assert "SignedHeaders=host;x-amz-date;x-amz-security-token;x-goog-cloud-target-resource" in headers["authorization"]
    assert "s3cret" not in json.dumps(google.exchanged)


def test_a_token_is_exchanged_once_an_hour(google: Google) -> None:
    """Events that follow go under the same token."""
    bridge = _bridge(google)
    for _ in range(3):
        bridge.forward(EVENT)
    assert (len(google.exchanged), len(google.published)) == (1, 3)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(403, Forbidden, id="a role that Google does not know"),
        pytest.param(503, Unavailable, id="a Google that is down"),
        pytest.param(429, Unavailable, id="a Google that is busy"),
    ],
)
def test_a_failure_is_raised_so_that_lambda_tries_again(google: Google, status: int, error: type[Exception]) -> None:
    """Nothing is answered as done that was not; the message names the host and no secret."""
    google.status = status
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        _bridge(google).forward(EVENT)


def test_an_event_without_a_topic_is_refused(google: Google) -> None:
    """A kind that no rule sends is bad input, and nothing is published."""
    with pytest.raises(BadInput, match="Something Else"):
        _bridge(google).forward({"detail-type": "Something Else"})
    assert google.published == []


def test_the_bundle_answers_from_an_empty_folder(google: Google, tmp_path: Path) -> None:
    """Lambda's zip holds all that its handler imports, but for what Lambda's Python brings."""
    command = [sys.executable, str(ROOT / "scripts" / "bundle.py"), str(tmp_path / "build")]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(tmp_path / "build" / "aws_bridge.zip") as archive:
        archive.extractall(tmp_path / "app")
    base = f"http://{google.host}"
    stand_ins = {"BRIDGE_AUDIENCE": AUDIENCE, "BRIDGE_STS": f"{base}/token", "BRIDGE_PUBSUB": f"{base}/v1"}
    environ = {**os.environ, **stand_ins, "BRIDGE_TOPICS": json.dumps({SPOT: "projects/acme/topics/t"})}
    words = [sys.executable, "-c", HANDLE, json.dumps(EVENT)]
    run = subprocess.run(words, cwd=tmp_path / "app", env=environ, capture_output=True, text=True)
    assert (run.stdout.strip(), len(google.published)) == ("{'published': '42'}", 1), run.stderr


HANDLE = """
import json, sys
sys.path = [p for p in sys.path if not p.endswith("shared")]
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f).lower()]
import main, pilotlight, pathlib
assert pathlib.Path(pilotlight.__file__).parents[1] == pathlib.Path.cwd(), pilotlight.__file__
print(main.aws_bridge(json.loads(sys.argv[1]), None))
"""


SENT = {
    "spot_interruption": "spot_interruption",
    "rebalance": "spot_interruption",
    "capacity_reservation_interruption": "spot_interruption",
    "capacity_block_expiration": "spot_interruption",
    "health_scheduled_change": "spot_interruption",
    "asg_launch_unsuccessful": "capacity_reconcile",
}
"""Samples of what Terraform's rules send over the bridge, and who listens to the topic that each is sent to."""


@pytest.mark.parametrize(("sample", "function"), SENT.items())
def test_what_is_published_is_taken_by_who_listens(google: Google, sample: str, function: Function) -> None:
    """Pub/Sub pushes what the bridge published, and it is a message of that function's, of a block that ends too."""
    event = json.loads((ROOT / "events" / "samples" / "aws" / f"{sample}.json").read_text())
    topics = json.dumps({event["detail-type"]: "projects/acme/topics/t"})
    base = f"http://{google.host}"
    environ = {"BRIDGE_AUDIENCE": AUDIENCE, "BRIDGE_STS": f"{base}/token", "BRIDGE_PUBSUB": f"{base}/v1"}
    Bridge({**environ, "BRIDGE_TOPICS": topics}).forward(event)
    (message,) = google.published[0][2]["messages"]
    push = {"message": {**message, "messageId": "1"}, "subscription": "projects/acme/subscriptions/s"}
    found = list(decode(json.dumps(push).encode(), {"Content-Type": "application/json"}, cluster="prod"))
    assert found
    assert all(isinstance(one, Delivery) and takes(function, one.message) for one in found), found
