"""Which node pool a cloud's group of instances is of, by its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.facts.nodes.instance_groups import pool_of_group

OKTETO = "us-central1-cloud-okteto-com"
OKTETO_GROUP = "gke-us-central1-cloud-okteto-com-pro-a09dced8-grp"
LONG = "pool5-20210928124956061000000001"
SPOT = "gke-train-t4-spot-5e1b20aa-grp"
CLUSTER = "psyoblade-container-cluster"
UUID = "f0bc7fd4-8c1e-4b6a-9d0e-2f6c1a7b3d55"

NAMES = {
    "a pool by its own name": ("t4", ["t4"], "", "t4"),
    "GKE's group": ("gke-train-t4-5e1b20aa-grp", ["t4", "spot"], "", "t4"),
    "GKE's group by its address": ("https://x/instanceGroups/gke-c-t4-5e1b20aa-grp", ["t4"], "", "t4"),
    "a pool with a dash in its name": (SPOT, ["t4", "t4-spot"], "", "t4-spot"),
    "two readings, and nobody knows the cluster": (SPOT, ["spot", "t4-spot"], "", ""),
    "two readings, and the cluster decides": (
        "gke-train-t4-spot-5e1b20aa-grp",
        ["spot", "t4-spot"],
        "train",
        "t4-spot",
    ),
    "two readings, and another cluster decides": (
        "gke-train-t4-spot-5e1b20aa-grp",
        ["spot", "t4-spot"],
        "train-t4",
        "spot",
    ),
    "a cluster by another name of ours": ("gke-train-t4-5e1b20aa-grp", ["t4"], "prod", "t4"),
    "a pool inside another's name": ("gke-train-t4-large-5e1b20aa-grp", ["t4"], "", ""),
    "a cluster called as the pool": ("gke-t4-cpu-5e1b20aa-grp", ["t4"], "", ""),
    "no hash": ("gke-train-t4-grp", ["t4"], "", ""),
    "a hash that is none": ("gke-train-t4-5e1b20zz-grp", ["t4"], "", ""),
    "a node, not a group": ("gke-train-t4-5e1b20aa-x9kz", ["t4"], "", ""),
    "no cluster": ("gke-t4-5e1b20aa-grp", ["t4"], "", ""),
    "a cut cluster": (
        "gke-psyoblade-container--default-pool-1b2bb42a-grp",
        ["default-pool"],
        "psyoblade-container-cluster",
        "default-pool",
    ),
    "a cut pool": (OKTETO_GROUP, ["production-a"], OKTETO, "production-a"),
    "a cut pool that may be two": (OKTETO_GROUP, ["prod-a", "prod-b"], OKTETO, ""),
    "a few letters of a pool of a cluster that is not known": (OKTETO_GROUP, ["production-a"], "", ""),
    "many letters of a cut pool": ("gke-prow-build-pool5-2021092812495606-e8f905a4-grp", [LONG], "", LONG),
    "a short name is never cut": ("gke-train-t4-5e1b20aa-grp", ["t4-large"], "train", ""),
    "EKS's group": (f"eks-t4-{UUID}", ["t4"], "", "t4"),
    "EKS's group of a pool with a dash": (f"eks-t4-spot-{UUID}", ["spot", "t4-spot"], "", "t4-spot"),
    "EKS's group of another pool": (f"eks-t4-large-{UUID}", ["t4", "large"], "", ""),
    "EKS's with half a uuid": ("eks-t4-f0bc7fd4-8c1e", ["t4"], "", ""),
    "a group of nobody": ("my-asg", ["t4"], "", ""),
}


@pytest.mark.parametrize(("group", "pools", "cluster", "pool"), NAMES.values(), ids=NAMES)
def test_a_group_is_of_one_pool_or_of_none(group: str, pools: list[str], cluster: str, pool: str) -> None:
    """The whole name is read; what is not sure is nobody's."""
    assert pool_of_group(group, pools, cluster) == pool


PART = st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True)


@given(cluster=PART, pool=PART, others=st.lists(PART, max_size=4), hashed=st.integers(0, 16**8 - 1))
def test_with_its_cluster_known_a_whole_name_is_always_read(
    cluster: str, pool: str, others: list[str], hashed: int
) -> None:
    """However pools and clusters are called: of the group that GKE would make of a pool, that pool is told."""
    assert pool_of_group(f"gke-{cluster}-{pool}-{hashed:08x}-grp", [pool, *others], cluster) == pool
