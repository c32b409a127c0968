"""Tells what waits once it is due: by a tick, or beside the next alert. Nothing of it needs a process that stays."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import msgspec

from pilotlight.decide.alerts.alert_routing import quiet_until
from pilotlight.errors import Conflict, Retry
from pilotlight.facts.alerts.channel_policy import Alerts
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.flow.abreast import abreast
from pilotlight.flow.answer import Answer
from pilotlight.flow.delivery.deliver import (
    LOOK_AGAIN_S,
    MOST_ATTEMPTS,
    Claim,
    claim,
    deliver,
    drop,
    give_up,
    resting,
    wait,
)
from pilotlight.flow.delivery.desk import (
    Desk,
    acknowledged_by,
    proof,
    reason_not_to_tell,
    unfinished_beginning,
)
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.alert_records import WAITING
from pilotlight.state_schema.marks import FLUSH, Mark
from pilotlight.state_schema.table import Entry
from pilotlight.units import Seconds

AT_MOST_S: Seconds = 45.0
"""A flush begins no further message after this long, and the next one goes on."""
MOST_TOGETHER = 500
"""Alerts told as one."""
MOST_READ = 2 * MOST_TOGETHER
"""Alerts of a channel that are due: a flush reads no more of them. The oldest of these go first."""

_AFTER_SLASH = chr(ord("/") + 1)
"""Names that begin with ``c/ops/`` come before ``c/ops0``."""


def flush(desk: Desk, *, dry_run: bool = False) -> Answer:
    """Tell all that is due; a dry run counts it. Raises ``Retry`` kinds where the store does not answer."""
    now = desk.now()
    due: dict[str, list[Entry[Telling]]] = defaultdict(list)
    later = []
    for entry in _worth_a_look(desk, now):
        when = entry.value.due
        if when is None or when <= now:
            due[entry.value.channel].append(entry)
        else:
            later.append(when)
    if dry_run:
        counts = ", ".join(f"{len(found)} to {name}" for name, found in due.items())
        return Answer(decision="", did=(), why=f"dry run: would tell {counts or 'nothing'}")
    words = abreast({name: partial(_flush, desk, name, found) for name, found in due.items()}, 2 * AT_MOST_S)
    for word in words.values():
        if isinstance(word, Exception):
            raise word
    waits = f"{len(later)} alert{'s' if len(later) > 1 else ''} wait" if later else "nothing waits"
    said = tuple(f"{name}: {word}" for name, word in words.items() if word)
    return Answer(decision="", did=said, why=waits, look_again_at=min(later, default=None))


def _worth_a_look(desk: Desk, now: datetime) -> Iterator[Entry[Telling]]:
    """Alerts that wait, channel by channel: of one that rests only the first, of others until enough is due. So a
    flush costs what it tells, however much waits behind."""
    after = ""
    while (first := next(WAITING.scan(desk.state, after=after), None)) is not None:
        of_channel, found = first.name.rpartition("/")[0], 0
        if (until := resting(desk, first.value.channel)) is not None:
            yield first._replace(value=msgspec.structs.replace(first.value, due=until))
        else:
            for entry in WAITING.scan(desk.state, f"{of_channel}/"):
                yield entry
                found += entry.value.due is None or entry.value.due <= now
                if found == MOST_READ:
                    break
        after = f"{of_channel}{_AFTER_SLASH}"


def flush_now_and_then(desk: Desk) -> None:
    """Flush, unless that was done just now. Best effort: the next alert or tick does it too."""
    with suppress(Retry):
        FLUSH.put(desk.state, "all", Mark(), if_version=ABSENT)
        flush(desk)


def _flush(desk: Desk, name: str, found: Sequence[Entry[Telling]]) -> str:
    """Tell one channel what is due, the oldest first, until it has to rest; a word on it."""
    if resting(desk, name) is not None:
        return ""
    began, said = desk.now(), Counter[str]()
    for batch in _batches(desk.policy, found):
        claims = [ours for entry in batch if (ours := _taken(desk, name, entry)) is not None]
        if claims:
            said[deliver(desk, name, claims)] += 1
        late = desk.now() - began > timedelta(seconds=AT_MOST_S)
        if late or (claims and resting(desk, name) is not None):
            break
    return ", ".join(word if times == 1 else f"{word} ({times} times)" for word, times in said.items())


def _batches(policy: Alerts, found: Sequence[Entry[Telling]]) -> list[list[Entry[Telling]]]:
    """Alerts that are told together: a burst's alerts of one kind, and any kind of which too many are due at once."""
    kinds: dict[tuple[str, str, bool], list[Entry[Telling]]] = defaultdict(list)
    for entry in sorted(found, key=lambda entry: entry.value.since):
        alert = entry.value.alert
        kinds[alert.cluster, alert.kind, alert.resolved].append(entry)
    out: list[list[Entry[Telling]]] = []
    for same in kinds.values():
        many = 0 < policy.group_after < len(same)
        together = [entry for entry in same if many or entry.value.held]
        out += [together[n : n + MOST_TOGETHER] for n in range(0, len(together), MOST_TOGETHER)]
        out += [[entry] for entry in same if not many and not entry.value.held]
    return sorted(out, key=lambda batch: batch[0].value.since)


def _taken(desk: Desk, name: str, entry: Entry[Telling]) -> Claim | None:
    """A telling that is due, ours to deliver now; None where that is not to be, which is noted."""
    telling, alert, now = entry.value, entry.value.alert, desk.now()
    if telling.status == "claimed":  # Its deliverer died, perhaps after it was shown.
        telling = msgspec.structs.replace(telling, unsure=telling.unsure + 1, attempts=telling.attempts + 1)
    try:
        ours = claim(desk, entry.name, telling, entry.version)
    except Conflict:
        return None
    if alert.resolved and unfinished_beginning(desk.state, name, alert):
        wait(desk, ours, now + timedelta(seconds=LOOK_AGAIN_S), "its beginning is still being told")
    elif reason_not_to_tell(proof(desk.state, name, alert), alert, now, desk.rules(name).again_after) or _seen_to(
        desk, telling
    ):
        drop(desk, ours)
    elif name not in desk.channels:
        give_up(desk, ours, "the policy names no such channel any more")
    elif telling.attempts >= MOST_ATTEMPTS and not telling.late:
        give_up(desk, ours, f"whoever tried died {telling.attempts} times")
    elif (quiet := quiet_until(desk.rules(name).quiet_hours, alert, now)) is not None:
        wait(desk, ours, quiet, "quiet hours")
    else:
        return ours
    return None


def _seen_to(desk: Desk, telling: Telling) -> bool:
    """True where an alert that goes on from another channel, or was given up, is acknowledged."""
    return bool((telling.after or telling.late) and acknowledged_by(desk.state, telling.alert))
