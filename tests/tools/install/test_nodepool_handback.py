"""Limits of NodePools given back as they were, without any state of ours."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, api_server
from gated_site import GatedSite
from karpenter import Karpenter
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes import nodepool_limits
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api
from pilotlight.errors import BadInput, Conflict
from pilotlight.tools.cli.main import build
from pilotlight.tools.install.karpenter.nodepool_handback import give_back

NOW = datetime(2026, 11, 28, 8, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An API server."""
    with api_server() as found:
        yield found


@pytest.fixture
def api(server: ApiServer) -> Api:
    """Its client."""
    return Api(source_of("kubeconfig-env:K", {"K": server.kubeconfig()}), pause=lambda seconds: None)


@pytest.mark.parametrize("limit", [None, "64", "0"])
def test_a_limit_is_as_it_was(server: ApiServer, api: Api, limit: str | None) -> None:
    """After some changes of ours the owner's value stands again, or none does, and no note of ours is left."""
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit=limit)
    for gpus in (24, 8, 0):
        (state,) = nodepool_limits.read(api, ["gpu"])
        nodepool_limits.set_limit(api, state, gpus)
    (said,) = give_back(api, (), NOW, dry_run=True)
    assert (said.verb, said.was, said.now, karpenter.limit("gpu")) == ("would set", "0", limit or "none", "0")
    list(give_back(api, ["gpu"], NOW, dry_run=False))
    assert karpenter.limit("gpu") == limit
    notes = server.store.get("nodepools", "gpu")["metadata"]["annotations"]
    assert notes == {"pilotlight.dev/gpu-limit-handed-back": "2026-11-28T08:00:00Z"}
    assert list(give_back(api, (), NOW, dry_run=False)) == []


@pytest.mark.parametrize("writes", [1, 4, 5])
def test_karpenter_s_own_writes_delay_it_alone(
    server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Karpenter counts into the NodePool between our read and our write: we read again; what never rests is told."""
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit="64")
    (state,) = nodepool_limits.read(api, ["gpu"])
    nodepool_limits.set_limit(api, state, 8)
    ask, counts = Api.ask, iter(range(writes))

    def raced(self: Api, method: str, where: str, *rest: Any) -> Any:
        if method == "PATCH" and (count := next(counts, None)) is not None:
            ask(self, method, where, NOTHING, {"metadata": {"labels": {"counted": str(count)}}}, MERGE_PATCH)
        return ask(self, method, where, *rest)

    monkeypatch.setattr(Api, "ask", raced)
    if writes < 5:
        list(give_back(api, (), NOW, dry_run=False))
        assert karpenter.limit("gpu") == "64"
    else:
        with pytest.raises(Conflict):
            list(give_back(api, (), NOW, dry_run=False))
        assert karpenter.limit("gpu") == "8"


def test_only_those_that_are_named_are_given_back(server: ApiServer, api: Api) -> None:
    """Another NodePool keeps the limit of ours, and one that we never limited is not touched."""
    karpenter = Karpenter(server, 8)
    for name in ("a", "b", "c"):
        karpenter.pool(name, "p4d", limit="64")
    for state in nodepool_limits.read(api, ["a", "b"]):
        nodepool_limits.set_limit(api, state, 8)
    assert [line.pool for line in give_back(api, ["b"], NOW, dry_run=False)] == ["NodePool b"]
    assert [karpenter.limit(name) for name in ("a", "b", "c")] == ["8", "64", "64"]


def test_what_is_handed_back_stays_so_until_it_is_taken_over(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In mode act ticks leave its limit alone, and say how it is taken again; then they set it."""
    monkeypatch.setenv("PILOTLIGHT_API", "kubeconfig-env:K")
    monkeypatch.setenv("K", server.kubeconfig())
    site = GatedSite(server, 3)
    site.karpenter.pool("gpu", "eight", limit="64")
    site.tick()
    said = CliRunner().invoke(build(["handback"]), ["handback", "--pool", "gpu"], catch_exceptions=False).stdout
    assert said.splitlines() == ["NodePool gpu: set limit of nvidia.com/gpu 24 -> 64", "done"]
    for _ in range(3):
        site.tick()
    assert (site.karpenter.limit("gpu"), len(server.lines("PATCH .*nodepools"))) == ("64", 2)
    (why,) = site.told("gate-refused")
    assert "pilotlight takeover --pool gpu takes it again" in why
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npools: {a100: {cluster_pool: 'karpenter:gpu', instance_type: p4d.24xlarge}}\n")
    words = ["takeover", "--pool", "gpu", "--policy", str(policy)]
    said = CliRunner().invoke(build(words[:1]), words, catch_exceptions=False).stdout
    assert said.splitlines() == ["NodePool gpu: set handed back yes -> (none)", "done"]
    said = CliRunner().invoke(build(words[:1]), words, catch_exceptions=False).stdout
    assert said.splitlines() == ["NodePool gpu: is Pilotlight's already", "nothing was changed"]
    with pytest.raises(BadInput, match="pool a100 is Karpenter's: say --pool gpu, its NodePool"):
        CliRunner().invoke(build(words[:1]), ["takeover", "--pool", "a100", *words[3:]], catch_exceptions=False)
    site.tick()
    assert site.karpenter.limit("gpu") == "24"


@pytest.mark.parametrize("words", [["uninstall"], ["uninstall", "--only-taints"]])
def test_uninstall_gives_limits_back(
    server: ApiServer, api: Api, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """An uninstall, a Helm release's too, leaves no NodePool with a limit of ours; a dry run says so and leaves it."""
    monkeypatch.setenv("PILOTLIGHT_API", "kubeconfig-env:K")
    monkeypatch.setenv("K", server.kubeconfig())
    karpenter = Karpenter(server, 8)
    karpenter.pool("gpu", "p4d", limit="64")
    (state,) = nodepool_limits.read(api, ["gpu"])
    nodepool_limits.set_limit(api, state, 8)
    dry = CliRunner().invoke(build(words[:1]), [*words, "--dry-run"], catch_exceptions=False).stdout
    assert ("NodePool gpu: would set limit of nvidia.com/gpu 8 -> 64" in dry, karpenter.limit("gpu")) == (True, "8")
    CliRunner().invoke(build(words[:1]), words, catch_exceptions=False)
    assert karpenter.limit("gpu") == "64"


def test_a_cluster_without_karpenter_has_nothing_to_give_back(api: Api) -> None:
    """A server that does not know NodePools is no error."""
    assert list(give_back(api, (), NOW, dry_run=False)) == []
