"""Plans of a look: one, and one more where what it could not know has an answer from outside.

A plan asks by ``again``: for doubt about fit where pods seem to fit and do not bind, for the account's quotas where it
buys. The answers are heard together and the plan is made anew once; its record names the reasons.

A preview is one look and the plan that it would lead to, without the lease and without a change.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import NOBODY_AHEAD, Look
from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import Offering
from pilotlight.facts.decisions import Again, Buy, NodeVerdict, Plan
from pilotlight.facts.demand.worker_queues import NodesAhead, QueueHistory
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Backoff
from pilotlight.facts.money.budgets import NO_BUDGETS, Money
from pilotlight.facts.money.gates import GateLimit
from pilotlight.facts.offers.pool_quota import NO_QUOTAS, Quota
from pilotlight.flow.alerts.wording import summary
from pilotlight.flow.answer import Answer
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot, look, with_due_jobs, with_flights
from pilotlight.flow.records import brake_records
from pilotlight.flow.records.ledger import MOST_RELEASES, limit_releases
from pilotlight.ports.clouds import QuotaPools

if TYPE_CHECKING:
    from pilotlight.facts.utilisation.pool_use import PoolUse

SHUT_FOR = timedelta(seconds=60)
"""A pool that its cloud keeps from everybody is looked at again within so long."""

_log = logging.getLogger("pilotlight")


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """The aim of a cycle. ``releases``: idle nodes too. ``see`` changes the look before it is decided on, ``gives``
    are nodes that go whatever the plan says. ``refused`` is when the scheduler said of a pod that it fits nowhere,
    ``queues`` how long the queues are whose workers get their nodes ahead.
    """

    releases: bool
    see: Callable[[Snapshot], Snapshot] | None = None
    gives: tuple[NodeVerdict, ...] = ()
    refused: Mapping[str, datetime] = {}
    queues: Mapping[str, QueueHistory] = {}


def make_plan(
    deps: Deps,
    snapshot: Snapshot,
    aim: Aim,
    money: Money = NO_BUDGETS,
    *,
    explain: bool = False,
    doubts: bool = False,
) -> tuple[Snapshot, Plan]:
    """The look without what is believed no longer, and its plan. ``doubts``: a cycle's, which remembers its beliefs."""
    asks: dict[Again, bool] = {"fit": doubts, "quotas": isinstance(deps.pools, QuotaPools)}
    looked = _look(deps, snapshot, aim, money, explain, frozenset(ask for ask, may in asks.items() if may))
    plan = plan_cluster(looked)
    if plan.again:
        snapshot, looked, plan = _answer(deps, snapshot, aim, looked, plan)
    plan = _elsewhere(deps, snapshot, looked, plan) if any(one.code == "paused" for one in plan.held) else plan
    plan = replace(plan, findings=(*plan.findings, *snapshot.findings)) if snapshot.findings else plan
    plan = _with_known_names(deps, plan) if deps.apart else plan
    return snapshot, limit_releases(plan, snapshot.now) if len(plan.releases) > MOST_RELEASES else plan


def _answer(deps: Deps, snapshot: Snapshot, aim: Aim, looked: Look, plan: Plan) -> tuple[Snapshot, Look, Plan]:
    """One new plan with the answers to what the first one asks, and its look; the first where they change nothing."""
    quotas, anew, untaken = NO_QUOTAS, False, frozenset[str]()
    if "fit" in plan.again:
        from pilotlight.flow.observe.fit_mismatch import drop_mismatches

        snapshot, anew, untaken = drop_mismatches(deps, snapshot, plan, aim.refused)
        waiting = (*snapshot.view.pending, *snapshot.view.others) if untaken else ()
        anew = anew or any(pod.uid not in untaken for pod in waiting)
    if "quotas" in plan.again and isinstance(deps.pools, QuotaPools) and (plan.buys or anew):
        quotas = quotas_of(deps.pools, deps.offerings, plan.buys, sure=not anew)
    answers: dict[Again, bool] = {"fit": anew, "quotas": bool(quotas)}
    again = tuple(ask for ask, answered in answers.items() if answered)
    if not again:
        return snapshot, looked, replace(plan, again=())
    answered = replace(looked, memory=snapshot.memory, quotas=quotas, asks=frozenset(), again=again, untaken=untaken)
    return snapshot, answered, plan_cluster(answered)


def _look(deps: Deps, snapshot: Snapshot, aim: Aim, money: Money, explain: bool, asks: frozenset[Again]) -> Look:
    """Everything that the plan of a look goes by."""
    return Look(
        view=snapshot.view,
        pools=snapshot.pools,
        offerings=deps.offerings,
        policy=deps.policy,
        memory=snapshot.memory,
        now=snapshot.now,
        throughput=deps.throughput,
        money=money,
        releases=aim.releases,
        explain=explain,
        brakes=_brakes(deps, snapshot),
        leaving=snapshot.leaving,
        unsettled=snapshot.unsettled,
        gives=aim.gives,
        ahead=_ahead(deps, snapshot, aim) if aim.queues else NOBODY_AHEAD,
        use=_use(deps) if deps.policy.asks_for_use else None,
        asks=asks,
    )


def _elsewhere(deps: Deps, snapshot: Snapshot, looked: Look, plan: Plan) -> Plan:
    """The plan without pools that their cloud keeps from everybody, where more is bought so: their pods go elsewhere.
    A pool that another scales is served by that one, and one that a person paused waits for them."""
    shut = {p.name: p.rules.closed for p in snapshot.pools if p.rules and p.name in looked.brakes.shut}
    if not any(held.buy and held.buy.pool in shut for held in plan.held):
        return plan
    until = snapshot.now + SHUT_FOR
    rests = tuple(Backoff(offering=o.name, until=until, why=shut[o.pool]) for o in deps.offerings if o.pool in shut)
    memory = replace(looked.memory, backoffs=(*rests, *looked.memory.backoffs))
    other = plan_cluster(replace(looked, memory=memory, asks=frozenset(), again=plan.again))
    return other if sum(buy.count for buy in other.buys) > sum(buy.count for buy in plan.buys) else plan


def _brakes(deps: Deps, snapshot: Snapshot) -> Brakes:
    """Brakes that people set, and the pools that another autoscaler is at: those are paused by the evidence of it."""
    held, others = brake_records.read(deps, snapshot.memory, snapshot.now), snapshot.others
    if not others:
        return held
    gives = (name for name, pool in snapshot.gives.items() if held.paused.keys().isdisjoint((pool, ALL)))
    shut = (p.name for p in snapshot.pools if p.rules and p.rules.starves and not p.rules.handed_back)
    free = frozenset(name for name in shut if name not in deps.policy.gates and name not in held.paused)
    return replace(held, paused={**others, **held.paused}, gives=frozenset(gives), shut=free)


def _ahead(deps: Deps, snapshot: Snapshot, aim: Aim) -> Mapping[str, NodesAhead]:
    from pilotlight.decide.demand.queue_demand import nodes_ahead

    return nodes_ahead(deps.policy.queues, aim.queues, snapshot.view, deps.offerings, snapshot.now)


def _use(deps: Deps) -> "PoolUse | None":
    """The pools' GPU utilisation of late; None where telemetry is absent."""
    from pilotlight.state_schema.billing_records import POOL_USE

    entry = POOL_USE.get(deps.state, deps.name)
    return entry.value if entry is not None else None


def _with_known_names(deps: Deps, plan: Plan) -> Plan:
    """The plan with the nodes that go under the names that the cluster knows them by."""
    nodes = (replace(n, node=deps.known_as(n.node)) if n.verdict == "release" else n for n in plan.nodes)
    return replace(plan, nodes=tuple(nodes))


def quotas_of(
    pools: QuotaPools, offerings: Sequence[Offering], buys: Sequence[Buy], *, sure: bool
) -> Mapping[str, Quota]:
    """The quotas by pool; none where ``buys`` are ``sure`` and within them, or where they cannot be read."""
    types = {offering.pool: (offering.instance_type, offering.capacity_type) for offering in offerings}
    try:
        quotas = pools.quotas(types)
    except (Denied, Retry) as no:
        _log.warning("quotas unread", extra={"data": {"why": str(no)}})
        return NO_QUOTAS
    if not sure:
        return quotas
    wanted: Counter[str] = Counter()
    for buy in buys:
        if quota := quotas.get(buy.pool):
            wanted[quota.name] += buy.count * quota.takes
    short = any(wanted[quota.name] > quota.limit - quota.used for quota in quotas.values() if wanted[quota.name])
    return quotas if short else NO_QUOTAS


def dry_run(deps: Deps, *, releases: bool) -> Answer:
    """Decide and answer; change nothing."""
    _, plan = preview(deps, releases=releases)
    return Answer(decision="", did=(), why=f"dry run: {summary(plan, ())}", outcome="dry-run", plan=plan)


def preview(deps: Deps, *, releases: bool, explain: bool = True) -> tuple[Snapshot, Plan]:
    """Look and decide without the lease; nothing is changed."""
    from pilotlight.flow.budgets import budget_holds
    from pilotlight.flow.observe.settle import foreseen

    snapshot = with_due_jobs(with_flights(deps, look(deps, monitored=releases)))
    snapshot = foreseen(deps, snapshot) if releases else snapshot
    money = budget_holds.balances(deps, snapshot.now, snapshot.memory)
    aim = Aim(releases=releases)
    if releases and deps.queues is not None:
        from pilotlight.flow.observe.queue_lengths import look_at_queues

        aim = Aim(releases=True, queues=look_at_queues(deps, remember=False).histories)
    limits: tuple[GateLimit, ...] = ()
    if deps.policy.gates or snapshot.memory.gates:
        from pilotlight.flow.budgets import karpenter_gates

        snapshot, money, _, limits = karpenter_gates.keep(deps, snapshot, money, preview=True)
    snapshot, plan = make_plan(deps, snapshot, aim, money, explain=explain)
    return snapshot, replace(plan, gates=limits) if limits else plan
