"""Waste of a cluster's GPUs, paid for and not used: told once a day at most, by owner and with the evidence.

Only where telemetry is set up. Where it cannot be read nothing is claimed, and the tick says that it is absent. The
alert has the day for a fingerprint: two ticks at once, or one after a crash, tell people once.
"""

from datetime import datetime

import msgspec

from pilotlight.decide.utilisation.cluster_use import Found, Wasted, find_waste
from pilotlight.errors import BadInput, Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.messages import Alert
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.flow.answer import tell_once, was_noticed
from pilotlight.flow.deps import Deps
from pilotlight.ports.cluster import GpuTelemetry
from pilotlight.state_schema.marks import NOTICED, Mark
from pilotlight.units import HOUR, Seconds, UsdPerHour, an_hour, count_of, round_usd

LOOK_S: Seconds = 6 * HOUR
"""So often is looked at most, until something was told that day; what cannot be read is tried again in an hour."""
BACK_S: Seconds = 24 * HOUR
BEHIND_S: Seconds = 120
"""Managed Prometheuses take a sample in so late."""
LEAST = UsdPerHour(1)
"""Dollars an hour: less is nobody's worth a message."""
NAMED = 5
"""So many owners are named."""


def watch(deps: Deps, now: datetime) -> tuple[str, ...]:
    """Look, where that is due; a line on what was found."""
    told, looked = f"waste/{now:%Y-%m-%d}", "waste-looked"
    if deps.telemetry is None or was_noticed(deps, looked) or was_noticed(deps, told):
        return ()
    try:
        end_s = now.timestamp() - BEHIND_S
        read = on_its_grid(deps.telemetry, end_s - BACK_S, end_s)
    except (Retry, Denied, BadInput) as error:
        NOTICED.put(deps.state, f"{deps.name}/{looked}", Mark(), ttl_s=HOUR)
        return (f"waste: telemetry: absent: {error}",)
    nodes = deps.observe().nodes
    found = find_waste(read, nodes, node_prices(deps, nodes))
    if found.usd_per_hour >= LEAST:
        tell_once(deps, _alert(deps, found, read.metric, told, now))
    NOTICED.put(deps.state, f"{deps.name}/{looked}", Mark(), ttl_s=LOOK_S)
    return _said(found)


def node_prices(deps: Deps, nodes: tuple[Node, ...]) -> dict[str, UsdPerHour]:
    """Dollars an hour by node, of those that are what the policy says of their pool."""
    offered = {(one.pool, one.instance_type, one.capacity_type): one.usd_per_hour for one in deps.offerings}
    by_node = {node.name: offered.get((node.pool, node.instance_type, node.capacity_type)) for node in nodes}
    return {name: usd for name, usd in by_node.items() if usd is not None}


def _said(found: Found) -> tuple[str, ...]:
    lines = [f"waste: {_line(one)}" for one in found.owners[:NAMED]]
    if found.unseen:
        lines.append(f"waste: telemetry: absent of {count_of(found.unseen, 'GPU pod')}: nothing is claimed of them")
    return tuple(lines)


def _line(one: Wasted) -> str:
    usd = "at a price that is not known" if one.usd_per_hour is None else an_hour(one.usd_per_hour)
    return f"{one.owner}: {one.gpus:.3g} of {one.held:.3g} GPUs, {usd}: {one.why}"


def _alert(deps: Deps, found: Found, metric: str, fingerprint: str, now: datetime) -> Alert:
    more = len(found.owners) - NAMED
    listed = " | ".join(_line(one) for one in found.owners[:NAMED])
    unseen = f"; telemetry: absent of {count_of(found.unseen, 'GPU pod')}" if found.unseen else ""
    gpus, owners = sum(one.gpus for one in found.owners), count_of(len(found.owners), "owner")
    return Alert(
        cluster=deps.name,
        kind="waste",
        severity="info",
        fingerprint=fingerprint,
        what=f"{gpus:.3g} GPUs of {owners} are held and not used: {an_hour(found.usd_per_hour)}",
        why=f"by {metric}: {listed}{f' | and {more} more' if more > 0 else ''}{unseen}",
        next="nothing is done by it: classes.NAME.reclaim puts owners to rest; told once a day at most",
        how="pilotlight waste",
        usd_per_hour=str(round_usd(found.usd_per_hour)),
        at=now,
    )


STEPS_S: tuple[Seconds, ...] = (60, 120, 300, 600)
"""Steps that are tried, until most have a sample: scrapes are seldom rarer."""


def on_its_grid(telemetry: GpuTelemetry, start_s: float, end_s: float) -> Telemetry:
    """By the finest step that is not sparse; where each is, the gaps are real, and the finest. With the week before it.
    Raises as ``read``.
    """
    finest = telemetry.read(start_s, end_s, STEPS_S[0])
    coarser = (telemetry.read(start_s, end_s, step_s) for step_s in STEPS_S[1:])
    read = (
        finest if not finest.sparse() else next((read for read in coarser if read.series and not read.sparse()), finest)
    )
    return msgspec.structs.replace(read, past=telemetry.past(end_s)) if read.series else read
