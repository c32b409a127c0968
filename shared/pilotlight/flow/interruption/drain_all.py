"""Carries interruptions on: at each look what is due of every one is done, written, and told once it is over."""

from collections.abc import Callable, Iterator

from pilotlight.errors import Denied, PilotlightError, Retry
from pilotlight.facts.cluster_view import ClusterView
from pilotlight.flow.budgets import interruption_records
from pilotlight.flow.deps import Answer, Deps
from pilotlight.flow.interruption.drain_one import NodeDrain, do_due_steps
from pilotlight.flow.interruption.verify_notice import Questions
from pilotlight.flow.observe.snapshot import Snapshot


def carry_on(deps: Deps) -> list[Answer]:
    """Do what is due of every interruption. One that fails keeps none of the others; the first error is raised last."""
    failed = _begun(deps)
    if deps.set_apart("rescue"):
        from pilotlight.flow.interruption import plain_stop

        plain_stop.carry_on(deps)
    left = interruption_records.open_interruptions(deps)
    if not left:
        if failed is not None:
            raise failed
        return []
    view, questions = deps.observe(), Questions(deps)
    runs = [NodeDrain(deps, kept.found, view, questions) for kept in left]
    answers: list[Answer] = []
    for kept, run in zip(left, runs, strict=True):
        run.beside = runs
        try:
            answers.append(do_due_steps(deps, kept, run))
        except (Retry, Denied) as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return answers


def _begun(deps: Deps) -> PilotlightError | None:
    """Begin what is due, each kind whatever becomes of the others; the first error that kept one from it."""
    failed: PilotlightError | None = None
    for begin in _beginnings(deps):
        try:
            begin(deps)
        except (Retry, Denied) as error:
            failed = failed or error
    return failed


def _beginnings(deps: Deps) -> Iterator[Callable[[Deps], None]]:
    """Beginnings that the policy may ask for: rescues where a block of capacity ends soon, and moves off nodes that are
    too old or whose GPUs are not well. Each is imported where its case arises."""
    classes = deps.policy.classes.values()
    if any(pool.capacity_type == "reserved" for pool in deps.policy.pools.values()):
        from pilotlight.flow.interruption import block_ends

        yield block_ends.begin
    if any(rules.at_max_age == "move" for rules in classes):
        from pilotlight.flow.interruption import old_nodes

        yield old_nodes.begin
    if any(rules.at_sick_gpu == "move" for rules in classes):
        from pilotlight.flow.interruption import gpu_health

        yield gpu_health.begin


def look_with_drains(deps: Deps) -> Callable[[Snapshot], Snapshot] | None:
    """The change to a reconcile's look while nodes are on their way out: the room that was asked for their pods is
    kept until they come. None where no interruption is at work.
    """
    left = [NodeDrain(deps, kept.found, ClusterView()) for kept in interruption_records.open_interruptions(deps)]
    rescues = [one for one in left if one.holds_room]

    def see(snapshot: Snapshot) -> Snapshot:
        for one in rescues:
            snapshot = one.see(snapshot, move=True)
        return snapshot

    return see if rescues else None


def go_on(deps: Deps, *, dry_run: bool = False) -> Answer:
    """A tick for rescues: what is due of every one, in one answer."""
    answers = [] if dry_run else carry_on(deps)
    return Answer(
        decision=next((a.decision for a in answers if a.decision), ""),
        did=tuple(line for a in answers for line in a.did),
        why="; ".join(a.why for a in answers) or "no interruption is at work",
        look_again_at=min((a.look_again_at for a in answers if a.look_again_at), default=None),
    )
