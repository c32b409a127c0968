"""Pools of Civo, under the address ``civo:REGION/CLUSTER_ID``.

``pools`` is the port, and ``shop`` the sizes and quota of the account. Civo's API tells no price: prices come from
files. One request changes a pool, as the port says. The wiring makes both.
"""

from pilotlight.adapters.civo_api import URL, CivoApi
from pilotlight.adapters.pools.civo.pools import CivoPools
from pilotlight.adapters.pools.civo.shop import CivoShop
from pilotlight.ports.clouds import CloudAccount, Pools, Shop

ADDRESS = "civo:REGION/CLUSTER_ID"


def open_pools(where: str, account: CloudAccount) -> Pools | None:
    """The node pools of one cluster; None where ``where`` is not REGION/CLUSTER_ID."""
    region, _, cluster = where.partition("/")
    if not region or not cluster or "/" in cluster:
        return None
    return CivoPools(api(region, account), cluster, account.names, account.clock)


def open_shop(where: str, account: CloudAccount) -> Shop:
    """Shop of its account in a region, which ``where`` begins with."""
    return CivoShop(api(where.partition("/")[0], account))


def api(region: str, account: CloudAccount) -> CivoApi:
    """One account in one region."""
    return CivoApi(account.token(), region, url=account.environ.get("CIVO_API_URL", "") or URL)
