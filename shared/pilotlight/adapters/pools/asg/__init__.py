"""Auto Scaling groups and EKS node groups: ``asg:REGION/EKS_CLUSTER``, or ``asg:REGION`` for groups by their names.

``pools`` is the port; ``groups`` and ``node_groups`` read, ``launching``, ``returning`` and ``warm_pool`` change.
``aws_commitments``, ``reservations`` and ``compute_plans`` tell what is paid for already, ``service_quotas`` what may
run, ``shop`` what a region rents. A file is imported when it is needed: most plans need few of them.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.adapters.http import Site
from pilotlight.adapters.pools.asg.pools import AsgPools, Opens
from pilotlight.ports.clouds import CloudAccount, Pools, Shop

if TYPE_CHECKING:
    from pilotlight.adapters.aws_api.services import RestApi
    from pilotlight.adapters.pools.asg.account_quotas import AccountQuotas
    from pilotlight.adapters.pools.asg.aws_commitments import Plans

ADDRESS = "asg:REGION[/EKS_CLUSTER]"
WHERE = re.compile(r"([a-z]{2}(?:-[a-z]+)+-\d)(?:/([A-Za-z0-9][A-Za-z0-9_-]*))?")


def open_pools(where: str, account: CloudAccount) -> Pools | None:
    """The node pools of one cluster; None where ``where`` is not REGION or REGION/EKS_CLUSTER."""
    named = WHERE.fullmatch(where)
    if named is None:
        return None
    region, cluster = named[1], named[2] or ""
    credentials = Credentials(region, account.environ, account.role)
    autoscaling, ec2 = (QueryApi(name, region, credentials, account.environ) for name in ("autoscaling", "ec2"))

    def quotas() -> "AccountQuotas":
        from pilotlight.adapters.aws_api.services import JsonApi
        from pilotlight.adapters.pools.asg.account_quotas import AccountQuotas

        return AccountQuotas(ec2, JsonApi("servicequotas", region, credentials, account.environ), account.clock)

    def eks() -> "RestApi":
        from pilotlight.adapters.aws_api.services import RestApi

        return RestApi("eks", region, credentials, account.environ)

    @cache
    def plans() -> "Plans":
        from pilotlight.adapters.aws_api.services import JsonApi, RestApi
        from pilotlight.adapters.pools.asg.aws_commitments import Plans
        from pilotlight.adapters.pools.asg.compute_plans import UnusedPlans

        explorer = JsonApi("ce", "us-east-1", credentials, account.environ)
        api = RestApi("savingsplans", "us-east-1", credentials, account.environ)
        return Plans(api, UnusedPlans(explorer, account.clock))

    opens = Opens(quotas, eks, plans)
    return AsgPools(autoscaling, ec2, cluster, account.names, account.clock, account.reserved, opens)


def open_shop(where: str, account: CloudAccount, site: Callable[[str], Site] = Site) -> Shop:
    """Shop of a region, which ``where`` begins with. AWS is asked by ``site``."""
    from pilotlight.adapters.aws_api.services import JsonApi
    from pilotlight.adapters.pools.asg.price_list import REGION
    from pilotlight.adapters.pools.asg.shop import AsgShop

    region = where.partition("/")[0]
    credentials = Credentials(region, account.environ, account.role, site)
    ec2 = QueryApi("ec2", region, credentials, account.environ, site=site)
    pricing = JsonApi("pricing", REGION, credentials, account.environ, site=site)
    quotas = JsonApi("servicequotas", region, credentials, account.environ, site=site)
    return AsgShop(ec2, pricing, quotas, region, account.clock)
