"""Taking node pools of GKE over and giving them back: on the local project, validated by Google's documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from api_server import ApiServer, api_server
from gke_answers import WHERE
from gke_server import Gke
from gke_site import serving
from small_cloud import world
from typer.testing import CliRunner

from pilotlight.adapters.pools import gke as gke_cloud
from pilotlight.errors import BadInput, BadRequest, Busy, Failed
from pilotlight.ports.clouds import CloudAccount, Pools
from pilotlight.tools.cli.main import build
from pilotlight.tools.install import gke_handover

POLICY = """
version: 1
pools:
  one: {cloud: gke, cluster_pool: one-pool, instance_type: g2-standard-4, max: 4, on_silence: hand-back}
"""
SCALED = {"enabled": True, "maxNodeCount": 7, "locationPolicy": "ANY"}
EXCLUDED = {
    "window": {
        "maintenanceExclusions": {
            "jobs": {
                "startTime": "2026-06-01T00:00:00Z",
                "endTime": "2099-01-01T00:00:00Z",
                "maintenanceExclusionOptions": {"scope": "NO_MINOR_OR_NODE_UPGRADES"},
            }
        }
    }
}


class Site(NamedTuple):
    """A node pool that GKE's autoscaler keeps, a cluster, and a person's terminal."""

    gke: Gke
    pools: Pools
    server: ApiServer

    def run(self, *words: str) -> str:
        """What a command prints; what it raises goes on to the test."""
        return CliRunner().invoke(build([words[0]]), list(words), catch_exceptions=False).stdout

    @property
    def settings(self) -> tuple[Any, Any]:
        """What scales the pool, and what repairs it."""
        pool = self.gke.extra["one"]
        return pool["autoscaling"], pool["management"]

    @property
    def closed(self) -> str:
        """Why Pilotlight leaves the pool alone."""
        rules = next(state.rules for state in self.pools.describe() if state.name == "one")
        assert rules is not None
        return rules.closed

    @property
    def record(self) -> dict[str, tuple[str, str]]:
        """What was written down of it."""
        made = self.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")
        return {one["name"]: (one["was"], one["now"]) for one in json.loads(made["data"]["one"])["settings"]}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A pool with autoscaling, auto-repair and auto-upgrade on."""
    monkeypatch.setattr(gke_handover, "LOOK_S", 0.0)
    gke = Gke(world())
    gke.extra["one"] = {"autoscaling": SCALED, "management": {"autoRepair": True, "autoUpgrade": True}}
    (tmp_path / "policy.yaml").write_text(POLICY)
    with api_server() as server, serving(gke) as environ:
        for key, value in {
            **environ,
            "PILOTLIGHT_HOME": str(tmp_path),
            "PILOTLIGHT_POLICY": str(tmp_path / "policy.yaml"),
            "PILOTLIGHT_STATE": f"sqlite:{tmp_path / 's.db'}",
            "PILOTLIGHT_CLUSTER": "prod",
            "PILOTLIGHT_API": "kubeconfig-env:K",
            "PILOTLIGHT_POOLS": f"gke:{WHERE}",
            "K": server.kubeconfig(),
        }.items():
            monkeypatch.setenv(key, value)
        pools = gke_cloud.open_pools(WHERE, CloudAccount({"one": "one-pool"}, gke.world.clock, str, environ))
        assert pools is not None
        yield Site(gke, pools, server)


def test_a_dry_run_changes_nothing(site: Site) -> None:
    """It says both settings; GKE is only read, and nothing is written down."""
    said = site.run("takeover", "--pool", "one", "--dry-run").splitlines()
    assert said == [
        "one: would set repairs true -> false",
        'one: would set autoscaling {"enabled":true,"maxNodeCount":7,"locationPolicy":"ANY"} -> (none)',
        "nothing was changed",
    ]
    assert (site.gke.changes(), site.server.lines("^(POST|PATCH|PUT|DELETE)")) == ([], [])


def test_a_pool_is_taken_over_and_given_back_as_it_was(site: Site) -> None:
    """Autoscaling and repair go off, upgrades stay; handed back all is as it was, and Pilotlight stays off."""
    before = site.settings
    site.run("takeover", "--pool", "one")
    assert site.settings == ({"enabled": False}, {"autoRepair": False, "autoUpgrade": True})
    assert (site.closed, site.record["repairs"]) == ("", ("true", "false"))
    assert "is Pilotlight's already" in site.run("takeover", "--pool", "one")
    assert site.run("handback", "--pool", "one").splitlines()[-1] == "done"
    assert site.settings == before
    assert "the cluster autoscaler scales node pool one-pool" in site.closed
    assert site.run("handback") == "one: is given back already\nnothing was changed\n"
    site.run("takeover", "--pool", "one")
    assert site.closed == ""


def test_only_two_verbs_change_a_node_pool(site: Site) -> None:
    """No size, no label and no taint: an update of a node pool recreates its nodes, whatever runs on them."""
    site.run("takeover", "--pool", "one")
    site.run("handback")
    assert {verb for verb, _ in site.gke.changes()} == {"setAutoscaling", "setManagement"}
    assert not [method for method, *_ in site.gke.calls if method.endswith(("nodePools.update", "clusters.update"))]


def test_a_pool_that_no_autoscaler_kept_is_given_back_with_what_is_left_to_do(site: Site) -> None:
    """Nothing at GKE would say that it is another's: repair is on again, and the policy is to say the rest."""
    site.gke.extra["one"]["autoscaling"] = {}
    site.run("takeover", "--pool", "one")
    said = site.run("handback", "--pool", "one")
    assert "set pools.one.mode to advise, or run pilotlight pause --pool one" in said
    assert site.settings[1] == {"autoRepair": True, "autoUpgrade": True}


def test_bounds_that_somebody_set_since_are_theirs(site: Site) -> None:
    """A person switched it on again with other bounds: these stay, and are said with what they were."""
    site.run("takeover", "--pool", "one")
    site.gke.extra["one"]["autoscaling"] = {"enabled": True, "maxNodeCount": 2}
    assert "autoscaling is left at" in site.run("handback")
    assert site.settings[0] == {"enabled": True, "maxNodeCount": 2}


def test_repair_stays_on_within_a_maintenance_exclusion(site: Site) -> None:
    """It holds nothing up then, so nothing of it is changed or given back."""
    site.gke.cluster = {"maintenancePolicy": EXCLUDED}
    site.run("takeover", "--pool", "one")
    assert (site.settings[1]["autoRepair"], list(site.record)) == (True, ["autoscaling"])


def test_a_release_channel_that_insists_on_repair_is_told_with_the_way_out(site: Site) -> None:
    """GKE's own words, and the maintenance exclusion; the autoscaler keeps the pool until then."""
    site.gke.insists = True
    with pytest.raises(BadRequest, match=r"release channel REGULAR is set.*add a maintenance exclusion of scope"):
        site.run("takeover", "--pool", "one")
    assert site.settings[0] == SCALED
    site.gke.cluster = {"maintenancePolicy": EXCLUDED}
    site.run("takeover", "--pool", "one")
    assert site.closed == ""


NEVER: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "Autopilot": ({}, {"autopilot": {"enabled": True}}, "use a Standard cluster"),
    "auto-provisioned": ({"autoscaling": {"enabled": True, "autoprovisioned": True}}, {}, "create one by hand"),
    "of a ComputeClass": ({"config": {"labels": {"cloud.google.com/compute-class": "gpu"}}}, {}, "a ComputeClass made"),
    "queued provisioning": ({"queuedProvisioning": {"enabled": True}}, {}, "its nodes come by GKE's queue"),
    "flex-start": ({"config": {"flexStart": True}}, {}, "no static size"),
}


@pytest.mark.parametrize(("pool", "cluster", "says"), NEVER.values(), ids=NEVER)
def test_a_pool_that_can_never_be_ours_is_refused(
    site: Site, pool: dict[str, Any], cluster: dict[str, Any], says: str
) -> None:
    """With what to make instead; GKE is not asked to change it."""
    site.gke.extra["one"] |= pool
    site.gke.cluster = cluster
    with pytest.raises(BadInput, match=says):
        site.run("takeover", "--pool", "one")
    assert site.gke.changes() == []


def test_a_pool_that_gke_works_on_is_taken_over_later(site: Site) -> None:
    """Both colours are there: nothing is asked until the upgrade is over."""
    site.gke.doubled.add("one")
    with pytest.raises(Busy, match="take it over again when that is over"):
        site.run("takeover", "--pool", "one")
    site.gke.doubled.clear()
    assert site.run("takeover", "--pool", "one").splitlines()[-1] == "done"


def test_an_operation_is_waited_for_and_its_error_is_told(site: Site) -> None:
    """A change is done when its operation is; what failed is gone on with by running it again."""
    site.gke.works = 3
    site.run("takeover", "--pool", "one")
    assert site.gke.works == 0
    site.gke.fails = "Internal error"
    with pytest.raises(Failed, match="run it again"):
        site.run("handback")
    site.run("handback")
    assert site.settings == (SCALED, {"autoRepair": True, "autoUpgrade": True})


@pytest.mark.parametrize("way", [("--if-silent", "10m"), ()], ids=["its watchman", "a person"])
def test_giving_back_needs_no_policy_and_no_state(site: Site, monkeypatch: pytest.MonkeyPatch, way: Any) -> None:
    """The record names the cluster; silence gives it back too."""
    site.run("takeover", "--pool", "one")
    made = site.server.store.get("configmaps", "pilotlight-takeover", "pilotlight")
    made["data"]["one"] = json.dumps(json.loads(made["data"]["one"]) | {"at": "2026-01-01T00:00:00Z"})
    meta = {"name": "pilotlight-placement", "namespace": "pilotlight"}
    site.server.add({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": meta, "spec": {}})
    for name in ("PILOTLIGHT_POOLS", "PILOTLIGHT_STATE", "PILOTLIGHT_POLICY"):
        monkeypatch.delenv(name)
    site.run("handback", *way)
    assert site.settings[0] == SCALED


def test_uninstall_gives_it_back_and_leaves_no_record(site: Site) -> None:
    """Nothing marks the pool, so no mark is taken off it."""
    site.run("takeover", "--pool", "one")
    assert "handed-back" not in site.run("uninstall", "--dry-run")
    said = site.run("uninstall")
    assert (site.settings[0], "remove ConfigMap pilotlight-takeover" in said) == (SCALED, True)
