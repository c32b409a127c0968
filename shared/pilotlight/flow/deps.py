"""What a flow works with: one cluster's ports and policy, and what it answers."""

from dataclasses import dataclass

import msgspec

from pilotlight.facts.capacity import Mode
from pilotlight.facts.catalog import Catalog
from pilotlight.facts.decisions import Plan
from pilotlight.facts.policy import Policy
from pilotlight.ports import Clock, Cluster, Outbox, Pools, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """One cluster's ports, and the policy with its catalogue. ``mode`` holds where a pool names none."""

    name: str
    cluster: Cluster
    pools: Pools
    state: State
    outbox: Outbox
    clock: Clock
    policy: Policy
    catalog: Catalog
    mode: Mode = "advise"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a function answers: the decision's id (empty when none was needed), what it did, and why in one line.

    ``plan`` is there on a dry run.
    """

    decision: str
    did: tuple[str, ...]
    why: str
    plan: Plan | None = None
