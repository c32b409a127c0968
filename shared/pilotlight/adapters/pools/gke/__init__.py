"""Node pools of GKE: ``gke:PROJECT/LOCATION/CLUSTER``, the location a zone or a region.

``pools`` is the port; ``google_rest`` calls GKE and Compute Engine, ``node_pools`` and ``groups`` are what they tell,
``closed`` says which pools nothing may be asked of, ``queue`` asks for queued provisioning, ``reservations`` says what
is paid for, ``refusals`` why an instance was not made, ``shop`` what a location rents, ``spot_prices`` what spot costs
there, ``spot_odds`` where it is soon taken.
"""

import re

from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.pools.gke.google_rest import GoogleRest
from pilotlight.adapters.pools.gke.pools import GkePools
from pilotlight.ports.clouds import CloudAccount, Pools, Shop

ADDRESS = "gke:PROJECT/LOCATION/CLUSTER"
WHERE = re.compile(r"([a-z][a-z0-9.:-]{4,61}[a-z0-9])/([a-z]+-[a-z]+\d+(?:-[a-z])?)/([a-z][a-z0-9-]{0,39})")
GKE, COMPUTE = "https://container.googleapis.com", "https://compute.googleapis.com"


def open_pools(where: str, account: CloudAccount) -> Pools | None:
    """The node pools of one cluster; None where ``where`` is not PROJECT/LOCATION/CLUSTER."""
    cluster = cluster_at(where)
    if not cluster:
        return None
    gke, compute = apis(account)
    return GkePools(gke, compute, cluster, account.names, account.clock, account.reserved, account.api)


def cluster_at(where: str) -> str:
    """The cluster by its name at GKE; empty where ``where`` is not PROJECT/LOCATION/CLUSTER."""
    named = WHERE.fullmatch(where)
    return f"projects/{named[1]}/locations/{named[2]}/clusters/{named[3]}" if named else ""


def open_shop(where: str, account: CloudAccount) -> Shop:
    """Shop of a location, which follows the project in ``where``."""
    from pilotlight.adapters.pools.gke.shop import GkeShop

    project, location, *_ = *where.split("/"), ""
    return GkeShop(apis(account)[1], project, location, region_of(where), account.clock)


def region_of(where: str) -> str:
    """The region of an address's location, which is a zone of it or the region itself."""
    _, location, *_ = *where.split("/"), ""
    head, _, tail = location.rpartition("-")
    return head if len(tail) == 1 else location


def apis(account: CloudAccount) -> tuple[GoogleRest, GoogleRest]:
    """GKE and Compute Engine, with one token; at other addresses where gcloud's variables name some."""
    token = GoogleToken(file=bool(account.environ.get("GOOGLE_APPLICATION_CREDENTIALS")))
    gke = account.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER", "") or GKE
    compute = account.environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", "") or COMPUTE
    return GoogleRest(gke, token, account.environ), GoogleRest(compute, token, account.environ)
