"""A schedule tick: settle what booted, put out what idles, catch demand whose event was lost."""

from msgspec.structs import replace

from pilotlight.errors import Denied, Retry
from pilotlight.facts.messages import Alert, Tick
from pilotlight.flow.alerts.decision_messages import send
from pilotlight.flow.alerts.own_troubles import tell_ending_credential
from pilotlight.flow.answer import Answer, alert_out
from pilotlight.flow.cycle import planning
from pilotlight.flow.cycle.cycle import run_cycle
from pilotlight.flow.delivery.wake import wake
from pilotlight.flow.deps import Deps
from pilotlight.flow.interruption.drain_all import ShownNotices, carry_on, look_with_drains
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.state_schema.marks import SILENT, Mark
from pilotlight.units import Seconds, clock_seconds, human

SILENT_S: Seconds = 600.0
"""A cluster or cloud that does not answer for so long is told of. Nothing is changed meanwhile."""
UNTIL_IT_ANSWERS = "nodes stay as they are and nothing is bought until it answers"


def reconcile(deps: Deps, tick: Tick, *, dry_run: bool = False) -> Answer:
    """Answer one tick: rescues first, then the cycle."""
    if dry_run:
        return planning.dry_run(deps, releases=True)
    wake(deps)
    shown = None
    try:
        try:
            carry_on(deps)
        finally:  # A rescue that fails keeps nothing else from being looked at.
            aim = _aim(deps)
            shown = ShownNotices(deps, aim.see)
            try:
                answer = run_cycle(deps, "reconcile", f"tick {tick.identity}".strip(), replace(aim, see=shown.see))
            finally:  # A call that fails keeps no rescue from being begun.
                shown.begin_drains()
    except (Retry, Denied) as failed:
        _silence(deps, failed, looked=shown is not None and shown.looked)
        raise
    _answers_again(deps)
    tell_ending_credential(deps)
    return answer


def _aim(deps: Deps) -> planning.Aim:
    """The aim of a tick. Queues are read before the cluster's lease is taken: nobody waits for them."""
    see = look_with_drains(deps)
    if deps.queues is None:
        return planning.Aim(releases=True, see=see)
    from pilotlight.flow.observe.queue_lengths import look_at_queues

    found = look_at_queues(deps)

    def told(snapshot: Snapshot) -> Snapshot:
        snapshot = see(snapshot) if see else snapshot
        return replace(snapshot, findings=(*snapshot.findings, *found.findings))

    return planning.Aim(releases=True, see=told if found.findings else see, queues=found.histories)


def _answers_again(deps: Deps) -> None:
    """Ticks work: forget since when they failed, and say so where the silence was told."""
    silent = SILENT.get(deps.state, deps.name)
    if silent is None:
        return
    since = float(silent.value.note)
    fingerprint = f"silent/{since:.0f}"
    if ledger.was_told(deps.state, deps.name, fingerprint):
        now = deps.now()
        alert = Alert(
            cluster=deps.name,
            kind="silent",
            severity="critical",
            fingerprint=fingerprint,
            what=f"ticks of cluster {deps.name} work again, after {human(clock_seconds(now) - since)}",
            why="the cluster and the cloud answer",
            next="pods that waited meanwhile are served now",
            how="nothing is to be done",
            resolved=True,
            at=now,
        )
        # That it was told stays marked: who read of the silence before it is forgotten would tell that it began again.
        deps.outbox.publish((alert_out(alert, f"{deps.name}-silent-{since:.0f}.over"),))
    SILENT.delete(deps.state, deps.name)


def _silence(deps: Deps, failed: Retry | Denied, *, looked: bool) -> None:
    """Remember since when ticks fail; tell of it once it is long, of a refusal at once: that does not pass by itself.
    Where the last one ``looked``, it is what it does then that fails.

    A store that is down cannot remember: it raises.
    """
    now = clock_seconds(deps.now())
    silent = SILENT.get(deps.state, deps.name)
    since = now if silent is None else float(silent.value.note)
    if silent is None:
        SILENT.put(deps.state, deps.name, Mark(note=str(now)))
    fingerprint, refused = f"silent/{since:.0f}", isinstance(failed, Denied)
    if (now - since < SILENT_S and not refused) or ledger.was_told(deps.state, deps.name, fingerprint):
        return
    what, next_ = f" was not looked at for {human(now - since)}", UNTIL_IT_ANSWERS
    if refused:
        what = " refuses us"
    elif looked:
        what, next_ = f": what ticks do has failed for {human(now - since)}", "what failed is tried again at every look"
    alert = Alert(
        cluster=deps.name,
        kind="silent",
        severity="critical",
        fingerprint=fingerprint,
        what=f"cluster {deps.name}{what}",
        why=str(failed),
        next=next_,
        how="check the API server, the cloud's API and their credentials",
        at=deps.now(),
    )
    send(deps, (alert_out(alert, f"{deps.name}-silent-{since:.0f}"),))
