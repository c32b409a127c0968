"""Options that commands which replay a trace have in common."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.tools.replay.traces.trace_file import DAY

MOST_S = 7 * DAY
"""The longest boot, detection or notice: more is a slip of the pen."""
MOST_USD = 1000.0
"""Dollars an hour of one disk: more is a slip of the pen."""
MOST_SHORTAGE = 0.95
"""With less stock than this a replay hardly ends; with none, never."""


class CapacityType(StrEnum):
    """Kinds of capacity that a replay buys."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    SPOT_AND_ON_DEMAND = "spot+on-demand"


class Shaping(StrEnum):
    """Ways in which Pilotlight shapes where jobs run."""

    HOMES = "homes"
    NONE = "none"
    AFFINITY = "affinity"
    GATED = "gated"


class Scoring(StrEnum):
    """Ways in which the cluster's scheduler prefers one node to another."""

    LEAST_ALLOCATED = "least-allocated"
    MOST_ALLOCATED = "most-allocated"


class StateKind(StrEnum):
    """Where a replay keeps its state."""

    MEMORY = "memory"
    SQLITE = "sqlite"


Trace = Annotated[str, typer.Argument(help="A trace: csv.gz of jobs.")]
PolicyFile = Annotated[str | None, typer.Option(help="Policy file; default: the example policy, no pool limits.")]
CatalogFile = Annotated[str | None, typer.Option(help="Catalogue of node types and prices.")]
Placement = Annotated[Shaping, typer.Option(help="How placement is shaped.")]
BootSeconds = Annotated[float | None, typer.Option(min=0, max=MOST_S, help="Boot time; default: the catalogue's.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]


def _writable(report: Path | None) -> Path | None:
    """The page, which can be written: seen before the run."""
    see_writable(report, folders=True)
    return report


Report = Annotated[Path | None, typer.Option(callback=_writable, help="Write a self-contained HTML page.")]
StandbyBootSeconds = Annotated[
    float | None,
    typer.Option(min=0, max=MOST_S, help="Start of a stopped node, in seconds; left out: none is ever stopped."),
]
ScoringOption = Annotated[
    Scoring,
    typer.Option("--scoring", help="How the scheduler prefers nodes: by kube-scheduler's defaults, or fullest first."),
]
JoinSpread = Annotated[
    float, typer.Option(min=0, max=MOST_S, help="Seconds within which nodes that are bought at once join.")
]
PullSeconds = Annotated[
    Path | None, typer.Option(help="Images that jobs pull on new nodes: a CSV of image,seconds,share[,team].")
]
DiskUsdPerHour = Annotated[float, typer.Option(min=0, max=MOST_USD, help="Price of a stopped node's disk.")]
Shortage = Annotated[float, typer.Option(min=0, max=MOST_SHORTAGE, help="Share of hours without capacity, by type.")]
SpotTrace = Annotated[
    list[str] | None, typer.Option(help="A zone, by when spot was up in it: an availability file; repeatable.")
]
DeletedShare = Annotated[
    float, typer.Option(min=0, max=1, help="Share of jobs whose pods are deleted at their end, as by KEDA or a TTL.")
]
