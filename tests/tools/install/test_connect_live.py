"""`pilotlight connect` and `doctor` on the control plane that KUBECONFIG names, from nothing to nothing.

The account has a name of its own only here: where one is there already, nothing is touched.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.errors import BadRequest
from pilotlight.tools.cli.install import connect_command
from pilotlight.tools.cli.start import doctor_command
from pilotlight.tools.install.connect_account import PLACES

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]

NODES = "/api/v1/nodes"
ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
POLICY = """version: 1
pools:
  {name}: {{instance_type: g4dn.xlarge, mode: act}}
prices: {{max_age_days: 3650}}
"""


class Story:
    """A node of a pool with a name of the run's own, and the commands."""

    def __init__(self, folder: Path) -> None:
        self.admin = Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))
        self.pool = self.node = f"pl-{uuid.uuid4().hex[:8]}"
        self.mine, self._policy = folder / "mine", folder / "policy.yaml"
        meta = {"name": self.node, "labels": {"pilotlight.dev/pool": self.pool}}
        self.admin.ask("POST", NODES, NOTHING, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        self.lists(self.pool)

    def lists(self, pool: str) -> None:
        """Write a policy of one pool."""
        self._policy.write_text(POLICY.format(name=pool))

    def run(self, *words: str) -> str:
        """What a command prints."""
        app = typer.Typer()
        for command in (connect_command, doctor_command):
            command.register(app)
        return CliRunner().invoke(app, [*words, "--policy", str(self._policy)], catch_exceptions=False).output

    def connect(self, *words: str) -> str:
        """`pilotlight connect`."""
        return self.run("connect", "--out", str(self.mine), *words)

    def limit(self, *words: str) -> tuple[str, str]:
        """What the doctor says of the admission policy."""
        [checks] = json.loads(self.run("doctor", "--json", *words)).values()
        return next((c["verdict"], c["what"]) for c in checks if c["code"] == "limit")

    def there(self) -> bool:
        """Whether our namespace is."""
        try:
            self.admin.get(f"{PLACES['Namespace']}/pilotlight", NOTHING)
        except Missing:
            return False
        return True


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    """Only where no account of ours is there: this one is taken away with all that belongs to it."""
    for name in ("POLICY", "CLUSTER", "CLUSTERS", "MODE", "API", "POOLS"):
        monkeypatch.delenv(f"PILOTLIGHT_{name}", raising=False)
    found = Story(tmp_path)
    try:
        if found.there():
            pytest.skip("an account of Pilotlight's is on this cluster")
        yield found
        found.connect("--remove")
        eventually(lambda: found.there() or None, lambda there: there is None)
    finally:
        found.admin.ask("DELETE", f"{NODES}/{found.node}", NOTHING)


def eventually(do: Callable[[], Any], wanted: Callable[[Any], bool], *problems: type[Exception]) -> Any:
    """What ``do`` returns, once that is wanted."""
    ends = time.monotonic() + 300
    while True:
        try:
            seen = do()
        except problems as error:
            seen = error
        if wanted(seen):
            return seen
        assert time.monotonic() < ends, f"still {seen!r}"
        time.sleep(0.5)


def test_connect_act_doctor_and_remove(story: Story) -> None:
    """What is made is proven with either credential, follows the policy's pools, and goes without a trace."""
    story.connect("--act")
    for words in ((), ("--kubeconfig", str(story.mine))):
        _, said = eventually(partial(story.limit, *words), lambda found: found[0] == "ok")
        assert f"refused a label of {story.node}" in said
        assert f"allowed our taint on {story.node}" in said
    account = Api(of_file(story.mine))
    writes.cordon(account, story.node)
    story.lists("another")
    assert story.limit()[0] == "fault"
    assert "changed ValidatingAdmissionPolicy pilotlight-nodes" in story.connect("--act")

    def mark_anew() -> None:
        writes.uncordon(account, story.node)
        writes.cordon(account, story.node)

    eventually(mark_anew, lambda seen: isinstance(seen, BadRequest), BadRequest)
    taints = [{"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}]
    story.admin.ask("PATCH", f"{NODES}/{story.node}", NOTHING, {"spec": {"taints": taints}}, MERGE_PATCH)
    said = story.run("connect", "--remove")
    assert f"reopened Node {story.node}" in said
    assert "removed Namespace pilotlight" in said
    spec = story.admin.get(f"{NODES}/{story.node}", ANY)["spec"]
    assert "pilotlight.dev/draining" not in [taint["key"] for taint in spec.get("taints", [])]
    label = {"metadata": {"labels": {"probe": uuid.uuid4().hex}}}
    story.admin.ask("PATCH", f"{NODES}/{story.node}", NOTHING, label, MERGE_PATCH)
