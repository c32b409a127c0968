"""`pilotlight connect`: an account of our own, with a token that ends, and no other credential anywhere."""

import json
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from api_server import ApiServer, api_server
from api_store import ADMISSION
from forward_proxy import forward_proxy
from typer.testing import CliRunner, Result

import chart
from pilotlight.errors import BadInput, Failed, Forbidden
from pilotlight.tools.cli.install import connect_command
from pilotlight.tools.install.admission_policy import names_of
from pilotlight.tools.install.cloud_users import EXTRAS, TO_ACT


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """An API server that lets an admin in, whose kubeconfig is in KUBECONFIG."""
    for name in ("POLICY", "CLUSTER", "CLUSTERS", "MODE", "API", "POOLS"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    with api_server(ApiServer(tokens={"admin-token"})) as server:
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
    from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
    from pilotlight.adapters.cluster.kubernetes.listing import NODES
    from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api

    run("--out", str(tmp_path / "mine"))
    Api(of_file(tmp_path / "mine")).get(NODES, NOTHING)
    assert api.requests[-1].headers["Authorization"] == "Bearer minted-pilotlight-1"


def test_a_persons_proxy_is_not_handed_on(api: ApiServer, tmp_path: Path) -> None:
    """The new kubeconfig does not name it, nor its login, and the command says so."""
    made = yaml.safe_load((tmp_path / "admin").read_text())
    with forward_proxy(api.url.removeprefix("http://"), "me:planted") as proxy:
        made["clusters"][0]["cluster"]["proxy-url"] = proxy.url
        (tmp_path / "admin").write_text(yaml.safe_dump(made))
        done = run("--out", str(tmp_path / "mine"))
    assert "which the new kubeconfig does not name" in done.stderr
    assert "proxy-url" not in (tmp_path / "mine").read_text()
    assert "planted" not in (tmp_path / "mine").read_text() + done.output


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
    assert said.count("kept ") == 17
    assert [line.rpartition("/")[2] for line in writes(api)] == ["pilotlight-act", "token"]
    assert "*" not in str(api.store.get("clusterroles", "pilotlight-act")["rules"])


def test_acting_is_limited_before_it_is_granted(api: ApiServer) -> None:
    """With --act the admission policy over the policy's pools is there before the right to patch nodes is."""
    run("--act")
    made = [line.rpartition("/")[2] for line in writes(api)]
    last = len(made) - 1 - made[::-1].index("validatingadmissionpolicybindings")
    assert last < made.index("clusterroles", made.index("clusterroles") + 1)
    names = {one["metadata"]["name"] for one in _all(api, "validatingadmissionpolicybindings")}
    evictions = {f"pilotlight-evictions{part}" for part in ("", "-pods", "-nodes")}
    assert names == {"pilotlight-nodes", "pilotlight-tolerations", "pilotlight-homes", *evictions}
    assert pools_in(api) == ("a100", "a10g", "t4", "v100", "v100x4")


def pools_in(api: ApiServer) -> tuple[str, ...] | None:
    """The pools that the admission policy on the server lists."""
    variables = api.store.get("validatingadmissionpolicies", "pilotlight-nodes")["spec"]["variables"]
    return names_of(next(v["expression"] for v in variables if v["name"] == "pools"))


def test_pools_are_named_as_their_cloud_names_them(api: ApiServer, tmp_path: Path) -> None:
    """Nodes carry the cloud's name of a pool: that is what the admission policy compares."""
    (tmp_path / "policy.yaml").write_text(
        "version: 1\npools:\n  t4: {instance_type: g4dn.xlarge, cluster_pool: 0f3a-civo}\n"
    )
    run("--act", "--policy", str(tmp_path / "policy.yaml"))
    assert pools_in(api) == ("0f3a-civo",)


def test_pools_that_changed_are_written_anew(api: ApiServer, tmp_path: Path) -> None:
    """After the policy's pools changed, --act changes the admission policies that list them and nothing else."""
    for names in ("t4", "t4, a100"):
        pools = "".join(f"  {name}: {{instance_type: g4dn.xlarge}}\n" for name in names.split(", "))
        (tmp_path / "policy.yaml").write_text(f"version: 1\npools:\n{pools}")
        api.requests.clear()
        run("--act", "--policy", str(tmp_path / "policy.yaml"))
    changed = [line.rpartition("/")[2] for line in writes(api)]
    assert changed == ["pilotlight-nodes", "pilotlight-evictions-nodes", "token"]
    assert pools_in(api) == ("a100", "t4")


OURS_ANYWHERE = (
    "namespaces", "serviceaccounts", "configmaps", "clusterroles", "clusterrolebindings",
    "validatingadmissionpolicies", "validatingadmissionpolicybindings",
)  # fmt: skip


def left(api: ApiServer) -> list[str]:
    """Every object that is left of what connect may have made."""
    resources = map(api.store.resource, OURS_ANYWHERE)
    found = [f"{r.kind} {o['metadata']['name']}" for r in resources for o in api.store.list(r, "", "", "")]
    return [each for each in found if each.partition(" ")[2].startswith("pilotlight")]


def test_removal_leaves_nothing(api: ApiServer) -> None:
    """--remove takes out every object, the rights before what limits them, and says each in a line."""
    run("--act")
    for kind, name in (
        ("ConfigMap", "kube-root-ca.crt"),
        ("ConfigMap", "istio-ca-root-cert"),
        ("ServiceAccount", "default"),
    ):
        api.add({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "pilotlight"}})
    api.requests.clear()
    said = run("--remove").stderr
    assert left(api) == []
    gone = [line.split("/")[-2] for line in writes(api)]
    assert gone.index("validatingadmissionpolicybindings") > gone.index("clusterrolebindings")
    assert "removed ClusterRoleBinding pilotlight-act" in said
    assert run("--remove").stderr == "nothing of Pilotlight's is on this cluster\n"


def test_a_dry_removal_removes_nothing(api: ApiServer) -> None:
    """It says each object that would go."""
    run("--act")
    before = left(api)
    api.requests.clear()
    said = run("--remove", "--dry-run").stderr
    assert (writes(api), left(api)) == ([], before)
    assert "remove ValidatingAdmissionPolicyBinding pilotlight-nodes" in said
    assert said.endswith("nothing was changed\n")


def test_a_namespace_with_more_in_it_stays(api: ApiServer) -> None:
    """What else is in the namespace, such as a home, is named and left there; the account and its rights are gone."""
    run("--act")
    home = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "home", "namespace": "pilotlight"}}
    api.add(home)
    said = run("--remove").stderr
    assert "kept Namespace pilotlight: it holds deployments/home; kubectl delete namespace pilotlight" in said
    assert left(api) == ["Namespace pilotlight"]


def test_removal_lifts_our_marks(api: ApiServer) -> None:
    """A node with our taint takes pods again: nobody else would ever lift it; a node without it stays as it is."""
    run("--act")
    ours = {"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}
    for name, spec in (("marked", {"taints": [ours]}), ("cordoned", {"unschedulable": True})):
        api.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec})
    assert "reopened Node marked: it had the taint pilotlight.dev/draining" in run("--remove").stderr
    assert not api.store.get("nodes", "marked")["spec"].get("taints")
    assert api.store.get("nodes", "cordoned")["spec"]["unschedulable"]


NAMESAKES = (
    ("v1", "Namespace", "pilotlight"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", "pilotlight-observe"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "pilotlight-act"),
)


@pytest.mark.parametrize(("version", "kind", "name"), NAMESAKES, ids=[each[1] for each in NAMESAKES])
def test_an_object_of_somebody_elses_is_left_alone(api: ApiServer, version: str, kind: str, name: str) -> None:
    """One of our names without our label is neither changed, which says what to do about it, nor removed."""
    api.add({"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"team": "theirs"}}})
    resource = api.store.of_kind(version, kind)
    before = api.store.read(resource, ("", name))["metadata"]["resourceVersion"]
    with pytest.raises(Failed, match=f"{kind} {name} is there, and not Pilotlight's"):
        run("--act")
    run("--remove")
    assert api.store.read(resource, ("", name))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize("other", ["--act", "--rotate", "--stdout"])
def test_removal_goes_alone(api: ApiServer, other: str) -> None:
    """With an option that makes something it is refused before anything is asked."""
    with pytest.raises(BadInput, match="--remove goes with no other"):
        run("--remove", other)
    assert api.requests == []


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


ACTORS = ("--actor", "act@acme.iam.gserviceaccount.com", "--actor", "1234567890")
READERS = ("--reader", "bill@acme.iam.gserviceaccount.com")


def _all(api: ApiServer, plural: str) -> list[dict[str, Any]]:
    return api.store.list(api.store.resource(plural), "", "", "")


def _whose(api: ApiServer) -> str:
    """Whom both policies limit, and who may do what the third lets nobody else do."""
    found = {each["metadata"]["name"]: each["spec"] for each in _all(api, "validatingadmissionpolicies")}
    homes, nodes, pods = (found[f"pilotlight-{name}"]["matchConditions"] for name in ("homes", "nodes", "tolerations"))
    assert (pods, homes[0]["expression"]) == (nodes, f"!({nodes[0]['expression']})")
    return str(nodes[0]["expression"])


def _users(api: ApiServer, name: str) -> list[str]:
    found = _all(api, "clusterrolebindings")
    return [s["name"] for one in found if one["metadata"]["name"] == name for s in one["subjects"]]


def test_accounts_that_the_cluster_knows_are_bound_and_limited(api: ApiServer) -> None:
    """A function's account gets the role it is named for, acts within the pools as ours does, and needs no token."""
    done = run("--act", *ACTORS, *READERS)
    assert _users(api, "pilotlight-act-accounts") == [ACTORS[1], ACTORS[3]]
    assert _users(api, "pilotlight-observe-accounts") == [ACTORS[1], ACTORS[3], READERS[1]]
    limited = names_of(_whose(api).removeprefix("request.userInfo.username in "))
    assert limited == ("system:serviceaccount:pilotlight:pilotlight", ACTORS[3], ACTORS[1])
    assert not [line for line in writes(api) if line.endswith("/token")]
    assert "no token was made" in done.output
    assert not _users(api, "pilotlight-queues-accounts")


def test_who_answers_kueue_and_who_only_stops_its_queues(api: ApiServer) -> None:
    """With --kueue who acts may answer checks and stop queues; who only counts money may stop queues, no more."""
    run("--act", "--kueue", *ACTORS, *READERS)
    assert _users(api, "pilotlight-kueue-accounts") == [ACTORS[1], ACTORS[3]]
    assert _users(api, "pilotlight-queues-accounts") == [ACTORS[1], ACTORS[3], READERS[1]]
    rules = {one["metadata"]["name"]: one["rules"] for one in _all(api, "clusterroles")}
    assert [(rule["resources"], rule["verbs"]) for rule in rules["pilotlight-kueue"]] == [
        (["workloads", "workloads/status"], ["patch"]),
        (["clusterqueues"], ["get"]),
        (["events"], ["create"]),
    ]
    assert [rule["resources"] for rule in rules["pilotlight-queues"]] == [["clusterqueues", "localqueues"]]


def test_who_asks_gkes_queue_and_who_only_reads_it(api: ApiServer) -> None:
    """With --gke-queue who acts makes and deletes requests in our namespace; who only counts money reads them there."""
    run("--act", "--gke-queue", *ACTORS, *READERS)
    bound = {one["metadata"]["name"]: one for one in _all(api, "rolebindings")}
    whose = {
        one["roleRef"]["name"]: [each["name"] for each in one["subjects"]]
        for name, one in bound.items()
        if name.endswith("-accounts")
    }
    actors = [ACTORS[1], ACTORS[3]]
    assert whose == {"pilotlight-gke-queue": [*actors, READERS[1]], "pilotlight-gke-queue-act": actors}
    assert {(one["metadata"]["namespace"], one["roleRef"]["kind"]) for one in bound.values()} == {
        ("pilotlight", "Role")
    }
    rules = {one["metadata"]["name"]: one["rules"] for one in _all(api, "roles")}
    verbs = {name: [(rule["resources"], rule["verbs"]) for rule in found] for name, found in rules.items()}
    assert verbs["pilotlight-gke-queue"] == [(["provisioningrequests"], ["list"])]
    assert verbs["pilotlight-gke-queue-act"] == [
        (["provisioningrequests"], ["create", "delete"]),
        (["podtemplates"], ["create"]),
    ]


ACTING = [ACTORS[1], ACTORS[3]]
ALL = [*ACTING, READERS[1]]
WHOSE = {
    "karpenter": {"pilotlight-karpenter": ACTING},
    "karpenter-claims": {"pilotlight-karpenter-claims": ACTING},
    "gke-queue": {"pilotlight-gke-queue": ALL, "pilotlight-gke-queue-act": ACTING},
    "kueue": {"pilotlight-kueue": ACTING, "pilotlight-queues": ALL},
    "reclaim": {"pilotlight-reclaim": [READERS[1]]},
}
"""Options that a role of rbac/ is behind, by the file's name: who of actors and readers has which."""
BASE = {"observe", "act", "read"}
INFRA = Path(__file__).resolve().parents[4] / "infra"


@pytest.mark.parametrize("name", WHOSE)
def test_each_role_that_is_off_unless_asked_for_has_its_option(api: ApiServer, name: str) -> None:
    """It makes the objects of its file alone, binds accounts to its roles, and --remove takes all of it out."""
    run("--act", *ACTORS, *READERS)
    before = _rights(api)
    run("--act", f"--{name}", *ACTORS, *READERS)
    made = _rights(api) - before
    documents = [one for one in yaml.safe_load_all((INFRA / f"kubernetes/rbac/{name}.yaml").read_text()) if one]
    ours = {(one["kind"], one["metadata"]["name"]) for one in documents}
    assert {one for one in made if not one[1].endswith("-accounts")} == ours
    bound = [*_all(api, "clusterrolebindings"), *_all(api, "rolebindings")]
    whose = {
        one["roleRef"]["name"]: [each["name"] for each in one["subjects"]]
        for one in bound
        if (one["kind"], one["metadata"]["name"]) in made - ours
    }
    assert whose == WHOSE[name]
    run("--remove")
    assert _rights(api) == set()


def _rights(api: ApiServer) -> set[tuple[str, str]]:
    kinds = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    return {(one["kind"], one["metadata"]["name"]) for kind in kinds for one in _all(api, kind)}


def test_options_manifests_chart_and_terraform_know_the_same_roles() -> None:
    """Both ways: a role without an option, a value of the chart or a setting of Terraform is found, and so is an option
    without a role."""
    files = {path.stem for path in (INFRA / "kubernetes" / "rbac").glob("*.yaml")} - BASE
    values = {part.source.removeprefix("rbac/").removesuffix(".yaml") for part in chart.PARTS.values() if part.when}
    outputs = (INFRA / "terraform/modules/settings/outputs.tf").read_text()
    options = set(re.findall(r"^        ([a-z-]+) += (?:try\(c\.|c\.)", outputs, re.M))
    command = set(re.findall(r"--([a-z-]+)", run("--help").output)) & (files | set(EXTRAS))
    assert files == set(EXTRAS) == set(WHOSE) == options == command == {one for one in values if "/" not in one} - BASE
    for extra, found in WHOSE.items():
        assert {f"pilotlight-{role}" for role in EXTRAS[extra].roles} == set(found)


def test_who_acts_stays_limited_when_the_pools_change(api: ApiServer, tmp_path: Path) -> None:
    """Connecting again without naming the accounts keeps them bound, and the policy goes on limiting them."""
    run("--act", *ACTORS, *READERS)
    before = _whose(api)
    (tmp_path / "p.yaml").write_text("version: 1\npools: {x: {cloud: civo, instance_type: g4g.40.kube.small, max: 1}}")
    run("--act", "--policy", str(tmp_path / "p.yaml"), "--stdout")
    assert _whose(api) == before
    run(*READERS)
    assert _users(api, "pilotlight-observe-accounts") == [ACTORS[1], ACTORS[3], READERS[1]]


def test_a_second_account_never_acts(api: ApiServer, tmp_path: Path) -> None:
    """--read-only makes an account of its own that is bound to what looks, and its token."""
    run("--read-only", "--out", str(tmp_path / "mine"))
    assert "minted-pilotlight-reader-1" in (tmp_path / "mine").read_text()
    found = _all(api, "clusterrolebindings")
    roles = [o["roleRef"]["name"] for o in found for s in o["subjects"] if s["name"] == "pilotlight-reader"]
    assert roles == ["pilotlight-observe"]


def test_removal_takes_out_the_other_accounts_too(api: ApiServer) -> None:
    """Nothing is left of whom it let in."""
    run("--act", *(f"--{name}" for name in EXTRAS), *ACTORS, *READERS)
    run("--read-only", "--stdout")
    run("--remove")
    for kind in ("clusterrolebindings", "clusterroles", "rolebindings", "roles", "serviceaccounts"):
        assert not _all(api, kind)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(ACTORS, "add --act", id="who acts without --act"),
        pytest.param(("--reader", "system:anonymous"), "is no account", id="one of Kubernetes' own"),
        pytest.param(("--act", "--actor", "a@x", "--reader", "a@x"), "name it once", id="both at once"),
        pytest.param(("--read-only", "--act"), "never acts", id="a reader that acts"),
        pytest.param(("--read-only", "--kueue"), "never acts", id="a reader that answers"),
        *(pytest.param((f"--{name}",), "add --act", id=f"{name} without --act") for name in TO_ACT),
        pytest.param(("--read-only", "--karpenter"), "leave out all other rights", id="a reader that sets limits"),
        pytest.param(("--rotate", *READERS), "need none", id="a token for who needs none"),
    ],
)
def test_what_cannot_be_meant_is_refused(api: ApiServer, words: tuple[str, ...], says: str) -> None:
    """Nothing is written for options that contradict each other."""
    with pytest.raises(BadInput, match=says):
        run(*words)
    assert writes(api) == []


def test_evictions_are_granted_in_named_namespaces_alone(api: ApiServer) -> None:
    """Then the role that acts evicts nowhere, a Role of each namespace there; --remove takes those out, no other's."""
    said = run("--act", "--evict-in", "ml", "--evict-in", "batch", "--actor", ACTORS[1]).stderr
    assert "pods/eviction" not in str(api.store.get("clusterroles", "pilotlight-act")["rules"])
    assert "created RoleBinding pilotlight-evictions" in said
    for name in ("batch", "ml"):
        role = api.store.get("roles", "pilotlight-evictions", name)
        assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}]
        bound = api.store.get("rolebindings", "pilotlight-evictions", name)
        assert [one["name"] for one in bound["subjects"]] == ["pilotlight", ACTORS[1]]
    theirs = {"name": "pilotlight-evictions", "namespace": "theirs", "labels": {}}
    api.add({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": theirs})
    said = run("--remove").stderr
    assert "removed RoleBinding ml/pilotlight-evictions" in said
    left = [one["metadata"].get("namespace") for one in _all(api, "roles")]
    assert "ml" not in left
    assert "theirs" in left


@pytest.mark.parametrize(
    ("words", "says"), [(("--evict-in", "ml"), "add --act"), (("--act", "--evict-in", "A/b"), "no name")]
)
def test_a_namespace_to_evict_in_goes_with_acting(api: ApiServer, words: tuple[str, ...], says: str) -> None:
    """And is a name; else nothing is made."""
    with pytest.raises(BadInput, match=says):
        run(*words)
    assert writes(api) == []
