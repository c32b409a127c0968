"""Each group's quantiles held against what came later: run lengths of a trace's jobs, activity of pods' GPUs.

Every figure is foretold from what was over by then, by each of its groups alone, and held against what it came to; a
group is judged from its tenth on. Beside them: by the narrowest group that knew enough, and by all as one.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pilotlight.decide.demand.run_lengths import ALL, Foretold
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.tools.advice.run_quantiles import MeasuredError, RunLengths, measure_error
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import HOUR

PERCENT = 100


class RunGroup(NamedTuple):
    """A group at the end of a trace: how many were seen, P50 and P90 of them, and how later ones kept to them."""

    name: str
    seen: int
    quantiles: tuple[float, ...]
    later: MeasuredError


class RunGroups(NamedTuple):
    """The groups that know enough, the largest first; and the error by the narrowest of them, and by all as one."""

    rows: tuple[RunGroup, ...]
    narrowest: MeasuredError
    as_one: MeasuredError


class _RunJudge:
    """Foretells, learns and keeps what it said."""

    def __init__(self) -> None:
        self.known = RunLengths()
        self._seen: Counter[str] = Counter()
        self._told: dict[str, list[tuple[Foretold, float]]] = defaultdict(list)
        self._narrowest: list[tuple[Foretold, float]] = []

    def foretell(self, names: Sequence[str], came_to: float) -> None:
        """Hold what is known now against what it came to; nothing is learnt of that yet."""
        for name in names:
            if (found := self.known.foretold((name,))) is not None:
                self._told[name].append((found, came_to))
        if (found := self.known.foretold(names)) is not None:
            self._narrowest.append((found, came_to))

    def learn(self, names: Sequence[str], value: float) -> None:
        self.known.learn(names, value)
        self._seen.update(names)

    def groups(self) -> RunGroups:
        rows = [
            RunGroup(name, seen, found.lengths_s, measure_error(self._told[name]))
            for name, seen in self._seen.items()
            if (found := self.known.foretold((name,))) is not None
        ]
        rows.sort(key=lambda row: (-row.seen, row.name))
        return RunGroups(tuple(rows), measure_error(self._narrowest), measure_error(self._told[ALL]))


def groups_of(job: Job) -> tuple[str, ...]:
    """A job's groups, the narrowest first: its app, its team's shape, its team, its shape, all."""
    shape = f"{job.gpus}x{job.gpu_milli}"
    app = (f"app {job.group}",) if job.group else ()
    team = (f"team {job.team} {shape}", f"team {job.team}") if job.team else ()
    return (*app, *team, f"shape {shape}", ALL)


def learnt(jobs: Iterable[Job]) -> RunLengths:
    """The run lengths of jobs that have ended, by group."""
    known = RunLengths()
    for job in sorted(jobs, key=lambda j: j.submit_s + j.duration_s):
        known.learn(groups_of(job), job.duration_s)
    return known


def run_lengths(jobs: Iterable[Job]) -> RunGroups:
    """Each job foretold at its submit (seconds), where its run is taken to begin."""
    judge, running = _RunJudge(), list[tuple[float, int, Job]]()
    for n, job in enumerate(sorted(jobs, key=lambda j: j.submit_s)):
        while running and running[0][0] <= job.submit_s:
            ended = heapq.heappop(running)[2]
            judge.learn(groups_of(ended), ended.duration_s)
        judge.foretell(groups_of(job), job.duration_s)
        heapq.heappush(running, (job.submit_s + job.duration_s, n, job))
    for _, _, ended in sorted(running):
        judge.learn(groups_of(ended), ended.duration_s)
    return judge.groups()


def hourly_activity(telemetry: Telemetry, owner: Callable[[str], str]) -> RunGroups:
    """The most activity (percent) of each hour of each pod's GPU, foretold at its begin by the hours before."""
    judge = _RunJudge()
    hour = max(1, int(HOUR / telemetry.step_s))
    for first in range(0, telemetry.samples - hour + 1, hour):
        hours = []
        for one in telemetry.series:
            values = [value for value in one.activity[first : first + hour] if value == value]
            if 2 * len(values) >= hour:
                hours.append(((f"pod {one.pod}", f"owner {owner(one.pod)}", ALL), PERCENT * max(values)))
        for names, most in hours:
            judge.foretell(names, most)
        for names, most in hours:
            judge.learn(names, most)
    return judge.groups()
