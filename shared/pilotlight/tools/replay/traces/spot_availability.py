"""When spot was up in a zone, as JSON, -> its history, or ticks.

``{"gap_s": seconds of a tick, "runs": [[value, ticks], ...]}``: up where the value is above 0. ``zone`` and ``nodes``,
the most that was asked for at once, may stand beside them.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import chain, repeat
from pathlib import PurePath

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.units import Seconds

MOST_TICKS = 10_000_000
"""Years of minutes; a file that says more is not believed."""


class Availability(msgspec.Struct, frozen=True):
    """Availability of spot: up or not, by ticks of ``gap_s``."""

    gap_s: Seconds
    up: tuple[bool, ...]

    def thin_out(self, tick_s: Seconds) -> "Availability":
        """With ticks of about ``tick_s``, each up where all that it is made of were."""
        k = max(1, round(tick_s / self.gap_s))
        up = tuple(all(self.up[n : n + k]) for n in range(0, len(self.up) - k + 1, k))
        return Availability(gap_s=self.gap_s * k, up=up)


class _File(msgspec.Struct):
    gap_s: float
    runs: list[tuple[int, int]]
    zone: str = ""
    nodes: int = 1


def read_zone(text: bytes, where: str) -> ZoneHistory:
    """The file ``text``; ``where`` is what errors call it, and the zone where it names none. Raises ``BadInput``."""
    try:
        said = typed_json.decode(text, _File)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"{where}: {error}: write gap_s and runs of [value, ticks]") from None
    if not 0 < said.gap_s < 1e7:
        raise BadInput(f"{where}: gap_s is {said.gap_s}: write the seconds of a tick")
    if any(ticks < 0 for _, ticks in said.runs) or not 0 < sum(ticks for _, ticks in said.runs) <= MOST_TICKS:
        raise BadInput(f"{where}: runs must have 1 to {MOST_TICKS:,} ticks in all")
    if any(value < 0 for value, _ in said.runs):
        raise BadInput(f"{where}: a value of runs is below 0: write how many nodes could run, or 0 and 1")
    zone = said.zone or PurePath(where).name.removesuffix(".json")
    return ZoneHistory(zone=zone, gap_s=said.gap_s, nodes=said.nodes, runs=tuple(said.runs))


def named_apart(zones: Iterable[ZoneHistory]) -> tuple[ZoneHistory, ...]:
    """Zones with names of their own: the second of a name is "NAME-2"."""
    seen: Counter[str] = Counter()
    out: list[ZoneHistory] = []
    for zone in zones:
        seen[zone.zone] += 1
        name = zone.zone if seen[zone.zone] == 1 else f"{zone.zone}-{seen[zone.zone]}"
        out.append(msgspec.structs.replace(zone, zone=name))
    return tuple(out)


def read_availability(text: bytes, where: str) -> Availability:
    """The ticks of the file ``text``. Raises ``BadInput``."""
    zone = read_zone(text, where)
    up = tuple(chain.from_iterable(repeat(value > 0, ticks) for value, ticks in zone.runs))
    return Availability(gap_s=zone.gap_s, up=up)
