"""A cluster of files can be looked at and not touched."""

from pathlib import Path

import pytest

from pilotlight.errors import Reject
from pilotlight.facts.policy import Policy
from pilotlight.tools.cli.cluster_files import File, FileCluster, FilePools

FOLDER = Path(__file__).parents[3] / "examples" / "cluster"


@pytest.fixture
def cluster() -> FileCluster:
    """The sample cluster."""
    pods, nodes = (File((FOLDER / name).read_bytes(), name) for name in ("pods.json", "nodes.json"))
    return FileCluster(pods, nodes, [], Policy(version=1))


def test_it_can_be_looked_at(cluster: FileCluster) -> None:
    """Demand, nodes, what is bound and the sizes of pools are what the files say."""
    assert len(cluster.observe().pending) == 9
    assert [p.name for p in cluster.bound_pods("gpu-t4-1")] == ["llm-api-59bd599549-bt52z"]
    assert {p.name: p.desired for p in FilePools(cluster).describe()} == {"a100": 1, "t4": 1}


def test_it_cannot_be_touched(cluster: FileCluster) -> None:
    """Every effect is refused: a dry run changes nothing."""
    pools = FilePools(cluster)
    for effect in (
        lambda: cluster.cordon("n"),
        lambda: cluster.uncordon("n"),
        lambda: cluster.open("n"),
        lambda: cluster.drain("n"),
        lambda: cluster.tell("a", "p", "r", "m"),
        lambda: pools.grow("t4", 2),
        lambda: pools.release("t4", "i"),
    ):
        with pytest.raises(Reject, match="a dry run changes nothing"):
            effect()
