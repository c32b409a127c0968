"""Settings and wiring: what the environment says, and what is made of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import Answer, answering

from pilotlight.adapters.channels.webhook import WebhookChannel
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import BadInput, BadPolicy, Unavailable
from pilotlight.settings import Settings, read
from pilotlight.wiring import App, app

ROOT = Path(__file__).resolve().parents[2]


def test_the_embedded_default_acts() -> None:
    """With nothing set, state and outbox lie in .pilotlight and the world is acted upon."""
    settings = Settings.from_environ({})
    assert (settings.state, settings.outbox) == ("sqlite:.pilotlight/state.db", "local:.pilotlight/outbox")
    assert (settings.mode, settings.cluster_name) == ("act", "local")
    assert settings == Settings(environ={})


@pytest.mark.parametrize(
    ("environ", "mode"),
    [
        pytest.param({"PILOTLIGHT_CLUSTER": "prod"}, "advise", id="a real cluster is only advised"),
        pytest.param({"PILOTLIGHT_CLUSTER": "prod", "PILOTLIGHT_MODE": "act"}, "act", id="until it is said otherwise"),
        pytest.param({"PILOTLIGHT_MODE": "observe"}, "observe", id="the embedded world can be only observed"),
    ],
)
def test_the_mode_is_advise_until_set(environ: dict[str, str], mode: str) -> None:
    """Only the embedded default acts unasked."""
    assert Settings.from_environ(environ).mode == mode


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        pytest.param({"PILOTLIGHT_MODE": "go"}, "PILOTLIGHT_MODE is 'go'", id="a mode there is not"),
        pytest.param({"PILOTLIGHT_STATE": "redis://x"}, "state 'redis://x': is no address", id="a state there is not"),
        pytest.param({"PILOTLIGHT_STATE": "sqlite:"}, "use memory: or sqlite:PATH", id="a state without its path"),
        pytest.param({"PILOTLIGHT_OUTBOX": "x"}, "PILOTLIGHT_OUTBOX is 'x'", id="an outbox there is not"),
        pytest.param({"PILOTLIGHT_CLUSTER": "prod"}, "PILOTLIGHT_API is not set", id="a cluster without its address"),
        pytest.param(
            {"PILOTLIGHT_API": "kubeconfig:x", "PILOTLIGHT_POOLS": "civo:LON1"},
            "PILOTLIGHT_POOLS is 'civo:LON1'",
            id="a cloud without its cluster",
        ),
        pytest.param({"PILOTLIGHT_API": "kubeconfig:x"}, "PILOTLIGHT_POOLS is not set: use", id="no cloud"),
        pytest.param(
            {"PILOTLIGHT_API": "kubeconfig:x", "PILOTLIGHT_POOLS": "civo:LON1/c"},
            "variable CIVO_TOKEN is needed",
            id="a cloud without its token",
        ),
        pytest.param(
            {"PILOTLIGHT_POLICY": "/no/such.yaml"}, "/no/such.yaml: No such file", id="a policy that is not there"
        ),
        pytest.param({"PILOTLIGHT_CATALOG": "/no/such.yaml"}, "/no/such.yaml: No such file", id="a catalogue likewise"),
    ],
)
def test_a_bad_setting_is_named(environ: dict[str, str], says: str) -> None:
    """What is set wrongly is one line with the variable or the file."""
    memory = {"PILOTLIGHT_STATE": "memory:", "PILOTLIGHT_OUTBOX": "memory:"}
    with pytest.raises(BadInput, match=says):
        _ = App(Settings.from_environ({**memory, **environ})).deps


def test_a_bad_policy_is_named(tmp_path: Path) -> None:
    """A policy that contradicts its schema is refused with the file and the key."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npolls: {}\n")
    with pytest.raises(BadPolicy, match=r"policy\.yaml.*polls"):
        _ = App(Settings(policy=str(policy), state="memory:", outbox="memory:")).deps


def test_prices_files_lie_beside_the_policy(tmp_path: Path) -> None:
    """A price file named by the policy adds to the catalogue, from the policy's folder."""
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nas_of: 2026-11-01T00:00:00Z\ninstance_types:\n  my.big: {cloud: civo, gpu_model: L40S, gpus: 8, "
        "prices: {on-demand: {usd_per_hour: 9.5, source: a quote, date: 2026-11-01}}}\n"
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nprices: {files: [mine.yaml]}\n")
    catalog = App(Settings(policy=str(policy))).catalog
    assert {"my.big", "g5.xlarge"} <= set(catalog.instance_types)
    assert catalog.name == "mine"


def test_what_is_given_replaces_what_is_made() -> None:
    """The seams: a given port is used as it is, and nothing is opened for it."""
    plain = App(Settings())
    state, outbox = MemoryState(plain.clock), MemoryOutbox()
    wired = app(Settings(state="sqlite:/no/where"), state=state, outbox=outbox, policy=plain.policy)
    assert (wired.deps.state, wired.deps.outbox, wired.deps.policy) == (state, outbox, plain.policy)


def test_many_threads_get_one_world() -> None:
    """Requests that come at once find the same ports."""
    wired = App(Settings(state="memory:", outbox="memory:"))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(id(wired.deps))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_a_web_hooks_url_comes_from_the_environment(tmp_path: Path) -> None:
    """The policy names the variable that holds the secret; without it the error names the variable."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nalerts: {channels: {ops: {kind: webhook, url_env: OPS_URL}}}\n")
    settings = {"PILOTLIGHT_POLICY": str(policy)}
    with pytest.raises(BadInput, match="OPS_URL"):
        _ = App(Settings.from_environ(settings)).channels
    channels = App(Settings.from_environ({**settings, "OPS_URL": "https://hooks.example.com/1"})).channels
    assert isinstance(channels["ops"], WebhookChannel)


def _bucket(path: str, _body: bytes, _headers: dict[str, str]) -> Answer:
    """Hold one object, at /policies/gpu.yaml."""
    if path == "/policies/gpu.yaml":
        return 200, b"version: 1"
    return 404, b"<Error><Code>NoSuchKey</Code></Error>"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An S3 with one object, on a local port."""
    pytest.importorskip("boto3", reason="needs pilotlight[aws]")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with answering(_bucket) as host:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}")
        yield


def test_a_policy_is_read_from_s3(s3: None) -> None:
    """s3://bucket/key is the object's bytes."""
    assert read("s3://policies/gpu.yaml") == b"version: 1"


def test_an_object_that_is_not_there_is_named(s3: None) -> None:
    """A missing object is bad input with its address and what the cloud answers."""
    with pytest.raises(BadInput, match=r"s3://policies/other\.yaml: S3 answers 404; check the address"):
        read("s3://policies/other.yaml")


def _google_bucket(path: str, _body: bytes, _headers: dict[str, str]) -> Answer:
    """Hold a policy with a price file beside it, as Cloud Storage's REST interface shows them."""
    prefix = "/storage/v1/b/acme/o/policy%2F1%2F"
    bodies = {
        f"{prefix}policy.yaml?alt=media": b"version: 1\nprices: {files: [prices.yaml]}\n",
        f"{prefix}prices.yaml?alt=media": (ROOT / "infra/terraform/examples/civo/prices.yaml").read_bytes(),
    }
    body = bodies.get(path)
    return 200 if body else 503 if "busy" in path else 404, body or b""


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Cloud Storage with one policy, on a local port."""
    with answering(_google_bucket) as host:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{host}")
        yield


def test_a_policy_is_read_from_gs_with_the_prices_beside_it(gs: None) -> None:
    """gs://bucket/object is the object's bytes, and the policy's price files are in the same folder."""
    app = App(Settings.from_environ({"PILOTLIGHT_POLICY": "gs://acme/policy/1/policy.yaml"}))
    assert "g4g.40.kube.small" in app.catalog.instance_types


def test_gs_tells_missing_from_later(gs: None) -> None:
    """An object that is not there is bad input; a busy Cloud Storage is for later."""
    with pytest.raises(BadInput, match=r"gs://acme/other\.yaml: Cloud Storage answers 404"):
        read("gs://acme/other.yaml")
    with pytest.raises(Unavailable, match="503"):
        read("gs://acme/busy")


def test_a_speed_in_the_policy_adds_to_the_catalogues(tmp_path: Path) -> None:
    """The other models of its class keep theirs; a model that is named twice has the policy's."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\npools: {t4: {instance_type: g4dn.xlarge}}\n"
        "prices: {throughput: {training: {T4: 0.3, A100: 2.5}}}\n"
    )
    found = App(Settings(environ={}, policy=str(policy), state="memory:", outbox="memory:")).deps.throughput
    assert (found["training"]["T4"], found["training"]["A100"], found["training"]["V100"]) == (0.3, 2.5, 1.0)
    assert found["serving"]["T4"] == 0.366
