"""Capacity in flight, asked for by a cluster's decisions and not there yet.

Keys: ``inflight/<cluster>/<decision>.<n>``. An entry for more demands than one value holds goes on in
``inflight/<cluster>/<decision>.<n>+<part>``.
"""

import msgspec

from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.ports.state import State
from pilotlight.state_schema.flight_records import IN_FLIGHT
from pilotlight.units import HOUR

MOST_DEMANDS = 5000
"""Pod uids of one entry in flight: about 200 KB."""
KEEP_PARTS_S = 24 * HOUR
"""Parts of an entry are left to expire: long after it came, or was given up."""


def in_flight(state: State, cluster: str) -> list[tuple[str, InFlight]]:
    """Every entry of capacity asked for, with its name, oldest first."""
    out: list[tuple[str, InFlight]] = []
    for entry in IN_FLIGHT.scan(state, f"{cluster}/"):
        whole, _, part = entry.name.partition("+")
        if not part:
            out.append((entry.name, entry.value))
        elif out and out[-1][0] == whole:
            demands, homes = out[-1][1].demands + entry.value.demands, out[-1][1].homes + entry.value.homes
            out[-1] = whole, msgspec.structs.replace(out[-1][1], demands=demands, homes=homes)
    return out


def flight_name(cluster: str, decision: str, n: int) -> str:
    """The name of the entry that a decision's step number ``n`` makes."""
    return f"{cluster}/{decision}.{n}"


def flight(state: State, name: str) -> InFlight | None:
    """One entry of capacity asked for, without its further parts."""
    found = IN_FLIGHT.get(state, name)
    return found.value if found else None


def write_flight(state: State, name: str, entry: InFlight) -> None:
    """Write an entry of capacity asked for. Its parts come first: without the entry they count for nothing."""
    demands, homes = entry.demands, entry.homes
    for part, start in enumerate(range(MOST_DEMANDS, len(demands), MOST_DEMANDS), 1):
        here = slice(start, start + MOST_DEMANDS)
        more = msgspec.structs.replace(entry, count=0, demands=demands[here], homes=homes[here])
        IN_FLIGHT.put(state, f"{name}+{part:04d}", more, ttl_s=KEEP_PARTS_S)
    IN_FLIGHT.put(
        state, name, msgspec.structs.replace(entry, demands=demands[:MOST_DEMANDS], homes=homes[:MOST_DEMANDS])
    )


def forget_flight(state: State, name: str) -> None:
    """It came, or never will."""
    IN_FLIGHT.delete(state, name)
