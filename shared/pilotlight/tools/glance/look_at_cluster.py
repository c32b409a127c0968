"""One cluster at a glance: its state, and one look at cluster and cloud that changes nothing."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from pilotlight.decide.money.budget_limits import meters
from pilotlight.errors import PilotlightError
from pilotlight.facts.decisions import Held, Plan
from pilotlight.facts.money.budgets import Spent
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.facts.workload import UNREADABLE, Finding
from pilotlight.flow.billing.billing_tick import budget_standings
from pilotlight.flow.budgets import budget_accounts, budget_holds
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.ports.delivery import Outbox
from pilotlight.ports.state import State
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.state_schema.billing_records import BILL_SEEN, HOLD, METERED
from pilotlight.state_schema.cluster_records import PAUSE
from pilotlight.state_schema.instance_records import INTERRUPTION, RESCUE
from pilotlight.state_schema.lease_records import FENCE
from pilotlight.state_schema.marks import BILL_READ, PRICES_READ
from pilotlight.tools.glance.action_items import action_lines
from pilotlight.tools.glance.drained_nodes import with_drains
from pilotlight.tools.glance.glance import (
    BudgetLeft,
    Glance,
    LitNode,
    PausedPools,
    Resting,
    Ticked,
    ToApprove,
    Waiting,
)
from pilotlight.tools.glance.new_nodes import booting, new_nodes
from pilotlight.units import HOUR

if TYPE_CHECKING:
    from pilotlight.wiring import App

SCHEDULED = ("capacity_reconcile", "billing_tick")
"""What a schedule calls every minute."""

BUYS, ADMITS = "provision", "admission"
"""The flows of pod_pending and kueue_admission, as decisions name them."""


@runtime_checkable
class KeepsLetters(Protocol):
    """An outbox that keeps the events that were refused where they can be counted."""

    def letters(self) -> int:
        """Number of them; one that came again is one."""
        ...


def kept_letters(outbox: Outbox) -> int | None:
    """Number of events that were refused, where the outbox keeps them itself."""
    return outbox.letters() if isinstance(outbox, KeepsLetters) else None


def glance(site: "App") -> Glance:
    """A glance at a cluster. Raises what the store raises; a cluster that does not answer is said."""
    deps = site.deps
    now = deps.state.now()
    try:
        snapshot, plan = preview(deps, releases=True)
        pools, unseen, plan = snapshot.pools, "", with_drains(deps, snapshot, plan)
    except PilotlightError as error:
        plan, pools, unseen = Plan(), (), str(error)
    return of_plan(site, now, plan, unseen, budget_standings(deps, now), pools)


def of_plan(
    site: "App", now: datetime, plan: Plan, unseen: str, stands: Iterable[Spent], pools: Iterable[PoolState]
) -> Glance:
    """The same of a look that was had already, with where budgets stand."""
    deps = site.deps
    age_s = _prices_age_s(deps, now)
    memory = ledger.recall(deps.state, deps.name).memory
    lit = tuple(_lit(deps, plan, pools))
    seen = Glance(
        cluster=deps.name,
        at=now,
        mode=deps.mode,
        advice=deps.advice,
        paused=tuple(_pauses(deps.state, deps.name)),
        ticks=tuple(_ticks(site, now)),
        unseen=unseen,
        nodes=lit,
        usd_per_hour=plan.usd_per_hour_before,
        unpriced=len(plan.unpriced) + sum(n.verdict == "boots" and n.usd_per_hour is None for n in lit),
        waiting=tuple(_waiting(plan)),
        findings=(*(one for one in plan.findings if not one.uid or one.code == UNREADABLE), *_unread(deps)),
        budgets=tuple(_left(deps, now, stands)),
        held=sum(not entry.value.closed for entry in HOLD.scan(deps.state, f"{deps.name}/")),
        approvals=tuple(_approvals(deps, plan)),
        new_nodes=tuple(new_nodes(memory.first_work, {n: p.instance_type for n, p in deps.policy.pools.items()})),
        resting=tuple(
            Resting(offering=rest.offering, until=rest.until, why=rest.why)
            for rest in memory.backoffs
            if rest.until > now
        ),
        letters=kept_letters(deps.outbox),
        alerts_waiting=sum(1 for _ in WAITING.scan(site.alerts, f"{deps.name}/")),
        alerts_given_up=sum(e.value.status == "gave up" for e in PROOF.scan(site.alerts, f"{deps.name}/")),
        prices_age_s=age_s,
        prices_stale=age_s is not None and age_s > deps.policy.prices.max_age_days * 24 * HOUR,
    )
    return msgspec.structs.replace(seen, needs=tuple(action_lines(seen)))


def _unread(deps: Deps) -> Iterator[Finding]:
    """What the cloud did not tell when it was last asked for prices, by the right that is missing."""
    read = PRICES_READ.get(deps.state, deps.name)
    if read is not None and read.value.note:
        yield Finding(subject="cloud", code="cloud-unread", message=read.value.note)


def _lit(deps: Deps, plan: Plan, pools: Iterable[PoolState]) -> Iterator[LitNode]:
    """Every node that is paid for: those with a verdict, and those that boot and are not in the cluster yet."""
    for n in plan.nodes:
        yield LitNode(node=n.node, pool=n.pool, usd_per_hour=n.usd_per_hour, verdict=n.verdict, why=n.why)
    prices = {offering.pool: offering.usd_per_hour for offering in deps.offerings}
    for n in booting(plan, pools, prices):
        yield LitNode(node=n.node, pool=n.pool, usd_per_hour=n.usd_per_hour, verdict="boots", why=n.why)


def _pauses(state: State, cluster: str) -> Iterator[PausedPools]:
    for found in PAUSE.scan(state, f"{cluster}/"):
        pause = found.value
        yield PausedPools(pool=found.name.removeprefix(f"{cluster}/"), reason=pause.reason, by=pause.by, at=pause.at)


def _ticks(site: "App", now: datetime) -> Iterator[Ticked]:
    """The two that tick every minute; the others work when something comes, and leave behind what they did."""
    deps, within = site.deps, f"{site.deps.name}/"
    looked, counted = FENCE.get(deps.state, deps.name), METERED.get(deps.state, deps.name)
    filed = {record.flow: record.at for record in ledger.filed_records(deps.state, deps.name)}
    rescued = (entry.value.received_at for table in (RESCUE, INTERRUPTION) for entry in table.scan(deps.state, within))
    told = (entry.value.at for entry in PROOF.scan(site.alerts, within))
    last = {
        "capacity_reconcile": looked.value.at if looked else None,
        "billing_tick": counted.value.seen if counted else None,
        **({} if deps.bills is None else {"billing_import": _bill_looked_at(deps)}),
        "pod_pending": filed.get(BUYS),
        **({"kueue_admission": filed[ADMITS]} if ADMITS in filed else {}),  # Without Kueue nothing asks for it.
        "spot_interruption": max(rescued, default=None),
        "alert_fanout": max(told, default=None),
    }
    for function, at in last.items():
        age_s = max(0.0, (now - at).total_seconds()) if at else None
        yield Ticked(function=function, at=at, age_s=age_s, scheduled=function in SCHEDULED)


def _bill_looked_at(deps: Deps) -> datetime | None:
    """When the bill was last looked at, or else last read."""
    looked, seen = BILL_READ.get(deps.state, deps.name), BILL_SEEN.get(deps.state, deps.name)
    return max((at for at in (looked and looked.value.at, seen and seen.value.at) if at), default=None)


def _waiting(plan: Plan) -> Iterator[Waiting]:
    for group in plan.pods:
        if group.verdict != "fits":
            pods = len(group.pods) + group.unnamed
            first, where = group.pods[0], group.where
            yield Waiting(pods=pods, first=first, verdict=group.verdict, where=where, why=group.why, team=group.team)


def _left(deps: Deps, now: datetime, stands: Iterable[Spent]) -> Iterator[BudgetLeft]:
    spent = {one.meter.key: one for one in stands}
    rungs = budget_holds.read_ladder(deps.state, deps.name)[0].rungs
    found = meters(deps.policy.budgets, now)
    totals = budget_accounts.totals(deps, found)
    for meter in found:
        held, so_far = totals[meter.key], spent.get(meter.key)
        rung = rungs.get(meter.budget.account)
        in_force = rung.step.do if rung and rung.step and rung.start == meter.start else ""
        left = meter.limit - max(held, so_far.total if so_far else held)
        yield BudgetLeft(budget=meter.budget.name, measure=meter.measure, limit=meter.limit, left=left, step=in_force)


def _approvals(deps: Deps, plan: Plan) -> Iterator[ToApprove]:
    """The pools for which a person is waited for now, each with all that the last decision that said so asks for."""
    waiting = _to_approve(plan)
    if not waiting:
        return
    records = ledger.filed_records(deps.state, deps.name)[::-1]
    for pool, now in waiting.items():
        asked = ((record.id, of[pool]) for record in records if pool in (of := _to_approve(record.plan)))
        decision, held = next(asked, ("", now))
        yield ToApprove(pool=pool, nodes=sum(one.count for one in held), why=held[-1].why, decision=decision)


def _to_approve(plan: Plan) -> dict[str, list[Held]]:
    found: dict[str, list[Held]] = {}
    for one in plan.held:
        if one.code == "approval" and one.buy is not None:
            found.setdefault(one.action.pool, []).append(one)
    return found


def _prices_age_s(deps: Deps, now: datetime) -> float | None:
    dated = [offering.priced_at for offering in deps.offerings if offering.priced_at is not None]
    return (now - min(dated)).total_seconds() if dated else None
