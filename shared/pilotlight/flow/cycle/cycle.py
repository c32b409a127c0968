"""The cycle every deciding flow takes under its cluster's lease: observe, decide, record, act, tell."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from pilotlight.decide.nodes.other_autoscalers import rivals
from pilotlight.decide.nodes.spares.demand_rates import with_demand
from pilotlight.decide.place.node_closing import OPEN_S, count_openings
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import NOBODY_AHEAD, Look
from pilotlight.errors import Retry
from pilotlight.facts.decisions import NodeVerdict, Plan, Record
from pilotlight.facts.demand.worker_queues import NodesAhead, QueueHistory
from pilotlight.facts.limits.brakes import Brakes
from pilotlight.facts.money.budgets import NO_BUDGETS, Money
from pilotlight.facts.nodes.gpu_faults import SICK_GPU
from pilotlight.facts.offers.pool_quota import NO_QUOTAS, Quota
from pilotlight.facts.place.closed_nodes import NOTHING_PLACED, Opening
from pilotlight.flow.alerts.decision_messages import close_and_tell, endings, flap_alerts, messages_of
from pilotlight.flow.alerts.wording import did, released_nodes, summary
from pilotlight.flow.budgets import hold_ends, renew_holds
from pilotlight.flow.cycle import placement_taints
from pilotlight.flow.cycle.act import Act
from pilotlight.flow.cycle.recovery import Left, any_reopened, carry_on, purchases, settle_left, sized_anew, take_over
from pilotlight.flow.deps import Answer, Deps, Outcome, join_answers
from pilotlight.flow.observe import instance_lifetimes
from pilotlight.flow.observe.fit_mismatch import doubt
from pilotlight.flow.observe.settle import settle
from pilotlight.flow.observe.snapshot import (
    Snapshot,
    any_due,
    basis,
    look,
    with_due_jobs,
    with_flights,
    with_promised_jobs,
    with_taken_nodes,
)
from pilotlight.flow.records import brake_records, call_steps, lease, ledger
from pilotlight.flow.records.call_steps import Sending
from pilotlight.flow.records.lease import Lease
from pilotlight.flow.records.record_limits import MOST_RELEASES, limit_releases
from pilotlight.ports.clouds import QuotaPools
from pilotlight.ports.state import ABSENT

if TYPE_CHECKING:
    from pilotlight.facts.utilisation.pool_use import PoolUse

MOST_LOOKS = 5
"""A holder looks again at most so often before it leaves the rest to the next tick."""

MOST_ZONES = 12
"""And so often more where a zone had no capacity, for the next one: each such look puts a zone to rest."""

STAYS = "a node stays that was to go: what waits is looked at again before anything is bought"

GATHER_S = 0.1
"""A holder that is asked to look again lets the rest of a burst come first: one look is for all of it."""


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


def run_cycle(deps: Deps, flow: str, trigger: str, aim: Aim) -> Answer:
    """Look under the cluster's lease, and again for as long as that is asked for.

    What it opened it closes behind those that it was opened for; where they still wait it looks once more.
    Raises what the ports raise; what was done so far stays recorded.
    """
    opened: dict[str, Opening] = {}
    answer = _look(deps, flow, trigger, aim, opened)
    if opened and placement_taints.tend(deps, opened, OPEN_S):
        answer = join_answers(answer, _look(deps, flow, f"{trigger} again", aim, {}))
    return answer


def _look(deps: Deps, flow: str, trigger: str, aim: Aim, opened: dict[str, Opening]) -> Answer:
    answer: Answer | None = None
    looks = zones = 0
    while looks < MOST_LOOKS:
        held = lease.acquire(deps.state, deps.name, trigger, settles=aim.releases)
        if held is None:
            break
        try:
            while looks < MOST_LOOKS:
                cycle = Cycle(deps, held, flow, trigger, aim, looks + zones)
                answer = join_answers(answer, cycle.run())
                opened |= cycle.opened
                if cycle.elsewhere and zones < MOST_ZONES:
                    zones += 1
                    continue
                looks += 1
                if not (cycle.unfinished or lease.asked_again(deps.state, deps.name)):
                    break
                deps.pause(GATHER_S)
        finally:
            held.release()
        # A delivery may have found the lease held after the last look and before its release.
        if not lease.asked_again(deps.state, deps.name):
            break
    return answer or Answer(decision="", did=(), why=lease.AT_WORK, outcome="at-work")


class Cycle:
    """One look and what it leads to. ``unfinished``: a gang lacks a part; what it has goes back at the next look.

    ``elsewhere``: a zone had no capacity, and what it was asked for is bought in the next one at the next look.

    ``opened`` are nodes that it opened for a while, ``open_until`` is when the first of all that are open is to close.
    """

    def __init__(self, deps: Deps, held: Lease, flow: str, trigger: str, aim: Aim, round_: int) -> None:
        self.deps, self.held, self.flow, self.trigger, self.aim, self.round = deps, held, flow, trigger, aim, round_
        self.unfinished = self.elsewhere = False
        self.opened: dict[str, Opening] = {}
        self.open_until: datetime | None = None
        self.ran = deps.clock.stopwatch()

    def run(self) -> Answer:
        """Observe, decide, record, act, tell."""
        snapshot, money, left = self.observe()
        plan = decide(self.deps, snapshot, self.aim, money=money)
        if snapshot.memory.believing or any(group.verdict == "fits" for group in plan.pods):
            snapshot, anew = doubt(self.deps, snapshot, plan, self.aim.refused)
            plan = decide(self.deps, snapshot, self.aim, money=money) if anew else plan
        if any(pod.shape.due for pod in snapshot.view.pending):
            snapshot = with_promised_jobs(snapshot, plan)
        snapshot = self.turn_doors(snapshot, plan)
        if self.aim.releases and (
            any(node.marked for node in snapshot.view.nodes) or any(found.code == SICK_GPU for found in plan.findings)
        ):
            from pilotlight.flow.cycle.gpu_health import tend

            tend(self.deps, snapshot)
        again = carry_on(self.deps, snapshot, left, self.held) if left else ()
        if plan.buys and any(sending.stays for one in left for sending in one.sendings):
            self.unfinished = True
            return Answer(decision="", did=again, why=STAYS, outcome="nothing")
        snapshot = sized_anew(self.deps, snapshot, left) if left and plan.buys else snapshot
        by_pool = {offering.pool: offering for offering in self.deps.offerings}
        memory = with_demand(snapshot.memory, plan.demands, plan.counted_to, by_pool, snapshot.now)
        snapshot = replace(snapshot, memory=memory)
        record = self.record(snapshot, plan, money)
        if snapshot.view.queued:
            from pilotlight.flow.cycle.kueue_check import admit

            again = (*again, *admit(self.deps, snapshot, plan))
        if record is None:
            if plan.demands or memory.due != snapshot.was.memory.due:
                ledger.remember(self.deps.state, self.deps.name, snapshot.was, memory)
            answer = Answer(decision="", did=again, why=summary(plan, ()), outcome=_without_record(plan))
        else:
            done = self.act(snapshot, record, purchases(left) if left else ())
            lines, why = (*again, *did(done)), summary(done.plan, done.calls_with_steps)
            answer = Answer(decision=done.id, did=lines, why=why, released=released_nodes(done))
        self.held.forget_loss()
        if self.aim.releases and any(self.deps.mode_of(pool) == "advise" for pool in self.deps.policy.pools):
            from pilotlight.flow.records.advice_records import follow

            follow(self.deps, plan, snapshot.view, snapshot.now)
        return replace(answer, look_again_at=plan.look_again_at, open_until=self.open_until)

    def look(self) -> Snapshot:
        """One read, with what monitoring says where nodes may be given back."""
        snapshot = look(self.deps)
        if not (self.aim.releases and snapshot.view.nodes):
            return snapshot
        from pilotlight.flow.observe.gpu_health import with_told

        return with_told(self.deps, snapshot)

    def observe(self) -> tuple[Snapshot, Money, list[Left]]:
        """One read, what earlier looks left open settled by it, and the budgets' holds moved on."""
        found = ledger.open_records(self.deps.state, self.deps.name)
        left = take_over(self.deps, found, self.held) if found else []
        snapshot = self.look()
        if left:
            before, (snapshot, left) = left, settle_left(self.deps, snapshot, left)
            if snapshot.view.pending and any_reopened(snapshot, before):  # Those pods may fit where nothing could bind.
                snapshot, left = settle_left(self.deps, self.look(), left)
        snapshot = with_flights(self.deps, snapshot)
        memory = snapshot.memory
        memory = count_openings(memory, snapshot.view, snapshot.now) if memory.openings or memory.lost else memory
        again = replace(memory.tally, again=memory.tally.again + 1) if self.round else memory.tally
        snapshot = replace(snapshot, memory=replace(memory, tally=again))
        snapshot = with_due_jobs(snapshot)
        if self.aim.releases:
            snapshot, self.held.settled = settle(self.deps, snapshot, self.held.settled), snapshot.now
        else:
            snapshot = with_taken_nodes(self.deps, snapshot)
        if self.aim.releases and any_due(snapshot.view):
            from pilotlight.flow.budgets.deadline_moves import begin

            begin(self.deps, snapshot)
        snapshot = self.aim.see(snapshot) if self.aim.see else snapshot
        snapshot = replace(snapshot, lost_since=self.held.lost_since) if self.held.lost_since else snapshot
        if self.deps.policy.budgets:
            kept = renew_holds.keep(self.deps, snapshot, self.held.keep)
            findings = (*kept.snapshot.findings, *kept.findings)
            return replace(kept.snapshot, findings=findings), kept.money, left
        if snapshot.lost_since is not None:
            from pilotlight.flow.budgets.restored_state import restore_finding

            snapshot = replace(snapshot, findings=(*snapshot.findings, restore_finding(snapshot, ())))
        return snapshot, NO_BUDGETS, left

    def turn_doors(self, snapshot: Snapshot, plan: Plan) -> Snapshot:
        """Nodes opened and closed as planned, where any is or was; and our watchmen, where we have some, hear of us."""
        memory, placed = snapshot.memory, plan.placement
        if placed == NOTHING_PLACED and not (memory.openings or memory.strays or self.deps.has_watchmen):
            return snapshot
        self.opened, self.open_until = placement_taints.opened_nodes(placed), placement_taints.open_until(placed)
        return placement_taints.turn(self.deps, snapshot, plan, self.held.keep)

    def record(self, snapshot: Snapshot, plan: Plan, money: Money) -> Record | None:
        """The decision with the calls it will make; None where nothing is to be done or told."""
        id_ = ledger.new_id(snapshot.now, f"{self.deps.name}/{self.trigger}/{self.held.fence}/{self.round}")
        record = Record(
            id=id_,
            cluster=self.deps.name,
            flow=self.flow,
            trigger=self.trigger,
            at=snapshot.now,
            status="open",
            plan=plan,
            steps=call_steps.of_plan(plan, {pool.name: pool.desired - pool.owed for pool in snapshot.pools}),
        )
        over = () if record.steps else endings(self.deps, record, {node.name for node in snapshot.view.nodes})
        messages = () if record.steps else messages_of(self.deps, record) + over
        if not (record.steps or messages):
            return None
        return replace(record, messages=messages, basis=basis(self.deps, snapshot, plan, money))

    def act(self, snapshot: Snapshot, record: Record, lost: Sequence[Sending] = ()) -> Record:
        """Write the decision, make its calls, tell what became of them.

        What is planned is written before the lease is renewed: whoever holds it next finds it and revokes it. Where a
        call's answer is lost the record stays open, and the next look settles it.
        """
        deps = self.deps
        version = ledger.write(deps.state, record, if_version=ABSENT)
        brake_records.spend_approvals(deps, record)
        act = Act(deps, snapshot, record, self.held, call_steps.write_planned(deps, record), self.ran, lost)
        self.held.keep(sure=True)  # What another has told since is no news of this look's.
        try:
            act.run()
        except Retry:
            act.remember()
            raise
        act.remember()
        done = act.done
        self.unfinished, self.elsewhere = act.unfinished, act.elsewhere
        messages = record.messages or messages_of(deps, done) + flap_alerts(deps, act.flapping, done.id, done.at)
        nodes = {node.name for node in snapshot.view.nodes}
        messages += () if record.messages else endings(deps, done, nodes)
        done = replace(done, messages=messages)
        if released_nodes(done):
            instance_lifetimes.note_released(deps, snapshot, done)
        done = close_and_tell(deps, done, version)
        if deps.policy.budgets:
            hold_ends.settle_decision(deps, done)
        return done


def decide(deps: Deps, snapshot: Snapshot, aim: Aim, *, money: Money = NO_BUDGETS, explain: bool = False) -> Plan:
    """The plan for a look: made again where the cloud's account may not run what it would buy."""
    plan = _decide(deps, snapshot, aim, money, explain)
    if not plan.buys or not isinstance(deps.pools, QuotaPools):
        return plan
    from pilotlight.flow.cycle.cloud_quotas import quotas_of

    quotas = quotas_of(deps.pools, deps.offerings, plan.buys)
    return _decide(deps, snapshot, aim, money, explain, quotas) if quotas else plan


def _decide(
    deps: Deps, snapshot: Snapshot, aim: Aim, money: Money, explain: bool, quotas: Mapping[str, Quota] = NO_QUOTAS
) -> Plan:
    seen = snapshot.view, snapshot.pools, deps.offerings, deps.policy, snapshot.memory, snapshot.now
    plan = plan_cluster(
        Look(
            *seen,
            throughput=deps.throughput,
            money=money,
            releases=aim.releases,
            explain=explain,
            brakes=_brakes(deps, snapshot),
            leaving=snapshot.leaving,
            unsettled=snapshot.unsettled,
            gives=aim.gives,
            quotas=quotas,
            ahead=_ahead(deps, snapshot, aim) if aim.queues else NOBODY_AHEAD,
            use=_use(deps) if deps.policy.rules else None,
        )
    )
    plan = replace(plan, findings=(*plan.findings, *snapshot.findings)) if snapshot.findings else plan
    plan = _named(deps, plan) if deps.apart else plan
    return limit_releases(plan, snapshot.now) if len(plan.releases) > MOST_RELEASES else plan


def _named(deps: Deps, plan: Plan) -> Plan:
    """The plan with the nodes that go under the names that the cluster knows them by."""
    nodes = (replace(n, node=deps.known_as(n.node)) if n.verdict == "release" else n for n in plan.nodes)
    return replace(plan, nodes=tuple(nodes))


def _ahead(deps: Deps, snapshot: Snapshot, aim: Aim) -> Mapping[str, NodesAhead]:
    from pilotlight.decide.demand.queue_demand import nodes_ahead

    return nodes_ahead(deps.policy.queues, aim.queues, snapshot.view, deps.offerings, snapshot.now)


def _use(deps: Deps) -> "PoolUse | None":
    """The pools' GPU utilisation of late; None where telemetry is absent."""
    from pilotlight.state_schema.billing_records import POOL_USE

    entry = POOL_USE.get(deps.state, deps.name)
    return entry.value if entry is not None else None


def _brakes(deps: Deps, snapshot: Snapshot) -> Brakes:
    """Brakes that people set, and the pools that another autoscaler is at: those are paused by the evidence of it."""
    held, view = brake_records.read(deps, snapshot.memory, snapshot.now), snapshot.view
    if not (view.nodes or view.scalers or any(pool.rules and pool.rules.handed_back for pool in snapshot.pools)):
        return held  # Nothing that another could have left.
    others = rivals(deps.policy, snapshot.view, snapshot.pools, snapshot.now)
    return replace(held, paused={**others, **held.paused}) if others else held


def _without_record(plan: Plan) -> Outcome:
    if any(held.code != "settling" for held in plan.held):
        return "stopped"
    return "seen" if plan.pods or plan.held else "nothing"
