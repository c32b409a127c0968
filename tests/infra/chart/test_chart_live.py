"""The chart installed, upgraded and uninstalled by Helm 4's code on the control plane that KUBECONFIG names.

Its account has a name of its own only here: where one is there already, nothing is touched.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from helm import CHART, Json, calls, needs_helm
from test_connect_live import eventually

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.policy_file import read_policy

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
    needs_helm,
]

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
OURS = "/api/v1/namespaces/pilotlight"
POLICY = """version: 1
pools:
  {name}: {{cloud: eks, instance_type: g4dn.xlarge, labels: {{gpu: t4}}, max: 2}}
prices: {{max_age_days: 3650}}
"""


class Site:
    """A cluster with one small node, a class of volumes, and a pod that waits for a GPU; and Helm."""

    def __init__(self) -> None:
        self.file = os.environ["KUBECONFIG"].split(os.pathsep)[0]
        self.api, self.name = Api(of_file(Path(self.file))), f"pl-{uuid.uuid4().hex[:8]}"
        self._made: list[str] = []

    def make(self, place: str, each: Json) -> None:
        """Create an object, which goes at the end."""
        self.api.ask("POST", place, NOTHING, each)
        self._made.append(f"{place}/{each['metadata']['name']}")

    def furnish(self) -> None:
        """What the release needs to run, and what it is to find."""
        room = {"cpu": "8", "memory": "16Gi", "pods": "20"}
        ready = {"type": "Ready", "status": "True", "reason": "Set", "message": "by hand"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        labels = {"kubernetes.io/hostname": self.name, "topology.kubernetes.io/zone": "a"}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}, "status": status}
        volumes = {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": self.name},
            "provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer",
        }  # fmt: skip
        gpu = {"limits": {"nvidia.com/gpu": 1}}
        spec = {"containers": [{"name": "m", "image": "i", "resources": gpu}], "nodeSelector": {"gpu": "t4"}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": self.name}, "spec": spec}
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pilotlight", "labels": restricted}}
        self.make("/api/v1/namespaces", space)
        self.make("/api/v1/nodes", node)
        self.make("/apis/storage.k8s.io/v1/storageclasses", volumes)
        self.make("/api/v1/namespaces/default/pods", pod)

    def clear(self) -> None:
        """Take everything away."""
        for path in reversed(self._made):
            self.api.ask("DELETE", path, NOTHING)

    def helm(self, what: str, **options: Any) -> Json:
        """What Helm answers."""
        where = {"kubeconfig_path": self.file, "namespace": "pilotlight"}
        [answer] = calls(("release", {"what": what, "name": "pilotlight", **where, **options}))
        assert "value" in answer, answer
        return dict(answer["value"])

    def put(self, what: str, **more: Any) -> Json:
        """Install or upgrade the chart with the policy of one pool."""
        image = {"repository": "registry.example.com/pilotlight"}
        values = {
            "image": image, "policy": POLICY.format(name=self.name), "storage": {"className": self.name}, **more,
        }  # fmt: skip
        return self.helm(what, chart=str(CHART), values=values, wait="legacy", timeout=120)

    def get(self, path: str) -> Json | None:
        """An object; None where it is not there."""
        try:
            return self.api.get(path, ANY)
        except Missing:
            return None


@pytest.fixture
def site() -> Iterator[Site]:
    """Only where no Pilotlight is there."""
    found = Site()
    if found.get(OURS):
        pytest.skip("a Pilotlight is on this cluster")
    found.furnish()
    try:
        yield found
    finally:
        found.clear()
        eventually(lambda: found.get(OURS), lambda there: there is None)


class Kubelet(threading.Thread):
    """Runs what the pods of the release's Jobs would run, as their account, as it goes; ``ran`` is what they said."""

    def __init__(self, site: Site, folder: Path) -> None:
        super().__init__(daemon=True)
        self._site, self._folder, self._over = site, folder, threading.Event()
        self.ran: list[str] = []

    def run(self) -> None:
        """Until it is told to stop."""
        done = set[str]()
        while not self._over.wait(0.2):
            pods = (self._site.get(f"{OURS}/pods") or {}).get("items", [])
            for pod in pods:
                name, account = pod["metadata"]["name"], pod["spec"]["serviceAccountName"]
                if account == "pilotlight-uninstall" and name not in done:
                    done.add(name)
                    self.ran.append(self._run(account, pod["spec"]["containers"][0]["command"]))
                    over = {"status": {"phase": "Succeeded"}}
                    self._site.api.ask("PATCH", f"{OURS}/pods/{name}/status", NOTHING, over, MERGE_PATCH)

    def _run(self, account: str, command: list[str]) -> str:
        token(self._site, account, self._folder)
        environ = {**os.environ, "PILOTLIGHT_API": f"kubeconfig:{self._folder}/kubeconfig"}
        words = [str(Path(sys.executable).parent / command[0]), *command[1:]]
        told: subprocess.CompletedProcess[str] = subprocess.run(words, env=environ, capture_output=True, text=True)
        return told.stdout + told.stderr

    def __enter__(self) -> "Kubelet":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def token(site: Site, account: str, folder: Path) -> None:
    """A kubeconfig of an account of the release."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    asked = site.api.ask("POST", f"{OURS}/serviceaccounts/{account}/token", ANY, body)
    config = yaml.safe_load(Path(site.file).read_text())
    cluster = {"name": "c", "cluster": config["clusters"][0]["cluster"]}
    mine = {
        "apiVersion": "v1", "kind": "Config", "clusters": [cluster], "current-context": "x",
        "users": [{"name": "u", "user": {"token": asked["status"]["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(mine))


def as_the_account(site: Site, folder: Path) -> dict[str, str]:
    """The variables of the release's pod, for a process beside the cluster with that pod's token."""
    token(site, "pilotlight", folder)
    settings = (site.get(f"{OURS}/configmaps/pilotlight-settings") or {})["data"]
    (folder / "policy.yaml").write_text((site.get(f"{OURS}/configmaps/pilotlight-policy") or {})["data"]["policy.yaml"])
    here = {
        "PILOTLIGHT_API": f"kubeconfig:{folder}/kubeconfig", "PILOTLIGHT_POLICY": f"{folder}/policy.yaml",
        "PILOTLIGHT_STATE": f"sqlite:{folder}/state.db", "PILOTLIGHT_OUTBOX": f"local:{folder}/outbox",
        "PILOTLIGHT_HOME": str(folder),
    }  # fmt: skip
    return {**os.environ, **settings, **here}


def tokens(site: Site) -> str:
    """Who may post, as the Secret has it."""
    secret = site.get(f"{OURS}/secrets/pilotlight") or {}
    return base64.b64decode(secret["data"]["PILOTLIGHT_TOKENS"]).decode()


def test_it_is_installed_advises_acts_and_goes(site: Site, tmp_path: Path) -> None:
    """In a namespace that enforces `restricted`: it runs, advises by its own account, keeps its tokens, and leaves."""
    assert site.put("install")["status"] == "deployed"
    home = site.get("/apis/apps/v1/namespaces/pilotlight/deployments/pilotlight") or {}
    assert home["status"].get("availableReplicas") == 1
    told = subprocess.run(
        [Path(sys.executable).parent / "pilotlight", "reconcile"], env=as_the_account(site, tmp_path),
        capture_output=True, text=True,
    )  # fmt: skip
    assert f"would buy 1 x {site.name}/g4dn.xlarge/on-demand: the mode is advise" in told.stdout, told.stderr

    begun = subprocess.run(
        [Path(sys.executable).parent / "pilotlight", "init", "-o", "-"], env=as_the_account(site, tmp_path),
        capture_output=True, text=True,
    )  # fmt: skip
    assert read_policy(begun.stdout, "policy.yaml").pools, begun.stderr

    before, limit = tokens(site), "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/pilotlight-nodes"
    assert site.get(limit) is None
    assert site.put("upgrade", mode="act")["revision"] == 2
    policy = site.get(limit) or {}
    assert next(v["expression"] for v in policy["spec"]["variables"] if v["name"] == "pools") == f"['{site.name}']"
    assert tokens(site) == before

    kept = [{"key": f"pilotlight.dev/{key}", "value": "x", "effect": "NoSchedule"} for key in ("draining", "home")]
    site.api.ask("PATCH", f"/api/v1/nodes/{site.name}", NOTHING, {"spec": {"taints": kept}}, MERGE_PATCH)
    written = {"name": f"{site.name}-gpus", "labels": {"app.kubernetes.io/name": "pilotlight"}}
    site.make("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": written})
    with Kubelet(site, tmp_path) as kubelet:
        site.helm("uninstall", wait="legacy", timeout=120)
    assert [said.count(f"reopen Node {site.name}") for said in kubelet.ran] == [2, 0]
    assert all(f"keep ConfigMap default/{site.name}-gpus" in said for said in kubelet.ran)
    left = (site.get(f"/api/v1/nodes/{site.name}") or {})["spec"].get("taints", [])
    assert [taint for taint in left if "pilotlight" in taint["key"]] == []
    assert site.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/pilotlight-uninstall") is None
    assert site.get(limit) is None
    assert site.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/pilotlight-observe") is None
    claims = (site.get(f"{OURS}/persistentvolumeclaims") or {})["items"]
    assert {each["metadata"]["name"] for each in claims} == {"pilotlight-state", "pilotlight-outbox"}
