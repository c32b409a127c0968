"""Alert -> the channels that want it, each told once.

Claim first, then deliver: a channel's claim on a fingerprint lapses soon when the deliverer dies, and stays once it
has been told. Channels are tried side by side, so one that is down delays no other.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b

from pilotlight.codec.records import MARK, Mark
from pilotlight.errors import Conflict, Denied, Reject, Retry, Throttled
from pilotlight.facts.messages import Alert
from pilotlight.facts.policy import Alerts
from pilotlight.flow.deps import Answer
from pilotlight.ports import ABSENT, Channel, State
from pilotlight.units import Seconds

CLAIM_S: Seconds = 120
"""Longer than a channel may take with all its attempts."""
TOLD_S: Seconds = 6 * 3600
"""The same fingerprint is news again after this long."""

_CLAIMED, _TOLD = MARK.write(Mark(note="claimed")), MARK.write(Mark(note="told"))
_RANK = {"info": 0, "warning": 1, "critical": 2}


def fan_out(
    channels: Mapping[str, Channel], state: State, policy: Alerts, alert: Alert, *, dry_run: bool = False
) -> Answer:
    """Deliver one alert. Raises ``Throttled`` when a channel should be tried again; the others stay told."""
    wanted = _wanted(policy, alert)
    if dry_run or not wanted:
        return Answer(decision="", did=(), why=_route(wanted, alert))
    with ThreadPoolExecutor(max_workers=len(wanted)) as pool:
        tellings = {name: pool.submit(_tell, name, channels[name], state, alert) for name in wanted}
    outcomes = {name: telling.result() for name, telling in tellings.items()}
    failed = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Retry)}
    if failed:
        reasons = "; ".join(f"{name}: {error}" for name, error in failed.items())
        raise Throttled(f"not delivered to {reasons}", max(error.after_s for error in failed.values()))
    return Answer(
        decision="", did=tuple(f"{name}: {said}" for name, said in outcomes.items()), why=_route(wanted, alert)
    )


def _wanted(policy: Alerts, alert: Alert) -> list[str]:
    rank = _RANK[alert.severity]
    return [name for name, channel in policy.channels.items() if rank >= _RANK[channel.min_severity]]


def _route(wanted: list[str], alert: Alert) -> str:
    to = ", ".join(wanted) or "no channel"
    return f"{alert.severity} alerts go to {to}"


def _tell(name: str, channel: Channel, state: State, alert: Alert) -> str | Retry:
    """What became of one channel: a word on it, or the error after which to come again."""
    digest = blake2b(alert.fingerprint.encode(), digest_size=16).hexdigest()
    key = f"alert/{alert.cluster}/{name}/{digest}"
    try:
        version = state.put(key, _CLAIMED, if_version=ABSENT, ttl_s=CLAIM_S)
    except Conflict:
        return "told before"
    except Retry as error:
        return error
    try:
        channel.deliver(alert)
    except (Denied, Reject) as error:
        said = f"gave up: {error}"
    except Retry as error:
        return _released(state, key, version, error)
    else:
        said = "told"
    with suppress(Retry):  # It was told; a claim that lapses may tell it once more, which is better than never.
        state.put(key, _TOLD, if_version=version, ttl_s=TOLD_S)
    return said


def _released(state: State, key: str, version: int, error: Retry) -> Retry:
    with suppress(Retry):  # The claim lapses by itself.
        state.delete(key, if_version=version)
    return error
