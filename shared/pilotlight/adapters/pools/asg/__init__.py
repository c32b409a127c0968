"""Auto Scaling groups and EKS node groups: ``asg:REGION/EKS_CLUSTER``, or ``asg:REGION`` for groups by their names.

``pools`` is the port; ``groups`` reads, ``late_refusals`` tells why one is short, ``launch_answers`` and ``warm_pool``
are of changes. ``aws_commitments`` and ``reservations`` tell what is paid for already, ``service_quotas`` what may run,
``shop`` what a region rents. A file is imported when it is needed: most plans need few of them.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import JsonApi, QueryApi, RestApi
from pilotlight.adapters.http import Site
from pilotlight.adapters.pools.asg.pools import AsgPools, Opens
from pilotlight.ports.clouds import CloudAccount, Pools, Shop

if TYPE_CHECKING:
    from pilotlight.adapters.pools.asg.aws_commitments import Plans
    from pilotlight.adapters.pools.asg.service_quotas import AccountQuotas

ADDRESS = "asg:REGION[/EKS_CLUSTER]"
WHERE = re.compile(r"([a-z]{2,4}(?:-[a-z]+)+-\d)(?:/([A-Za-z0-9][A-Za-z0-9_-]*))?")


def open_pools(where: str, account: CloudAccount) -> Pools | None:
    """The node pools of one cluster; None where ``where`` is not REGION or REGION/EKS_CLUSTER."""
    named = WHERE.fullmatch(where)
    if named is None:
        return None
    region, cluster = named[1], named[2] or ""
    credentials = Credentials(region, account.environ, account.role)
    autoscaling, ec2 = (QueryApi(name, region, credentials, account.environ) for name in ("autoscaling", "ec2"))

    def quotas() -> "AccountQuotas":
        from pilotlight.adapters.pools.asg.service_quotas import AccountQuotas

        return AccountQuotas(ec2, JsonApi("servicequotas", region, credentials, account.environ), account.clock)

    @cache
    def plans() -> "Plans":
        from pilotlight.adapters.pools.asg.aws_commitments import Plans, UnusedPlans

        explorer = JsonApi("ce", "us-east-1", credentials, account.environ)
        api = RestApi("savingsplans", "us-east-1", credentials, account.environ)
        return Plans(api, UnusedPlans(explorer, account.clock))

    opens = Opens(quotas, lambda: RestApi("eks", region, credentials, account.environ), plans)
    return AsgPools(autoscaling, ec2, cluster, account.names, account.clock, account.reserved, opens)


def open_shop(where: str, account: CloudAccount, site: Callable[[str], Site] | None = None) -> Shop:
    """Shop of a region, which ``where`` begins with. AWS is asked by ``site``, where one is given."""
    from pilotlight.adapters.pools.asg.shop import PRICES_REGION, AsgShop

    region = where.partition("/")[0]
    credentials = Credentials(region, account.environ, account.role, site)
    ec2 = QueryApi("ec2", region, credentials, account.environ, site=site)
    pricing = JsonApi("pricing", PRICES_REGION, credentials, account.environ, site=site)
    quotas = JsonApi("servicequotas", region, credentials, account.environ, site=site)
    return AsgShop(ec2, pricing, quotas, region, account.clock)
