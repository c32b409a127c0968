"""The calls of a decision, each a step with a state: what a stalled worker may still do is decided here.

Keys: ``step/<cluster>/<decision>/<n>``. A worker writes its steps as ``planned``, makes sure of its lease, and sets
each to ``sent`` by compare-and-set between connecting and writing the request (``Sending.gate``). Whoever takes over
the lease revokes what is planned, so that the old worker's compare-and-set fails, however long it stood still. What is
``sent`` may land until ``LANDS``; then it cannot any more, but for a worker that stood still between its last check and
its first byte. ADR 9.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

import msgspec

from pilotlight.errors import Busy, Conflict, Retry
from pilotlight.facts.decisions import CallStep, Plan, Record, StepCode, StepState
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import brake_records
from pilotlight.flow.records.lease import LOST
from pilotlight.ports.clouds import CALL_S
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.decision_records import STEP
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds

AT_ONCE_S: Seconds = 2.0
"""Between setting a step to ``sent`` and the first byte of its request may pass so long at most."""

LANDS = timedelta(seconds=AT_ONCE_S + CALL_S + 5)
"""After so long a request that was let out has landed, or never will."""

LATE = LANDS + timedelta(seconds=60)
"""So long a purchase whose answer is lost counts as on its way."""


class Overtaken(Busy):
    """Another worker holds the lease and has settled this step: this one leaves everything as it is."""


class Stalled(Busy):
    """This worker stood still between its last check and its call: nothing was sent."""


class Paused(Busy):
    """A person paused the pool while its call was being prepared: nothing was sent."""


class Sending:
    """One step, from planned to what became of it."""

    def __init__(self, deps: Deps, record: Record, step: CallStep, version: int) -> None:
        self._deps, self.name = deps, _name(deps, record, step.n)
        self.step, self._version = step, version
        self.let_out = self.reached = False
        """Whether its request went out, and whether it came as far as its gate."""
        self._sent_at = step.sent_at
        self.sent_before = step.state == "sent"
        """By another worker, or at another look: it may still land, whatever becomes of it now."""
        self.stays = False
        """Whether its node stays after all: a plan for a cluster without that node is out of date."""

    def gate(self, size: int = 0, ran: Callable[[], Seconds] | None = None) -> None:
        """Set it to sent, and see that no time has passed: what comes next is the first byte of the request.

        ``size`` is what a purchase asks for: less than was planned where nodes left since the look, or one whose answer
        was lost has not come. ``ran`` is a stopwatch of an earlier check of the same call. Raises ``Busy`` where
        another worker has revoked it, ``Paused`` where a person paused it, and ``Stalled``: nothing was sent.
        """
        ran = ran or self._deps.clock.stopwatch()
        self.reached = True
        self._see_that_it_may()
        sent_at, to = self._deps.state.now(), size or self.step.to
        self._put(msgspec.structs.replace(self.step, state="sent", sent_at=sent_at, to=to, note=""))
        if ran() >= AT_ONCE_S:
            if not self.sent_before:  # An earlier request for it may still land.
                self.end("revoked", code="failed", note="its worker stood still before the call")
            raise Stalled(
                f"{self.step.call} {self.step.target}: this worker stood still before the call; nothing was sent"
            )
        self.let_out = True

    def _see_that_it_may(self) -> None:
        why = brake_records.pause_reason(self._deps.state, self._deps.name, self.step.pool)
        if not why:
            return
        if self.step.state == "planned":
            self.end("revoked", code="paused", note=why, count=0)
        raise Paused(f"{self.step.call} {self.step.target}: {why}; nothing was sent")

    def end(self, state: StepState, *, code: StepCode = "", note: str = "", count: int | None = None) -> CallStep:
        """Write how the step ended. Raises ``Busy`` where another worker has settled it meanwhile."""
        count = self.step.count if count is None else count
        self._put(msgspec.structs.replace(self.step, state=state, code=code, note=note, count=count))
        return self.step

    def one_less(self, gone: CallStep) -> None:
        """A node of its pool went after this purchase was sent: the size it asked for counted that node."""
        sent = self.step.sent_at
        if gone.pool == self.step.pool and sent is not None and gone.sent_at is not None and gone.sent_at >= sent:
            self._put(msgspec.structs.replace(self.step, to=self.step.to - 1))

    def comes_beyond(self, later: CallStep, came: int) -> None:
        """A later purchase, of which so many ``came``, found its pool smaller than this one was to make it: what comes
        of this one adds to that."""
        if later.pool == self.step.pool and self.step.to > later.to - later.count and came:
            self._put(msgspec.structs.replace(self.step, to=self.step.to + came))

    def note_unsent(self) -> None:
        """Note that the second sending did not happen: the first request may still land for as long as before."""
        if self.step.sent_at != self._sent_at:
            self._put(msgspec.structs.replace(self.step, sent_at=self._sent_at))

    def note_answer(self, no: Retry) -> None:
        """Note that it was answered, with "not now": it is sent again, and no answer was lost."""
        self._put(msgspec.structs.replace(self.step, note=f"{type(no).__name__}: {no}"))

    def _put(self, step: CallStep) -> None:
        try:
            self._version = STEP.put(self._deps.state, self.name, step, if_version=self._version)
        except Conflict:
            raise Overtaken(LOST) from None
        self.step = step


def of_plan(
    plan: Plan, sizes: Mapping[str, int], since: Mapping[str, datetime] = MappingProxyType({})
) -> tuple[CallStep, ...]:
    """A step for each call: purchases raise their pool from its size as it is, one after the other.

    Of ``sizes`` is taken off what a pool's cloud could not launch: it is taken first, and not asked for twice.
    ``since`` has by instance when it began to cost.
    """
    sizes = dict(sizes)
    out: list[CallStep] = []
    for n, buy in enumerate(plan.buys):
        sizes[buy.pool] = to = sizes.get(buy.pool, 0) + buy.count
        out.append(CallStep(n=n, call="grow", pool=buy.pool, target=buy.offering, count=buy.count, to=to))
    for n, node in enumerate(plan.releases, len(out)):
        began = since.get(node.instance or node.node)
        out.append(CallStep(n=n, call="release", pool=node.pool, target=node.node, instance=node.instance, since=began))
    return tuple(out)


def write_planned(deps: Deps, record: Record) -> list[Sending]:
    """Write every step of a new record as planned."""
    return [
        Sending(deps, record, step, STEP.put(deps.state, _name(deps, record, step.n), step, if_version=ABSENT))
        for step in record.steps
    ]


def taken_over(deps: Deps, record: Record) -> list[Sending]:
    """The steps of a record that another worker left open, as they really are. What was planned is revoked now."""
    known = {entry.value.n: entry for entry in STEP.scan(deps.state, f"{deps.name}/{record.id}/")}
    return [_revoked(deps, record, step, known.get(step.n)) for step in record.steps]


def forget(deps: Deps, record: Record) -> None:
    """The record is filed: its steps are in it."""
    for step in record.steps:
        STEP.delete(deps.state, _name(deps, record, step.n))


def may_land(step: CallStep, now: datetime) -> bool:
    """True where a step's request may still reach the cloud."""
    return step.state == "sent" and step.sent_at is not None and now < step.sent_at + LANDS


def _revoked(deps: Deps, record: Record, step: CallStep, found: Entry[CallStep] | None) -> Sending:
    """A step that was planned is revoked, one not even written too: its worker has to see to its lease first."""
    while True:
        sending = Sending(deps, record, found.value if found else step, found.version if found else ABSENT)
        if sending.step.state != "planned":
            return sending
        try:
            sending.end("revoked", code="overtaken", note="its worker was lost before the call", count=0)
            return sending
        except Overtaken:  # It was sent just now, or ended: what it says is read again.
            found = STEP.get(deps.state, _name(deps, record, step.n))


def _name(deps: Deps, record: Record, n: int) -> str:
    return f"{deps.name}/{record.id}/{n:04d}"
