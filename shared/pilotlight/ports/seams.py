"""Seams of the composition root: ports and files that tests and replays give in the place of the settings' own."""

from collections.abc import Mapping
from typing import TypedDict

from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.policy import Policy
from pilotlight.ports.clouds import Pools
from pilotlight.ports.cluster import Cluster, GpuTelemetry, Queues
from pilotlight.ports.delivery import AlertChannel, Outbox
from pilotlight.ports.state import Clock, State


class Seams(TypedDict, total=False):
    """Ports and files that may be given instead of being made from the settings."""

    cluster: Cluster  # The cluster's API; given together with ``pools``.
    pools: Pools  # Node pools at their cloud.
    state: State  # The store of what survives between events.
    alerts: State  # The store of alerts on their way.
    queues: Queues  # Lengths of the policy's queues.
    telemetry: GpuTelemetry  # Measurements of GPUs.
    outbox: Outbox  # Messages go out by it.
    channels: Mapping[str, AlertChannel]  # Channels of alerts, by the policy's names.
    clock: Clock  # Time of this worker, led by hand or by a world.
    policy: Policy  # The policy, read already.
    catalog: Catalog  # Types and prices, read already.
    sites: "Mapping[str, Seams]"
    """More of them, for one of many clusters by its name."""
