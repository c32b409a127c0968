"""The commands that look at a real cluster, over a stand-in for its API server."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
import yaml
from api_server import Access, ApiServer, api_server
from api_store import CUSTOM
from civo_server import CLUSTER, REGION, TOKEN, Civo, serving
from forward_proxy import forward_proxy
from typer.testing import CliRunner

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import Settings
from pilotlight.state_schema.cluster_records import NODE_MARK, NodeMark, Ownership
from pilotlight.tools.cli.act import reconcile_command
from pilotlight.tools.cli.real_cluster import settings_for
from pilotlight.tools.cli.start import doctor_command, plan_command
from pilotlight.tools.cli.watch import why_command
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """An API server with the recorded cluster, named by a kubeconfig in KUBECONFIG."""
    for name in ("POLICY", "CATALOG", "CLUSTER", "CLUSTERS", "MODE", "API", "POOLS", "STATE", "OUTBOX"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    with api_server() as server:
        server.add_samples()
        server.allow = lambda access: access.verb != "impersonate"
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        yield server


def run(*words: str) -> tuple[int, str]:
    """Exit code and output; raises what the command raises."""
    app = typer.Typer()
    app.callback()(lambda: None)
    for command in (doctor_command, plan_command, reconcile_command, why_command):
        command.register(app)
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return done.exit_code, done.stdout


def checks(*words: str) -> tuple[int, list[dict[str, str]]]:
    """Exit code and checks of the only cluster."""
    code, text = run("doctor", "--json", *words)
    [found] = json.loads(text).values()
    return code, found


def changes(api: ApiServer) -> list[str]:
    """What was written, but for questions about rights and dry runs."""
    asked = [asked for asked in api.requests if asked.method != "GET" and asked.query.get("dryRun") != "All"]
    return [each.line for each in asked if "selfsubjectaccessreviews" not in each.path]


def test_a_plan_of_a_cluster_is_that_of_its_files(api: ApiServer) -> None:
    """What the API server answers and what kubectl printed of it lead to the same plan."""
    samples = Path(__file__).parents[3] / "examples" / "cluster"
    at = ("--at", "2026-11-21T01:00:00Z", "--json")
    of_files = run("plan", "--pods", str(samples / "pods.json"), "--nodes", str(samples / "nodes.json"), *at)
    assert run("plan", "--context", "test", *at) == of_files
    assert changes(api) == []


def test_without_a_context_a_cluster_is_called_by_the_current_one(api: ApiServer) -> None:
    """Two ways to the same cluster have one name, by which its records lie in the state."""
    named, current = (settings_for(context, "") for context in ("test", ""))
    assert (named.cluster, named.api) == (current.cluster, current.api)
    assert current.cluster == "test"


def test_a_plan_of_nothing_names_the_current_context(api: ApiServer) -> None:
    """No cluster is looked at that nobody named; the line that says so is complete to type."""
    with pytest.raises(BadInput, match=r"or a cluster by --context test; "):
        run("plan")
    assert api.requests == []


def test_a_plan_by_a_kubeconfigs_proxy(api: ApiServer) -> None:
    """A cluster that only a proxy reaches is planned on like another."""
    at = ("--at", "2026-11-21T01:00:00Z", "--json", "--context", "test")
    straight = run("plan", *at)
    file = Path("kubeconfig")
    made = yaml.safe_load(file.read_text())
    with forward_proxy(api.url.removeprefix("http://")) as proxy:
        made["clusters"][0]["cluster"]["proxy-url"] = proxy.url
        file.write_text(yaml.safe_dump(made))
        assert run("plan", *at) == straight
    assert set(proxy.asked) == {api.url.removeprefix("http://")}


def test_a_plan_of_the_deployments_cluster(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without files or a context it is the cluster that PILOTLIGHT_API names."""
    monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{Path('kubeconfig').resolve()}")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    assert json.loads(run("plan", "--json")[1])["buys"]


def test_a_plan_is_of_files_or_of_a_cluster(api: ApiServer) -> None:
    """Both at once, and neither, are refused with what to name."""
    with pytest.raises(BadInput, match="name one of them"):
        run("plan", "--context", "test", "--pods", "pods.json", "--nodes", "nodes.json")
    with pytest.raises(BadInput, match="or a cluster by --context"):
        run("plan")


def test_a_dry_reconcile_changes_nothing(api: ApiServer, tmp_path: Path) -> None:
    """It says what a tick would do; neither the cluster nor the state is written."""
    code, text = run("reconcile", "--context", "test", "--dry-run", "--json")
    assert (code, json.loads(text)["why"][:18]) == (0, "dry run: would buy")
    assert changes(api) == []
    assert not list((tmp_path / "home").glob("outbox/**/*.json"))


def test_a_reconcile_only_advises_until_told_otherwise(api: ApiServer) -> None:
    """Without a mode and without who sells nodes, a real tick says what it would do."""
    _, text = run("reconcile", "--context", "test")
    assert "advised, the mode is advise" in text
    assert changes(api) == []


BLOCKED = (
    {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": {"name": "web-stays", "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    },
    {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web-0", "namespace": "ml", "labels": {"app": "web"}},
        "spec": {"nodeName": "gpu-a100-idle", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    },
)
"""A pod on the idle node of the recorded cluster, and the budget that lets nobody evict it."""


def test_the_doctor_lists_our_taints_with_their_owners(api: ApiServer) -> None:
    """A node that a look holds closed is told with the reason of the record; without one, that none says so."""
    ours = [{"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}]
    api.store.patch(api.store.resource("nodes"), ("", "gpu-a100-idle"), {"spec": {"taints": ours}})

    def said() -> list[tuple[str, str]]:
        found = checks("--context", "test")[1]
        return [(check["verdict"], check["what"]) for check in found if check["code"] == "mark"]

    [(verdict, what)] = said()
    assert (verdict, "no record" in what) == ("warning", True)
    site = App(settings_for("test", ""))
    claim = Ownership(why="its budget has no room for more on it", since=datetime(2026, 11, 21, 1, tzinfo=UTC))
    mark = NodeMark(node="gpu-a100-idle", owners={"budget": claim})
    NODE_MARK.put(site.state, f"{site.settings.cluster_name}/{mark.node}", mark)
    [(verdict, what)] = said()
    assert (verdict, "budget since " in what, "has no room" in what) == ("ok", True, True)


def test_why_says_what_keeps_an_idle_node(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No decision names a node that stays: why looks, and names the pod and its budget; nothing is written."""
    api.add(*BLOCKED)
    monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{Path('kubeconfig').resolve()}")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    code, text = run("why", "gpu-a100-idle")
    assert (code, "now\n  node gpu-a100-idle: keep, $32.77/h\n" in text) == (0, True)
    assert "    blocked by ml/web-0: PodDisruptionBudget web-stays allows no disruption" in text.splitlines()
    assert json.loads(run("why", "gpu-a100-idle", "--json")[1])[0]["verdict"] == "keep"
    assert changes(api) == []


def test_why_says_what_becomes_of_a_pod_before_the_first_decision(
    api: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What status says of a pod that waits, why says too, with what else there was; nothing is written."""
    monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{Path('kubeconfig').resolve()}")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    code, text = run("why", "ml-research/wrong-selector")
    assert (code, "now\n  ml-research/wrong-selector: to mend\n    because no pool's labels match" in text) == (0, True)
    assert json.loads(run("why", "wrong-selector", "--json")[1])[0]["verdict"] == "finding"
    assert changes(api) == []


def test_why_of_a_stranger_is_unknown_on_a_cluster_too(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What neither a record nor the cluster knows is said so; a cluster that does not answer is told of beside it."""
    monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{Path('kubeconfig').resolve()}")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    with pytest.raises(Failed, match="nothing known about 'n9'"):
        run("why", "n9")
    api.fail(404, times=99)
    with pytest.raises(Failed, match="nothing known about 'gpu-a100-idle'"):
        run("why", "gpu-a100-idle")


def test_the_doctor_finds_the_recorded_clusters_faults(api: ApiServer) -> None:
    """The a100 node lacks the policy's label and has a taint of its own: exit 1, each with its fix."""
    code, found = checks("--context", "test")
    assert code == 1
    faults = {check["what"] for check in found if check["verdict"] == "fault"}
    assert faults == {
        "node gpu-a100-idle has no label gpu, the policy says on-demand",
        "node gpu-a100-idle has taint team=production:NoSchedule, which the policy does not know",
    }
    assert changes(api) == []


def test_the_doctor_reads_as_lines(api: ApiServer) -> None:
    """A line a check, with its fix, and a sum at the end."""
    code, text = run("doctor", "--context", "test")
    assert code == 1
    assert "FAULT    pool a100: node gpu-a100-idle has no label gpu, the policy says on-demand; fix: set it" in text
    assert text.rstrip().splitlines()[-1].startswith("  2 at fault, ")


def test_a_sound_cluster_ends_with_zero(api: ApiServer, tmp_path: Path) -> None:
    """Nothing at fault is exit 0, warnings or not."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\npools:\n  t4: {instance_type: g4dn.xlarge, labels: {gpu: on-demand}, "
        "taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]}\nprices: {max_age_days: 3650}\n"
    )
    assert checks("--context", "test", "--policy", str(policy))[0] == 0


def test_each_missing_right_is_named(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server is asked verb by verb; what mode act lacks is one line each, with the file that grants it."""
    monkeypatch.setenv("PILOTLIGHT_MODE", "act")
    api.allow = lambda access: access.verb in ("list", "get") and access.resource != "secrets"
    _, found = checks("--context", "test")
    assert {(check["what"], check["fix"]) for check in found if check["code"] == "right"} == {
        ("may not patch nodes, which mode act needs", "grant it with pilotlight connect --act"),
        ("may not patch pods, which mode act needs", "grant it with pilotlight connect --act"),
        ("may not create pods/eviction, which mode act needs", "grant it with pilotlight connect --act"),
        ("may not create events.k8s.io/events, which mode act needs", "grant it with pilotlight connect --act"),
    }


def test_what_may_not_be_read_is_unseen(api: ApiServer) -> None:
    """Without the right to list Deployments nobody claims that no autoscaler runs."""
    api.allow = lambda access: access.group != "apps"
    _, found = checks("--context", "test")
    assert {check["subject"] for check in found if check["code"] == "hidden"} == {"apps/daemonsets", "apps/deployments"}
    [rival] = [check for check in found if check["code"] == "rival"]
    assert (rival["verdict"], rival["what"]) == ("unknown", "not looked for: apps/deployments cannot be listed")


def test_others_that_scale_are_found_by_their_objects(api: ApiServer) -> None:
    """A cluster-autoscaler told of a pool, a NodePool without a limit, and more replicas than GPUs, from the API."""
    for name in ("karpenter", "keda"):
        api.store.resources[(CUSTOM[name].group_version, CUSTOM[name].plural)] = CUSTOM[name]
    gpu = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    api.add(
        _deployment("kube-system", "cluster-autoscaler", {"command": ["./cluster-autoscaler", "--nodes=0:9:t4"]}),
        _deployment("ml", "speech", gpu),
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "speech", "namespace": "ml"},
            "spec": {"scaleTargetRef": {"name": "speech"}, "maxReplicaCount": 500, "triggers": []},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "gpus"},
            "spec": {"template": {"spec": {"requirements": [{"key": "karpenter.k8s.aws/instance-gpu-count"}]}}},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
            "data": {"priorities": "10:\n  - .*on-demand.*\n50:\n  - .*spot.*\n"},
        },
    )
    _, found = checks("--context", "test")
    faults = {(check["code"], check["subject"]) for check in found if check["verdict"] == "fault"}
    assert faults >= {
        ("rival", "pool t4"),
        ("gpu-limit", "nodepool gpus"),
        ("replicas", "scaledobject ml/speech"),
        ("priority-expander", "cluster-autoscaler-priority-expander"),
    }


def _deployment(namespace: str, name: str, container: Mapping[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "c", "image": "x", **container}]}}},
    }


@pytest.fixture
def ending(api: ApiServer, tmp_path: Path) -> str:
    """A service account's token of 30 days with three left, in the kubeconfig."""
    now = time.time()
    claims = json.dumps({"iat": now - 27 * 86_400, "exp": now + 3 * 86_400 + 60, "sub": "system:serviceaccount:a:b"})
    token = f"h.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.s"
    (tmp_path / "kubeconfig").write_text(api.kubeconfig(token=token))
    return token


def test_a_token_that_ends_soon_is_told(ending: str) -> None:
    """It is a warning of the check-up with the way out; the token itself is nowhere in it."""
    _, found = checks("--context", "test")
    [credential] = [check for check in found if check["code"] == "token"]
    assert (credential["verdict"], credential["what"][-11:]) == ("warning", "in 3.0 days")
    assert ending not in json.dumps(found)


def test_a_tick_tells_of_it_too(ending: str, tmp_path: Path) -> None:
    """The alert is on the outbox, without the token."""
    run("reconcile", "--context", "test")
    sent = [path.read_text() for path in (tmp_path / "home").rglob("*") if path.is_file() and "alerts" in str(path)]
    assert sum("its token ends" in text for text in sent) == 1
    assert not any(ending in text for text in sent)


def test_pools_are_looked_for_at_their_cloud(api: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Civo is asked for each pool by its id: one it has is well with its size, one it has not is at fault."""
    plain = App(Settings())
    world = World(
        plain.catalog, [WorldPool.from_policy("t4", plain.policy.pools["t4"])], clock=VirtualClock(plain.catalog.as_of)
    )
    policy = tmp_path / "policy.yaml"
    pools = "t4: {instance_type: g4dn.xlarge, cluster_pool: t4-pool-id}, a100: {instance_type: p4d.24xlarge}"
    policy.write_text(f"version: 1\npools: {{{pools}}}\n")
    with serving(Civo(world)) as url:
        monkeypatch.setenv("PILOTLIGHT_POOLS", f"civo:{REGION}/{CLUSTER}")
        monkeypatch.setenv("CIVO_API_URL", url)
        monkeypatch.setenv("CIVO_TOKEN", TOKEN)
        _, found = checks("--context", "test", "--policy", str(policy))
        monkeypatch.setenv("CIVO_TOKEN", "another")
        _, refused = checks("--context", "test", "--policy", str(policy))
    assert {(c["subject"], c["verdict"], c["what"]) for c in found if c["code"] == "pool"} == {
        ("pool t4", "ok", "is there, desired size 0, 1 node registered"),
        ("pool a100", "fault", "the cloud has no pool a100"),
    }
    assert {(c["subject"], c["verdict"], c["what"]) for c in found if c["code"] == "size"} == {
        ("pool t4", "fault", "g4dn.xlarge is no size of the region"),
        ("pool a100", "fault", "p4d.24xlarge is no size of the region"),
    }
    assert [c["verdict"] for c in refused if c["code"] == "cloud"] == ["fault"]
    assert TOKEN not in json.dumps([found, refused])


def test_a_cluster_that_does_not_answer_is_at_fault(api: ApiServer) -> None:
    """Nothing is looked at further; one line says what was tried."""
    api.fail(503, times=100)
    code, found = checks("--context", "test")
    assert code == 1
    assert [(check["code"], check["verdict"]) for check in found] == [("reach", "fault")]


def test_a_cluster_that_refuses_us_is_at_fault(api: ApiServer) -> None:
    """A token that the server does not take is a fault, and is not shown."""
    api.tokens = {"another"}
    code, found = checks("--context", "test")
    assert (code, found[0]["code"]) == (1, "reach")
    assert "planted-token" not in json.dumps(found)


def test_many_clusters_are_looked_at_side_by_side(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of PILOTLIGHT_CLUSTERS has its own checks; one that cannot be reached stops no other."""
    kubeconfig = f"kubeconfig:{Path('kubeconfig').resolve()}"
    clusters = {"a": {"api": kubeconfig, "pools": "advisor"}, "b": {"api": kubeconfig + "#test", "pools": "advisor"}}
    monkeypatch.setenv("PILOTLIGHT_CLUSTERS", json.dumps(clusters))
    code, text = run("doctor", "--json")
    found = json.loads(text)
    assert (code, list(found)) == (1, ["a", "b"])
    assert all(len(each) > 5 for each in found.values())


def test_a_kubeconfig_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Bad input says which file was looked for."""
    for name in ("API", "CLUSTERS", "CLUSTER"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    with pytest.raises(BadInput, match=r"no/such: no such kubeconfig"):
        run("doctor", "--kubeconfig", str(tmp_path / "no" / "such"))


def test_rights_are_asked_one_by_one(api: ApiServer) -> None:
    """Rights are asked as SelfSubjectAccessReviews with the subresource apart."""
    asked: list[Access] = []

    def allow(access: Access) -> bool:
        asked.append(access)
        return True

    api.allow = allow
    checks("--context", "test")
    assert Access("create", "", "pods", "eviction") in asked


def test_act_without_a_cloud_to_ask_says_so(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """PILOTLIGHT_MODE=act with PILOTLIGHT_POOLS=advisor advises, and the answer says why it is no more than that."""
    monkeypatch.setenv("PILOTLIGHT_API", f"kubeconfig:{Path('kubeconfig').resolve()}")
    monkeypatch.setenv("PILOTLIGHT_POOLS", "advisor")
    monkeypatch.setenv("PILOTLIGHT_MODE", "act")
    why = json.loads(run("reconcile", "--dry-run", "--json")[1])["why"]
    assert "the mode is advise (PILOTLIGHT_MODE is act, and PILOTLIGHT_POOLS is advisor: no cloud is asked)" in why
