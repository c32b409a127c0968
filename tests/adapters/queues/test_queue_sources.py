"""How long queues are: RabbitMQ and SQS as they are, Prometheus and Cloud Monitoring by their answers' shapes."""

import json
import os
import signal
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from answering import Answer, answering

from fleet import free_port, until
from pilotlight.adapters.http import Broken, fetch
from pilotlight.adapters.queues import PolicyQueues
from pilotlight.errors import BadInput, BadRequest, Forbidden, PilotlightError, Throttled, Unavailable
from pilotlight.facts.demand.worker_queues import QueueRules

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


class Answers:
    """Answers every request with what is set, and keeps what was asked."""

    def __init__(self) -> None:
        self.host = ""
        self.status, self.body, self.asked = 200, b"", list[tuple[str, Mapping[str, str]]]()

    def answer(self, path: str, _body: bytes, headers: dict[str, str]) -> Answer:
        """Keep it, and answer."""
        self.asked.append((path, headers))
        return self.status, self.body


@pytest.fixture(scope="module")
def listening() -> Iterator[Answers]:
    """A server for all tests."""
    answers = Answers()
    with answering(answers.answer) as answers.host:
        yield answers


@pytest.fixture
def server(listening: Answers) -> Answers:
    """A source's API that nobody has asked yet."""
    listening.status, listening.body, listening.asked = 200, b"", []
    return listening


def length(source: str, secret: str = "", environ: Mapping[str, str] | None = None) -> float:
    """What a policy's queue of this source comes to."""
    rules = QueueRules(source=source, secret_env="SECRET" if secret else "")
    return PolicyQueues({"q": rules}, lambda _: secret, environ or {}).length("q")


def vector(*values: str) -> bytes:
    """Prometheus's answer with a series a value."""
    result = [{"metric": {"n": str(n)}, "value": [1.0, value]} for n, value in enumerate(values)]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


def points(*values: int) -> bytes:
    """Cloud Monitoring's answer, the newest point first."""
    made = [{"interval": {}, "value": {"int64Value": str(value)}} for value in values]
    return json.dumps({"timeSeries": [{"points": made}] if made else []}).encode()


def source_of(kind: str, host: str) -> tuple[str, Mapping[str, str]]:
    """A source of this kind at a server, with the environment that leads there."""
    sources = {
        "rabbitmq": f"rabbitmq:http://{host}/%2F/jobs",
        "prometheus": f"prometheus:http://{host}?query=sum(lag)",
        "pubsub": "pubsub:projects/acme/subscriptions/jobs",
    }
    return sources[kind], {"MONITORING_EMULATOR_HOST": host}


READ = {
    "RabbitMQ tells ready and unacknowledged together": ("rabbitmq", b'{"messages": 7, "messages_ready": 5}', 7),
    "a vector of one series": ("prometheus", vector("12.5"), 12.5),
    "a scalar": ("prometheus", b'{"status":"success","data":{"resultType":"scalar","result":[1,"3"]}}', 3),
    "the newest point of a subscription": ("pubsub", points(9, 4), 9),
}


@pytest.mark.parametrize(("kind", "body", "told"), READ.values(), ids=READ)
def test_a_length_is_read(server: Answers, kind: str, body: bytes, told: float) -> None:
    """As its API tells it."""
    server.body = body
    source, environ = source_of(kind, server.host)
    assert length(source, environ=environ) == told


NO_LENGTH = {
    "RabbitMQ that has no statistics yet": ("rabbitmq", b'{"name": "jobs"}'),
    "no series at all": ("prometheus", vector()),
    "two series": ("prometheus", vector("1", "2")),
    "a value that is no number": ("prometheus", vector("NaN")),
    "an infinite one": ("prometheus", vector("+Inf")),
    "a negative one": ("prometheus", vector("-1")),
    "a matrix": ("prometheus", b'{"status":"success","data":{"resultType":"matrix","result":[[]]}}'),
    "no point of the subscription": ("pubsub", points()),
    "a point without a whole number": ("pubsub", b'{"timeSeries":[{"points":[{"value":{}}]}]}'),
    "an answer that is cut": ("rabbitmq", b'{"messages": 7'),
    "a page of a proxy": ("prometheus", b"<html>sign in</html>"),
}


@pytest.mark.parametrize(("kind", "body"), NO_LENGTH.values(), ids=NO_LENGTH)
def test_what_is_no_length_is_never_an_empty_queue(server: Answers, kind: str, body: bytes) -> None:
    """Nothing is known then; it may be tried again."""
    server.body = body
    source, environ = source_of(kind, server.host)
    with pytest.raises(Unavailable):
        length(source, environ=environ)


SAID_NO: dict[int, type[PilotlightError]] = {
    401: Forbidden,
    403: Forbidden,
    404: BadRequest,
    429: Throttled,
    500: Unavailable,
    503: Unavailable,
}


@pytest.mark.parametrize("kind", ["rabbitmq", "prometheus", "pubsub"])
@pytest.mark.parametrize(("status", "error"), SAID_NO.items())
def test_a_refusal_says_who_and_holds_no_secret(
    server: Answers, kind: str, status: int, error: type[PilotlightError]
) -> None:
    """Its host and status, in one line; never the credential."""
    server.status, server.body = status, b"no"
    source, environ = source_of(kind, server.host)
    with pytest.raises(error) as found:
        length(source, "guest:hunter2", environ)
    assert str(status) in str(found.value)
    assert "hunter2" not in str(found.value)


def test_credentials_go_where_each_takes_them(server: Answers) -> None:
    """Basic for RabbitMQ, a bearer token for Prometheus; the vhost and the query stay whole."""
    server.body = b'{"messages": 0}'
    length(f"rabbitmq:http://{server.host}/team%2Fa/jobs", "guest:hunter2")
    server.body = vector("0")
    length(f"prometheus:http://{server.host}/prom/?query=sum(a%2Bb)", "t0ken")
    (rabbit, rabbit_headers), (prometheus, prometheus_headers) = server.asked
    assert rabbit == "/api/queues/team%2Fa/jobs"
    assert rabbit_headers["Authorization"] == f"Basic {b64encode(b'guest:hunter2').decode()}"
    assert urlsplit(prometheus).path == "/prom/api/v1/query"
    assert parse_qs(urlsplit(prometheus).query) == {"query": ["sum(a+b)"]}
    assert prometheus_headers["Authorization"] == "Bearer t0ken"


@pytest.mark.parametrize(
    "source",
    ["kafka:x", "sqs", "sqs:jobs", "rabbitmq:http://mq/jobs", "prometheus:http://p", "pubsub:jobs", "rabbitmq:/a/b"],
)
def test_an_address_that_is_none_says_how_it_is_written(source: str) -> None:
    """Nothing is asked of anybody."""
    with pytest.raises(BadInput):
        length(source)


def test_nobody_at_home_may_be_there_later() -> None:
    """A source that is down is no empty queue."""
    with pytest.raises(Unavailable, match="does not answer"):
        length(f"rabbitmq:http://127.0.0.1:{free_port()}/%2F/jobs")


def test_sqs_counts_what_waits_and_what_is_in_hand(dynamodb_server: str) -> None:
    """Three sent and one received: a worker has it, and must stay."""
    import boto3

    made: Any = boto3.client("sqs", region_name="eu-west-1", endpoint_url=dynamodb_server)
    url = made.create_queue(QueueName="jobs")["QueueUrl"]
    for _ in range(3):
        made.send_message(QueueUrl=url, MessageBody="{}")
    made.receive_message(QueueUrl=url, VisibilityTimeout=300)
    environ = {**KEYS, "AWS_ENDPOINT_URL_SQS": dynamodb_server}
    account = url.split("/")[-2]
    assert length(f"sqs:https://sqs.eu-west-1.amazonaws.com/{account}/jobs", environ=environ) == 3
    with pytest.raises(BadRequest, match="QueueDoesNotExist"):
        length(f"sqs:https://sqs.eu-west-1.amazonaws.com/{account}/gone", environ=environ)


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a real RabbitMQ's management API."""
    server = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # The one on PATH changes user first.
    if not server.exists():
        pytest.skip("needs rabbitmq-server (apt-get install rabbitmq-server)")
    folder, port = tmp_path_factory.mktemp("rabbitmq"), free_port()
    (folder / "plugins").write_text("[rabbitmq_management].")
    (folder / "rabbitmq.conf").write_text(
        f"listeners.tcp.1 = 127.0.0.1:{free_port()}\nmanagement.tcp.ip = 127.0.0.1\n"
        f"management.tcp.port = {port}\ncollect_statistics_interval = 200\n"
    )
    places = {"MNESIA_BASE": "db", "LOG_BASE": "log", "PID_FILE": "pid", "FEATURE_FLAGS_FILE": "flags"}
    places |= {"CONFIG_FILE": "rabbitmq.conf", "ENABLED_PLUGINS_FILE": "plugins"}
    environ = {f"RABBITMQ_{name}": str(folder / place) for name, place in places.items()}
    environ |= {"RABBITMQ_NODENAME": f"t{port}@localhost", "RABBITMQ_DIST_PORT": str(free_port())}
    environ |= {"HOME": str(folder), "ERL_EPMD_PORT": str(free_port()), "PATH": os.environ["PATH"]}
    with (folder / "out").open("wb") as out:
        process = subprocess.Popen([server], env=environ, stdout=out, stderr=out, start_new_session=True)
    host = f"127.0.0.1:{port}"
    until(lambda: process.poll() is not None or _answers(host))
    yield host
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Erlang leaves its name server behind, which goes only once it has seen the node go.
    until(lambda: b"Killed" in subprocess.run(["epmd", "-kill"], env=environ, capture_output=True).stdout)


GUEST = {"Authorization": f"Basic {b64encode(b'guest:guest').decode()}", "Content-Type": "application/json"}


def _answers(host: str) -> bool:
    try:
        return fetch(f"http://{host}/api/overview", 5, headers=GUEST).status == 200
    except Broken:
        return False


def _asked(host: str, method: str, path: str, body: dict[str, Any]) -> int:
    return fetch(f"http://{host}{path}", 10, method=method, body=json.dumps(body).encode(), headers=GUEST).status


def _counted(source: str) -> float:
    try:
        return length(source, "guest:guest")
    except Unavailable:  # It has no statistics of the queue yet.
        return 0


def test_rabbitmq_itself_is_read(rabbitmq: str) -> None:
    """Three messages in a queue of its vhost /; one that is not there is said so."""
    assert _asked(rabbitmq, "PUT", "/api/queues/%2F/speech", {}) == 201
    message = {"properties": {}, "routing_key": "speech", "payload": "x", "payload_encoding": "string"}
    for _ in range(3):
        assert _asked(rabbitmq, "POST", "/api/exchanges/%2F/amq.default/publish", message) == 200
    source = f"rabbitmq:http://{rabbitmq}/%2F/speech"
    until(lambda: _counted(source) == 3)
    with pytest.raises(BadRequest, match="404"):
        length(f"rabbitmq:http://{rabbitmq}/%2F/none", "guest:guest")
    with pytest.raises(Forbidden):
        length(source, "guest:wrong")


ROOT = Path(__file__).resolve().parents[3]
WORKER, PYTHON = ROOT / "examples" / "worker", ROOT / "build" / "worker" / "bin" / "python"


def _amqp(host: str) -> str:
    """Where the server of this management API takes messages."""
    told = json.loads(fetch(f"http://{host}/api/overview", 10, headers=GUEST).body)
    (port,) = {one["port"] for one in told["listeners"] if one["protocol"] == "amqp"}
    return f"amqp://guest:guest@127.0.0.1:{port}/%2F"


def _spoken(port: int, text: str) -> str:
    body, headers = json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
    answer = fetch(f"http://127.0.0.1:{port}/speech", 60, method="POST", body=body, headers=headers)
    return str(json.loads(answer.body)["answer"]) if answer.status == 200 else str(answer.status)


@pytest.mark.skipif(
    not (ROOT / "build" / "worker" / ".installed").exists(), reason="needs `make build/worker/.installed`"
)
def test_the_example_of_workers_answers_and_loses_nothing(rabbitmq: str, tmp_path: Path) -> None:
    """The queue is read while requests wait, each is answered, and a worker that ends does so after its message."""
    port, queue = free_port(), "example"
    environ = {**os.environ, "AMQP_URL": _amqp(rabbitmq), "QUEUE": queue, "WORK_S": "0.5"}
    front = [str(PYTHON), "-m", "uvicorn", "--app-dir", str(WORKER), "front:app", "--port", str(port)]
    source = f"rabbitmq:http://{rabbitmq}/%2F/{queue}"
    processes = []
    with (tmp_path / "log").open("wb") as log, ThreadPoolExecutor(3) as people:
        try:
            processes.append(subprocess.Popen(front, env=environ, stdout=log, stderr=log))
            until(lambda: processes[0].poll() is not None or _served(port))
            answers = [people.submit(_spoken, port, text) for text in ("one", "two", "three")]
            until(lambda: _counted(source) == 3)
            worker = [str(PYTHON), str(WORKER / "worker.py")]
            processes.append(subprocess.Popen(worker, env=environ, stderr=log))
            wait(answers, return_when=FIRST_COMPLETED)
            processes[1].terminate()
            processes[1].wait(60)
            processes.append(subprocess.Popen(worker, env=environ, stderr=log))
            assert [answer.result() for answer in answers] == ["ONE", "TWO", "THREE"]
            until(lambda: _counted(source) == 0)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _served(port: int) -> bool:
    try:
        return fetch(f"http://127.0.0.1:{port}/docs", 5).status == 200
    except Broken:
        return False
