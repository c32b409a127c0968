"""Names of the groups of instances that clouds make of a node pool, read strictly.

GKE: ``gke-<cluster>-<pool>-<8 hex>-grp``, where a long cluster or pool is cut at its end: the cluster in
``gke-psyoblade-container--default-pool-1b2bb42a-grp``, the pool in
``gke-us-central1-cloud-okteto-com-pro-a09dced8-grp``. EKS: ``eks-<pool>-<uuid>``, uncut. Any other group is a pool by
its own name alone.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

CUT_FROM = 30
"""Cluster and pool together are cut at 32 or more letters; what is shorter than this is whole."""
LEAST = 8
"""Where the cluster is not known, so many letters of a cut pool must be there."""

_GKE = r"gke-([a-z0-9-]+)-[0-9a-f]{8}-grp"
_EKS = r"eks-(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


_LISTED = r"^\s*(?:-\s*)?[Nn]ame:\s*(\S+)"


def autoscaled_groups(status: str) -> frozenset[str]:
    """The groups that cluster-autoscaler's status names, in its older words or in YAML."""
    return frozenset(re.findall(_LISTED, status, re.MULTILINE))


class _Fit(NamedTuple):
    """A way to read a group's name: a pool, and what is left for the cluster."""

    pool: str
    cluster: str
    whole: bool

    def candidates(self, pools: Collection[str]) -> set[str]:
        """Those of ``pools`` that it may be."""
        return {pool for pool in pools if (pool == self.pool if self.whole else pool.startswith(self.pool))}


def pool_of_group(group: str, pools: Collection[str], cluster: str = "") -> str:
    """The one of ``pools`` (as the cloud calls them) whose group this is; empty where none is, or more than one may be.

    ``group`` may be an address that ends in the name. ``cluster`` is what GKE may call the cluster, and decides between
    readings.
    """
    name = group.rpartition("/")[2]
    if name in pools:
        return name
    if eks := re.fullmatch(_EKS, name):
        return eks[1] if eks[1] in pools else ""
    gke = re.fullmatch(_GKE, name)
    fits = list(_fits(gke[1], pools)) if gke else []
    ours = [fit for fit in fits if _is(cluster, fit)]
    sure = ours or [fit for fit in fits if fit.whole or len(fit.pool) >= LEAST]
    whole = [fit for fit in sure if fit.whole] or sure
    found = set[str]().union(*(fit.candidates(pools) for fit in whole))
    return found.pop() if len(found) == 1 else ""


def _fits(text: str, pools: Collection[str]) -> Iterator[_Fit]:
    """Every way to part ``<cluster>-<pool>`` so that a pool is, or may have been cut to, its end."""
    for at in range(1, len(text) - 1):
        if text[at] != "-":
            continue
        cluster, end = text[:at], text[at + 1 :]
        if end in pools:
            yield _Fit(end, cluster, True)
        elif len(text) >= CUT_FROM and any(pool.startswith(end) for pool in pools):
            yield _Fit(end, cluster, False)


def _is(cluster: str, fit: _Fit) -> bool:
    """True where the rest of a name may be this cluster's: its own, or cut where the whole is long enough to be."""
    long = len(fit.cluster) + 1 + len(fit.pool) >= CUT_FROM
    return fit.cluster == cluster or (long and cluster.startswith(fit.cluster))
