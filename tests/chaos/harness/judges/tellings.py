"""What people are told: every alert that was sent against what their channel showed.

An alert may be shown twice only where whoever told it could not know: the connection broke after the channel had taken
it, the teller died before it could write that down, or the store did not take that.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from harness.faults.luck import LEASE_S
from harness.judges.strangers_books import SLACK_S, Day
from harness.scene import CHANNEL, START
from pilotlight.facts.messages import TYPES, Alert, DeadLetter, Outgoing
from pilotlight.units import Seconds

CLAIM_S: Seconds = 120
"""A teller's claim lasts so long."""
AGAIN_S: Seconds = 6 * 3600 - 300
"""A channel may show the same again after this long."""

_NAMES = {kind: name for name, kind in TYPES.items()}
_ALERT, _LETTER = _NAMES[Alert], _NAMES[DeadLetter]


class _Event(msgspec.Struct):
    data: Alert


class _Proof(msgspec.Struct):
    alert: Alert
    status: str


class _Showing:
    """One showing of an alert. ``proven_s``: its proof came into the store; ``excused``: it may be shown again.

    ``late``: whoever told it stood still before; another may have claimed the alert meanwhile, and tells it too.
    """

    def __init__(self, worker: str, alert: Alert, at_s: Seconds, late: bool) -> None:
        self.worker, self.alert, self.at_s, self.late = worker, alert, at_s, late
        self.proven_s: Seconds | None = None
        self.excused = False

    def known(self, now_s: Seconds) -> bool:
        """Whether who tells it now could know of this.

        Who stands still between showing and writing that down keeps nobody from it for longer than a lease; and whoever
        had claimed it before that was written tells it within its own claim.
        """
        if self.proven_s is None:
            return now_s - self.at_s < LEASE_S
        return self.proven_s - self.at_s < LEASE_S or now_s - self.proven_s > CLAIM_S


class Tellings:
    """Told of what is sent, shown and written; asked at the end."""

    def __init__(self) -> None:
        self.fingerprints: set[str] = set()
        self.overslept: set[str] = set()
        """Workers that stood still before they told: no channel can be asked to take only what nobody else has told."""
        self._sent: dict[str, list[Alert]] = defaultdict(list)
        self._ids: dict[tuple[str, bool], str] = {}
        self._shown: dict[str, list[_Showing]] = defaultdict(list)
        self._dead: set[tuple[str, bool]] = set()

    def sent(self, message: Outgoing) -> Iterator[str]:
        """A message arrived; a step of a budget that is told under two ids was reached twice."""
        if message.type == _LETTER and message.key == CHANNEL:
            alert = msgspec.json.decode(msgspec.json.decode(message.data, type=DeadLetter).body, type=_Event).data
            self._dead.add((alert.fingerprint, alert.resolved))
        if message.type != _ALERT:
            return
        alert = msgspec.json.decode(message.data, type=Alert)
        self._sent[alert.fingerprint].append(alert)
        self.fingerprints.add(alert.fingerprint)
        first = self._ids.setdefault((alert.fingerprint, alert.resolved), message.id)
        if first != message.id and alert.fingerprint.startswith("budget/"):
            yield f"{alert.fingerprint} is told twice: {first} and {message.id}"

    def shown(self, worker: str, alert: Alert, now_s: Seconds) -> Iterator[str]:
        """The channel showed an alert."""
        before = self._shown[alert.fingerprint]
        last = before[-1] if before else None
        same = last is not None and last.alert.resolved == alert.resolved and now_s - last.at_s < AGAIN_S
        ended = (alert.fingerprint, not alert.resolved) in self._dead  # Its other half was sent, and given up.
        late = worker in self.overslept
        self.overslept.discard(worker)
        claimed = last is not None and last.late and now_s - last.at_s < CLAIM_S
        if last is not None and same and last.known(now_s) and not (late or claimed or last.excused or ended):
            yield f"{worker} told {alert.fingerprint} again, which {last.worker} told at {last.at_s:.1f} s"
        before.append(_Showing(worker, alert, now_s, late))

    def unsure(self, alert: Alert) -> None:
        """The connection broke, perhaps after the channel had taken an alert."""
        self._excuse(alert)

    def died(self, worker: str) -> None:
        """A teller died."""
        for showings in self._shown.values():
            if showings[-1].worker == worker and showings[-1].proven_s is None:
                showings[-1].excused = True

    def proven(self, value: bytes, now_s: Seconds) -> None:
        """A proof was written."""
        proof = msgspec.json.decode(value, type=_Proof)
        shown = self._shown.get(proof.alert.fingerprint)
        if not shown or proof.status != "told":
            return
        *before, last = shown
        if last.proven_s is None and last.alert.resolved == proof.alert.resolved:
            last.proven_s = now_s
        elif any(one.proven_s is None and one.alert.resolved == proof.alert.resolved for one in before):
            last.excused = True  # The other half's teller stood still until now: it may have been shown just now.

    def failed(self, value: bytes) -> None:
        """A proof could not be written, as far as its writer knows."""
        self._excuse(msgspec.json.decode(value, type=_Proof).alert)

    def _excuse(self, alert: Alert) -> None:
        for showing in self._shown.get(alert.fingerprint, [])[-1:]:
            if showing.alert.resolved == alert.resolved and showing.proven_s is None:
                showing.excused = True

    def lost(self) -> Iterator[str]:
        """Alerts that were sent, and of which people know nothing though all is quiet; or not that they are over."""
        for fingerprint, sent in self._sent.items():
            shown = [showing.alert for showing in self._shown.get(fingerprint, [])]
            begun, over = (any(alert.resolved is end for alert in sent) for end in (False, True))
            if begun and not over and not shown and (fingerprint, False) not in self._dead:
                yield f"{fingerprint} was sent and never shown"
            newest = max(sent, key=lambda alert: (alert.at is not None and alert.at.timestamp(), alert.resolved))
            if shown and newest.resolved is not shown[-1].resolved and not self._gave_up(fingerprint):
                yield f"{fingerprint}: people were last told that it is {'over' if shown[-1].resolved else 'so'}"

    @property
    def alerts(self) -> list[Alert]:
        """Every alert that was sent."""
        return [alert for alerts in self._sent.values() for alert in alerts]

    def named(self, budget: str, day: Day) -> bool:
        """Whether an alert that names a budget was sent in a day."""
        of_day = (
            a for a in self.alerts if a.at and day.start_s <= (a.at - START).total_seconds() < day.end_s + SLACK_S
        )
        mine = (f"budget/{budget}/", f"budget {budget},")
        return any(a.fingerprint.startswith(mine) or a.what.startswith(mine) for a in of_day)

    def _gave_up(self, fingerprint: str) -> bool:
        return not self._dead.isdisjoint({(fingerprint, False), (fingerprint, True)})
