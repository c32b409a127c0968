"""A new user who follows docs/guides/kubernetes.md on the control plane that KUBECONFIG names gets what it shows.

The cluster has to be empty of GPUs, waiting pods and of Pilotlight, and kubectl has to be found. Kueue is its CRDs with
the ClusterQueue that the page names; its controller is not asked for anything.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from guide import blocks, commands, differs, follow, fresh
from manifests import ROOT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
    pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl is found"),
]

GUIDE = ROOT / "docs" / "guides" / "kubernetes.md"
JOB = "infra/kubernetes/samples/gpu-test.yaml"
QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "research"}, "spec": {}}


@pytest.fixture
def user(tmp_path: Path, shelf: Path) -> Iterator[dict[str, str]]:
    """The environment of a user whose kubeconfig calls the cluster prod, and whose test job waits for a GPU."""
    environ = fresh(tmp_path, ROOT, os.environ)
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]).read_text("utf-8"))
    [context] = [each for each in config["contexts"] if each["name"] == config["current-context"]]
    context["name"] = config["current-context"] = "prod"
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    environ["KUBECONFIG"] = str(tmp_path / "kubeconfig")
    if _run(environ, "kubectl get nodes,namespace/pilotlight --ignore-not-found -o name"):
        pytest.skip("the cluster is not empty")
    (tmp_path / "policy.yaml").write_text(blocks(GUIDE, "yaml")[0])
    try:
        _run(environ, f"kubectl apply --server-side --force-conflicts -f {shelf}/contracts/crds/kueue")
        _until(environ, f"kubectl create -f - <<< '{json.dumps(QUEUE)}'")
        _run(environ, f"kubectl apply -f {ROOT / JOB}")
        _until(environ, "kubectl get pods -l job-name=gpu-test -o jsonpath={.items[*].status.conditions[*].reason}")
        yield environ
    finally:
        for each in ("API", "POOLS", "POLICY", "CLUSTER"):
            environ.pop(f"PILOTLIGHT_{each}", None)
        _run(environ, f"kubectl delete -f {ROOT / JOB} --ignore-not-found")
        _run(environ, "kubectl delete clusterqueue/research --ignore-not-found")
        _run(environ, f"{ROOT}/.venv/bin/pilotlight connect --context prod --remove")
        _run(environ, "kubectl wait --for=delete namespace/pilotlight --timeout=300s")


def _run(environ: dict[str, str], command: str) -> str:
    done = subprocess.run(
        ["bash", "-c", command], env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    return done.stdout


def _until(environ: dict[str, str], command: str) -> None:
    ends = time.monotonic() + 300
    while not _run(environ, command):
        assert time.monotonic() < ends, f"nothing yet: {command}"
        time.sleep(0.5)


def test_following_the_guide(user: dict[str, str], tmp_path: Path) -> None:
    """Each command prints what is shown below it."""
    assert [found for said in commands(GUIDE) if (found := differs(said, follow(said, tmp_path, user)))] == []
