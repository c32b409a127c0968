"""Schedule of what a served deployment does by itself: its functions' ticks, and alerts handed on from the outbox."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal

from pilotlight.doorway import Function, receive
from pilotlight.errors import Conflict, PilotlightError
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.marks import TICK, Mark
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.wiring import App

LOOK_EVERY_S: Seconds = 0.5
"""How often, by the wall's clock, a worker looks whether a tick is due."""

RESCUE_EVERY_S: Seconds = 0.25
"""How often interruptions are carried on: seconds count in them, also of a clock that runs sixty times as fast."""

TOLD_AGAIN_S: Seconds = 60.0
"""How often a fault that stays is told."""

Ticked = Literal["reconcile", "billing", "bills"]
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
    for cluster in app.clusters:
        for what in TICKED:
            _every(stop, LOOK_EVERY_S, partial(_tick_at, app, cluster, tick_s, what))
        _every(stop, RESCUE_EVERY_S, partial(_rescue_at, app, cluster))
    _every(stop, DRAIN_EVERY_S, lambda: _drain(app))


def _tick_at(app: "App", cluster: str, tick_s: Seconds, what: Ticked) -> bool:
    return tick_if_due(app.for_cluster(cluster), tick_s, what)


def _rescue_at(app: "App", cluster: str) -> None:
    _rescue(app.for_cluster(cluster))


def tick_if_due(app: "App", tick_s: Seconds, what: Ticked = "reconcile") -> bool:
    """Tick unless another worker did within ``tick_s`` of the store's time; whether it ticked.

    Who puts the mark ticks; it ends with the interval, whatever became of its worker.
    """
    if not _begins(app, f"{app.deps.name}/{what}", tick_s):
        return False
    _tick(app, what)
    return True


def _begins(app: "App", name: str, for_s: Seconds) -> bool:
    """True where this worker is the first of an interval, which its mark begins."""
    if TICK.get(app.deps.state, name) is not None:
        return False
    try:
        TICK.put(app.deps.state, name, Mark(note=str(os.getpid())), if_version=ABSENT, ttl_s=for_s)
    except Conflict:
        return False
    return True


def _every(stop: threading.Event, seconds: Seconds, do: Callable[[], object]) -> None:
    def loop() -> None:
        told: tuple[str, float] | None = None
        while not stop.wait(seconds):
            try:
                do()
            except PilotlightError as error:
                now = str(error), time.monotonic() // TOLD_AGAIN_S
                if now == told:
                    continue
                told = now
                logging.getLogger("pilotlight").warning("later", extra={"data": {"why": str(error)}})

    threading.Thread(target=loop, daemon=True).start()


def _rescue(app: "App") -> None:
    """Carry interruptions on, where there are any."""
    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import Tick
    from pilotlight.state_schema.cluster_records import RESCUE

    if any(True for _ in RESCUE.scan(app.deps.state, f"{app.deps.name}/")):  # No more than one page is read.
        now = app.clock.now()
        body = encode(Tick(cluster=app.deps.name, what="rescue", at=now), id=f"rescue-{now:%Y%m%dT%H%M%S.%f}")
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
    from pilotlight.flow.delivery.flush import anything_due

    if isinstance(app.outbox, LocalOutbox):
        app.outbox.drain("alerts", lambda body: app.receive("alert_fanout", body, {}).status < 500)
    now = app.clock.now()
    if anything_due(app.state, app.state.now()):
        tick = Tick(cluster=app.clusters[0], what="alerts", at=now)
        app.receive("alert_fanout", encode(tick, id=f"alerts-{now:%Y%m%dT%H%M%S}"), {})
