"""``PILOTLIGHT_API`` to where a cluster's access comes from."""

import re
from collections.abc import Mapping
from pathlib import Path

from pilotlight.adapters.cluster.kubernetes.access.in_cluster import InCluster
from pilotlight.adapters.cluster.kubernetes.access.kubeconfig import Kubeconfig, Table
from pilotlight.adapters.cluster.kubernetes.access.server_access import Source
from pilotlight.errors import BadInput
from pilotlight.units import Seconds

FORMS = (
    "kubeconfig:PATH[#CONTEXT], kubeconfig-env:NAME, in-cluster, gke:projects/P/locations/L/clusters/C[?dns], "
    "eks:REGION/NAME"
)


def source_of(address: str, environ: Mapping[str, str], role: str = "") -> Source:
    """The source an address names; EKS is asked as ``role`` where one is named.

    Nothing is read yet; raises ``BadInput`` for what is no address.
    """
    if "\n" in address or "{" in address:
        raise BadInput(
            "PILOTLIGHT_API holds what looks like a kubeconfig: put that in a variable of its own, and name "
            "it here as kubeconfig-env:NAME"
        )
    kind, _, rest = address.partition(":")
    match kind:
        case "in-cluster" if not rest:
            return InCluster(environ)
        case "kubeconfig" if rest:
            path, _, context = rest.partition("#")
            return of_file(Path(path).expanduser(), context, environ)
        case "kubeconfig-env" if rest:
            name, _, context = rest.partition("#")
            return of_variable(name, environ, context)
        case "gke" if re.fullmatch(r"projects/[^/]+/locations/[^/]+/clusters/[^/?]+(\?dns)?", rest):
            from pilotlight.adapters.cluster.kubernetes.access.gke import GkeCluster

            file = bool(environ.get("GOOGLE_APPLICATION_CREDENTIALS"))
            return GkeCluster(rest.removesuffix("?dns"), dns=rest.endswith("?dns"), credentials_file=file)
        case "eks" if re.fullmatch(r"[a-z0-9-]+/[^/]+", rest):
            from pilotlight.adapters.cluster.kubernetes.access.eks import EksCluster

            region, _, name = rest.partition("/")
            return EksCluster(region, name, environ, role)
    raise BadInput(f"PILOTLIGHT_API is {address!r}: use one of {FORMS}")


def of_file(path: Path, context: str = "", environ: Mapping[str, str] = {}) -> Kubeconfig:
    """A kubeconfig file's context, its current one where none is named: with its login and its proxy."""

    def login(name: str, user: Table, cluster: Table) -> tuple[dict[str, str], Seconds]:
        from pilotlight.adapters.cluster.kubernetes.access.logins import log_in

        return log_in(path, name, user, cluster, environ)

    return Kubeconfig(path.read_bytes, str(path), context=context, folder=path.parent, login=login)


def of_variable(name: str, environ: Mapping[str, str], context: str = "") -> Kubeconfig:
    """The context of a kubeconfig that a variable holds. Raises ``BadInput`` where it is not set."""
    text = environ.get(name, "")
    if not text:
        raise BadInput(f"PILOTLIGHT_API is kubeconfig-env:{name}, which is not set: put a kubeconfig in {name}")
    return Kubeconfig(text.encode, f"the kubeconfig in {name}", context=context)
