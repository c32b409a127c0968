"""The walk every deciding flow takes: claim, observe, decide, record, act, publish."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import msgspec

from pilotlight.decide.capacity.plan import plan_cluster
from pilotlight.errors import Conflict, Retry
from pilotlight.facts.budget import NO_BUDGETS, Money
from pilotlight.facts.decisions import Effect, NodeVerdict, Plan, Record
from pilotlight.flow import lease, ledger
from pilotlight.flow.act import Act, planned
from pilotlight.flow.billing import lives
from pilotlight.flow.books import budget_holds, keeper
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.lease import Lease
from pilotlight.flow.recover import recover
from pilotlight.flow.settle import settle
from pilotlight.flow.sight import Sight, look
from pilotlight.flow.tell import endings, flap_alerts, kept_endings, messages_of, send, tell_owners
from pilotlight.flow.trim import bounded
from pilotlight.units import clock_seconds

MOST_LOOKS = 5
"""A holder looks again at most so often before it leaves the rest to the next tick."""

GATHER_S = 0.1
"""A holder that is asked to look again lets the rest of a burst come first: one look is for all of it."""


AT_WORK = lease.AT_WORK
NOTHING = "nothing to do"


def decide(deps: Deps, sight: Sight, *, money: Money = NO_BUDGETS, releases: bool, explain: bool) -> Plan:
    """The plan for a look."""
    plan = plan_cluster(
        sight.view,
        sight.pools,
        deps.offerings,
        deps.policy,
        sight.memory,
        sight.now,
        throughput=deps.throughput,
        money=money,
        releases=releases,
        explain=explain,
    )
    return bounded(plan, sight.now)


def dry_run(deps: Deps, *, releases: bool) -> Answer:
    """Decide and answer; change nothing."""
    sight = look(deps)
    plan = decide(deps, sight, money=budget_holds.balances(deps, sight.now), releases=releases, explain=True)
    return Answer(decision="", did=(), why=f"dry run: {summary(plan)}", plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a walk is for. ``releases``: idle nodes too. ``see`` changes the look before it is decided on, ``gives``
    are nodes that go whatever the plan says.
    """

    releases: bool
    see: Callable[[Sight], Sight] | None = None
    gives: tuple[NodeVerdict, ...] = ()


def walk(deps: Deps, flow: str, trigger: str, *, releases: bool) -> Answer:
    """The whole walk under the cluster's lease. Raises what the ports raise; effects done so far stay recorded."""
    return aimed_walk(deps, flow, trigger, Aim(releases=releases))


def aimed_walk(deps: Deps, flow: str, trigger: str, aim: Aim) -> Answer:
    """The walk with an aim of its own."""
    answer: Answer | None = None
    looks = 0
    while looks < MOST_LOOKS:
        held = lease.acquire(deps.state, deps.clock, deps.name, trigger)
        if held is None:
            break
        try:
            while looks < MOST_LOOKS:
                answer = _joined(answer, _once(deps, flow, trigger, held, looks, aim))
                looks += 1
                if not lease.asked_again(deps.state, deps.name):
                    break
                deps.pause(GATHER_S)
        finally:
            held.release()
        # A delivery may have found the lease held after the last look and before its release.
        if not lease.asked_again(deps.state, deps.name):
            break
    return answer or Answer(decision="", did=(), why=AT_WORK)


def _once(deps: Deps, flow: str, trigger: str, held: Lease, round_: int, aim: Aim) -> Answer:
    sight = look(deps)
    if recover(deps, sight, held):
        sight = look(deps)
    sight = settle(deps, sight) if aim.releases else sight
    sight = aim.see(sight) if aim.see else sight
    kept = keeper.keep(deps, sight, held.keep)
    sight, plan = kept.sight, decide(deps, kept.sight, money=kept.money, releases=aim.releases, explain=False)
    here = {node.name for node in sight.view.nodes}
    gives = tuple(node for node in aim.gives if node.node in here)  # A second look gives nothing back twice.
    if gives:
        after = plan.usd_per_hour_after - sum(node.usd_per_hour for node in gives)
        plan = msgspec.structs.replace(plan, nodes=(*plan.nodes, *gives), usd_per_hour_after=after)
    odd = (*sight.findings, *kept.findings)
    plan = msgspec.structs.replace(plan, findings=(*plan.findings, *odd)) if odd else plan
    decision = _id(sight.now, deps.name, trigger, held.fence, round_)
    effects = planned(deps, plan, sight)
    messages = messages_of(deps, plan, effects, decision, sight.now) + endings(deps, plan, decision, sight.now)
    if not messages and all(effect.outcome in ("advised", "stopped") for effect in effects):
        return Answer(decision="", did=(), why=summary(plan), look_again_at=plan.look_again_at)
    record = Record(
        id=decision,
        cluster=deps.name,
        flow=flow,
        trigger=trigger,
        at=sight.now,
        status="open",
        plan=plan,
        effects=effects,
        messages=messages,
    )
    held.keep()  # What another has told since is no news of this look's.
    version = ledger.write(deps.state, record)
    done = _carry_out(deps, sight, record, held, version)
    lives.released(deps, sight, done)
    send(deps, done.messages)
    tell_owners(deps, done.plan, done.messages)
    ledger.close(deps.state, done)
    budget_holds.after(deps, done)
    return Answer(decision=decision, did=did(done), why=summary(plan), look_again_at=plan.look_again_at)


def _carry_out(deps: Deps, sight: Sight, record: Record, held: Lease, version: int) -> Record:
    """The effects. Where a call's outcome stays unknown the record stays open, and the next look settles it.

    Raises ``Conflict`` where another worker settled the record meanwhile: what it read of the cloud holds.
    """
    act = Act(deps, sight, record, held)
    try:
        act.run()
    except Retry:
        # Without messages: those of the plan took every call for made.
        with suppress(Conflict):
            known = msgspec.structs.replace(record, effects=act.known(), messages=())
            ledger.write(deps.state, known, if_version=version)
        raise
    effects = tuple(act.effects)
    messages = messages_of(deps, record.plan, effects, record.id, record.at)
    messages += flap_alerts(deps, act.flapping, record.id, record.at) + kept_endings(record.messages)
    done = msgspec.structs.replace(record, effects=effects, messages=messages)
    if effects:  # What is known is written before it is told: whoever recovers tells the same.
        ledger.write(deps.state, done, if_version=version)
    return done


def _id(now: datetime, cluster: str, trigger: str, fence: int, round_: int) -> str:
    """Ids sort by time, and no two decisions share one: the fence is new with every holder."""
    tail = hashlib.blake2b(f"{cluster}/{trigger}/{fence}/{round_}".encode(), digest_size=4).hexdigest()
    return f"{int(clock_seconds(now) * 1000):014d}-{tail}"


def _joined(first: Answer | None, second: Answer) -> Answer:
    if first is None or not first.decision:
        return second
    if not second.decision:
        return msgspec.structs.replace(first, look_again_at=second.look_again_at)
    return msgspec.structs.replace(second, did=first.did + second.did)


def did(record: Record) -> tuple[str, ...]:
    """What was done, a line a call."""
    return tuple(_line(effect) for effect in record.effects)


def _line(effect: Effect) -> str:
    call = {
        "grow": f"asked pool {effect.pool} for {effect.count} x {effect.target}",
        "release": f"released {effect.target}",
    }
    if effect.outcome == "done":
        return call[effect.call] + (f" ({effect.note})" if effect.note else "")
    return f"{effect.call} {effect.target}: {effect.outcome}" + (f", {effect.note}" if effect.note else "")


def summary(plan: Plan) -> str:
    """A plan in one line."""
    counts: dict[str, int] = {}
    for group in plan.pods:
        counts[group.verdict] = counts.get(group.verdict, 0) + len(group.pods)
    parts = [f"buys {b.count} x {b.offering}" for b in plan.buys]
    parts += [f"releases {n.node}: {n.why}" for n in plan.releases]
    parts += [_counted(v, n) for v, n in sorted(counts.items()) if v != "bought"]
    first = next((g.why for g in plan.pods if g.verdict in ("refused", "waiting", "finding")), "")
    return "; ".join(parts) + (f" ({first})" if first else "") if parts else NOTHING


def _counted(verdict: str, count: int) -> str:
    one, many = _WORDS[verdict]
    return f"1 pod {one}" if count == 1 else f"{count} pods {many}"


_WORDS = {
    "fits": ("fits on a ready node", "fit on ready nodes"),
    "booting": ("waits for a node on its way", "wait for nodes on their way"),
    "waiting": ("waits", "wait"),
    "refused": ("refused", "refused"),
    "finding": ("needs mending", "need mending"),
}
"""What is said of one pod, and of more."""
