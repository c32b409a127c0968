"""After the faults: ticks until nothing happens any more, then what is left is counted."""

from datetime import datetime

import msgspec

from harness.deployment import Deployment, Site
from harness.judges.deadlines import calm_s as _calm_s
from harness.judges.deadlines import late
from harness.judges.hard_caps import passed, unseen
from harness.setting import HEADERS, Setting, What
from pilotlight.doorway import Function
from pilotlight.flow.records.lease import AT_WORK
from pilotlight.ports.clouds import CALL_S
from pilotlight.ports.state import State
from pilotlight.state_schema.table import plain
from pilotlight.tools.lint.audit_proof import KEPT, lines, strangers, verify
from pilotlight.units import HOUR, Seconds
from pilotlight.wiring import App

_SCHEDULES: tuple[tuple[Function, What], ...] = (
    ("capacity_reconcile", "reconcile"),
    ("spot_interruption", "rescue"),
    ("billing_tick", "billing"),
)
TICK_S = 60.0
SLOW_TICK_S, SLOWEST_TICK_S = 900.0, 4 * HOUR
"""How seldom it ticks while nothing changes: less and less often."""

BOUND_S = 36 * HOUR
"""All must be quiet so long after the last fault; with budgets, a day later for each job: one may use up a day's."""


def settle_down(deployment: Deployment) -> None:
    """Let time pass, with ticks a minute, until nothing is left to do and to tell; count what remains."""
    for site in deployment.sites:
        _begin(site)
    end_s = deployment.now_s + BOUND_S + max(map(_bound_s, deployment.sites))
    state, app = deployment.first.store(), deployment.app(0, _go_on, lambda: None)
    n, slow_s = 0, SLOW_TICK_S
    while deployment.now_s < end_s and not (n and all(_settled(site, state) for site in deployment.sites)):
        n += 1
        before, again = _done(deployment, state), []
        for site in deployment.sites:
            again.append(_ticks(site, app, state, n))
        _advance(deployment, _next_s(deployment, min((when for when in again if when), default=None), slow_s))
        slow_s = min(2 * slow_s, SLOWEST_TICK_S) if before == _done(deployment, state) else SLOW_TICK_S
    for site in deployment.sites:
        _count(site, state)
        site.setting.invariants.finish()


def _begin(site: Site) -> None:
    """Faults stop and people go home; what is on its way arrives."""
    setting = site.setting
    setting.luck.calm()
    setting.invariants.amid = setting.world.launches
    now_s = setting.world.now_s
    down = (o._replace(end_s=min(o.end_s, now_s)) for o in setting.outages if o.start_s < now_s)
    setting.outages = (*down, *unseen(setting.looked_s, now_s))
    setting.say("the faults stop")
    if site.people is not None:
        site.people.go_home()
    setting.world.advance(setting.world.now_s + CALL_S)
    setting.arrive()


def _bound_s(site: Site) -> Seconds:
    scene = site.setting.scene
    return len(scene.jobs) * 24 * HOUR if scene.policy.budgets else 0


def _done(deployment: Deployment, state: State) -> list[object]:
    """Signs that something went on: also that nodes were asked for, or refused after all."""
    worlds = [site.setting.world for site in deployment.sites]
    ended = [(world.launches, world.terminations, len(world.finished)) for world in worlds]
    return [*ended, [key for key, _ in state.scan("inflight/").items]]


def _advance(deployment: Deployment, to_s: Seconds) -> None:
    for site in deployment.sites:
        site.setting.world.advance(to_s)


def _go_on(call: str) -> None:
    """Nobody waits and nobody dies any more."""


def _ticks(site: Site, app: App, state: State, n: int) -> datetime | None:
    """Every schedule's tick, and what is to be told; when the soonest of them asks to look again."""
    setting, name = site.setting, f"quiet{n}"
    again = []
    if site.people is not None:
        site.people.agree()
    for function, what in _SCHEDULES:
        again.append(_receive(setting, app, function, setting.tick(what, name)))
    setting.invariants.spend.note_look(setting.world.now_s, setting.world.now_s)
    for delivery in site.post.left():
        again.append(_receive(setting, app, delivery.function, delivery.body))
    again.append(_receive(setting, app, "alert_fanout", setting.tick("alerts", name)))
    setting.invariants.look_around(_room(state, f"rescue/{setting.cluster}/"))
    return min((at for at in again if at), default=None)


def _receive(setting: Setting, app: App, function: Function, body: bytes) -> datetime | None:
    answer = app.receive(function, body, HEADERS)
    setting.say(f"{function}: {answer.status} {answer.body.get('why') or answer.body}")
    if answer.status >= 500:
        setting.invariants.broke(
            "internal_errors", f"{function} while it settled down answered {answer.status}: {answer.body}"
        )
        return setting.world.clock.now()  # What is not acknowledged is delivered again.
    if answer.body.get("why") == AT_WORK:
        return setting.world.clock.now()  # A dead worker's lease lasts a minute, and the next tick looks.
    again = answer.body.get("look_again_at")
    return datetime.fromisoformat(again) if again else None


def _next_s(deployment: Deployment, again: datetime | None, slow_s: Seconds) -> Seconds:
    """The next minute at which something could be different, at the latest ``slow_s`` on."""
    now_s, start = deployment.now_s, deployment.first.world.clock.start
    events = [site.setting.world.next_event_s() for site in deployment.sites]
    slow_s = min([slow_s, *(_calm_s(site.setting.scene, site.setting.world) for site in deployment.sites)])
    soonest = [now_s + slow_s, *(event_s for event_s in events if event_s is not None)]
    if again is not None:
        soonest.append((again - start).total_seconds() + 1)
    return max(now_s + TICK_S, min(soonest))


def _settled(site: Site, state: State) -> bool:
    setting, world = site.setting, site.setting.world
    served = not world.running and not unserved(site) and not world.nodes
    return served and not site.post.tells and not _held(setting, state) and not state.scan("waiting/").items


def unserved(site: Site) -> list[tuple[str, bool]]:
    """Jobs that wait though they could be served, and whether each is a gang."""
    setting = site.setting
    servable = {job.demands[0].uid for job in setting.scene.jobs if job.servable}
    return [(id, len(job.demands) > 1) for id, job in setting.world.pending.items() if id in servable]


def _count(site: Site, state: State) -> None:
    setting, broke = site.setting, site.setting.invariants.broke
    for job, gang in unserved(site):
        broke("stuck_gangs" if gang else "lost_demands", f"{job} still waits when all is quiet")
    for what in late(setting.scene, setting.world):
        broke("late_jobs", what)
    for node in setting.world.nodes.values():
        what = ", ".join(node.jobs) or "nothing"
        broke("leaked_holds", f"node {node.id} of {node.pool} is still paid for; on it: {what}")
    seen = setting.invariants
    for what in passed(seen.books, setting.world.now_s, setting.outages, seen.tellings.named):
        broke("cap_overruns", what)
    for what in (
        *_held(setting, state),
        *setting.invariants.books.settled_wrongly(_accounts(state, setting.cluster), setting.world.now_s),
    ):
        broke("leaked_holds", what)
    parts, whole = (_room(state, f"{room}/{setting.cluster}/") for room in ("metering", "meter"))
    for what in setting.invariants.spend.miscounted(parts, whole, setting.world.now_s):
        broke("miscounted_dollars", what)
    for key in _room(state, f"waiting/{setting.cluster}/"):
        broke("lost_alerts", f"{key} still waits when all is quiet")
    proved = verify(lines(state, setting.cluster), kept_since=state.now() - KEPT)
    for wrong in (proved.tampered, *strangers(state, setting.cluster)):
        if wrong is not None:
            broke("broken_chains", f"the audit chain does not prove {wrong}")


def _held(setting: Setting, state: State) -> list[str]:
    """What the store still holds: capacity in flight, open records, dollars."""
    out = [f"{key} is still in flight" for key, _ in state.scan(f"inflight/{setting.cluster}/").items]
    out += [f"{key} is still open" for key, _ in state.scan(f"open/{setting.cluster}/").items]
    out += [f"{key} is still at work" for key, _ in state.scan(f"rescue/{setting.cluster}/").items]
    out += [f"{key} is still held" for key, _ in state.scan(f"hold/{setting.cluster}/").items]
    for key, value in _room(state, f"cap/{setting.cluster}/").items():
        held = msgspec.json.decode(plain(value), type=_Held).held
        if held:
            out.append(f"{key} still holds {held}")
    return out


def _accounts(state: State, cluster: str) -> dict[str, bytes]:
    """The accounts by budget, measure and start of their windows: the ends are left out."""
    return {key.partition("/")[2]: value for key, value in _room(state, f"cap/{cluster}/").items()}


def _room(state: State, room: str) -> dict[str, bytes]:
    """The records of a room, by the rest of their keys."""
    return {key.removeprefix(room): stored.value for key, stored in state.scan(room).items}


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    held: dict[str, object] = {}
