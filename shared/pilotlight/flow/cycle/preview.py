"""Previews of a cycle: one look and the plan that it would lead to, without the lease and without a change."""

from pilotlight.facts.decisions import Plan
from pilotlight.flow.alerts.wording import summary
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.cycle.planning import Aim, make_plan
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.observe.gpu_health import with_told
from pilotlight.flow.observe.queue_lengths import look_at_queues
from pilotlight.flow.observe.settle import foreseen
from pilotlight.flow.observe.snapshot import Snapshot, look, with_due_jobs, with_flights


def dry_run(deps: Deps, *, releases: bool) -> Answer:
    """Decide and answer; change nothing."""
    _, plan = preview(deps, releases=releases)
    return Answer(decision="", did=(), why=f"dry run: {summary(plan, ())}", outcome="dry-run", plan=plan)


def preview(deps: Deps, *, releases: bool, explain: bool = True) -> tuple[Snapshot, Plan]:
    """Look and decide without the lease; nothing is changed."""
    snapshot = look(deps)
    snapshot = with_told(deps, snapshot) if releases and snapshot.view.nodes else snapshot
    snapshot = with_due_jobs(with_flights(deps, snapshot))
    snapshot = foreseen(deps, snapshot) if releases else snapshot
    money = budget_holds.balances(deps, snapshot.now, snapshot.memory)
    aim = Aim(releases=releases)
    if releases and deps.queues is not None:
        aim = Aim(releases=True, queues=look_at_queues(deps, remember=False).histories)
    return make_plan(deps, snapshot, aim, money, explain=explain)
