"""The plan as it is told: purchases in their order, verdicts, findings, dollars, and when to look again."""

from datetime import datetime

from pilotlight.decide.work import Work
from pilotlight.facts.decisions import Plan, known_per_hour


def order_purchases(work: Work) -> None:
    """Purchases for pods, then spares; where no limit cuts them, the cheapest nodes are launched first, so that small
    pods find them ready before dear ones.
    """
    buys = work.run.buys() + work.spare_buys
    work.buys = buys if work.limited else tuple(sorted(buys, key=lambda buy: buy.usd_per_hour))


def write_plan(work: Work) -> None:
    """The plan of all that the steps found."""
    run, look = work.run, work.look
    released = known_per_hour(n for n in work.nodes if n.verdict == "release")
    times = (*work.times, look.money.look_again_at, *_rests(work))
    work.plan = Plan(
        buys=work.buys,
        pods=tuple(work.pods or run.outcomes),
        nodes=tuple(work.nodes),
        findings=(*work.view.findings, *run.findings, *work.findings),
        usd_per_hour_before=work.usd_per_hour_before,
        usd_per_hour_after=run.headroom.usd_per_hour - released,
        look_again_at=min((at for at in times if at is not None), default=None),
        demands=tuple(run.demands),
        counted_to=work.counted_to,
        paid_idle=work.paid_idle,
    )


def _rests(work: Work) -> list[datetime]:
    """Ends of rests and deadlines' turns that keep waiting pods from a purchase."""
    run, memory = work.run, work.memory
    if not any(group.verdict in ("waiting", "refused") for group in run.outcomes):
        return []
    ends = [b.until for b in memory.backoffs] + [q.until for q in memory.quarantines] + run.due
    if run.headroom.purse is not None:
        ends += run.headroom.purse.frees_at()
    return [until for until in ends if until > work.now]
