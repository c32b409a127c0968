"""An interruption as lines of text: what came, what was done when, and what it cost."""

from pilotlight.facts.interruption.interruption import Interruption
from pilotlight.units import cents, human, moment_of


def lines(found: Interruption) -> list[str]:
    """All that is known of it, in the order in which it happened."""
    where = f" ({found.node or 'still booting'}, pool {found.pool})" if found.pool else ""
    out = [f"{found.received_at:%Y-%m-%d %H:%M:%S} UTC  {found.kind} of {found.instance}{where}"]
    out.append(f"  {'ours' if found.ours else 'not ours'}: {found.why}")
    if found.proof:
        out.append(f"  {found.truth}: {found.proof}")
    if found.deadline:
        left = human((found.deadline - found.received_at).total_seconds())
        out.append(f"  it goes at {moment_of(found.deadline, found.received_at)}, {left} after the notice")
    if found.replaced:
        by = f"by decision {found.decision}" if found.decision else "and there was room already"
        out.append(f"  room for its pods was asked for {by}")
    steps = [(at, f"asked {_pod(found, uid)} for a checkpoint") for uid, at in found.asked.items()]
    steps += [(at, f"evicted {_pod(found, uid)}") for uid, at in found.evicted.items()]
    out += [f"  {at:%H:%M:%S} {what}" for at, what in sorted(steps)]
    out += [
        f"  {lost.pod} loses {lost.gpu_hours:.3f} GPU-hours of work" + (f", {cents(lost.usd)}" if found.priced else "")
        for lost in found.lost.values()
    ]
    return [*out, f"  {found.outcome or 'goes on'}; {found.loss} lost in all"]


def is_about(found: Interruption, subject: str) -> bool:
    """True where it concerns an instance, a node, a decision or a pod."""
    pods = {name for uid, lost in found.lost.items() for name in (uid, lost.pod, lost.pod.partition("/")[2])}
    pods |= {name for one in (found.preempts,) if one for name in (one.uid, one.pod, one.pod.partition("/")[2])}
    return subject in pods | ({found.instance, found.node, found.decision} - {""})


def _pod(found: Interruption, uid: str) -> str:
    return found.lost[uid].pod if uid in found.lost else uid
