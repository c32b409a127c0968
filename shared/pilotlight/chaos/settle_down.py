"""After the faults: ticks until nothing happens any more, then what is left is counted."""

from datetime import datetime

import msgspec

from pilotlight.chaos.people import People
from pilotlight.chaos.post import Post
from pilotlight.chaos.setting import HEADERS, Setting, What
from pilotlight.doorway import Function
from pilotlight.ports import CALL_S, State
from pilotlight.settings import EMBEDDED_CLUSTER
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


def settle_down(setting: Setting, post: Post, state: State, people: People | None = None) -> None:
    """Let time pass, with ticks a minute, until nothing is left to do and to tell; count what remains."""
    setting.luck.calm()
    setting.say("the faults stop")
    if people is not None:
        people.go_home()
    world, scene = setting.world, setting.scene
    world.advance(world.now_s + CALL_S)
    setting.arrive()
    end_s = world.now_s + BOUND_S + (len(scene.jobs) * 24 * HOUR if scene.policy.budgets else 0)
    app = setting.app(0, _go_on)
    n, slow_s = 0, SLOW_TICK_S
    while world.now_s < end_s and not (n and _settled(setting, post, state)):
        n += 1
        if people is not None:
            people.agree()
        before = world.launches, world.terminations, len(world.finished)
        world.advance(_next_s(setting, _ticks(setting, app, post, state, n), slow_s))
        idle = before == (world.launches, world.terminations, len(world.finished))
        slow_s = min(2 * slow_s, SLOWEST_TICK_S) if idle else SLOW_TICK_S
    _count(setting, state)
    setting.invariants.finish()


def _go_on(call: str) -> None:
    """Nobody waits and nobody dies any more."""


def _ticks(setting: Setting, app: App, post: Post, state: State, n: int) -> datetime | None:
    """Every schedule's tick, and what is to be told; when the soonest of them asks to look again."""
    name, again = f"quiet{n}", []
    for function, what in _SCHEDULES:
        again.append(_receive(setting, app, function, setting.tick(what, name)))
    setting.invariants.spend.looked(setting.world.now_s, setting.world.now_s)
    for delivery in post.left():
        again.append(_receive(setting, app, delivery.function, delivery.body))
    again.append(_receive(setting, app, "alert_fanout", setting.tick("alerts", name)))
    setting.invariants.look_around(_room(state, f"rescue/{EMBEDDED_CLUSTER}/"))
    return min((at for at in again if at), default=None)


def _receive(setting: Setting, app: App, function: Function, body: bytes) -> datetime | None:
    answer = app.receive(function, body, HEADERS)
    setting.say(f"{function}: {answer.status} {answer.body.get('why') or answer.body}")
    if answer.status >= 500:
        setting.invariants.broke(
            "internal_errors", f"{function} while it settled down answered {answer.status}: {answer.body}"
        )
    again = answer.body.get("look_again_at")
    return datetime.fromisoformat(again) if again else None


def _next_s(setting: Setting, again: datetime | None, slow_s: Seconds) -> Seconds:
    """The next minute at which something could be different, at the latest ``slow_s`` on."""
    world = setting.world
    soonest = [world.now_s + slow_s]
    if (event_s := world.next_event_s()) is not None:
        soonest.append(event_s)
    if again is not None:
        soonest.append((again - world.clock.start).total_seconds() + 1)
    return max(world.now_s + TICK_S, min(soonest))


def _settled(setting: Setting, post: Post, state: State) -> bool:
    world = setting.world
    served = not world.running and not _unserved(setting) and not world.nodes
    return served and not post.tells and not _held(state) and not state.scan("waiting/").items


def _unserved(setting: Setting) -> list[tuple[str, bool]]:
    """Jobs that wait though they could be served, and whether each is a gang."""
    servable = {job.demands[0].uid for job in setting.scene.jobs if job.servable}
    return [(id, len(job.demands) > 1) for id, job in setting.world.pending.items() if id in servable]


def _count(setting: Setting, state: State) -> None:
    broke = setting.invariants.broke
    for job, gang in _unserved(setting):
        broke("stuck_gangs" if gang else "lost_demands", f"{job} still waits when all is quiet")
    for node in setting.world.nodes.values():
        what = ", ".join(node.jobs) or "nothing"
        broke("leaked_holds", f"node {node.id} of {node.pool} is still paid for; on it: {what}")
    if not setting.outages:
        for what in setting.invariants.books.passed(setting.world.now_s):
            broke("cap_overruns", what)
    for what in (
        *_held(state),
        *setting.invariants.books.settled_wrongly(_room(state, f"cap/{EMBEDDED_CLUSTER}/"), setting.world.now_s),
    ):
        broke("leaked_holds", what)
    parts, whole = (_room(state, f"{room}/{EMBEDDED_CLUSTER}/") for room in ("metering", "meter"))
    for what in setting.invariants.spend.miscounted(parts, whole, setting.world.now_s):
        broke("miscounted_dollars", what)
    for key in _room(state, f"waiting/{EMBEDDED_CLUSTER}/"):
        broke("lost_alerts", f"{key} still waits when all is quiet")


def _held(state: State) -> list[str]:
    """What the store still holds: capacity in flight, open records, dollars."""
    out = [f"{key} is still in flight" for key, _ in state.scan(f"inflight/{EMBEDDED_CLUSTER}/").items]
    out += [f"{key} is still open" for key, _ in state.scan(f"open/{EMBEDDED_CLUSTER}/").items]
    out += [f"{key} is still at work" for key, _ in state.scan(f"rescue/{EMBEDDED_CLUSTER}/").items]
    out += [f"{key} is still held" for key, _ in state.scan(f"hold/{EMBEDDED_CLUSTER}/").items]
    for key, value in _room(state, f"cap/{EMBEDDED_CLUSTER}/").items():
        held = msgspec.json.decode(value, type=_Held).held
        if held:
            out.append(f"{key} still holds {held}")
    return out


def _room(state: State, room: str) -> dict[str, bytes]:
    """The records of a room, by the rest of their keys."""
    return {key.removeprefix(room): stored.value for key, stored in state.scan(room).items}


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    held: dict[str, object] = {}
