"""Claims of ours given to their NodePools: Karpenter keeps them from then on, and no job ends by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from karpenter_claims import KarpenterWorld, claim_pools, on_claims
from stage import Stage
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
from pilotlight.adapters.cluster.kubernetes.transport import Api
from pilotlight.errors import BadInput, BadRequest, Forbidden
from pilotlight.facts.policy import PoolPolicy
from pilotlight.tools.cli.main import build
from pilotlight.tools.install.karpenter.claims_handback import give_claims, may_be_given, take_claims
from pilotlight.units import HOUR

NOW = datetime(2026, 11, 29, 8, tzinfo=UTC)
POST, DELETE = "POST .*/nodeclaims", "DELETE .*/nodeclaims"
OWNED, KEPT = "karpenter.sh/nodepool", "karpenter.sh/do-not-disrupt"
CLOSED = "Karpenter buys nothing by it until you set what it may"
POOLS = {"one": PoolPolicy(instance_type="one", max=4), "eight": PoolPolicy(instance_type="eight", max=1)}


@contextmanager
def bought(**options: Any) -> Iterator[tuple[Stage, KarpenterWorld, Api]]:
    """A stage that bought a node by a claim, for a pod that runs for two hours; its cluster is the API server's."""
    stage = Stage(pools=POOLS, **options)
    with on_claims(stage.world) as (server, _):
        api = Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)
        cluster = KubernetesCluster(api, stage.deps.policy, stage.world.clock)
        stage.deps = replace(stage.deps, pools=claim_pools(server, stage.deps.policy.pools), cluster=cluster)
        stage.event(stage.submit("a", workload_class="batch", run_s=2 * HOUR))
        stage.minutes(10)
        assert (len(server.claims()), stage.world.launches) == (1, 1)
        yield stage, server, api


def handed_back(server: KarpenterWorld, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What the command says."""
    monkeypatch.setenv("PILOTLIGHT_API", "kubeconfig-env:K")
    monkeypatch.setenv("K", server.kubeconfig())
    run = CliRunner().invoke(build([words[0]]), list(words), catch_exceptions=False)
    return run.output.splitlines()


def test_a_claim_and_its_node_are_their_nodepools_and_its_pod_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim and node carry the NodePool's label, the pod is marked so that Karpenter moves it not, nothing is ended;
    in mode act ticks neither buy nor end anything there, though a second pod waits and the first one's node is idle."""
    with bought() as (stage, server, _):
        (claim,) = server.claims()
        name, node = claim["metadata"]["name"], claim["status"]["nodeName"]
        said = handed_back(server, monkeypatch, "handback")
        assert said[0].startswith("NodePool one: set handed back (none) -> 20")
        assert said[1:] == [
            f"NodeClaim {name}: set {KEPT} of 1 pod (none) -> true",
            f"NodeClaim {name}: set {OWNED} (none) -> one",
            f"NodePool one: limit of nvidia.com/gpu is left at 0: {CLOSED}",
            "done",
        ]
        (claim,) = server.claims()
        assert claim["metadata"]["labels"][OWNED] == "one"
        assert server.store.get("nodes", node)["metadata"]["labels"][OWNED] == "one"
        stage.event(stage.submit("b", run_s=600))
        stage.minutes(240)
        assert (len(server.lines(POST)), server.lines(DELETE), len(stage.world.finished)) == (1, [], 2)
        assert [one["metadata"]["name"] for one in server.claims()] == [name]


def test_a_dry_run_says_the_same_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word but for the verb; every object is at the version that it had."""
    with bought() as (_, server, _api):
        before = len(server.lines("PATCH .*"))
        said = handed_back(server, monkeypatch, "handback", "--pool", "one", "--dry-run")
        assert [line for line in said if "would set" in line] == said[:3]
        assert (len(server.lines("PATCH .*")), said[-1]) == (before, "nothing was changed")


def test_takeover_makes_them_ours_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Claim and node lose the NodePool's label, and an idle node is given back as before."""
    with bought() as (stage, server, _):
        handed_back(server, monkeypatch, "handback")
        policy = tmp_path / "policy.yaml"
        policy.write_text("version: 1\npools: {one: {instance_type: g4dn.xlarge}}\n")
        monkeypatch.setenv("PILOTLIGHT_POOLS", "karpenter")
        said = handed_back(server, monkeypatch, "takeover", "--policy", str(policy))
        (claim,) = server.claims()
        name = claim["metadata"]["name"]
        assert said[0] == f"NodeClaim {name}: set {OWNED} one -> (none)"
        assert said[1].startswith("NodePool one: set handed back ")
        assert OWNED not in claim["metadata"]["labels"]
        stage.minutes(240)
        assert (len(server.lines(DELETE)), server.claims(), len(stage.world.finished)) == (1, [], 1)


def test_what_was_cut_off_is_gone_on_with() -> None:
    """The mark is the first thing, so that a second run finds a marked NodePool and gives the claims that are left."""
    with bought() as (_, server, api):
        server.fail(403, on="PATCH .*/nodes/", times=2)
        with pytest.raises(Forbidden):
            list(give_claims(api, ["one"], NOW, dry_run=False))
        assert OWNED not in server.claims()[0]["metadata"]["labels"]
        said = [line.setting for line in give_claims(api, may_be_given(api, ()), NOW, dry_run=False)]
        assert (OWNED in said, "handed back" in said) == (True, False)
        assert may_be_given(api, ()) == []


def test_a_worker_that_looked_before_buys_and_ends_nothing_after() -> None:
    """The adapter reads the mark again where it acts: a purchase and a release are refused with the way back."""
    with bought() as (stage, server, api):
        list(give_claims(api, ["one"], NOW, dry_run=False))
        with pytest.raises(BadRequest, match="pilotlight takeover --pool one takes it again"):
            stage.deps.pools.grow("one", 2)
        with pytest.raises(BadRequest, match="NodePool one's, which ends it by itself"):
            stage.deps.pools.release("one", server.claims()[0]["metadata"]["name"])


def test_claims_of_karpenters_own_are_not_taken() -> None:
    """A NodePool whose template has our label makes claims with it: those are its own, before and after a takeover."""
    with bought() as (_, server, api):
        made = server.claims()[0]
        own = {"name": "one-x7k2p", "labels": {**made["metadata"]["labels"], OWNED: "one"}}
        server.store.write(server.store.resource("nodeclaims"), {**made, "metadata": own})
        list(give_claims(api, ["one"], NOW, dry_run=False))
        taken = [line.pool for line in take_claims(api, ["one"], dry_run=False)]
        assert taken == [f"NodeClaim {made['metadata']['name']}"]


def test_a_nodepool_without_machines_is_handed_back_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is marked all the same, so that the next tick buys nothing by it; a second time there is nothing to do."""
    with bought() as (_, server, _api):
        said = handed_back(server, monkeypatch, "handback", "--pool", "eight")
        assert said[0].startswith("NodePool eight: set handed back")
        said = handed_back(server, monkeypatch, "handback", "--pool", "eight")
        assert (said[0].startswith("NodePool eight: limit of"), said[1:]) == (True, ["nothing was changed"])
        with pytest.raises(BadInput, match="pool nine was never taken over"):
            handed_back(server, monkeypatch, "handback", "--pool", "nine")


def test_an_uninstall_gives_claims_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before our rights go; a Helm release's own, whose account may not, leaves them."""
    with bought() as (_, server, _api):
        handed_back(server, monkeypatch, "uninstall", "--only-taints")
        assert OWNED not in server.claims()[0]["metadata"]["labels"]
        said = handed_back(server, monkeypatch, "uninstall")
        assert server.claims()[0]["metadata"]["labels"][OWNED] == "one"
        assert said[0].startswith("NodePool one: set handed back")
