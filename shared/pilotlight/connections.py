"""The addresses of the settings, and the adapters they name. Each is imported when its address is used."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from pilotlight.errors import BadInput
from pilotlight.settings import Settings, address_beside, objects, read

if TYPE_CHECKING:
    from pilotlight.adapters.civo_api import CivoApi
    from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
    from pilotlight.adapters.world_client import WorldClient
    from pilotlight.decide.money.bills.bill_scope import Rules
    from pilotlight.facts.limits.checks import Token
    from pilotlight.facts.offers.cloud_shop import SpotPrices, ToldPrices
    from pilotlight.facts.policy import Policy
    from pilotlight.ports.clouds import AskPrices, AskSpotPrices, Bills, Cloud, CloudAccount, Pools, Shop
    from pilotlight.ports.cluster import Cluster, GpuTelemetry
    from pilotlight.ports.delivery import Outbox
    from pilotlight.ports.state import Clock, State


STATES = ("memory", "sqlite", "dynamodb", "firestore")


def state_at(address: str, clock: "Clock | None", environ: Mapping[str, str]) -> "State":
    """State that survives between events, on its own time or on that of a world's ``clock``. Raises ``BadInput``."""
    kind, _, where = address.partition(":")
    match kind:
        case "memory":
            from pilotlight.adapters.clocks import SystemClock
            from pilotlight.adapters.state.memory import MemoryState

            return MemoryState(clock or SystemClock())
        case "sqlite" if where:
            from pilotlight.adapters.state.sqlite import SqliteState

            return SqliteState(Path(where), clock)
        case "dynamodb" if where:
            return _dynamodb(where, clock, environ)
        case "firestore" if where:
            try:
                return _firestore(where, clock, environ)
            except ImportError as error:
                raise BadInput(f"firestore needs the package {error.name}; run pip install 'pilotlight[gcp]'") from None
    raise no_state(address)


def no_state(address: str) -> BadInput:
    """The error of an address that names no state, whether an option or a variable gave it."""
    return BadInput(
        f"state {address!r}: is no address of one: use memory: or sqlite:PATH, dynamodb:TABLE, "
        "firestore:PROJECT/DATABASE/COLLECTION, by --state or PILOTLIGHT_STATE"
    )


def _dynamodb(table: str, clock: "Clock | None", environ: Mapping[str, str]) -> "State":
    from pilotlight.adapters.state.dynamodb import DynamoDBState

    endpoint = environ.get("AWS_ENDPOINT_URL_DYNAMODB") or environ.get("AWS_ENDPOINT_URL", "")
    return DynamoDBState(table, clock, endpoint=endpoint, environ=environ)


def _firestore(where: str, clock: "Clock | None", environ: Mapping[str, str]) -> "State":
    from pilotlight.adapters.state.firestore import FirestoreState

    try:
        project, database, collection = where.split("/")
    except ValueError:
        raise BadInput(
            f"state firestore:{where}: name project, database and collection, as in firestore:acme/(default)/pilotlight"
        ) from None
    return FirestoreState(
        project,
        clock,
        database=database,
        collection=collection,
        emulator=environ.get("FIRESTORE_EMULATOR_HOST", ""),
        credentials_file=bool(environ.get("GOOGLE_APPLICATION_CREDENTIALS")),
    )


def outbox_at(address: str, environ: Mapping[str, str]) -> "Outbox":
    """Where messages go out. Raises ``BadInput``."""
    kind, _, where = address.partition(":")
    match kind:
        case "memory":
            from pilotlight.adapters.outbox.local import MemoryOutbox

            return MemoryOutbox()
        case "local" if where:
            from pilotlight.adapters.outbox.local import LocalOutbox

            return LocalOutbox(Path(where))
        case "pubsub":
            from pilotlight.adapters.outbox.pubsub import PubSubOutbox

            project, _, prefix = where.partition("/")
            return PubSubOutbox(project, prefix)
        case "sns" if where:
            from pilotlight.adapters.outbox.sns import SnsOutbox

            return SnsOutbox(where, environ)
    raise BadInput(f"PILOTLIGHT_OUTBOX is {address!r}: use memory:, local:FOLDER, pubsub:PROJECT/PREFIX or sns:ARN")


def cluster_at(
    address: str, policy: "Policy", clock: "Clock", environ: Mapping[str, str], role: str = ""
) -> "KubernetesCluster":
    """A real cluster; of AWS as ``role`` where one is named. Nothing is called yet. Raises ``BadInput``."""
    try:
        from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
        from pilotlight.adapters.cluster.kubernetes.kubernetes_cluster import KubernetesCluster
        from pilotlight.adapters.cluster.kubernetes.transport import Api
    except ImportError as error:
        raise BadInput(
            f"a real cluster needs the package {error.name}; run pip install 'pilotlight[kubernetes]'"
        ) from None
    return KubernetesCluster(Api(source_of(address, environ, role)), policy, clock)


CLOUDS: Mapping[str, str] = {
    "asg": "pilotlight.adapters.pools.asg",
    "civo": "pilotlight.adapters.pools.civo",
    "gke": "pilotlight.adapters.pools.gke",
}
"""The clouds that can be acted on, by what their addresses begin with: CONTRIBUTING.md has the recipe for one more."""


def cloud_of(address: str) -> "tuple[Cloud, str] | None":
    """The cloud that an address begins with, and what follows; None where it names none."""
    kind, _, where = address.partition(":")
    return (cast("Cloud", import_module(CLOUDS[kind])), where) if kind in CLOUDS else None


TELL_PRICES = ("asg", "gke")
"""The clouds that tell what they ask."""
TELL_SPOT = ("gke",)
"""Those of them that tell spot's prices alone: they are not asked for others."""


def prices_at(settings: Settings, policy: "Policy") -> "AskPrices | None":
    """Call that asks a cluster's cloud for prices, and names refused reads; None where it tells none."""
    cloud = settings.pools.partition(":")[0]
    spot = {pool.instance_type for pool in policy.pools.values() if pool.capacity_type == "spot"}
    if cloud not in TELL_PRICES or (cloud in TELL_SPOT and not spot):
        return None

    def told(names: Sequence[str]) -> "ToldPrices":
        shop = shop_at(settings)  # Imported when it is asked: a purchase needs none of it.
        assert shop is not None
        if cloud not in TELL_SPOT:
            from pilotlight.adapters.pools.asg.account_reads import with_refusals

            return with_refusals(shop.prices(names), settings.pools, account_at(settings, policy))
        from pilotlight.ports.clouds import OddsShop

        found = shop.prices([name for name in names if name in spot])
        of_spot = (pool for pool in policy.pools.values() if pool.capacity_type == "spot")
        places = sorted({f"{pool.instance_type}/{zone}" for pool in of_spot for zone in pool.zones})
        return shop.with_odds(found, places) if places and isinstance(shop, OddsShop) else found

    return told


def spot_prices_at(settings: Settings) -> "AskSpotPrices | None":
    """Call that asks a cluster's cloud for spot's prices by zone; None where it tells none. Nothing is called yet."""
    cloud = settings.pools.partition(":")[0]
    if cloud not in TELL_PRICES or cloud in TELL_SPOT:
        return None

    def told(names: Sequence[str], since: datetime) -> "Mapping[str, SpotPrices]":
        from pilotlight.ports.clouds import SpotShop

        shop = shop_at(settings)
        return shop.spot_prices(names, since) if isinstance(shop, SpotShop) else {}

    return told


def region_at(settings: Settings) -> str:
    """The region that a cluster's nodes are bought in, where its cloud's prices go by one; else empty."""
    cloud, _, where = settings.pools.partition(":")
    if cloud == "gke":
        from pilotlight.adapters.pools.gke import region_of

        return region_of(where)
    return where.partition("/")[0] if cloud in TELL_PRICES else ""


def pools_at(settings: Settings, policy: "Policy", cluster: "Cluster", clock: "Clock") -> "tuple[Cluster, Pools]":
    """Pools that sell a cluster's nodes, behind the cluster as they may touch it. Raises ``BadInput``."""
    if settings.pools == "advisor":
        from pilotlight.adapters.pools.advisor import AdvisedCluster, AdvisorPools

        advised = AdvisedCluster(cluster)
        return advised, AdvisorPools(advised, tuple(policy.pools))
    if settings.pools == "karpenter":
        from pilotlight.adapters.pools.karpenter import KarpenterPools

        return cluster, KarpenterPools(getattr(cluster, "api", None), policy.pools)
    found = cloud_of(settings.pools)
    pools = found[0].open_pools(found[1], account_at(settings, policy, clock, cluster)) if found else None
    if pools is None:
        known = ", ".join(cast("Cloud", import_module(where)).ADDRESS for where in CLOUDS.values())
        said = f"is {settings.pools!r}" if settings.pools else "is not set"
        raise BadInput(f"PILOTLIGHT_POOLS {said}: use {known}, karpenter, or advisor to be told what would be done")
    return cluster, pools


def open_cluster(
    settings: Settings, policy: "Policy", clock: "Clock", world: "WorldClient | None"
) -> "tuple[Cluster, Pools, Callable[[], Token | None]] | None":
    """The settings' cluster, or that of a world outside, with its pools and its credential's token; None where there
    is neither: the embedded world. Raises ``BadInput``.
    """
    if settings.api:
        cluster = cluster_at(settings.api, policy, clock, settings.environ, settings.role_arn)
        return *pools_at(settings, policy, cluster, clock), cluster.credential
    if world is not None:
        from pilotlight.adapters.cluster.world import ServedCluster
        from pilotlight.adapters.pools.world import ServedPools

        served = ServedCluster(world)
        both = pools_at(settings, policy, served, clock) if settings.pools else (served, ServedPools(world))
        return *both, lambda: None
    if settings.cluster or settings.pools:
        raise BadInput(
            "PILOTLIGHT_API is not set: say how the API server is reached, as in "
            "kubeconfig:~/.kube/config#CONTEXT, or unset PILOTLIGHT_CLUSTER and PILOTLIGHT_POOLS for the embedded world"
        )
    return None


def account_at(
    settings: Settings, policy: "Policy", clock: "Clock | None" = None, cluster: object = None
) -> "CloudAccount":
    """Account that a cluster's cloud is opened with; a ``cluster`` gives its API server."""
    from pilotlight.adapters.clocks import SystemClock
    from pilotlight.ports.clouds import CloudAccount

    return CloudAccount(
        names={name: pool.cluster_pool or name for name, pool in policy.pools.items() if not pool.nodepool},
        clock=clock or SystemClock(),
        token=lambda: settings.secret(settings.token_env),
        environ=settings.environ,
        role=settings.role_arn,
        reserved={name: p.instance_type for name, p in policy.pools.items() if p.capacity_type == "reserved"},
        api=getattr(cluster, "api", None),
    )


def telemetry_at(settings: Settings, policy: "Policy", world: "WorldClient | None") -> "GpuTelemetry | None":
    """Telemetry of GPUs, as a Prometheus has it; a world's own where a class may be put to rest by it, or rules ask."""
    if settings.telemetry:
        from pilotlight.adapters.prometheus_api import PrometheusApi
        from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry

        return PrometheusTelemetry(PrometheusApi(settings.telemetry, settings.environ))
    asked = any(rules.reclaim is not None for rules in policy.classes.values()) or policy.asks_for_use
    if world is None or not asked:
        return None
    from pilotlight.adapters.telemetry.world import ServedTelemetry

    return ServedTelemetry(world)


def bills_at(settings: Settings, policy: "Policy", clock: "Clock") -> "Bills | None":
    """Bills of a cloud, where an address names it. Price files lie beside the policy. Raises ``BadInput``."""
    kind, _, where = settings.bills.partition(":")
    if not kind:
        return None
    from pilotlight.adapters.bills.unread import UnreadBills

    if settings.beside_others and policy.bill is None:
        return UnreadBills("several clusters have this bill: say in each one's policy which lines are its own (bill)")
    match kind:
        case "civo" if not policy.prices.charges:
            return UnreadBills(
                "Civo bills hours without money: name a file of their prices in prices.charges of the policy"
            )
        case "civo" if where:
            from pilotlight.adapters.bills.civo_charges import CivoBills
            from pilotlight.codec.bills.rates import read_rates

            files = [address_beside(settings.policy, name) for name in policy.prices.charges]
            rates = {key: rate for file in files for key, rate in read_rates(read(file), file).items()}
            return CivoBills(_civo(settings, where), rates, clock, policy.bill.services if policy.bill else ())
        case "focus" if where:
            from pilotlight.adapters.bills.focus import FocusBills

            return FocusBills(where, _rules(settings, policy), lambda: objects(settings.environ))
        case "bigquery" if where:
            from pilotlight.adapters.bills.bigquery import BigQueryBills

            url = settings.environ.get("BIGQUERY_EMULATOR_HOST", "")
            file = bool(settings.environ.get("GOOGLE_APPLICATION_CREDENTIALS", ""))
            return BigQueryBills(where, _rules(settings, policy), url=url, credentials_file=file)
        case "athena" if where:
            from pilotlight.adapters.bills.athena import AthenaBills

            return AthenaBills(where, _rules(settings, policy), settings.environ)
    known = "civo:REGION, focus:URI, bigquery:PROJECT.DATASET.TABLE or athena:REGION/WORKGROUP/DATABASE.TABLE"
    raise BadInput(f"PILOTLIGHT_BILLS is {settings.bills!r}: use {known}")


def _rules(settings: Settings, policy: "Policy") -> "Rules":
    from pilotlight.decide.money.bills.bill_scope import Rules

    names = {pool.cluster_pool or name: name for name, pool in policy.pools.items()}
    return Rules(settings.cluster_name, policy.bill, policy.prices.currencies, names)


def shop_at(settings: Settings, region: str = "") -> "Shop | None":
    """Shop of the account that sells a cluster's nodes, in its own region or another; None where nobody tells.

    A region alone is Civo's. Raises ``BadInput`` where no token is set.
    """
    from pilotlight.facts.policy import Policy

    found = cloud_of(settings.pools) or (cloud_of("civo:") if region else None)
    if found is None:
        return None
    cloud, where = found
    return cloud.open_shop(region or where, account_at(settings, Policy(version=1)))


def _civo(settings: Settings, region: str) -> "CivoApi":
    from pilotlight.adapters.civo_api import URL, CivoApi

    url = settings.environ.get("CIVO_API_URL", "") or URL
    return CivoApi(settings.secret(settings.token_env), region, url=url)


def advisory_policy(policy: "Policy") -> "Policy":
    """The policy of a deployment that only advises: no pool of it says otherwise."""
    pools = {
        name: pool if pool.mode == "observe" else msgspec.structs.replace(pool, mode="advise")
        for name, pool in policy.pools.items()
    }
    return msgspec.structs.replace(policy, pools=pools)
