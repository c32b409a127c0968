"""The walk every deciding flow takes: claim, observe, decide, record, act, publish."""

import hashlib
from datetime import datetime

import msgspec

from pilotlight.decide.plan import plan_cluster
from pilotlight.facts.decisions import Plan, Record
from pilotlight.flow import lease, ledger
from pilotlight.flow.act import Act, planned
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.settle import settle
from pilotlight.flow.sight import Sight, look
from pilotlight.flow.tell import messages_of, send
from pilotlight.units import clock_seconds

MOST_LOOKS = 5
"""A holder looks again at most so often before it leaves the rest to the next tick."""


def decide(deps: Deps, sight: Sight, *, releases: bool, explain: bool) -> Plan:
    """The plan for a look."""
    return plan_cluster(
        sight.view,
        sight.pools,
        deps.offerings,
        deps.policy,
        sight.memory,
        sight.now,
        throughput=deps.throughput,
        releases=releases,
        explain=explain,
    )


def dry_run(deps: Deps, *, releases: bool) -> Answer:
    """Decide and answer; change nothing."""
    plan = decide(deps, look(deps), releases=releases, explain=True)
    return Answer(decision="", did=(), why=f"dry run: {summary(plan)}", plan=plan)


def walk(deps: Deps, flow: str, trigger: str, *, releases: bool) -> Answer:
    """The whole walk under the cluster's lease. Raises what the ports raise; effects done so far stay recorded."""
    held = lease.acquire(deps.state, deps.name, trigger)
    if held is None:
        return Answer(decision="", did=(), why="another delivery is at work on this cluster; it will look again")
    try:
        answer = _once(deps, flow, trigger, held.fence, 0, releases)
        for round_ in range(1, MOST_LOOKS):
            if not lease.asked_again(deps.state, deps.name):
                break
            answer = _joined(answer, _once(deps, flow, trigger, held.fence, round_, releases))
        return answer
    finally:
        lease.release(deps.state, held)


def _once(deps: Deps, flow: str, trigger: str, fence: int, round_: int, releases: bool) -> Answer:
    sight = look(deps)
    sight = settle(deps, sight) if releases else sight
    plan = decide(deps, sight, releases=releases, explain=False)
    decision = _id(sight.now, deps.name, trigger, fence, round_)
    messages = messages_of(deps, plan, decision, sight.now)
    if plan.empty and not messages:
        return Answer(decision="", did=(), why=summary(plan), look_again_at=plan.look_again_at)
    record = Record(
        id=decision,
        cluster=deps.name,
        flow=flow,
        trigger=trigger,
        at=sight.now,
        status="open",
        plan=plan,
        effects=planned(deps, plan),
        messages=messages,
    )
    ledger.write(deps.state, record)
    act = Act(deps, sight, record)
    try:
        act.run()
    finally:
        closed = msgspec.structs.replace(record, effects=tuple(act.effects), status=act.status)
        ledger.write(deps.state, closed)
    send(deps, messages)
    return Answer(decision=decision, did=act.did(), why=summary(plan), look_again_at=plan.look_again_at)


def _id(now: datetime, cluster: str, trigger: str, fence: int, round_: int) -> str:
    """Ids sort by time, and no two decisions share one: the fence is new with every holder."""
    tail = hashlib.blake2b(f"{cluster}/{trigger}/{fence}/{round_}".encode(), digest_size=4).hexdigest()
    return f"{int(clock_seconds(now) * 1000):014d}-{tail}"


def _joined(first: Answer, second: Answer) -> Answer:
    if not second.decision:
        return first
    return Answer(decision=second.decision, did=first.did + second.did, why=second.why)


def summary(plan: Plan) -> str:
    """A plan in one line."""
    counts: dict[str, int] = {}
    for group in plan.pods:
        counts[group.verdict] = counts.get(group.verdict, 0) + len(group.pods)
    parts = [f"buys {b.count} x {b.offering}" for b in plan.buys]
    parts += [f"releases {n.node}: {n.why}" for n in plan.releases]
    parts += [f"{n} {'pod' if n == 1 else 'pods'} {_WORDS[v]}" for v, n in sorted(counts.items()) if v != "bought"]
    first = next((g.why for g in plan.pods if g.verdict in ("refused", "waiting", "finding")), "")
    return "; ".join(parts) + (f" ({first})" if first else "") if parts else "nothing to do"


_WORDS = {
    "fits": "fit on ready nodes",
    "booting": "wait for nodes on their way",
    "waiting": "wait",
    "refused": "refused",
    "finding": "need mending",
}
