"""Pools that a world's cloud sells: node pools, and what every node of one is like."""

from decimal import Decimal
from difflib import get_close_matches

import msgspec

from pilotlight.errors import BadInput
from pilotlight.facts.capacity import CapacityType, Resources, Taint
from pilotlight.facts.labels import ARCH, CAPACITY_TYPE, GPU_MODEL, GPU_PRODUCT, INSTANCE_TYPE, OS, POOL, ZONE
from pilotlight.facts.offers.catalog import Catalog, InstanceType, empty_node
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.units import Seconds, UsdPerHour


class WorldPool(msgspec.Struct, frozen=True, kw_only=True):
    """A node pool of the world's cloud. ``max`` caps its nodes; ``slices`` are other resources of a node; where they
    name parts of GPUs, only the GPUs that they name too are whole.

    ``relaunches``: it starts a node by itself in the place of one that the cloud took. An ``atomic`` one grants a
    request whole or refuses it whole. ``paid`` is how many nodes a reserved one has, which cost nothing more.
    """

    name: str  # Of the policy's pool.
    instance_type: str  # Of the catalogue.
    capacity_type: CapacityType = "on-demand"  # On demand, spot or reserved.
    max: int | None = None  # Nodes at most; None is no cap.
    labels: dict[str, str] = {}  # Of each node.
    taints: tuple[Taint, ...] = ()  # Of each node.
    zone: str = ""  # "": any.
    slices: dict[str, int] = {}  # Resource -> number on each node, beside its GPUs.
    daemonsets: dict[str, str] = {}  # Resource -> amount that DaemonSets take of each node.
    relaunches: bool = False  # It replaces a node that the cloud took.
    atomic: bool = False  # A request is granted whole or not at all.
    paid: int | None = None  # Nodes that a reserved pool has for nothing more; None for others.

    @staticmethod
    def every(policy: Policy, catalog: Catalog) -> "list[WorldPool]":
        """The pools of a policy. Raises ``BadInput`` for a type of which nothing is known: no world can make one."""
        for name, rules in policy.pools.items():
            if rules.instance_type not in catalog.instance_types:
                close = get_close_matches(rules.instance_type, catalog.instance_types, n=1)
                nearest = f" did you mean {close[0]}? Else" if close else ""
                known = f"catalogue {catalog.name} does not know it, so a pretend world can make none;{nearest} add a"
                raise BadInput(
                    f"pools.{name}.instance_type is {rules.instance_type}: {known} price file to prices.files"
                )
        return [WorldPool.from_policy(name, rules) for name, rules in policy.pools.items()]

    @staticmethod
    def from_policy(name: str, rules: PoolPolicy) -> "WorldPool":
        """The pool that a policy's entry describes."""
        return WorldPool(
            name=name,
            instance_type=rules.instance_type,
            capacity_type=rules.capacity_type,
            max=rules.max,
            labels=rules.labels,
            taints=rules.taints,
            zone=rules.zones[0] if rules.zones else "",
            slices=rules.slices,
            daemonsets=rules.daemonsets,
            relaunches=rules.relaunches,
            atomic=rules.atomic,
            paid=rules.paid.nodes if rules.paid else None,
        )


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A pool in one zone with all that its catalogue entry says: what every such node is like.

    It has ``gpus``, of which pods may have ``whole_gpus`` by the name ``resource``. A stopped one takes ``wake_s`` to
    start and costs ``standby_price`` an hour.
    """

    key: str  # Its own among all machines.
    pool: WorldPool  # Whose nodes are such.
    zone: str  # Where they stand; "" is any.
    gpus: int  # Of a node, parts of them or not.
    gpu_model: str  # The label's value.
    resource: str  # Name by which pods ask for whole GPUs.
    whole_gpus: int  # That pods may have.
    price: UsdPerHour  # Dollars an hour while it is there.
    resources: Resources  # CPU, memory and disk that pods may have.
    slices: dict[str, int]  # Resource -> number on a node.
    labels: dict[str, str]  # Of a node, the cloud's and the pool's.
    minimum_s: Seconds  # Billed at the least.
    increment_s: Seconds  # Billed in steps of.
    boot_s: Seconds  # From launch to registration in the cluster.
    wake_s: Seconds | None  # From stopped to ready; None: it cannot be stopped.
    standby_price: UsdPerHour  # Dollars an hour while it is stopped.
    interruptions_per_hour: float  # Of spot, on average.

    @property
    def stops(self) -> bool:
        """True where a node of it can be stopped and stand by."""
        return self.wake_s is not None and self.pool.capacity_type == "on-demand"

    @staticmethod
    def from_pool(pool: WorldPool, kind: InstanceType, zone: str) -> "Machine":
        """The pool's machine; its labels are those a cloud, Karpenter and NVIDIA's discovery would set."""
        facts = {
            INSTANCE_TYPE: pool.instance_type,
            POOL: pool.name,
            GPU_MODEL: kind.gpu_model,
            GPU_PRODUCT: kind.gpu_product,
            CAPACITY_TYPE: pool.capacity_type,
            ZONE: zone,
            OS: "linux",
            ARCH: kind.arch,
        }
        empty = empty_node(kind, pool.slices, pool.daemonsets)
        return Machine(
            key=f"{pool.name}/{zone}",
            pool=pool,
            zone=zone,
            gpus=kind.gpus,
            gpu_model=kind.gpu_model,
            resource=empty.resource,
            whole_gpus=empty.whole_gpus,
            price=_price(pool, kind),
            resources=empty.resources,
            slices=empty.parts,
            labels={**{k: v for k, v in facts.items() if v}, **pool.labels},
            minimum_s=kind.minimum_s,
            increment_s=kind.increment_s,
            boot_s=kind.boot_s,
            wake_s=kind.wake_s,
            standby_price=kind.standby_usd_per_hour or Decimal(0),
            interruptions_per_hour=kind.interruptions_per_hour if pool.capacity_type == "spot" else 0.0,
        )


def _price(pool: WorldPool, kind: InstanceType) -> UsdPerHour:
    if pool.capacity_type == "reserved":
        return kind.extra_usd_per_hour
    price = kind.prices.get(pool.capacity_type) or kind.prices["on-demand"]  # Flex-start may have none of its own.
    return price.usd_per_hour + kind.extra_usd_per_hour
