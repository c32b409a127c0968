"""Judge of a gate, with an account of its own: machines that are billed, a day's run each, against the one budget.

A machine that is launched beyond the dollars is a violation, but for the gaps that docs/guides/karpenter.md names: each
is open from what makes it until the next look that was not disturbed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

RUN, HOUR = Decimal(32) * 24, Decimal(32)
"""What a machine takes at least: the longest run of its classes. What an hour of it costs."""
OWN = Decimal(24)
"""The same run on a node of a dollar that we buy by ourselves."""
SLACK = Decimal(950)
"""More than the product holds for a node and for some of our own."""


@dataclass
class GateJudge:
    """The dollars of one budget. ``found`` is what broke."""

    usd: Decimal
    found: list[str] = field(default_factory=list)
    launched: int = 0
    excused: int = 0
    unmetered: Decimal = Decimal(0)
    """Dollars of machines that were never a node: a bill alone tells of those."""
    _since: dict[str, datetime] = field(default_factory=dict)
    _joined: set[str] = field(default_factory=set)
    _settled: Decimal = Decimal(0)
    _gaps: set[str] = field(default_factory=set)
    _lost: int = 0
    _own: int = 0

    def opens(self, gap: str) -> None:
        """A named gap is open until a look."""
        self._gaps.add(gap)

    def lost(self, machines: int) -> None:
        """So many machines went unforeseen, or were planned before: as many may run twice until a look."""
        self._lost += machines

    def looked(self) -> None:
        """A look that nothing disturbed: every gap is closed."""
        self._gaps.clear()
        self._lost = 0

    def sees(self, machines: Mapping[str, bool], now: datetime, own: int, did: list[str]) -> None:
        """What is billed now, and whether each is a node."""
        for name in self._since.keys() - machines.keys():
            hours = Decimal((now - self._since.pop(name)).total_seconds()) / 3600
            if name in self._joined:
                self._settled += hours * HOUR
            else:
                self.unmetered += hours * HOUR
        self._joined |= {name for name, joined in machines.items() if joined}
        fresh = machines.keys() - self._since.keys()
        self.launched += len(fresh)
        self._since |= dict.fromkeys(fresh, now)
        over = self.at_risk(own) > self.usd
        if over and own > self._own:
            self.found.append(f"we bought over the dollars: {did[-8:]}")
        if over and fresh and not self._gaps:
            beyond = min(len(fresh), int(-((self.usd - self.at_risk(own)) // RUN)))
            self.excused += min(beyond, self._lost)
            if beyond > self._lost:
                self.found.append(f"{beyond} launched over the dollars, {self._lost} of them named: {did[-8:]}")
            self._lost = max(0, self._lost - beyond)
        elif over and fresh:
            self.excused += len(fresh)
        self._own = own

    def at_risk(self, own: int) -> Decimal:
        """Dollars that are spent, or will be by what is lit."""
        return self._settled + len(self._since) * RUN + own * OWN

    def ends(self, opened: int, most: int, kept_free: int, did: list[str]) -> None:
        """At the end, calm: a machine that there are dollars for may be lit, and none beyond."""
        room = self.usd - self.at_risk(self._own)
        if opened < 1 <= most and room >= SLACK * (1 + kept_free):
            self.found.append(f"${room:.0f} are free, and nothing is open: {did[-8:]}")
        if opened * RUN > max(room + self._own * OWN, Decimal(0)):  # Ours never join here, and are given up by then.
            self.found.append(f"{opened} are open, and ${room:.0f} are free: {did[-8:]}")
