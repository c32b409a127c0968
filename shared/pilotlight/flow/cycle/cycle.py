"""The cycle every deciding flow takes under its cluster's lease: observe, decide, record, act, tell."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from pilotlight.decide.nodes.spares.demand_rates import with_demand
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.money.budgets import NO_BUDGETS, Money
from pilotlight.facts.nodes.gpu_faults import SICK_GPU
from pilotlight.facts.place.homes import NO_HOMES
from pilotlight.facts.workload import TAKES_HOMES, Finding
from pilotlight.flow.alerts.decision_messages import close_and_tell, with_messages
from pilotlight.flow.alerts.wording import answer_of, summary
from pilotlight.flow.answer import Answer, Outcome
from pilotlight.flow.cycle.planning import Aim, make_plan
from pilotlight.flow.cycle.recovery import any_stays, carry_on, look_and_settle, purchases, sized_anew, take_over
from pilotlight.flow.deps import Deps
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
from pilotlight.ports.state import ABSENT
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.decide.money.holds import Lit

MOST_LOOKS = 5
"""A holder looks again so often before it leaves the rest to the next tick,"""

ASKED_S: Seconds = 20
"""or for so long while others ask it to: nodes of one purchase join one by one."""

MOST_ZONES = 12
"""And so often more where a zone had no capacity, for the next one: each such look puts a zone to rest."""

STAYS = "a node stays that was to go: what waits is looked at again before anything is bought"

GATHER_S = 0.1
"""A holder that is asked to look again lets the rest of a burst come first: one look is for all of it."""


LateDid = TypeVar("LateDid")


def run_cycle(deps: Deps, flow: str, trigger: str, aim: Aim) -> Answer:
    """Look under the cluster's lease, and again for as long as that is asked for.

    Raises what the ports raise; what was done so far stays recorded.
    """
    deps, answer = deps.whole, None
    looks = zones = 0
    asked, ran = False, deps.clock.stopwatch()
    while looks < MOST_LOOKS or (asked and ran() < ASKED_S):
        held = lease.acquire(deps.state, deps.name, trigger, settles=aim.releases)
        if held is None:
            break
        try:
            while looks < MOST_LOOKS or (asked and ran() < ASKED_S):
                cycle = Cycle(deps, held, flow, trigger, aim, looks + zones)
                answer = join_answers(answer, cycle.run())
                if cycle.elsewhere and zones < MOST_ZONES:
                    zones += 1
                    continue
                looks += 1
                asked = lease.asked_again(deps.state, deps.name)
                if not (cycle.unfinished or asked):
                    break
                deps.pause(GATHER_S)
        finally:
            held.release()
        # A delivery may have found the lease held after the last look and before its release.
        asked = lease.asked_again(deps.state, deps.name)
        if not asked:
            break
    return answer or Answer(decision="", did=(), why=lease.AT_WORK, outcome="at-work")


class Cycle:
    """One look and what it leads to. ``unfinished``: a gang lacks a part; what it has goes back at the next look.

    ``elsewhere``: a zone had no capacity, and what it was asked for is bought in the next one at the next look.
    """

    def __init__(self, deps: Deps, held: Lease, flow: str, trigger: str, aim: Aim, round_: int) -> None:
        self.deps, self.held, self.flow, self.trigger, self.aim, self.round = deps, held, flow, trigger, aim, round_
        self.unfinished = self.elsewhere = False
        self.ran = deps.clock.stopwatch()

    def run(self) -> Answer:
        """Recover, observe, settle, renew holds, plan, give homes, tend GPUs, check admissions, act, tell."""
        left = take_over(self.deps, self.held)
        snapshot, left = look_and_settle(self.deps, partial(look, self.deps, monitored=self.aim.releases), left)
        snapshot = self.settle(with_flights(self.deps, snapshot))
        snapshot, money, gated = self.gate(*self.hold(snapshot))
        snapshot, plan = make_plan(self.deps, snapshot, self.aim, money, doubts=True)
        snapshot = with_promised_jobs(snapshot, plan)
        plan = replace(plan, findings=(*plan.findings, *self.enter(HOMES, snapshot, plan, self.held.keep)))
        self.enter(GPU_HEALTH, snapshot, plan, money)
        again = gated + carry_on(self.deps, snapshot, left, self.held)
        if any_stays(left, plan):
            self.unfinished = True
            return Answer(decision="", did=again, why=STAYS, outcome="nothing")
        snapshot = self.count_demand(sized_anew(self.deps, snapshot, left, plan), plan)
        record = self.record(snapshot, plan, money)
        again += self.enter(ADMISSION_CHECKS, snapshot, plan, money)
        answer = self.act(snapshot, record, purchases(left)) if record else self.remember(snapshot, plan)
        self.held.forget_loss()
        self.enter(ADVICE, snapshot, plan, money)
        return replace(answer, did=(*again, *answer.did), look_again_at=plan.look_again_at)

    def hold(self, snapshot: Snapshot) -> tuple[Snapshot, Money]:
        """The look that knows what became of the holds, and what the budgets leave; as it is where none is held."""
        if not self.deps.policy.budgets and snapshot.lost_since is None:
            return snapshot, NO_BUDGETS
        from pilotlight.flow.budgets import renew_holds

        return renew_holds.keep_all(self.deps, snapshot, self.held.keep)

    def gate(self, snapshot: Snapshot, money: Money) -> tuple[Snapshot, Money, tuple[str, ...]]:
        """The look and the money beside what Karpenter may light, where the policy limits it; and what was done."""
        if not (self.deps.policy.gates or snapshot.memory.gates):
            return snapshot, money, ()
        from pilotlight.flow.budgets import karpenter_gates

        return karpenter_gates.keep(self.deps, snapshot, money)[:3]

    def enter(self, room: "LateRoom[LateDid]", snapshot: Snapshot, plan: Plan, *given: object) -> tuple[LateDid, ...]:
        """What a room did or found, where there is anything for it. ``given``: what it takes beside look and plan."""
        return room.load()(self.deps, snapshot, plan, *given) if room.when(self, snapshot, plan) else ()

    def count_demand(self, snapshot: Snapshot, plan: Plan) -> Snapshot:
        """The look that remembers what pods ask for which no earlier one counted."""
        by_pool = {offering.pool: offering for offering in self.deps.offerings}
        memory = with_demand(snapshot.memory, plan.demands, plan.counted_to, by_pool, snapshot.now)
        if any(found.code == TAKES_HOMES for found in plan.findings):
            from pilotlight.flow.cycle.homes import count_takers

            memory = replace(memory, tally=count_takers(self.deps, plan, memory.tally))
        return replace(snapshot, memory=memory)

    def remember(self, snapshot: Snapshot, plan: Plan) -> Answer:
        """The answer where nothing is done or told: demand and promises are remembered."""
        if plan.demands or plan.homes.tolerate or snapshot.memory.due != snapshot.was.memory.due:
            ledger.remember(self.deps.state, self.deps.name, snapshot.was, snapshot.memory)
        return Answer(decision="", did=(), why=summary(plan, ()), outcome=_without_record(plan))

    def settle(self, snapshot: Snapshot) -> Snapshot:
        """The look with what came since the last one: deadlines, nodes that came or idle.

        Where nodes may be given back, moves of jobs that would be late are begun; then the aim's own eyes.
        """
        tally = snapshot.memory.tally.count_look(snapshot.now.date(), again=bool(self.round))
        snapshot = with_due_jobs(replace(snapshot, memory=replace(snapshot.memory, tally=tally)))
        if snapshot.memory.asked or any(pool.asked for pool in snapshot.pools):
            from pilotlight.flow.observe.vanished_claims import with_vanished

            snapshot = with_vanished(self.deps, snapshot)
        if self.aim.releases:
            from pilotlight.flow.observe.settle import settle

            snapshot, self.held.settled = settle(self.deps, snapshot, self.held.settled), snapshot.now
            self.begin_moves(snapshot)
        else:
            snapshot = with_taken_nodes(self.deps, snapshot)
        snapshot = self.aim.see(snapshot) if self.aim.see else snapshot
        return replace(snapshot, lost_since=self.held.lost_since) if self.held.lost_since else snapshot

    def begin_moves(self, snapshot: Snapshot) -> None:
        """Jobs moved off a node on which they would be late, or back to spot, where any has a deadline."""
        if any_due(snapshot.view):
            from pilotlight.flow.budgets.deadline_moves import begin

            begin(self.deps, snapshot)

    def record(self, snapshot: Snapshot, plan: Plan, money: Money) -> Record | None:
        """The decision with the calls it will make; None where nothing is to be done or told."""
        id_ = ledger.new_id(snapshot.now, f"{self.deps.name}/{self.trigger}/{self.held.fence}/{self.round}")
        lit: tuple[Lit, ...] = ()
        if plan.releases:
            from pilotlight.decide.money.holds import lit_instances

            lit = lit_instances(snapshot.view.nodes, snapshot.pools)
        record = Record(
            id=id_,
            cluster=self.deps.name,
            flow=self.flow,
            trigger=self.trigger,
            at=snapshot.now,
            status="open",
            plan=replace(plan, homes=NO_HOMES),
            steps=call_steps.of_plan(
                plan,
                {pool.name: pool.desired - pool.owed for pool in snapshot.pools},
                {one.instance: one.since for one in lit},
            ),
        )
        if not record.steps:
            record = with_messages(self.deps, record, (), snapshot.is_gone)
        if not (record.steps or record.messages):
            return None
        return replace(record, basis=basis(self.deps, snapshot, plan, money))

    def act(self, snapshot: Snapshot, record: Record, lost: Sequence[Sending] = ()) -> Answer:
        """Write the decision, make its calls, tell what became of them.

        What is planned is written before the lease is renewed: whoever holds it next finds it and revokes it. Where a
        call's answer is lost the record stays open, and the next look settles it.
        """
        from pilotlight.flow.cycle.act import Act

        deps = self.deps
        version = ledger.write(deps.state, record, if_version=ABSENT)
        brake_records.spend_approvals(deps, record)
        act = Act(deps, snapshot, record, self.held, call_steps.write_planned(deps, record), self.ran, lost)
        self.held.keep(sure=True)  # What another has told since is no news of this look's.
        done = act.make_calls()
        self.enter(MOVES_IN, snapshot, done.plan, done, self.held.keep)
        self.unfinished, self.elsewhere = act.unfinished, act.elsewhere
        done = with_messages(deps, done, act.flapping, snapshot.is_gone)
        answer = answer_of(done)
        if answer.released:
            from pilotlight.flow.observe import instance_lifetimes

            instance_lifetimes.note_released(deps, done)
        done = close_and_tell(deps, done, version)
        if deps.policy.budgets:
            from pilotlight.flow.budgets import budget_holds

            budget_holds.settle_decision(deps, done)
        return answer


class LateRoom(NamedTuple, Generic[LateDid]):
    """A room that few looks need: its question, and its function, which is imported when the answer is yes."""

    when: Callable[[Cycle, Snapshot, Plan], bool]
    load: Callable[[], Callable[..., tuple[LateDid, ...]]]


def late(room: str, name: str) -> Callable[[], Callable[..., tuple[Any, ...]]]:
    """A loader of ``name`` in ``pilotlight.flow.{room}``."""
    return lambda: cast(Callable[..., tuple[Any, ...]], getattr(import_module(f"pilotlight.flow.{room}"), name))


HOMES = LateRoom[Finding](
    lambda cycle, _, plan: plan.homes != NO_HOMES or cycle.deps.has_watchmen, late("cycle.homes", "give_homes")
)
"""Nodes are opened or get a home, and pods the toleration of theirs; watchmen, where there are some, hear of us."""

MOVES_IN = LateRoom[str](lambda _, __, plan: any(buy.homes for buy in plan.buys), late("cycle.homes", "move_in"))
"""Pods of purchases that were made get the tolerations of their nodes, which are on their way."""

GPU_HEALTH = LateRoom[str](
    lambda cycle, look, plan: (
        cycle.aim.releases
        and (any(f.code == SICK_GPU for f in plan.findings) or any(node.marked for node in look.view.nodes))
    ),
    late("cycle.gpu_health", "tend"),
)
"""Nodes whose GPUs are not well are closed to new pods; those that were are opened once they are well."""

ADMISSION_CHECKS = LateRoom[str](
    lambda _, look, __: bool(look.view.queued or look.view.parked), late("cycle.kueue_check", "admit")
)
"""Workloads that wait for our admission check are let in."""

ADVICE = LateRoom[str](
    lambda cycle, _, __: (
        cycle.aim.releases and any(cycle.deps.mode_of(pool) == "advise" for pool in cycle.deps.policy.pools)
    ),
    late("observe.advice_records", "follow"),
)
"""Advice of this look is noted, to be held against what people do."""


def _without_record(plan: Plan) -> Outcome:
    if any(held.code != "settling" for held in plan.held):
        return "stopped"
    return "seen" if plan.pods or plan.held else "nothing"


def join_answers(first: Answer | None, second: Answer) -> Answer:
    """Two looks in one answer."""
    if first is None or first.outcome != "done":
        return second
    if second.outcome != "done":
        return replace(first, did=first.did + second.did, look_again_at=second.look_again_at)
    return replace(second, did=first.did + second.did, released=first.released + second.released)
