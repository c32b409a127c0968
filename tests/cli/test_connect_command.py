"""`pilotlight connect`: an account of our own, with a token that ends, and no other credential anywhere."""

import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
import yaml
from api_server import ApiServer, api_server
from api_store import Resource
from typer.testing import CliRunner, Result

from pilotlight.cli import connect_command
from pilotlight.errors import BadInput, Failed, Forbidden

ADMISSION = "admissionregistration.k8s.io/v1"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """An API server that lets an admin in, whose kubeconfig is in KUBECONFIG."""
    for name in ("POLICY", "CLUSTER", "CLUSTERS", "MODE", "API", "POOLS"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    with api_server(ApiServer(tokens={"admin-token"})) as server:
        for plural, kind in (("policies", "Policy"), ("policybindings", "PolicyBinding")):
            resource = Resource(ADMISSION, f"validatingadmission{plural}", f"ValidatingAdmission{kind}", False)
            server.store.resources[ADMISSION, resource.plural] = resource
        (tmp_path / "admin").write_text(server.kubeconfig(token="admin-token"))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "admin"))
        monkeypatch.chdir(tmp_path)
        yield server


def run(*words: str) -> Result:
    """The command's outcome; raises what it raises."""
    app = typer.Typer()
    app.callback()(lambda: None)
    connect_command.register(app)
    return CliRunner().invoke(app, ["connect", "--context", "test", *words], catch_exceptions=False)


def writes(api: ApiServer) -> list[str]:
    """What was written."""
    return api.lines(r"^(POST|PATCH|PUT|DELETE) ")


def test_a_server_without_admission_policies_gives_no_rights_to_act(api: ApiServer) -> None:
    """Where nothing could limit what our account changes, it says from which Kubernetes on, and binds no such role."""
    del api.store.resources[ADMISSION, "validatingadmissionpolicies"]
    with pytest.raises(Failed, match=r"from 1\.30 on"):
        run("--act")
    assert not [line for line in writes(api) if "act" in line]


def test_it_makes_the_account_its_rights_and_a_token(api: ApiServer, tmp_path: Path) -> None:
    """Namespace, account, reads and their binding are made, then a token; the kubeconfig holds that token alone."""
    done = run("--out", str(tmp_path / "mine"))
    assert [line.rpartition("/")[2] for line in writes(api)] == [
        "namespaces", "serviceaccounts", "clusterroles", "clusterrolebindings", "token",
    ]  # fmt: skip
    config = yaml.safe_load((tmp_path / "mine").read_text())
    assert config["users"] == [{"name": "pilotlight", "user": {"token": "minted-pilotlight-1"}}]
    assert config["clusters"][0]["cluster"]["server"] == api.url
    assert "admin-token" not in (tmp_path / "mine").read_text() + done.output


def test_the_new_credential_works(api: ApiServer, tmp_path: Path) -> None:
    """What it wrote is a kubeconfig that the API server takes."""
    from pilotlight.adapters.cluster.kubernetes.addresses import of_file
    from pilotlight.adapters.cluster.kubernetes.reads import NODES
    from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api

    run("--out", str(tmp_path / "mine"))
    Api(of_file(tmp_path / "mine")).get(NODES, NOTHING)
    assert api.requests[-1].headers["Authorization"] == "Bearer minted-pilotlight-1"


def test_only_its_owner_may_read_the_file(api: ApiServer, tmp_path: Path) -> None:
    """The kubeconfig is readable by nobody else, also where one lay open before, and no draft of it stays."""
    (tmp_path / "mine").write_text("old")
    (tmp_path / "mine").chmod(0o644)
    run("--out", str(tmp_path / "mine"))
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["admin", "mine"]


def test_the_token_is_shown_only_when_asked(api: ApiServer) -> None:
    """The output names the file and the end; with --stdout it is the kubeconfig and there is no file."""
    assert "minted-" not in run().output
    assert Path(".pilotlight/test.kubeconfig").exists()
    shown = run("--stdout", "--rotate")
    assert yaml.safe_load(shown.stdout)["users"][0]["user"]["token"].startswith("minted-")
    assert "the token ends " in shown.stderr


def test_it_says_when_the_token_ends(api: ApiServer) -> None:
    """The end is what the API server says; the days asked for are in the request."""
    done = run("--days", "14")
    ends = datetime.now(UTC) + timedelta(days=14)
    assert f"the token ends {ends:%Y-%m-%d}" in done.stderr
    assert json.loads(api.requests[-1].body)["spec"] == {"expirationSeconds": 14 * 86_400}


def test_it_says_where_to_put_it(api: ApiServer) -> None:
    """The setting that names the file, how a function gets it as a secret, and how to try it."""
    said = run().stderr
    assert "PILOTLIGHT_API=kubeconfig:.pilotlight/test.kubeconfig" in said
    assert "PILOTLIGHT_API=kubeconfig-env:NAME" in said
    assert "pilotlight doctor --kubeconfig .pilotlight/test.kubeconfig" in said


def test_a_dry_run_makes_nothing(api: ApiServer, tmp_path: Path) -> None:
    """It says each object it would create; nothing is written anywhere, and no token is made."""
    said = run("--dry-run", "--act").stderr
    assert "create ClusterRole pilotlight-observe" in said
    assert "create ValidatingAdmissionPolicy pilotlight-nodes" in said
    assert (writes(api), sorted(path.name for path in tmp_path.iterdir())) == ([], ["admin"])


def test_again_it_keeps_what_is_there(api: ApiServer) -> None:
    """A second run changes nothing but what somebody changed meanwhile, and makes a new token."""
    run("--act")
    api.store.get("clusterroles", "pilotlight-act")["rules"].append({"verbs": ["*"]})
    api.requests.clear()
    said = run("--act").stderr
    assert "changed ClusterRole pilotlight-act" in said
    assert said.count("kept ") == 8
    assert [line.rpartition("/")[2] for line in writes(api)] == ["pilotlight-act", "token"]
    assert "*" not in str(api.store.get("clusterroles", "pilotlight-act")["rules"])


def test_acting_is_limited_before_it_is_granted(api: ApiServer) -> None:
    """With --act the admission policy over the policy's pools is there before the right to patch nodes is."""
    run("--act")
    made = [line.rpartition("/")[2] for line in writes(api)]
    assert made.index("validatingadmissionpolicybindings") < made.index("clusterroles", made.index("clusterroles") + 1)
    pools = api.store.get("configmaps", "pilotlight-pools", "pilotlight")["data"]["pools"]
    assert pools == "a100,a10g,t4,v100,v100x4"


def test_pools_are_named_as_their_cloud_names_them(api: ApiServer, tmp_path: Path) -> None:
    """Nodes carry the cloud's name of a pool: that is what the admission policy compares."""
    (tmp_path / "policy.yaml").write_text(
        "version: 1\npools:\n  t4: {instance_type: g4dn.xlarge, cluster_pool: 0f3a-civo}\n"
    )
    run("--act", "--policy", str(tmp_path / "policy.yaml"))
    assert api.store.get("configmaps", "pilotlight-pools", "pilotlight")["data"]["pools"] == "0f3a-civo"


def test_without_pools_there_is_nothing_to_act_on(api: ApiServer, tmp_path: Path) -> None:
    """An empty list of pools would allow nothing: it is refused before anything is made."""
    (tmp_path / "policy.yaml").write_text("version: 1\n")
    with pytest.raises(BadInput, match="the policy has no pools"):
        run("--act", "--policy", str(tmp_path / "policy.yaml"))
    assert writes(api) == []


def test_rights_that_stay_are_told(api: ApiServer) -> None:
    """Connecting to observe takes no right away, and says which one is still there and how to take it back."""
    run("--act")
    assert "kubectl delete clusterrolebinding pilotlight-act" in run().stderr


def test_rotation_makes_only_a_token(api: ApiServer, tmp_path: Path) -> None:
    """--rotate replaces the file's token; objects are not looked at."""
    run("--out", str(tmp_path / "mine"))
    api.requests.clear()
    run("--rotate", "--out", str(tmp_path / "mine"))
    assert [asked.line for asked in api.requests] == [
        "POST /api/v1/namespaces/pilotlight/serviceaccounts/pilotlight/token"
    ]
    assert "minted-pilotlight-2" in (tmp_path / "mine").read_text()


def test_without_leave_nothing_is_written(api: ApiServer, tmp_path: Path) -> None:
    """An account that may not make roles is told so, and there is no half a kubeconfig."""
    api.allow = lambda access: access.verb != "create" or access.resource != "clusterroles"
    with pytest.raises(Forbidden, match="cannot create"):
        run("--out", str(tmp_path / "mine"))
    assert not (tmp_path / "mine").exists()
