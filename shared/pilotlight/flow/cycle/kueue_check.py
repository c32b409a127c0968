"""Kueue's admission check answered at the end of a look: what is queued is let in when its nodes are ready.

The dollars of those nodes were held when they were bought, by the same look as any other purchase. Where another makes
the nodes they are held here, and it is let in on that alone. An answer that cannot be written fails nothing: the work
still waits for it at the next look.
"""

import logging
from collections.abc import Iterator

from pilotlight.decide.demand.queue_admission import DollarGate, answers, on_dollars
from pilotlight.errors import Denied, Retry
from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.budgets import Money
from pilotlight.facts.workload import CheckAnswer
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
    for answer in _answers(deps, snapshot, plan, refuser):
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


def _answers(deps: Deps, snapshot: Snapshot, plan: Plan, refuser: Refuser) -> Iterator[CheckAnswer]:
    view, told = snapshot.view, set[str]()
    if deps.policy.budgets:
        for queued in view.queued:
            if workload_holds.is_held(deps, queued.turn):
                told.add(queued.turn)
                yield CheckAnswer(of=queued, state="Ready", message="its dollars are held; another makes its nodes")
    others = workload_holds.makers(deps, snapshot)
    for gate in on_dollars(view, plan, deps.offerings, deps.policy, others) if others else ():
        if gate.of.turn not in told:
            told.add(gate.of.turn)
            yield _by_dollars(deps, snapshot, gate, refuser)
    yield from (answer for answer in answers(view, plan) if answer.of.turn not in told)


def _by_dollars(deps: Deps, snapshot: Snapshot, gate: DollarGate, refuser: Refuser) -> CheckAnswer:
    """Ready once its dollars are held; where no budget says anything, at once."""
    if refused := workload_holds.hold(deps, gate.of.turn, gate.nodes, snapshot.now):
        refuser.note_needs(gate.of, gate.offering, gate.nodes)
        return CheckAnswer(of=gate.of, state="Retry", message=refused)
    held = f"held {workload_holds.describe_holds(gate.nodes)}" if deps.policy.budgets else "no budget limits it"
    return CheckAnswer(of=gate.of, state="Ready", message=f"{held}; {gate.why}")
