"""How an API server is reached: kubeconfigs, pods, GKE and EKS; tokens and certificates that change under way."""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from answering import answering
from api_server import ApiServer, api_server
from certificates import Authority
from kubeconfigs import b64, config
from odd_server import talking

from pilotlight.adapters.cluster.kubernetes.access import addresses, eks, gke
from pilotlight.adapters.cluster.kubernetes.access.in_cluster import InCluster
from pilotlight.adapters.cluster.kubernetes.access.server_access import Source
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.errors import BadInput, Forbidden, PilotlightError, Unavailable

ROOT = Path(__file__).resolve().parents[3]
PODS = "/api/v1/pods"
AUTHORITY = Authority()


def reach(source: Source) -> None:
    """One call."""
    Api(source, pause=lambda _: None).get(PODS, NOTHING)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    """A server over TLS that wants the token "good"."""
    with api_server(tls=AUTHORITY.server(tmp_path)) as made:
        made.tokens = {"good"}
        yield made


CA = {"certificate-authority-data": b64(AUTHORITY.pem)}


def test_a_token_in_a_file(server: ApiServer, tmp_path: Path) -> None:
    """A kubeconfig file: the CA and the token from files beside it, the context named by the address."""
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.pem)
    (tmp_path / "token").write_text("good\n")
    made = config(server.url, {"tokenFile": "token"}, **{"certificate-authority": "ca.pem"})
    made["current-context"] = "another"
    (tmp_path / "config").write_text(yaml.safe_dump(made))
    reach(addresses.source_of(f"kubeconfig:{tmp_path}/config#main", {}))


def test_a_kubeconfig_in_a_variable(server: ApiServer) -> None:
    """An inline secret, as functions get them."""
    reach(addresses.source_of("kubeconfig-env:K", {"K": json.dumps(config(server.url, {"token": "good"}, **CA))}))


def test_a_client_certificate(tmp_path: Path) -> None:
    """A server that knows its clients by certificates; without one nobody comes in."""
    certificate, key = AUTHORITY.issue("pilotlight")
    shown = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    with api_server(tls=AUTHORITY.server(tmp_path, clients=True)) as server:
        reach(_of(config(server.url, shown, **CA)))
        with pytest.raises((Forbidden, Unavailable)):
            reach(_of(config(server.url, {}, **CA)))


def test_another_name_on_the_certificate(tmp_path: Path) -> None:
    """``tls-server-name`` is whose certificate is expected, and the only one accepted."""
    with api_server(tls=AUTHORITY.server(tmp_path, "api.internal")) as server:
        reach(_of(config(server.url, {}, **CA, **{"tls-server-name": "api.internal"})))
        with pytest.raises(Forbidden, match="cannot be trusted"):
            reach(_of(config(server.url, {}, **CA)))


def test_a_certificate_of_another_authority_is_refused(server: ApiServer) -> None:
    """Verification holds: nothing was asked, and no token was shown."""
    with pytest.raises(Forbidden, match="cannot be trusted"):
        reach(_of(config(server.url, {"token": "good"}, **{"certificate-authority-data": b64(Authority().pem)})))
    with pytest.raises(Forbidden, match="cannot be trusted"):
        reach(_of(config(server.url, {"token": "good"})))
    assert server.requests == []


def _of(made: dict[str, Any]) -> Source:
    return addresses.source_of("kubeconfig-env:K", {"K": json.dumps(made)})


def test_a_token_that_was_rotated_on_disk(server: ApiServer, tmp_path: Path) -> None:
    """The file has a new token before the old one is refused: it is read again."""
    file = tmp_path / "config"
    file.write_text(json.dumps(config(server.url, {"token": "good"}, **CA)))
    api = Api(addresses.source_of(f"kubeconfig:{file}", {}), pause=lambda _: None)
    api.get(PODS, NOTHING)
    file.write_text(json.dumps(config(server.url, {"token": "better"}, **CA)))
    server.tokens = {"better"}
    api.get(PODS, NOTHING)


def test_an_authority_that_was_rotated(tmp_path: Path) -> None:
    """The server comes back with another authority's certificate: trusted once the mounted CA says so too."""
    mounted = _mounted(tmp_path, AUTHORITY.pem)
    with api_server(tls=AUTHORITY.server(tmp_path)) as server:
        source = InCluster(_environ(server), mounted)
        api = Api(source, pause=lambda _: None)
        api.get(PODS, NOTHING)
    newer = Authority()
    with api_server(tls=newer.server(tmp_path)) as server:
        source._server = server.url
        source._kept = None
        with pytest.raises(Forbidden, match="cannot be trusted"):
            api.get(PODS, NOTHING)
        (mounted / "ca.crt").write_bytes(newer.pem)
        api.get(PODS, NOTHING)


def test_in_a_pod(server: ApiServer, tmp_path: Path) -> None:
    """The mounted token, read again when it is refused."""
    mounted = _mounted(tmp_path, AUTHORITY.pem)
    api = Api(InCluster(_environ(server), mounted), pause=lambda _: None)
    api.get(PODS, NOTHING)
    server.tokens = {"renewed"}
    (mounted / "token").write_text("renewed")
    api.get(PODS, NOTHING)


def _mounted(folder: Path, ca: bytes) -> Path:
    mounted = folder / "serviceaccount"
    mounted.mkdir()
    (mounted / "token").write_text("good\n")
    (mounted / "ca.crt").write_bytes(ca)
    return mounted


def _environ(server: ApiServer) -> dict[str, str]:
    host, _, port = server.url.removeprefix("https://").partition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


GOOD = config("https://127.0.0.1", {"token": "planted-secret"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "no kubeconfig", id="nothing in it"),
        pytest.param("{token: planted-secret", "no YAML", id="no YAML"),
        pytest.param("[planted-secret]", "no kubeconfig", id="a list"),
        pytest.param(json.dumps({**GOOD, "current-context": "x"}), "no context 'x'; it has main", id="no such context"),
        pytest.param(
            json.dumps({**GOOD, "current-context": ""}),
            "names no current context: name one; it has main",
            id="no current",
        ),
        pytest.param(json.dumps({**GOOD, "users": []}), "no user 'u'; it has none", id="no such user"),
        pytest.param(
            json.dumps(config("https://h", {}, **{"insecure-skip-tls-verify": True})),
            "certificate-authority-data instead",
            id="verification turned off",
        ),
        pytest.param(json.dumps(config("http://h", {"token": "planted-secret"})), "use https://", id="in the clear"),
        pytest.param(json.dumps(config("https://h", {"username": "planted-secret"})), "gone", id="a password"),
        pytest.param(
            json.dumps(config("https://h", {}, **{"certificate-authority-data": "planted-secret"})),
            "certificate-authority-data is no base64",
            id="no base64",
        ),
        pytest.param(
            json.dumps(config("https://h", {}, **{"certificate-authority-data": b64(b"planted-secret")})),
            "no PEM",
            id="no PEM",
        ),
        pytest.param(json.dumps(config("https://h", {"tokenFile": "/no/file"})), "/no/file", id="no token file"),
        pytest.param(
            json.dumps(config("https://h", {"token": "planted-secret"}, **{"proxy-url": "http://p"})),
            "proxy-url is for a person's",
            id="a proxy",
        ),
        pytest.param(
            json.dumps(config("https://h", {"exec": {"command": "planted-secret"}})),
            "exec is for a person's .*: pilotlight connect writes",
            id="a plugin",
        ),
        pytest.param(
            json.dumps(config("https://h", {"auth-provider": {"name": "oidc", "config": {}}})),
            "auth-provider is for a person's",
            id="an OIDC login",
        ),
        pytest.param(
            json.dumps(config("https://h", {"auth-provider": {"name": "gcp"}})), "this auth-provider is gone", id="gcp"
        ),
    ],
)
def test_a_kubeconfig_that_will_not_do_says_why(text: str, said: str) -> None:
    """One line that names the place and what to do, and none of its secrets."""
    with pytest.raises(BadInput, match=said) as caught:
        reach(addresses.source_of("kubeconfig-env:K", {"K": text or " "}))
    assert "planted-secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address", ["", "kubeconfig", "kubeconfig:", "gke:a/b", "eks:name", "in-cluster:x", "docker:x"]
)
def test_an_address_that_is_none(address: str) -> None:
    """The forms there are are listed."""
    with pytest.raises(BadInput, match=r"use one of kubeconfig:PATH"):
        addresses.source_of(address, {})


@pytest.mark.parametrize("before", ["", "kubeconfig:", "kubeconfig-env:"])
@pytest.mark.parametrize("text", ['{"users": [{"token": "planted-secret"}]}', "users:\n- token: planted-secret\n"])
def test_a_kubeconfig_in_the_place_of_an_address_is_not_shown(before: str, text: str) -> None:
    """Who puts the secret itself where its address belongs is told so, without a word of it."""
    with pytest.raises(BadInput, match="kubeconfig-env:NAME") as caught:
        addresses.source_of(before + text, {})
    assert "planted-secret" not in str(caught.value)


def test_an_address_whose_place_is_empty() -> None:
    """A variable that is not set, a file that is not there, a pod that is none."""
    with pytest.raises(BadInput, match="K, which is not set"):
        addresses.source_of("kubeconfig-env:K", {})
    with pytest.raises(BadInput, match="No such file"):
        reach(addresses.source_of("kubeconfig:/no/config", {}))
    with pytest.raises(BadInput, match="KUBERNETES_SERVICE_HOST is not set"):
        addresses.source_of("in-cluster", {})


GKE = {
    "endpoint": "203.0.113.7",
    "masterAuth": {"clusterCaCertificate": b64(AUTHORITY.pem)},
    "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"}},
}


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Google's metadata server and GKE's API: what they answer, and what they were asked."""
    told: dict[str, Any] = {"cluster": (200, GKE), "asked": [], "tokens": 0}

    def answer(path: str, _: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        told["asked"].append((path, headers.get("Authorization", "")))
        if path == "/token":
            told["tokens"] += 1
            return 200, {"access_token": f"t{told['tokens']}", "expires_in": 3600}
        status: int
        status, body = told["cluster"]
        return status, body

    with answering(answer) as host:
        monkeypatch.setattr("pilotlight.adapters.google_token.METADATA", f"http://{host}/token")
        told["host"] = f"http://{host}"
        yield told


NAME = "projects/p/locations/us-central1/clusters/c"


def test_gke(google: dict[str, Any]) -> None:
    """Address and CA from GKE, the token from the metadata server; both anew when they were refused."""
    source = gke.GkeCluster(NAME, host=google["host"])
    first, again = source.access(), source.access()
    assert first == again
    assert (first.server, first.ca, first.token) == ("https://203.0.113.7", AUTHORITY.pem.decode(), "t1")
    assert google["asked"] == [("/token", ""), (f"/v1/{NAME}", "Bearer t1")]
    assert source.access(anew=True).token == "t2"


def test_gke_by_its_dns_endpoint(google: dict[str, Any]) -> None:
    """Its certificate is one that every system trusts."""
    access = gke.GkeCluster(NAME, dns=True, host=google["host"]).access()
    assert (access.server, access.ca) == ("https://gke-1.us-central1.gke.goog", "")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        pytest.param((404, {}), BadInput, "is not there", id="no such cluster"),
        pytest.param((403, {}), Forbidden, "clusterViewer", id="no right to read it"),
        pytest.param((503, {}), Unavailable, "503", id="GKE is away"),
        pytest.param((200, {"endpoint": 7}), Unavailable, "no cluster", id="what is no cluster"),
        pytest.param((200, {}), Unavailable, "no endpoint yet", id="a cluster that is being made"),
    ],
)
def test_gke_says_no(google: dict[str, Any], answer: Any, error: type[PilotlightError], said: str) -> None:
    """Each refusal is an error of the tree."""
    google["cluster"] = answer
    with pytest.raises(error, match=said):
        gke.GkeCluster(NAME, host=google["host"]).access()


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """EKS's API and somebody's keys: what it answers, and what it was asked."""
    cluster = {"name": "c", "endpoint": "https://eks.test", "certificateAuthority": {"data": b64(AUTHORITY.pem)}}
    told: dict[str, Any] = {"answer": (200, {"cluster": cluster}), "asked": []}

    def answer(path: str, *_: Any) -> tuple[int, Any]:
        told["asked"].append(path)
        found: tuple[int, Any] = told["answer"]
        return found

    for name, value in {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "planted-secret"}.items():
        monkeypatch.setenv(name, value)
    with answering(answer) as host:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EKS", f"http://{host}")
        yield told


@pytest.mark.parametrize(
    ("region", "host"),
    [("eu-west-1", "sts.eu-west-1.amazonaws.com"), ("us-east-2", "sts.us-east-2.amazonaws.com")],
)
def test_eks(amazon: dict[str, Any], region: str, host: str) -> None:
    """Address and CA from EKS; the token is a presigned GetCallerIdentity that names the cluster, and is kept."""
    source = addresses.source_of(f"eks:{region}/c", {})
    access = source.access()
    assert source.access() == access
    assert (access.server, access.ca) == ("https://eks.test", AUTHORITY.pem.decode())
    assert amazon["asked"] == ["/clusters/c"]
    prefix, _, encoded = access.token.partition(".")
    url = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    assert prefix == "k8s-aws-v1"
    assert url.startswith(f"https://{host}/?Action=GetCallerIdentity&Version=2011-06-15&")
    assert "X-Amz-SignedHeaders=host%3Bx-k8s-aws-id" in url
    assert "X-Amz-Expires=60" in url
    assert "planted-secret" not in url


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        pytest.param((404, {"__type": "ResourceNotFoundException"}), BadInput, "is not there", id="no such cluster"),
        pytest.param((403, {"__type": "AccessDeniedException"}), Forbidden, "eks:DescribeCluster", id="no right"),
        pytest.param((403, {"__type": "InvalidSignatureException"}), Forbidden, "clock of this machine", id="a clock"),
        pytest.param(
            (403, {"__type": "ExpiredTokenException"}), Forbidden, "the credential has ended", id="an old key"
        ),
        pytest.param((429, {"__type": "ThrottlingException"}), Unavailable, "Throttling", id="slow down"),
        pytest.param((503, {"__type": "ServerException"}), Unavailable, "503", id="EKS is away"),
        pytest.param((200, {"cluster": {"name": "c"}}), Unavailable, "no endpoint yet", id="a cluster being made"),
    ],
)
def test_eks_says_no(amazon: dict[str, Any], answer: Any, error: type[PilotlightError], said: str) -> None:
    """Each refusal is an error of the tree, and shows no key."""
    amazon["answer"] = answer
    with pytest.raises(error, match=said) as caught:
        addresses.source_of("eks:eu-west-1/c", {}).access()
    assert "planted-secret" not in str(caught.value)


def test_eks_whose_answer_drips_is_for_later(amazon: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte at a time is no answer: the call has a deadline, boto3's own limits are for one piece."""
    monkeypatch.setattr(eks, "WAIT_S", 0.2)
    with talking(lambda line: line.drip(b"HTTP/1.1 200 OK\r\nX-Long: a") if line.hear() else None) as odd:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EKS", odd.url)
        with pytest.raises(Unavailable, match="timed out"):
            addresses.source_of("eks:eu-west-1/c", {}).access()


def test_eks_without_credentials(amazon: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing in the environment, no file, no role: it says what to give."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(Forbidden, match="no credential for AWS"):
        addresses.source_of("eks:eu-west-1/c", {}).access()
    assert amazon["asked"] == []


READ = """
import sys
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.facts.policy import Policy
cluster = KubernetesCluster(Api(source_of(f"kubeconfig:{sys.argv[1]}", {})), Policy(version=1), SystemClock())
assert len(cluster.observe().pending) == 9
heavy = ("kubernetes", "google.auth", "google.cloud.pubsub", "requests", "boto3", "botocore", "grpc")
print(sorted(m for m in sys.modules if m in heavy))
"""


def test_reading_imports_no_heavy_package(tmp_path: Path) -> None:
    """A plain kubeconfig is read by ourselves: no official client, no cloud's library, in a process of its own."""
    with api_server() as server:
        server.add_samples()
        (tmp_path / "config").write_text(server.kubeconfig())
        done = subprocess.run(
            [sys.executable, "-c", READ, str(tmp_path / "config")],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
