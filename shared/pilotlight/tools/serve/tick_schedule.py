"""Schedule of what a served deployment does by itself: its functions' ticks, and alerts handed on from the outbox."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from pilotlight.doorway import Function, receive
from pilotlight.errors import Conflict, PilotlightError
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.marks import TICK, Mark
from pilotlight.tools.serve.rota import Rota, Ticked, Turn
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.wiring import App

LOOK_EVERY_S: Seconds = 0.5
"""How often, by the wall's clock, a worker looks whether a tick is due."""

RESCUE_EVERY_S: Seconds = 0.25
"""How often interruptions are carried on: seconds count in them, also of a clock that runs sixty times as fast."""

TOLD_AGAIN_S: Seconds = 60.0
"""How often a fault that stays is told."""

TICKED: Mapping[Ticked, Function] = {
    "reconcile": "capacity_reconcile",
    "billing": "billing_tick",
    "bills": "billing_import",
}
"""What ticks are for, and the function each goes to."""

DRAIN_EVERY_S: Seconds = 1.0
"""How often alerts on the local outbox are handed to alert_fanout."""


def begin(app: "App", stop: threading.Event, tick_s: Seconds) -> None:
    """Do both in the background until ``stop`` is set."""
    turns = [Turn(cluster, what) for cluster in app.clusters for what in TICKED]
    told = {turn: _Faults() for turn in turns}
    rota = Rota(turns, lambda turn: _turn(app, turn, tick_s, told[turn]), app.state.now)
    _every(stop, LOOK_EVERY_S, rota.look)
    _every(stop, RESCUE_EVERY_S, partial(_rescue_all, app, dict[str, threading.Thread]()))
    _every(stop, DRAIN_EVERY_S, lambda: _drain(app))


def _turn(app: "App", turn: Turn, tick_s: Seconds, faults: "_Faults") -> datetime | None:
    """One cluster's tick, unless another worker began it meanwhile; when it is due next, None where it failed."""
    try:
        now = app.state.now()
        began = tick_if_due(app.for_cluster(turn.cluster), tick_s, turn.what)
    except PilotlightError as error:
        faults.tell(error)
        return None
    return min(began or now, now) + timedelta(seconds=tick_s)


def tick_if_due(app: "App", tick_s: Seconds, what: Ticked = "reconcile") -> datetime | None:
    """Tick unless another worker did within ``tick_s`` of the store's time: None where it ticked, else when that began.

    Who puts the mark ticks; it ends with the interval, whatever became of its worker.
    """
    began = _begun(app, f"{app.deps.name}/{what}", tick_s)
    if began is None:
        _tick(app, what)
    return began


def _begun(app: "App", name: str, for_s: Seconds) -> datetime | None:
    """None where this worker is the first of an interval, which its mark begins; else when that one began it."""
    now = app.deps.state.now()
    there = TICK.get(app.deps.state, name)
    if there is not None:
        return there.value.at or now
    try:
        TICK.put(app.deps.state, name, Mark(note=str(os.getpid()), at=now), if_version=ABSENT, ttl_s=for_s)
    except Conflict:
        return now
    return None


class _Faults:
    """Errors that repeat: each is told once a minute."""

    def __init__(self) -> None:
        self._told: tuple[str, float] | None = None

    def tell(self, error: PilotlightError) -> None:
        """Log it, unless it is the one that was told in this minute."""
        now = str(error), time.monotonic() // TOLD_AGAIN_S
        if now != self._told:
            self._told = now
            logging.getLogger("pilotlight").warning("later", extra={"data": {"why": str(error)}})


def _every(stop: threading.Event, seconds: Seconds, do: Callable[[], object]) -> None:
    def loop() -> None:
        faults = _Faults()
        while not stop.wait(seconds):
            try:
                do()
            except PilotlightError as error:
                faults.tell(error)

    threading.Thread(target=loop, daemon=True).start()


def _rescue_all(app: "App", at_work: dict[str, threading.Thread]) -> None:
    """Carry the interruptions of each cluster on, where it has any: side by side, so that none waits for another."""
    from pilotlight.state_schema.instance_records import RESCUE

    within = f"{app.clusters[0]}/" if len(app.clusters) == 1 else ""
    found = {entry.name.partition("/")[0] for entry in RESCUE.scan(app.state, within)}
    for cluster in found.intersection(app.clusters):
        if cluster not in at_work or not at_work[cluster].is_alive():
            at_work[cluster] = threading.Thread(target=_rescue, args=(app.for_cluster(cluster),), daemon=True)
            at_work[cluster].start()


def _rescue(app: "App") -> None:
    """Carry the interruptions of one cluster on."""
    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import Tick

    now = app.clock.now()
    cluster = app.settings.cluster_name
    body = encode(Tick(cluster=cluster, what="rescue", at=now), id=f"rescue-{now:%Y%m%dT%H%M%S.%f}")
    app.receive("spot_interruption", body, {})


def _tick(app: "App", what: Ticked) -> None:
    """One tick, as a scheduler would post it."""
    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import Tick

    now = app.clock.now()
    identity = f"serve-{what}-{now:%Y%m%dT%H%M%S}"
    body = encode(Tick(cluster=app.deps.name, what=what, identity=identity, at=now), id=identity)
    receive(app, TICKED[what], body, {}, spare_s=inf)


def _drain(app: "App") -> None:
    """Hand the outbox's alerts to alert_fanout, those it wants again stay; then let it tell what waited until now."""
    from pilotlight.adapters.outbox.local import LocalOutbox
    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import Tick
    from pilotlight.flow.delivery.wake import anything_due

    if isinstance(app.outbox, LocalOutbox):
        app.outbox.drain("alerts", lambda body: app.receive("alert_fanout", body, {}).status < 500)
    now = app.clock.now()
    if anything_due(app.state, app.state.now()):
        tick = Tick(cluster=app.clusters[0], what="alerts", at=now)
        app.receive("alert_fanout", encode(tick, id=f"alerts-{now:%Y%m%dT%H%M%S}"), {})
