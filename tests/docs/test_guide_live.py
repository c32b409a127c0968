"""A new user who follows README and the guides on the control plane that KUBECONFIG names gets what they show.

The cluster has to be empty of GPUs, waiting pods and of Pilotlight, and kubectl has to be found. Kueue and Karpenter
are their CRDs with the one object that a page names; their controllers are not asked for anything.
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
from guide import differs
from had import give
from pages import CLUSTERS, PAGES, ROOT, Block, blocks, typed
from shell import Shell

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
    pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl is found"),
]

WALKED = [page for page in PAGES if any(block.needs in CLUSTERS for block in blocks(page))]
KINDS = ("clusterrole", "validatingadmissionpolicy", "mutatingadmissionpolicy")
WAITING = ("README", "kubernetes")
"""Pages whose reader has a pod that waits for a GPU."""
JOB = ROOT / "infra/kubernetes/samples/gpu-test.yaml"
KARPENTER = ROOT / "docs/guides/karpenter.md"
QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "research"}, "spec": {}}


def _nodepool() -> str:
    """The NodePool as the page writes it."""
    return next(block.text for block in blocks(KARPENTER) if "kind: NodePool" in block.text)


THERE = {"kubernetes": ("kueue", json.dumps(QUEUE)), "karpenter": ("karpenter", _nodepool())}
"""What a page's reader has in the cluster: CRDs, and an object of theirs."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    """A kubeconfig that calls the cluster prod; what the pages made is taken away afterwards."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]).read_text("utf-8"))
    [context] = [each for each in config["contexts"] if each["name"] == config["current-context"]]
    context["name"] = config["current-context"] = "prod"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    if _kubectl(path, "get nodes,namespace/pilotlight --ignore-not-found -o name"):
        pytest.skip("the cluster is not empty")
    try:
        yield str(path)
    finally:
        for each in (f"-f {JOB}", "clusterqueue/research", "nodepool/gpu", "namespace/pilotlight"):
            _kubectl(path, f"delete {each} --ignore-not-found --timeout=300s")
        ours = " ".join(f"{kind},{kind}binding" for kind in KINDS).replace(" ", ",")
        _kubectl(path, f"get {ours} -o name | grep pilotlight | xargs -r kubectl --kubeconfig {path} delete")


def _kubectl(path: Path, words: str) -> str:
    line = f"kubectl --kubeconfig {path} {words}"
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600, check=False).stdout


def _until(path: Path, words: str) -> None:
    ends = time.monotonic() + 300
    while not _kubectl(path, words):
        assert time.monotonic() < ends, f"nothing yet: {words}"
        time.sleep(0.5)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in WALKED])
def test_a_page_does_what_it_shows_on_a_cluster(page: Path, kubeconfig: str, tmp_path: Path, shelf: Path) -> None:
    """Each command prints what is shown below it; a whole policy is saved as policy.yaml on the way."""
    path = Path(kubeconfig)
    crds, thing = THERE.get(page.stem, ("", ""))
    if crds:
        _kubectl(path, f"apply --server-side --force-conflicts -f {shelf}/contracts/crds/{crds}")
        _until(path, f"create -f - <<< '{thing}'")
    if page.stem in WAITING:
        _kubectl(path, f"apply -f {JOB}")
        _until(path, "get pods -l job-name=gpu-test -o jsonpath={.items[*].status.conditions[*].reason}")
    folder = tmp_path / "checkout"
    folder.mkdir()
    shell = Shell(folder, KUBECONFIG=kubeconfig)
    give(folder)
    try:
        assert [found for block in blocks(page) for found in _followed(shell, block)] == []
    finally:
        shell.end()


def _followed(shell: Shell, block: Block) -> Iterator[str]:
    if block.kind == "yaml" and "version: 1" in block.text:
        (shell.folder / "policy.yaml").write_text(block.text)
    for said in typed(block) if block.needs in CLUSTERS else ():
        if found := differs(said, shell.run(said.command)[1]):
            yield f"{block.where} {found}"
