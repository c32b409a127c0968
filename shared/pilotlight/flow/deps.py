"""What a flow works with: one cluster's ports and policy, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pilotlight.facts.capacity import Mode, Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.policy import Policy
from pilotlight.ports import Bills, Clock, Cluster, Outbox, Pools, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """One cluster's ports, and the policy with the offerings it and the catalogue make.

    ``mode`` holds where a pool names none. ``throughput[class][model]`` is relative speed.
    ``bills`` is what the cloud has billed, where a bill is set up.
    """

    name: str
    cluster: Cluster
    pools: Pools
    state: State
    outbox: Outbox
    clock: Clock
    policy: Policy
    offerings: tuple[Offering, ...]
    throughput: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    mode: Mode = "advise"
    bills: Bills | None = None

    def mode_of(self, pool: str) -> Mode:
        """What may be done to a pool: its own mode, else the deployment's."""
        rules = self.policy.pools.get(pool)
        return (rules.mode if rules is not None else None) or self.mode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a function answers: the decision's id (empty when none was needed), what it did, and why in one line.

    ``plan`` is there on a dry run. ``look_again_at`` is when a look could change something without a new event.
    """

    decision: str
    did: tuple[str, ...]
    why: str
    look_again_at: datetime | None = None
    plan: Plan | None = None
