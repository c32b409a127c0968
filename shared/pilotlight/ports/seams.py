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

    cluster: Cluster
    pools: Pools
    state: State
    alerts: State
    queues: Queues
    telemetry: GpuTelemetry
    outbox: Outbox
    channels: Mapping[str, AlertChannel]
    clock: Clock
    policy: Policy
    catalog: Catalog
    sites: "Mapping[str, Seams]"
    """More of them, for one of many clusters by its name."""
