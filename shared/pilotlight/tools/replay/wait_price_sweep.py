"""One trace under many prices of waiting, beside the peers: every run in a process of its own."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

import msgspec

from pilotlight.facts.policy import Policy
from pilotlight.tools.replay.compare import Done, Trial, apart, log_to, one_peer
from pilotlight.tools.replay.measure import Outcome
from pilotlight.tools.replay.peers.names import ALWAYS_ON
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.traces.trace_job import Result

VALUES = tuple(Decimal(v) for v in (3, 6, 10, 20, 30, 60, 100, 300, 1000))
"""Dollars an hour of one job's waiting that are tried where none are named."""

PEERS = (
    ALWAYS_ON,
    "cluster-autoscaler",
    "cluster-autoscaler-pinned",
    "karpenter",
    "karpenter-pinned:0",
    "karpenter-pinned:300",
    "karpenter-pinned:900",
    "karpenter-pinned:3600",
    "keda",
    "s0-loop",
)
"""Everybody to stand beside."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A price of waiting, in dollars an hour of one job, and what a run under it came to."""

    value_of_wait: Decimal
    result: Result


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Ours by price of waiting, in the order asked for, and every peer's."""

    ours: tuple[Setting, ...]
    peers: tuple[Result, ...]


def sweep(
    values: Sequence[Decimal],
    peers: Sequence[str],
    policy: Policy,
    trial: Trial,
    *,
    on_done: Done,
    processes: int | None = None,
    logs: Path | None = None,
) -> Sweep:
    """Run them all. With ``logs`` each run's log is written into that folder, as ``log_name`` names it."""
    ours = {ours_name(v): partial(run_at, v, policy, trial, _log(logs, ours_name(v))) for v in values}
    # An always-on fleet has no events to tell.
    theirs = {n: partial(one_peer, n, trial, None if n == ALWAYS_ON else _log(logs, n)) for n in peers}
    tasks: dict[str, Callable[[], Outcome]] = {**ours, **theirs}
    _, results = apart(tasks, meanwhile=lambda: None, on_done=on_done, processes=processes)
    settings = (Setting(value_of_wait=v, result=o.result) for v, o in zip(values, results, strict=False))
    return Sweep(ours=tuple(settings), peers=tuple(o.result for o in results[len(values) :]))


def ours_name(value: Decimal) -> str:
    """Name of a run of ours."""
    return f"pilotlight at ${value}/h"


def log_name(run: str) -> str:
    """The file that a run's log has."""
    return "".join(c if c.isalnum() else "-" for c in run) + ".jsonl"


def _log(folder: Path | None, run_: str) -> Path | None:
    return folder / log_name(run_) if folder is not None else None


def run_at(value: Decimal, policy: Policy, trial: Trial, log: Path | None) -> Outcome:
    """Our run under one price of waiting."""
    trace, jobs, catalog, scenario, bound = trial
    priced = msgspec.structs.replace(policy, value_of_wait=value)
    with log_to(log) as write:
        return run(jobs, catalog, priced, scenario, trace=trace, bounds=bound, log=write).outcome
