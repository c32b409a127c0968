"""A cluster and its node pools as GKE tells them.

Shapes are those of ``container.v1``, Google's discovery document: only the fields that are used.
"""

from datetime import datetime

import msgspec

from pilotlight.facts.capacity import CapacityType


class _On(msgspec.Struct, frozen=True):
    enabled: bool = False


class _Autoscaling(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = False
    autoprovisioned: bool = False
    max_node_count: int = 0  # In each location.
    total_max_node_count: int = 0  # In all of them; only one of the two is there.


class _Management(msgspec.Struct, frozen=True, rename="camel"):
    auto_repair: bool = False


class _BlueGreen(msgspec.Struct, frozen=True):
    phase: str = ""


class _Update(msgspec.Struct, frozen=True, rename="camel"):
    blue_green_info: _BlueGreen = _BlueGreen()


class _Upgrades(msgspec.Struct, frozen=True, rename="camel"):
    strategy: str = ""
    max_surge: int = 0


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    consume_reservation_type: str = ""
    values: tuple[str, ...] = ()


class _Sharing(msgspec.Struct, frozen=True, rename="camel"):
    gpu_sharing_strategy: str = ""


class _Accelerator(msgspec.Struct, frozen=True, rename="camel"):
    accelerator_type: str = ""
    accelerator_count: str = "0"
    gpu_partition_size: str = ""
    gpu_sharing_config: _Sharing = _Sharing()

    @property
    def divided(self) -> bool:
        """True where a node tells parts of its GPUs as GPUs: slices of each, or turns at it."""
        return bool(self.gpu_partition_size or self.gpu_sharing_config.gpu_sharing_strategy)


class _Config(msgspec.Struct, frozen=True, rename="camel"):
    labels: dict[str, str] = {}
    flex_start: bool = False
    spot: bool = False
    preemptible: bool = False  # Spot's name of before.
    machine_type: str = ""
    accelerators: tuple[_Accelerator, ...] = ()
    reservation_affinity: _Affinity = _Affinity()

    @property
    def kind(self) -> CapacityType:
        """How its nodes are paid for, but for what a reservation pays."""
        if self.flex_start:
            return "flex-start"
        return "spot" if self.spot or self.preemptible else "on-demand"


class _Condition(msgspec.Struct, frozen=True):
    message: str = ""


class NodePool(msgspec.Struct, frozen=True, rename="camel"):
    """A node pool; fields are GKE's own. Its documents allow any to be absent: one without a name is nobody's."""

    name: str = ""  # Unique in a cluster.
    status: str = ""  # "RUNNING" where nothing works on it.
    instance_group_urls: tuple[str, ...] = ()  # One a zone; of both colours while it is upgraded blue-green.
    autoscaling: _Autoscaling = _Autoscaling()
    management: _Management = _Management()
    queued_provisioning: _On = _On()
    update_info: _Update = _Update()
    upgrade_settings: _Upgrades = _Upgrades()
    config: _Config = _Config()
    conditions: tuple[_Condition, ...] = ()  # Why it has a status that is not RUNNING.

    @property
    def ails(self) -> str:
        """What GKE says of its status, cut; empty where it says nothing."""
        return " ".join("; ".join(filter(None, (one.message for one in self.conditions))).split())[:160]

    @property
    def most(self) -> int | None:
        """The most nodes that its autoscaler makes; None where it names no bound."""
        scaled = self.autoscaling
        return scaled.total_max_node_count or scaled.max_node_count * len(self.instance_group_urls) or None


class _Scope(msgspec.Struct, frozen=True):
    scope: str = ""


class Exclusion(msgspec.Struct, frozen=True, rename="camel"):
    """A time in which GKE does no maintenance of its own. Without an end it goes on ("UNTIL_END_OF_SUPPORT")."""

    start_time: datetime | None = None
    end_time: datetime | None = None
    maintenance_exclusion_options: _Scope = _Scope()

    def holds_at(self, now: datetime) -> bool:
        """True within it."""
        return (self.start_time is None or self.start_time <= now) and (self.end_time is None or now < self.end_time)


class _Window(msgspec.Struct, frozen=True, rename="camel"):
    maintenance_exclusions: dict[str, Exclusion] = {}


class _Maintenance(msgspec.Struct, frozen=True):
    window: _Window = _Window()


class Cluster(msgspec.Struct, frozen=True, rename="camel"):
    """A cluster with its node pools."""

    status: str = ""
    autopilot: _On = _On()
    maintenance_policy: _Maintenance = _Maintenance()
    node_pools: tuple[NodePool, ...] = ()
