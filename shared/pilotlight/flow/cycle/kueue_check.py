"""Kueue's admission check answered at the end of a look: what is queued is let in when its nodes are ready.

The dollars of those nodes were held when they were bought, by the same look as any other purchase. A ready node that
another's budget holds, and nodes that another makes, are held for here first. An answer that cannot be written fails
nothing: the work still waits for it at the next look.
"""

import logging
from collections.abc import Iterator

from msgspec.structs import replace

from pilotlight.decide.demand.queue_admission import DollarGate, answers, on_dollars, type_pins, unpaid_nodes
from pilotlight.decide.money.budget_balance import Purse
from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money, Terms
from pilotlight.facts.workload import CheckAnswer, Queued
from pilotlight.flow.budgets import workload_holds
from pilotlight.flow.cycle.kueue_refusals import Refuser, put_back
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.ports.cluster import AdmittingCluster

_log = logging.getLogger("pilotlight.admission")


def admit(deps: Deps, snapshot: Snapshot, plan: Plan, money: Money) -> tuple[str, ...]:
    """Write what is answered now, a line each. Our check on the queue allows that, whatever pools' modes are."""
    cluster, done = deps.cluster, list[str]()
    if not isinstance(cluster, AdmittingCluster):
        return ()
    refuser = Refuser(deps, cluster, snapshot, plan)
    for answer in _answers(deps, snapshot, plan, money, refuser):
        about = f"{answer.of.namespace}/{answer.of.name}"
        try:
            if answer.state == "Retry":
                done.append(refuser.refuse(answer))
                continue
            cluster.answer_check(answer)
        except (Denied, Retry) as error:
            _log.warning("not answered", extra={"data": {"workload": about, "why": str(error)}})
            continue
        done.append(f"answered {answer.state} for Workload {about}: {answer.message}")
    return (*done, *put_back(deps, cluster, snapshot, plan, money))


def _answers(deps: Deps, snapshot: Snapshot, plan: Plan, money: Money, refuser: Refuser) -> Iterator[CheckAnswer]:
    view, told = snapshot.view, set[str]()
    found = {answer.of.turn: answer for answer in answers(view, plan)}
    for queued in view.queued if deps.policy.budgets else ():
        if pools := workload_holds.held_pools(deps, queued.turn):
            told.add(queued.turn)
            yield _again(deps, queued, pools, found.get(queued.turn))
    others = workload_holds.makers(deps, snapshot)
    for gate in on_dollars(view, plan, deps.offerings, deps.policy, others) if others else ():
        if gate.of.turn not in told:
            told.add(gate.of.turn)
            yield _by_dollars(deps, snapshot, gate, refuser)
    gates = _Gates(deps, snapshot, plan, money, refuser)
    yield from (gates.paid_for(answer) for turn, answer in found.items() if turn not in told)


def _again(deps: Deps, queued: Queued, pools: set[str], said: CheckAnswer | None) -> CheckAnswer:
    """Ready on dollars that an earlier look held and could not tell."""
    if said is not None and said.state == "Ready":
        return said
    pins = type_pins(queued, deps.policy, pools)
    why = "its dollars are held; another makes its nodes"
    return CheckAnswer(of=queued, state="Ready", message=why, selectors=pins)


def _by_dollars(deps: Deps, snapshot: Snapshot, gate: DollarGate, refuser: Refuser) -> CheckAnswer:
    """Ready once its dollars are held; where no budget says anything, at once."""
    if refused := workload_holds.hold(deps, gate.of.turn, gate.nodes, snapshot.now):
        refuser.note_needs(gate.of, gate.offering, gate.nodes)
        return CheckAnswer(of=gate.of, state="Retry", message=refused)
    held = f"held {workload_holds.describe_holds(gate.nodes)}" if deps.policy.budgets else "no budget limits it"
    return CheckAnswer(of=gate.of, state="Ready", message=f"{held}; {gate.why}", selectors=gate.selectors)


class _Gates:
    """Ready nodes that are held for by others: a Workload is let in to them once its own budget holds them."""

    def __init__(self, deps: Deps, snapshot: Snapshot, plan: Plan, money: Money, refuser: Refuser) -> None:
        self.deps, self.snapshot, self.plan, self.refuser = deps, snapshot, plan, refuser
        self.purse = Purse(money, snapshot.now, deps.policy)
        self._held: dict[str, Terms] | None = None

    def paid_for(self, answer: CheckAnswer) -> CheckAnswer:
        """The answer, or the refusal of its budget."""
        deps = self.deps
        if answer.state != "Ready" or not deps.policy.budgets:
            return answer
        if self._held is None:
            self._held = workload_holds.held_instances(deps)
        found = unpaid_nodes(answer, self.snapshot.view, self.plan, deps.offerings, deps.policy, self._held)
        if not found:
            return answer
        nodes = tuple(self.purse.fit_terms(terms, len(found)) for _, terms in found)
        if refused := workload_holds.hold(deps, answer.of.turn, nodes, self.snapshot.now):
            self.refuser.note_needs(answer.of, found[0][0].name, nodes)
            return CheckAnswer(of=answer.of, state="Retry", message=refused)
        held = workload_holds.describe_holds(nodes)
        return replace(answer, message=f"{answer.message}; held {held}")
