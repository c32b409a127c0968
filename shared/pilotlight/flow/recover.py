"""Settles what a dead worker left open: what came of each call is read from the cloud, what was to be sent is sent."""

import msgspec

from pilotlight.errors import Denied
from pilotlight.facts.decisions import Effect, Record
from pilotlight.flow import ledger
from pilotlight.flow.deps import Deps
from pilotlight.flow.lease import Lease
from pilotlight.flow.sight import Sight
from pilotlight.flow.tell import messages_of, send


def recover(deps: Deps, sight: Sight, held: Lease) -> bool:
    """Close every open record of the cluster. Whether there were any: then what was read is out of date.

    Raises ``Busy`` where the lease was lost meanwhile: then an open record is its new holder's, at work.
    """
    left = ledger.open_records(deps.state, deps.name)
    if left:
        held.keep(sure=True)
    for record in left:
        _settle(deps, sight, record)
    if left:
        sizes = {p.name: p.desired for p in sight.pools}
        memory = ledger.recall(deps.state, deps.name)
        ledger.remember(deps.state, deps.name, msgspec.structs.replace(memory, sizes=sizes))
    return bool(left)


def _settle(deps: Deps, sight: Sight, record: Record) -> None:
    settled = record
    if not record.messages or any(effect.outcome == "planned" for effect in record.effects):
        effects = tuple(_outcome(deps, sight, record, index) for index in range(len(record.effects)))
        messages = messages_of(deps, record.plan, effects, record.id, record.at)
        settled = msgspec.structs.replace(record, effects=effects, messages=messages)
        ledger.write(deps.state, settled)
    send(deps, settled.messages)
    ledger.close(deps.state, settled)


def _outcome(deps: Deps, sight: Sight, record: Record, index: int) -> Effect:
    effect = record.effects[index]
    if effect.outcome != "planned":
        return effect
    if effect.call == "release":
        return _known(effect, _gone(deps, sight, record, index))
    size = next((p.desired for p in sight.pools if p.name == effect.pool), 0)
    came = _came(deps, record, index, size)
    if 0 < came < effect.count:
        note = f"{came} of {effect.count} came before its worker lost touch with the cloud"
        return msgspec.structs.replace(effect, outcome="denied", count=came, note=note)
    return _known(effect, came > 0)


def _came(deps: Deps, record: Record, index: int, size: int) -> int:
    """How many nodes a pool was grown by: as its size tells, where the ledger entry shows that the call was near.

    The entry is written just before the call; it is left with what came.
    """
    key = ledger.flight_key(deps.name, record.id, index)
    entry = ledger.flight(deps.state, key)
    if entry is None:
        return 0
    effect = record.effects[index]
    came = max(0, min(effect.count, effect.count - (effect.to - size)))
    if not came:
        deps.state.delete(key)
    elif came < effect.count:
        ledger.write_flight(deps.state, key, msgspec.structs.replace(entry, count=came, demands=()))
    return came


def _known(effect: Effect, happened: bool) -> Effect:
    note = "settled after its worker died, by reading the cloud"
    return msgspec.structs.replace(effect, outcome="done" if happened else "undone", note=note)


def _gone(deps: Deps, sight: Sight, record: Record, index: int) -> bool:
    """Whether a node to be released is gone. One that is still there may bind pods again."""
    verdict = record.plan.releases[index - len(record.plan.buys)]
    node = next((n for n in sight.view.nodes if n.name == verdict.node), None)
    ours = verdict.registered and not verdict.frozen  # One that the cloud takes, or a budget froze, stays cordoned.
    if node is not None and not node.schedulable and ours:
        try:
            deps.cluster.uncordon(node.name)
        except Denied:
            return False
    booting = {b.instance for pool in sight.pools for b in pool.booting}
    return node is None and verdict.instance not in booting
